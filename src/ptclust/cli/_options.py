"""Options of the commands, in groups: a command takes a group as one typed object.

``@command`` spreads the fields of the groups out into options, and puts them together again for the
function. What is requested of a release is declared in `ptclust._options`, and checked once, by the
request it becomes; here are the options that the command line alone has.
"""

from __future__ import annotations

import functools
import inspect
import os
from dataclasses import MISSING, dataclass, fields, is_dataclass
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from ptclust._options import Certainty, GraphOptions, Option, Per, PlanOptions, ReleaseOptions
from ptclust._traces import leaves_no_trace
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptclust.inputs import GraphFile
    from ptclust.pipeline import ReleaseRequest
    from ptclust.planning.plan import PlanRequest
    from ptclust.series import SeriesBudget


def number(given: str | float) -> float | Fraction:
    """Return the number that was written, never a larger one: ten times 0.1 fit in a budget of 1.

    >>> number("0.1"), number("0.3"), number("1/3")
    (Fraction(1, 10), 0.3, Fraction(1, 3))
    """
    text = str(given)  # a default comes as a number
    try:
        if "/" in text:
            return Fraction(text)
        nearest = float(text)
        if nearest == 0 or not isfinite(nearest):
            return nearest
        written = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"{text!r} is not a number") from None
    return written if written < nearest else nearest


def _mechanisms(incomplete: str) -> list[str]:
    from ptclust.mechanisms import MECHANISMS

    return [name for name in ("auto", *MECHANISMS.names) if name.startswith(incomplete)]


def _clusterers(incomplete: str) -> list[str]:
    from ptclust.clustering import CLUSTERERS

    return [name for name in ("auto", *CLUSTERERS.names) if name.startswith(incomplete)]


_COMPLETIONS = {"mechanism": _mechanisms, "clusterer": _clusterers}

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]
Overwrite = Annotated[
    list[Path] | None,
    Option("Replace this output file if it exists; give it for every such file.", metavar="FILE"),
]
EscapeFormulas = Annotated[
    bool, Option("Write ' before names that spreadsheets would take for formulas (CSV).", rare=True)
]
LabelsFile = Annotated[Path | None, Option("Write node,cluster to this CSV or Parquet file too.")]
Plot = Annotated[Path | None, Option("Draw the clustered tree to this PNG, SVG or PDF file.")]
Report = Annotated[Path | None, Option("Write an HTML report to this file, too.")]
ReleaseFile = Annotated[
    Path, typer.Argument(help="A release of `cluster`.", readable=False, show_default=False)
]


@dataclass(frozen=True, kw_only=True)
class GraphArguments(GraphOptions):
    """The file with the graph, and how to read it."""

    edges: Annotated[
        Path,
        typer.Argument(
            help="The graph: csv, tsv, txt (also .gz), parquet, graphml, mtx, npz, or - (stdin).",
            show_default=False,
            readable=False,
        ),
    ]

    def file(self, *, weighted: bool = True) -> GraphFile:
        """Return the file with its options; refuse one that is for another command."""
        from ptclust.inputs import GraphFile

        if self.master is not None and self.engine == "local":
            raise UsageError("--master says where Spark runs: give --engine spark, too")
        file = GraphFile(self.edges, **filled(GraphOptions, self))
        file.check_is_graph(weighted=weighted)
        return file


@dataclass(frozen=True, kw_only=True)
class SensitivityOptions:
    """By how much one privacy unit moves the weights."""

    l1: Annotated[
        float | None, Option("One privacy unit moves all weights together by at most this (sum).")
    ] = None
    l2: Annotated[float | None, Option("... by at most this (root of the sum of squares).")] = None
    linf: Annotated[
        float | None, Option("One privacy unit moves every weight by at most this.")
    ] = None

    def of_graph(self, file: GraphFile) -> dict[str, Any]:
        """Return what follows from the file: its sensitivity, if none was given, and its engine."""
        from ptclust.privacy import Sensitivity

        bounds = filled(SensitivityOptions, self)
        if file.provenance is not None and set(bounds.values()) == {None}:
            return {"sensitivity": file.provenance.sensitivity, "engine": file.engine}
        return {"sensitivity": Sensitivity(**bounds), "engine": file.engine}


@dataclass(frozen=True, kw_only=True)
class PlanArguments(PlanOptions, SensitivityOptions):
    """What is requested of a release, in public numbers."""

    def request(self, file: GraphFile) -> PlanRequest:
        """Return the request, checked."""
        from ptclust.planning.plan import PlanRequest

        return PlanRequest(**filled(PlanOptions, self), **self.of_graph(file))


@dataclass(frozen=True, kw_only=True)
class ReleaseArguments(ReleaseOptions, SensitivityOptions):
    """All that is requested of a release."""

    certainty: Certainty = True

    def request(self, file: GraphFile) -> ReleaseRequest:
        """Return the request, checked, its ledger verified."""
        from ptclust.pipeline import ReleaseRequest

        unit_known = file.provenance is not None or (self.privacy_unit or "").strip()
        if not unit_known and self.random_state is None:
            raise UsageError(
                "name the privacy unit, for the statement: --privacy-unit 'one patient', or "
                "whatever moves the weights by no more than --l1, --l2, --linf"
            )
        return ReleaseRequest(**filled(ReleaseOptions, self), **self.of_graph(file))


@dataclass(frozen=True, kw_only=True)
class SeriesOptions:
    """How the budget of a series is shared."""

    releases: Annotated[
        int | None, Option("How many releases --epsilon and --delta are for.", min=1)
    ] = None
    shares: Annotated[
        str | None, Option("Relative shares of the releases of a series.", metavar="X,X,...")
    ] = None
    per: Annotated[
        Per, Option("Protect a person in the whole series, or in each period alone.")
    ] = "series"

    def budget(self, request: PlanRequest) -> SeriesBudget | None:
        """Return the budget of a series, None if it is about one release."""
        from ptclust.series import SeriesBudget

        if self.releases is None and self.shares is None:
            return None
        shares = None if self.shares is None else tuple(map(number, self.shares.split(",")))
        return SeriesBudget(request.epsilon, request.delta, self.releases, shares, self.per)


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """Where the nodes are, for pictures."""

    coordinates: Annotated[
        Path | None, Option("CSV file of public coordinates at which nodes are drawn.")
    ] = None
    node: Annotated[str, Option("Its column of nodes.", rare=True)] = "node"
    x: Annotated[str, Option("Its column of x, or longitudes.", rare=True)] = "x"
    y: Annotated[str, Option("Its column of y, or latitudes.", rare=True)] = "y"
    name: Annotated[str | None, Option("Its column of display names of nodes.", rare=True)] = None
    degrees: Annotated[
        bool, Option("Coordinates are degrees of longitude and latitude.", rare=True)
    ] = False


@dataclass(frozen=True, kw_only=True)
class PublisherOptions:
    """Who publishes, as a page says it."""

    controller: Annotated[
        str | None, Option("Who is responsible, for the page: 'City of Sund'.", rare=True)
    ] = None
    period: Annotated[str | None, Option("What the records cover: 'May 2026'.", rare=True)] = None
    contact: Annotated[str | None, Option("Whom to ask, for the page.", rare=True)] = None

    @property
    def given(self) -> dict[str, str]:
        """What was said."""
        return {name: words for name, words in vars(self).items() if words is not None}


def filled(declared: type, group: Any) -> dict[str, Any]:
    """Return the options that a class declares, as they were given in a group."""
    return {each.name: getattr(group, each.name) for each in fields(declared)}


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Spread the option groups that a function takes out into the options of a command."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, given in inspect.signature(function).parameters.items():
        if name in groups:
            inner = get_type_hints(groups[name], include_extras=True)
            parameters += [
                _parameter(each.name, inner[each.name], each.default)
                for each in fields(groups[name])
            ]
        else:
            parameters.append(_parameter(name, hints[name], given.default))
    if any(getattr(each.annotation.__metadata__[0], "hidden", False) for each in parameters):
        parameters.append(_parameter("help_all", _HelpAll, False))
    parameters.sort(key=lambda each: each.default is not inspect.Parameter.empty)

    @functools.wraps(function)
    @leaves_no_trace
    def run(help_all: bool = False, **values: Any) -> None:  # noqa: ARG001 - shown before
        together = {
            name: group(**{each.name: values.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        function(**together, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    """Return a parameter as typer reads it."""
    kind, option = hint.__origin__, hint.__metadata__[0]
    if isinstance(option, Option):
        exact = Fraction in get_args(kind)
        is_flag = kind is bool and not default  # what is on by default has a --no-, too
        declared = (f"--{name.replace('_', '-')}", option.short) if is_flag or option.short else ()
        option = typer.Option(
            *filter(None, declared),
            help=option.help,
            metavar="NUMBER" if exact else option.metavar,
            parser=number if exact else None,
            min=option.min,
            max=option.max,
            autocompletion=_COMPLETIONS.get(name),
            hidden=option.rare,
            readable=False,  # a file that cannot be read is bad input, and its reader says so
        )
        if exact:
            kind = float
        elif any(get_origin(each) is os.PathLike for each in get_args(kind)):
            kind = Path
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default,
        annotation=Annotated[kind, option],
    )


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        for each in context.command.params:
            each.hidden = False  # type: ignore[attr-defined]
        typer.echo(context.get_help())
        raise typer.Exit


_HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", callback=_show_all, is_eager=True, help="Show all options and exit."
    ),
]
