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
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from typer.core import TyperCommand

from ptclust._options import Certainty, GraphOptions, Option, Per, PlanOptions, ReleaseOptions
from ptclust._traces import leaves_no_trace

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
    typer.Option(
        help="Replace this output file if it exists; give it for every such file.", metavar="FILE"
    ),
]
EscapeFormulas = Annotated[
    bool, Option("Write ' before names that spreadsheets would take for formulas (CSV).", rare=True)
]
LabelsFile = Annotated[
    Path | None, typer.Option(help="Write node,cluster to this CSV or Parquet file too.")
]
Plot = Annotated[
    Path | None, typer.Option(help="Draw the clustered tree to this PNG, SVG or PDF file.")
]
Report = Annotated[Path | None, typer.Option(help="Write an HTML report to this file, too.")]
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
            readable=False,  # a file that cannot be read is bad input, and read_graph says so
        ),
    ]

    def file(self, *, weighted: bool = True) -> GraphFile:
        """Return the file with its options; refuse one that is for another command."""
        from ptclust.errors import UsageError
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

    @property
    def given(self) -> bool:
        """Whether any bound was given."""
        return any(bound is not None for bound in (self.l1, self.l2, self.linf))

    def of_graph(self, file: GraphFile) -> dict[str, Any]:
        """Return what follows from the file: its sensitivity, if none was given, and its engine."""
        from ptclust.privacy import Sensitivity

        if file.provenance is not None and not self.given:
            sensitivity = file.provenance.sensitivity
        else:
            sensitivity = Sensitivity(l1=self.l1, l2=self.l2, linf=self.linf)
        return {"sensitivity": sensitivity, "engine": file.engine}


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
        from ptclust.errors import UsageError
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


_RARE = "more"  # the panel of options that only --help-all lists


class Command(TyperCommand):
    """A command whose help lists what most need, and with --help-all the rest."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the parameters, those that few need only for --help-all."""
        shown = [each for each in self.get_params(ctx) if ctx.meta.get(_RARE) or not _is_rare(each)]
        for kind, title in (("argument", "Arguments"), ("option", "Options")):
            records = (each.get_help_record(ctx) for each in shown if each.param_type_name == kind)
            if rows := [record for record in records if record is not None]:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _is_rare(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == _RARE


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[_RARE] = True
        typer.echo(context.get_help())
        raise typer.Exit


_HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-all", callback=_show_all, is_eager=True, help="Show all options and exit."
        ),
    ],
)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Spread the option groups that a function takes out into the options of a command."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    declared: list[tuple[str, Any, Any]] = []  # name, annotation and default
    for name, given in inspect.signature(function).parameters.items():
        if name in groups:
            group = groups[name]
            inner = get_type_hints(group, include_extras=True)
            declared += [(each.name, inner[each.name], each.default) for each in fields(group)]
        else:
            declared.append((name, hints[name], given.default))
    parameters = [_parameter(*each) for each in declared]
    if any(_is_rare(each.annotation.__metadata__[0]) for each in parameters):
        parameters.append(_HELP_ALL)

    @functools.wraps(function)
    @leaves_no_trace
    def run(**values: Any) -> None:
        values.pop(_HELP_ALL.name, None)
        plain = {
            name: value.value if isinstance(value, StrEnum) else value
            for name, value in values.items()
        }
        together = {
            name: group(**{each.name: plain.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        function(**together, **plain)

    ordered = sorted(parameters, key=lambda each: each.default is not inspect.Parameter.empty)
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in ordered}
    return run


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    """Return a parameter as typer reads it; words to choose from become an enumeration."""
    default = inspect.Parameter.empty if default is MISSING else default
    kind, setting = hint.__origin__, hint.__metadata__[0]
    alternatives = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    if isinstance(setting, Option):
        setting = _typer_option(name, setting, exact=Fraction in alternatives)
        if any(get_origin(each) is os.PathLike for each in alternatives):
            alternatives = (Path, type(None))
        elif Fraction in alternatives:
            alternatives = tuple(each for each in alternatives if each is not Fraction)
    alternatives = tuple(
        StrEnum(name, get_args(each)) if get_origin(each) is Literal else each
        for each in alternatives
    )
    annotation: Any = Annotated[Union[alternatives], setting]  # noqa: UP007
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _typer_option(name: str, option: Option, *, exact: bool) -> Any:
    return typer.Option(
        help=option.help,
        metavar="NUMBER" if exact else option.metavar,
        parser=number if exact else None,
        min=option.min,
        max=option.max,
        autocompletion=_COMPLETIONS.get(name),
        rich_help_panel=_RARE if option.rare else None,
    )
