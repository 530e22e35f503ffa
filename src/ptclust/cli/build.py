"""``ptclust build``: from records of people to a graph file that carries its sensitivity."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import ptclust
from ptclust._options import Dataset, EngineOptions, LedgerFile, Option, TextOptions
from ptclust.cli import _options as o
from ptclust.cli._outputs import held_outputs, ledger_files
from ptclust.cli._terminal import progress_display, say
from ptclust.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_HELP = "Make a graph, with its sensitivity, from records of people; see docs/building.md."
build = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=_HELP)

_NODES = "Public list of all nodes: a text file, one per line, or a table; all pairs get a weight."
_LARGER = """Larger caps keep more of the data and need more noise: choose by what you know of such
data, not by a look at these records. Noise grows with

"""
_CAPS = f"""{_LARGER}pairs x records: l1 (pure) and l2 (with --delta) of one person

1 x 1: 1 and 1;  2 x 1: 2 and 1.4;  5 x 2: 10 and 4.5;  10 x 2: 20 and 6.3;  20 x 5: 100 and 22."""
_ITEM_CAPS = f"""{_LARGER}items: l1 (pure) and l2 (with --delta) of one person

2: 1 and 1;  3: 3 and 1.7;  5: 10 and 3.2;  10: 45 and 6.7;  20: 190 and 14."""


def _cap(text: str) -> int | str:
    """Return a cap, or auto; what is neither is refused where it is used."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def _cap_option(text: str) -> Any:
    return typer.Option(
        help=f"{text} auto: chosen privately with --caps-epsilon.", parser=_cap, metavar="N|auto"
    )


@dataclass(frozen=True, kw_only=True)
class BuildOptions(EngineOptions, TextOptions):
    """What all builders need."""

    records: Annotated[
        str,
        typer.Argument(
            help="The records: a parquet, csv, tsv or arrow file, or, with --query, a database: "
            "postgresql://user@host/name, duckdb:file, sqlite:file.",
            show_default=False,
        ),
    ]
    query: Annotated[
        str | None, Option("Records of a database: 'select person, place from visits'.")
    ] = None
    person: Annotated[str | None, Option("Column of the person.")] = None
    node_column: Annotated[
        str | None, Option("Column of the list, if it is a table of several.")
    ] = None
    output: Annotated[Path | None, Option("Write the graph to this Parquet file.", short="-o")] = (
        None
    )
    check: Annotated[
        bool,
        Option("Write nothing; show exact counts of the records, for the curator only: private."),
    ] = False
    edges: Annotated[
        str | None,
        Option(
            "A file of public pairs, such as roads, in place of the list; or, with the list, "
            "private: the pairs that pass a private threshold.",
            metavar="FILE|private",
        ),
    ] = None
    neighbours: Annotated[
        Literal["add-remove", "replace"],
        Option("Tables with one unit more or less, or with one replaced."),
    ] = "add-remove"
    overwrite: o.Overwrite = None
    as_json: o.AsJson = False

    @cached_property
    def table(self) -> Any:
        """The records, as builders take them: the path, or what Spark makes of it."""
        from ptclust.building._records import TextFile
        from ptclust.building.databases import Query
        from ptclust.engines import spark

        text = TextFile(
            self.records, **{each.name: getattr(self, each.name) for each in fields(TextOptions)}
        )
        if self._file is not None:
            table = spark.opened(self._file, self.engine, self.master)
            if table is self._file:
                return text
            text.check_unused(self._file)
            return table
        if self.engine != "local":
            raise UsageError("a database is read by this machine: leave --engine spark out")
        found = Query(self.records, self.query or "")
        text.check_unused(found)
        return found

    @cached_property
    def _file(self) -> Path | None:
        """The file of the records, if they are in one."""
        from ptclust.building.databases import is_address

        return None if self.query is not None or is_address(self.records) else Path(self.records)

    def run(self, make: Callable[..., ptclust.Graph], **options: Any) -> None:
        """Build the graph, write it and say what was built; or only check the records.

        The public list is given as its file: ``nodes``, or ``items`` of visits.
        """
        from ptclust.building import check_records, description, read_list, summary

        role = "items" if "items" in options else "nodes"
        if (listed := options[role]) is not None:
            options[role] = read_list(
                listed, self.node_column, records=self._file, encoding=self.encoding
            )
        reading = f"Reading {'the records' if self._file is None else self._file.name}"
        if self.check:
            if self.output is not None or self.as_json:
                raise UsageError("--check writes nothing: leave --output and --json out")
            roles = (role, "person", "item", "origin", "destination")
            given = {each: options[each] for each in roles if each in options}
            with progress_display() as progress:
                progress(reading)
                found = check_records(self.table, edges=self.edges, **given)
            say(str(found))
            return
        if self.output is None:
            raise UsageError("name the file to write the graph to: --output graph.parquet")
        roads = Path(self.edges) if self.edges not in (None, "private") else None
        reads = {"the records": self._file, "the list": listed, "--edges": roads}
        reads |= ledger_files(options.get("ledger"))
        with held_outputs({"--output": self.output}, reads, self.overwrite) as progress:
            progress(reading)
            graph = make(self.table, edges=self.edges, neighbours=self.neighbours, **options)
            progress(f"Writing {self.output.name}")
            graph.save(self.output, overwrite=True)
        if self.as_json:
            typer.echo(json.dumps(summary(graph), indent=2))
        counted = {} if graph.provenance is None else graph.provenance.details
        for name, cap in options.items():
            most = counted.get(name, cap)
            if isinstance(cap, int) and isinstance(most, int) and most < cap:
                option = f"--{name.replace('_', '-')} {cap:,}"
                say(f"{option} is more than there can be, and counts as {most:,}.")
        say(f"{description(graph)} It is in {self.output}, which holds private weights.")
        say("How many records count is private; the same command with --check shows it to you.")
        say(f"Next: ptclust plan {shlex.quote(str(self.output))} --epsilon 1")


@dataclass(frozen=True, kw_only=True)
class LookOptions:
    """Queries of the records whose answers are released, and who pays for them."""

    caps_epsilon: Annotated[
        float | Fraction | None, Option("Spend this on caps that are auto.")
    ] = None
    edges_epsilon: Annotated[float | Fraction | None, Option("Spend this on private edges.")] = None
    ledger: LedgerFile = None
    dataset: Dataset = None


@build.command("flows", epilog=_CAPS)
@o.command
def flows(
    common: BuildOptions,
    looks: LookOptions,
    origin: Annotated[str | None, Option("Column of the first node.")] = None,
    destination: Annotated[str | None, Option("Column of the second node.")] = None,
    nodes: Annotated[Path | None, Option(_NODES)] = None,
    unit: Annotated[
        Literal["person", "record"] | None,
        Option("record: protect single records, even with a column of persons."),
    ] = None,
    called: Annotated[str, Option("What one record is called in the statement: trip.")] = "record",
    max_pairs: Annotated[
        str | None, _cap_option("At most this many pairs of nodes count per person.")
    ] = None,
    max_per_pair: Annotated[
        str | None, _cap_option("At most this many records on each pair.")
    ] = None,
) -> None:
    """Records between two nodes: rides, trips, payments. A weight is their number.

    With a column of persons, named or recognised, a person is protected, otherwise a record.
    """
    from ptclust.building._records import person_column

    person = common.person
    if unit != "record":
        needed, bounded = unit == "person", max_pairs is not None or max_per_pair is not None
        person = person_column(common.table, person, needed=needed or bounded)
    common.run(
        ptclust.graph_from_flows,
        nodes=nodes,
        origin=origin,
        destination=destination,
        person=person,
        called=called,
        max_pairs=max_pairs,
        max_per_pair=max_per_pair,
        **vars(looks),
    )


@build.command("visits", epilog=_ITEM_CAPS)
@o.command
def visits(
    common: BuildOptions,
    looks: LookOptions,
    max_items: Annotated[
        str | None, _cap_option("At most this many items count per person.")
    ] = None,
    item: Annotated[str | None, Option("Column of the item.")] = None,
    items: Annotated[Path | None, Option(_NODES)] = None,
) -> None:
    """Records that join a person and an item: visits, purchases. Weights count who has both."""
    options = {"person": common.person, "item": item, "items": items, "max_items": max_items}
    common.run(ptclust.graph_from_visits, **options, **vars(looks))


@build.command("profiles")
@o.command
def profiles(
    common: BuildOptions,
    low: Annotated[float, Option("Public bounds of the values: the lower,")],
    high: Annotated[float, Option("and the upper; values outside are moved there.")],
    nodes: Annotated[Path | None, Option(_NODES)] = None,
    n_persons: Annotated[
        int | None,
        Option("Divide sums by this public number, about the number of persons.", min=1),
    ] = None,
    dissimilarity: Annotated[
        Literal["absolute", "squared"], Option("|x - y|, or its square.")
    ] = "absolute",
) -> None:
    """One row per person, one column per node. A weight is the mean distance of two columns.

    With --neighbours replace the number of persons is public and --n-persons may be left out.
    """
    if common.check:
        raise UsageError("--check is for visits and flows: a row of profiles is a person")
    common.run(
        ptclust.graph_from_profiles,
        nodes=nodes,
        low=low,
        high=high,
        person=common.person,
        n_persons=n_persons,
        dissimilarity=dissimilarity,
    )
