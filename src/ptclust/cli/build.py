"""``ptclust build``: from records of people to a graph file that carries its sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ptclust.cli import _options as o

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptclust.graph import Graph

_HELP = "Make a graph of records of people, with what one of them can change; see docs/building.md."
build = typer.Typer(no_args_is_help=True, help=_HELP)

Neighbours = StrEnum("Neighbours", {"add_remove": "add-remove", "replace": "replace"})
Unit = StrEnum("Unit", ["person", "record"])

_NODES = "Public list of all nodes: a text file of lines, or a table; all pairs get a weight."
NodeColumn = Annotated[
    str | None, typer.Option(help="Column of the list, if it is a table of several.")
]
Person = Annotated[str | None, typer.Option(help="Column of the person.")]
_LARGER = "Larger ones keep more of the data and need more noise: choose by what you know of such "
_CAPS = f"""{_LARGER}data, not by a look at these records. Noise grows with

pairs x records: l1 (pure) and l2 (with --delta) of one person

1 x 1: 1 and 1;  2 x 1: 2 and 1.4;  5 x 2: 10 and 4.5;  10 x 2: 20 and 6.3;  20 x 5: 100 and 22."""
_ITEM_CAPS = f"""{_LARGER}data, not by a look at these records. Noise grows with

items: l1 (pure) and l2 (with --delta) of one person

2: 1 and 1;  3: 3 and 1.7;  5: 10 and 3.2;  10: 45 and 6.7;  20: 190 and 14."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """What all builders need."""

    records: Annotated[
        Path, typer.Argument(help="The records: parquet, csv, tsv or arrow.", show_default=False)
    ]
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the graph to this Parquet file.")
    ]
    edges: Annotated[
        Path | None,
        typer.Option(help="In place of the list: public pairs, as roads; never from the records."),
    ] = None
    neighbours: Annotated[
        Neighbours, typer.Option(help="Tables with one unit more or less, or one in place of one.")
    ] = Neighbours.add_remove
    overwrite: o.Overwrite = None
    as_json: o.AsJson = False

    def run(self, make: Callable[..., Graph], listed: Path | None, **options: Any) -> None:
        """Build the graph, write it and say what was built."""
        import json
        import shlex

        from ptclust.building import description, summary
        from ptclust.cli._results import held_outputs
        from ptclust.cli._terminal import progress_display, say

        reads = {"the records": self.records, "the list": listed, "--edges": self.edges}
        with (
            held_outputs({"--output": self.output}, reads, self.overwrite),
            progress_display() as progress,
        ):
            progress(f"Reading {self.records.name}")
            graph = make(
                self.records, edges=self.edges, neighbours=self.neighbours.value, **options
            )
            progress(f"Writing {self.output.name}")
            graph.save(self.output, overwrite=True)
        if self.as_json:
            typer.echo(json.dumps(summary(graph), indent=2))
        say(f"{description(graph)} It is in {self.output}, which holds private weights.")
        say(f"Next: ptclust plan {shlex.quote(str(self.output))} --epsilon 1")


def _read_list(path: Path | None, column: str | None) -> list[Any] | None:
    from ptclust.building import read_list

    return None if path is None else read_list(path, column)


@build.command("flows", epilog=_CAPS)
@o.command
def flows(
    common: BuildOptions,
    origin: Annotated[str | None, typer.Option(help="Column of the first node.")] = None,
    destination: Annotated[str | None, typer.Option(help="Column of the second node.")] = None,
    nodes: Annotated[Path | None, typer.Option(help=_NODES)] = None,
    node_column: NodeColumn = None,
    person: Person = None,
    unit: Annotated[
        Unit | None,
        typer.Option(help="record: protect single records, also where a column of persons is."),
    ] = None,
    max_pairs: Annotated[
        int | None, typer.Option(help="At most so many pairs of nodes count for a person.", min=1)
    ] = None,
    max_per_pair: Annotated[
        int | None, typer.Option(help="At most so many records on each of them.", min=1)
    ] = None,
) -> None:
    """Records between two nodes: rides, trips, payments. A weight is their number.

    With a column of persons, by name or called so, a person is protected, otherwise a record.
    """
    from ptclust.building import graph_from_flows
    from ptclust.building._records import person_column

    if unit is not Unit.record:
        needed, bounded = unit is Unit.person, max_pairs is not None or max_per_pair is not None
        person = person_column(common.records, person, needed=needed or bounded)
    common.run(
        graph_from_flows,
        nodes,
        nodes=_read_list(nodes, node_column),
        origin=origin,
        destination=destination,
        person=person,
        max_pairs=max_pairs,
        max_per_pair=max_per_pair,
    )


@build.command("visits", epilog=_ITEM_CAPS)
@o.command
def visits(
    common: BuildOptions,
    max_items: Annotated[
        int, typer.Option(help="At most so many items count for a person.", min=2)
    ],
    person: Person = None,
    item: Annotated[str | None, typer.Option(help="Column of the item.")] = None,
    items: Annotated[Path | None, typer.Option(help=_NODES)] = None,
    node_column: NodeColumn = None,
) -> None:
    """Records that join a person and an item: visits, purchases. A weight is who has both."""
    from ptclust.building import graph_from_visits

    common.run(
        graph_from_visits,
        items,
        items=_read_list(items, node_column),
        person=person,
        item=item,
        max_items=max_items,
    )
