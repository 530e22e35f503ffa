"""Outputs of the commands: files, standard output, messages."""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ptclust.cli._terminal import in_options, progress_display, say
from ptclust.errors import FileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ptclust._types import Array
    from ptclust.cli._options import PlaceOptions
    from ptclust.release import Release


STDIN = STDOUT = Path("-")


@contextmanager
def held_outputs(
    files: Mapping[str, Path | None],
    reads: Mapping[str, Path | None],
    overwrite: Iterable[Path] | None,
    *,
    as_json: bool = False,
    remedy: str = "",
) -> Iterator[Callable[[str], None]]:
    """Hold the names of outputs, by option, while they are made: none destroys another file.

    Yields a progress callback. UsageError if an output is one of the files that are read, or two
    are one file; FileError if one cannot be written, or exists and is not to be overwritten. Names
    without a file go again.
    """
    from ptclust._files import check_writable, reserved, same_file

    given = {option: path for option, path in files.items() if path is not None}
    written = {option: path for option, path in given.items() if path != STDOUT}
    for option in (option for option in given if option not in written):
        if option != "--output":
            raise UsageError(f"{option} - is not possible: only --output can be standard output")
        if as_json:
            raise UsageError("--output - and --json both write to standard output; leave one out")
    known = written | {what: path for what, path in reads.items() if path is not None}
    for (option, path), (other, there) in combinations(known.items(), 2):
        same = _is_stdin(path) if there == STDIN else same_file(path, there)
        if option in written and same:
            raise UsageError(f"{option} {path} and {other} {there} are one file: give another name")
    entries = set(map(_entry, written.values()))
    replaced = {_entry(path): path for path in overwrite or ()}
    for entry, path in replaced.items():
        if entry not in entries:
            raise UsageError(f"--overwrite {path} names no output of this command; leave it out")
    if (plot := given.get("--plot")) is not None:
        from ptclust.drawing.plots import check_format

        check_format(plot)
    with ExitStack() as names:
        for path in written.values():
            if _entry(path) in replaced:
                check_writable(path)
            else:
                option = f"--overwrite {shlex.quote(str(path))}"
                either = f"{remedy}give another name, or {option} if that file is not wanted"
                names.enter_context(reserved(path, either))
        yield names.enter_context(progress_display())


def ledger_files(book: Any) -> dict[str, Path | None]:
    """Return the files of a ledger, which no output may replace."""
    journal = None if book is None else Path(f"{os.path.realpath(book)}-journal")
    return {"--ledger": book, "its journal": journal}


def _entry(path: Path) -> str:
    """Return the place of a name in its directory: a link is not the file that it leads to."""
    return os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118


def _is_stdin(path: Path) -> bool:
    """Return whether standard input is read from this file."""
    try:
        return os.path.samestat(os.fstat(0), path.stat())
    except OSError:  # there is no such file yet, or no standard input
        return False


def write_release(release: Release, output: Path) -> None:
    """Write a release to its file, whose name is held, or to stdout."""
    from ptclust.release.format import encode

    if output != STDOUT:
        release.save(output, overwrite=True)
        return
    try:
        sys.stdout.write(encode(release).decode())
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError):  # or Python tries again when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise FileError(f"standard output could not be written: {error.strerror}") from error


def write_views(
    release: Release,
    labels: Path | None,
    plot: Path | None,
    *,
    escape_formulas: bool,
    coordinates: Any = None,
) -> None:
    """Write the labels of a release and its picture, where these are wanted."""
    if labels is not None and labels.suffix.lower() == ".parquet":
        release.to_parquet(labels, overwrite=True)
    elif labels is not None:
        release.to_csv(labels, escape_formulas=escape_formulas, overwrite=True)
    if plot is not None:
        from ptclust.drawing.plots import save_plot

        save_plot(partial(release.plot, coordinates), plot)


def read_places(options: PlaceOptions, names: Array) -> dict[str, Any]:
    """Return where the nodes are and what they are called, as far as a file says it."""
    if (file := options.coordinates) is None:
        return {}
    from ptclust.report import read_coordinates, read_names

    columns = {"node": options.node, "x": options.x, "y": options.y}
    known: dict[str, Any] = {
        "coordinates": read_coordinates(file, names, **columns, degrees=options.degrees),
        "degrees": options.degrees,
    }
    if options.name is not None:
        known["names"] = read_names(file, names, node=options.node, name=options.name)
    return known


def say_how_sure(release: Release) -> None:
    """Say how many clusters and nodes are sure, if known, and what to do if they are too few."""
    for line in filter(None, (release.summary.certainty_words, *map(in_options, release.advice))):
        say(line)


def place(output: Path) -> str:
    """Return where an output is, in words."""
    return "standard output" if output == STDOUT else str(output)


def print_result(document: Any, text: str, *, as_json: bool) -> None:
    """Write what a command found to stdout, as JSON or as text."""
    typer.echo(json.dumps(document, indent=2) if as_json else text)
