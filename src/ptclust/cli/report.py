"""``ptclust report``: a release as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptclust.cli import _options as o


@o.command
def report(
    release: Annotated[
        Path, typer.Argument(help="A release of `cluster`.", readable=False, show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the page to this HTML file.")
    ],
    places: o.PlaceOptions,
    publisher: o.PublisherOptions,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    overwrite: o.Overwrite = None,
) -> None:
    """Write a release as one page of HTML that needs no network; spends nothing."""
    from ptclust.cli import _results as results
    from ptclust.cli._terminal import progress_display, say
    from ptclust.errors import UsageError
    from ptclust.release import Release
    from ptclust.report import write_report

    if output == results.STDOUT:
        raise UsageError("a page is written to a file: --output report.html")
    reads = {"the release": release, "--coordinates": places.coordinates}
    with (
        results.held_outputs({"--output": output}, reads, overwrite),
        progress_display() as progress,
    ):
        progress(f"Reading {release.name}")
        made = Release.load(release)
        progress("Drawing")
        known = results.read_places(places, made.names)
        write_report(
            made,
            output,
            **known._asdict(),
            title=title,
            publisher=publisher.given,
            overwrite=True,
        )
    say(f"{results.found(made)} in {output}. Open it in a browser; nothing was spent.")
