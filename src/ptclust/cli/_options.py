"""Options of the commands, in groups: a command takes a group as one typed object.

``@command`` spreads the fields of the groups out into options, and puts them together again for the
function: an option is spelled once, and checked once, by the request it becomes.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptclust.pipeline import GraphFile, ReleaseRequest
    from ptclust.planning.plan import PlanRequest
    from ptclust.series import SeriesBudget


Kind = StrEnum("Kind", ["distance", "similarity"])
Topology = StrEnum("Topology", ["public"])
Merge = StrEnum("Merge", ["min", "max", "sum"])
CalibrationRule = StrEnum("CalibrationRule", ["sound", "published"])
Sampler = StrEnum("Sampler", ["auto", "opendp"])
EngineName = StrEnum("EngineName", ["local", "spark"])


def _mechanisms(incomplete: str) -> list[str]:
    from ptclust.mechanisms import MECHANISMS

    return [name for name in ("auto", *MECHANISMS.names) if name.startswith(incomplete)]


def _clusterers(incomplete: str) -> list[str]:
    from ptclust.clustering import CLUSTERERS

    return [name for name in ("auto", *CLUSTERERS.names) if name.startswith(incomplete)]


def number(given: str | float) -> float | Fraction:
    """Return the number that was written, never a larger one: ten times 0.1 fit in a budget of 1.

    >>> number("0.1"), number("0.3"), number("1/3")
    (Fraction(1, 10), 0.3, Fraction(1, 3))
    """
    text = str(given)  # a default comes as a float
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


MORE = "more"  # the panel of options that only --help-all lists


def more(*names: str, **settings: Any) -> Any:
    """Return an option that few need: only --help-all lists it."""
    return typer.Option(*names, rich_help_panel=MORE, **settings)


Engine = Annotated[EngineName, more(help="spark: work on Parquet where it is, in many parts.")]
Master = Annotated[
    str | None, more(help="Where Spark runs: spark://host:7077, local[2], yarn.", metavar="URL")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]
MinProbability = Annotated[
    float,
    typer.Option(help="Nodes less likely to belong to their cluster get label -1.", max=1.0),
]
Certainty = Annotated[
    bool, typer.Option(help="Compute how probable nodes and clusters are; takes 8 clusterings.")
]
MinClusterSize = Annotated[
    int, typer.Option(help="Drop smaller clusters: their nodes get label -1.", min=1)
]
Overwrite = Annotated[
    list[Path] | None,
    typer.Option(
        help="Replace this output file if it exists; give it for every such file.", metavar="FILE"
    ),
]
EscapeFormulas = Annotated[
    bool,
    more(help="Write ' before names that spreadsheets would take for formulas (CSV)."),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(help="Charge this ledger first; it refuses what its total does not cover."),
]
Dataset = Annotated[str | None, typer.Option(help="The dataset of the ledger to charge.")]
LabelsFile = Annotated[
    Path | None, typer.Option(help="Write node,cluster to this CSV or Parquet file too.")
]
Plot = Annotated[
    Path | None, typer.Option(help="Draw the clustered tree to this PNG, SVG or PDF file.")
]
Report = Annotated[Path | None, typer.Option(help="Write an HTML report to this file, too.")]
_CLUSTERER = "Clusterer of what is released, by name; dbmstclu is the paper's."
_DELTA = "0 for a pure guarantee; a tiny positive value allows Gaussian noise."
_MECHANISM = "Mechanism by name (`plan` lists all); auto picks the smallest visible gap."
_SPLIT = "Share of the budget for the tree; by default tree and weights get equal noise."
Clusterer = Annotated[
    str, typer.Option(help=_CLUSTERER, metavar="NAME", autocompletion=_clusterers)
]
Delta = Annotated[float, typer.Option(help=_DELTA, parser=number, metavar="NUMBER")]
Mechanism = Annotated[
    str, typer.Option(help=_MECHANISM, metavar="NAME", autocompletion=_mechanisms)
]
Split = Annotated[float | None, more(help=_SPLIT)]


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How a text table is written; of all commands that read one."""

    separator: Annotated[
        str | None, typer.Option(help="Separator of a text table: ';', tab, space.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of a text table, if not UTF-8: latin-1, cp1252.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(help="Decimal point of a text table: '.' or ','.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class GraphOptions(TextOptions):
    """The file with the graph, and how to read it."""

    edges: Annotated[
        Path,
        typer.Argument(
            help="The graph: csv, tsv, txt (also .gz), parquet, graphml, mtx, npz, or - (stdin).",
            show_default=False,
            readable=False,  # a file that cannot be read is bad input, and read_graph says so
        ),
    ]
    source: Annotated[str | None, typer.Option(help="Column of the first node.")] = None
    target: Annotated[str | None, typer.Option(help="Column of the second node.")] = None
    weight: Annotated[str | None, typer.Option(help="Column of the weight.")] = None
    merge: Annotated[
        Merge | None,
        typer.Option(
            help="How to merge rows that join the same two nodes; --l1, --linf bound the result."
        ),
    ] = None
    kind: Annotated[
        Kind | None,
        typer.Option(help="Weights are distances, or similarities: small, or large, means close."),
    ] = None
    format: Annotated[
        str | None, more(help="Format of the file, if its name does not show it.")
    ] = None
    header: Annotated[
        bool, more(help="Whether the first line of a text table names the columns.")
    ] = True
    engine: Engine = EngineName.local
    master: Master = None

    def file(self, *, weighted: bool = True) -> GraphFile:
        """Return the file with its options; refuse one that is for another command."""
        from ptclust.errors import UsageError
        from ptclust.pipeline import GraphFile

        if self.master is not None and self.engine is EngineName.local:
            raise UsageError("--master says where Spark runs: give --engine spark, too")
        given = {each.name: _plain(getattr(self, each.name)) for each in fields(self)}
        file = GraphFile(given.pop("edges"), **given)
        file.check_is_graph(weighted=weighted)
        return file


@dataclass(frozen=True, kw_only=True)
class SensitivityOptions:
    """By how much one privacy unit moves the weights."""

    l1: Annotated[
        float | None,
        typer.Option(help="One privacy unit moves all weights together by at most this (sum)."),
    ] = None
    l2: Annotated[
        float | None, typer.Option(help="... by at most this (root of the sum of squares).")
    ] = None
    linf: Annotated[
        float | None, typer.Option(help="One privacy unit moves every weight by at most this.")
    ] = None

    @property
    def given(self) -> bool:
        """Whether any bound was given."""
        return any(bound is not None for bound in (self.l1, self.l2, self.linf))


@dataclass(frozen=True, kw_only=True)
class PlanOptions(SensitivityOptions):
    """What is requested of a release, in public numbers."""

    epsilon: Annotated[
        float, typer.Option(help="The privacy budget.", parser=number, metavar="NUMBER")
    ]
    delta: Delta = 0.0
    mechanism: Mechanism = "auto"
    clusterer: Clusterer = "auto"
    split: Split = None
    calibration: Annotated[
        CalibrationRule,
        more(help="published: the paper's scales, with their true epsilon."),
    ] = CalibrationRule.sound
    clip: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Public bounds; weights outside are moved to the nearer: LOW HIGH."),
    ] = None
    sampler: Annotated[Sampler, more(help="Sampler of the noise; the statement names it.")] = (
        Sampler.auto
    )

    def request(self, file: GraphFile) -> PlanRequest:
        """Return the request, checked; what was not said follows from how the graph was built."""
        from ptclust.planning.plan import PlanRequest
        from ptclust.privacy import Sensitivity

        built = file.provenance
        if built is not None and not self.given:
            sensitivity = built.sensitivity
        else:
            sensitivity = Sensitivity(l1=self.l1, l2=self.l2, linf=self.linf)
        return PlanRequest(
            epsilon=self.epsilon,
            delta=self.delta,
            sensitivity=sensitivity,
            mechanism=self.mechanism,
            split=self.split,
            clusterer=self.clusterer,
            calibration=_plain(self.calibration),
            clip=self.clip,
            sampler=_plain(self.sampler),
            engine=file.engine,
        )


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions(PlanOptions):
    """All that is requested of a release."""

    shift: Annotated[float | None, more(help="tau; default from the release.")] = None
    scale: Annotated[float | None, more(help="p; default from the release.")] = None
    min_cluster_size: MinClusterSize = 1
    min_probability: MinProbability = 0.0
    certainty: Certainty = True
    privacy_unit: Annotated[
        str | None, typer.Option(help="What one unit is, for the statement: 'one patient'.")
    ] = None
    topology: Annotated[
        Topology | None,
        typer.Option(
            help="public: the list of edges is public knowledge, though not all pairs are edges."
        ),
    ] = None
    random_state: Annotated[
        int | None, more(help="Seed for experiments: the release is NOT private.", min=0)
    ] = None
    ledger: LedgerFile = None
    dataset: Dataset = None

    def release_request(self, file: GraphFile, noisy: Path | None = None) -> ReleaseRequest:
        """Return the request, checked, its ledger verified."""
        from ptclust.errors import UsageError
        from ptclust.ledger import Payment
        from ptclust.pipeline import ReleaseRequest

        unit_known = file.provenance is not None or (self.privacy_unit or "").strip()
        if not unit_known and self.random_state is None:
            raise UsageError(
                "name the privacy unit, for the statement: --privacy-unit 'one patient', or "
                "whatever moves the weights by no more than --l1, --l2, --linf"
            )
        return ReleaseRequest(
            plan=self.request(file),
            min_cluster_size=self.min_cluster_size,
            min_probability=self.min_probability,
            certainty=self.certainty,
            shift=self.shift,
            scale=self.scale,
            privacy_unit=self.privacy_unit,
            topology=_plain(self.topology),
            random_state=self.random_state,
            payment=Payment.by(self.ledger, self.dataset, self.random_state),
            noisy=None if noisy is None else str(noisy),
        )


PerName = StrEnum("PerName", ["series", "period"])  # whom the total of a series protects
Releases = Annotated[
    int | None, typer.Option(min=1, help="How many releases --epsilon and --delta are for.")
]
Shares = Annotated[
    str | None,
    typer.Option(help="Relative shares of the releases of a series.", metavar="X,X,..."),
]
PerOption = Annotated[
    PerName,
    typer.Option(help="Protect a person in the whole series, or in each period alone."),
]


def series_budget(
    request: PlanRequest, releases: int | None, shares: str | None, per: PerName
) -> SeriesBudget | None:
    """Return the budget of a series, None if it is about one release."""
    from ptclust.series import SeriesBudget

    if releases is None and shares is None:
        return None
    parts = None if shares is None else tuple(number(each) for each in shares.split(","))
    return SeriesBudget(request.epsilon, request.delta, releases, parts, _plain(per))


@dataclass(frozen=True, kw_only=True)
class PlaceOptions:
    """Where the nodes are, for pictures."""

    coordinates: Annotated[
        Path | None,
        typer.Option(help="CSV file of public coordinates at which nodes are drawn."),
    ] = None
    node: Annotated[str, more(help="Its column of nodes.")] = "node"
    x: Annotated[str, more("--x", help="Its column of x, or longitudes.")] = "x"
    y: Annotated[str, more("--y", help="Its column of y, or latitudes.")] = "y"
    name: Annotated[str | None, more("--name", help="Its column of display names of nodes.")] = None
    degrees: Annotated[
        bool, more("--degrees", help="Coordinates are degrees of longitude and latitude.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class PublisherOptions:
    """Who publishes, as a page says it."""

    controller: Annotated[
        str | None, more(help="Who is responsible, for the page: 'City of Sund'.")
    ] = None
    period: Annotated[str | None, more(help="What the records cover: 'May 2026'.")] = None
    contact: Annotated[str | None, more(help="Whom to ask, for the page.")] = None

    @property
    def given(self) -> dict[str, str]:
        """What was said."""
        return {name: words for name, words in vars(self).items() if words is not None}


class Command(TyperCommand):
    """A command whose help lists what most need, and with --help-all the rest."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the parameters, those that few need only for --help-all."""
        shown = [each for each in self.get_params(ctx) if ctx.meta.get(MORE) or not _is_more(each)]
        for kind, title in (("argument", "Arguments"), ("option", "Options")):
            records = (each.get_help_record(ctx) for each in shown if each.param_type_name == kind)
            if rows := [record for record in records if record is not None]:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _is_more(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == MORE


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[MORE] = True
        typer.echo(context.get_help())
        raise typer.Exit


_ALL_NAME = "help_all"
_ALL = Annotated[
    bool,
    typer.Option(
        "--help-all", callback=_show_all, is_eager=True, help="Show all options and exit."
    ),
]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Spread the option groups that a function takes out into the options of a command."""
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: dict[str, inspect.Parameter] = {}
    for name, given in inspect.signature(function).parameters.items():
        if name in groups:
            parameters |= _spread_out(groups[name])
        else:
            parameters[name] = _parameter(name, hints[name], given.default)

    if any(_is_more(setting) for each in parameters.values() for setting in _settings(each)):
        parameters[_ALL_NAME] = _parameter(_ALL_NAME, _ALL, False)

    @functools.wraps(function)
    def run(**values: Any) -> None:
        values.pop(_ALL_NAME, None)
        together = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        function(**together, **values)

    ordered = sorted(parameters.values(), key=lambda each: each.default is not inspect._empty)
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in ordered}
    return run


def _settings(parameter: inspect.Parameter) -> tuple[Any, ...]:
    return getattr(parameter.annotation, "__metadata__", ())


def _plain(value: Any) -> Any:
    """Return what was chosen: of an enumeration, the word."""
    return value.value if isinstance(value, StrEnum) else value


def _spread_out(group: type) -> dict[str, inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    defaults = {field.name: field.default for field in fields(group)}
    return {
        name: _parameter(name, hints[name], inspect._empty if default is MISSING else default)
        for name, default in defaults.items()
    }


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
