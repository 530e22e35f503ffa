"""What was built, in words and public numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptclust._traces import leaves_no_trace

if TYPE_CHECKING:
    from ptclust.graph.graph import Graph


@leaves_no_trace
def summary(graph: Graph) -> dict[str, Any]:
    """Return all that may be known of a graph that was built, ready for JSON."""
    provenance = None if graph.provenance is None else graph.provenance.to_dict()
    counts = {"n_nodes": graph.n_nodes, "n_edges": graph.n_edges, "kind": graph.kind}
    return {**counts, "provenance": provenance}


@leaves_no_trace
def description(graph: Graph) -> str:
    """Say what was built. *Privacy.* In public numbers only: no weight plays a part."""
    built = graph.provenance
    lines = [f"A graph of {graph.n_nodes:,} nodes and {graph.n_edges:,} pairs of them"]
    if built is not None:
        lines[0] += f" ({built.details.get('topology', 'it was not said which')})"
        relation = {
            "add-remove": "tables with one unit more or less",
            "replace": "tables with one unit in place of another",
        }[built.neighbours]
        lines += [
            f"Protected: {built.unit}",
            f"What that can change at most: {built.sensitivity} (neighbours: {relation})",
            "Records without a person, where one is protected, or on other nodes do not count",
        ]
        lines += [f"Spent on {each.words}" for each in built.spent]
        if "caps" in built.details:
            lines.append(f"Caps were chosen by their {built.details['caps']}")
    return ". ".join(lines) + "."
