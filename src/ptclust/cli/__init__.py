"""The command line: commands, and no logic. Results to files or stdout, messages to stderr."""

from __future__ import annotations

from typing import Annotated

import typer

from ptclust._version import __version__
from ptclust.cli import audit, build, curator, ledger, publish, releases
from ptclust.cli._terminal import in_options, options_of, say, shown_warnings
from ptclust.errors import PtclustError

_INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    audit.demo,
    publish.plan,
    publish.cluster,
    publish.series,
    releases.show,
    releases.report,
    releases.recluster,
    releases.export,
    curator.check,
    curator.dbmstclu,
    audit.audit,
):
    app.command(_command.__name__)(_command)
app.add_typer(build.build, name="build")
app.add_typer(ledger.ledger, name="ledger")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ptclust {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Cluster the nodes of a weighted graph, with its weights differentially private or without.

    Exit codes: 0 ok, 1 internal error, 2 wrong usage, 3 bad input, 4 budget refused, 5 claim
    refuted, 130 interrupted.
    """


def main(commands: typer.Typer = app, name: str = "ptclust") -> None:
    """Run the command line; an error raised on purpose is one line on stderr and an exit code.

    What errors and warnings say of Python's arguments is said of options here.
    """

    def show(text: str) -> None:
        say(f"{name}: {in_options(text, options_of(commands))}")

    try:
        with shown_warnings(lambda text: show(f"warning: {text}")):
            commands()
    except PtclustError as error:
        show(str(error))
        raise SystemExit(error.exit_code) from None
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            say(f"{name}: interrupted; no file was left half-written")
        raise
