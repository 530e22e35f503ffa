"""Commands that write files, for tests of what they write."""

from __future__ import annotations

from ptclust import Graph

BUDGET = ["--epsilon", "1", "--linf", "1e-5"]


UNIT = ["--privacy-unit", "one patient", "--topology", "public"]


PAID = [*BUDGET, *UNIT, "--ledger", "l", "--dataset", "survey"]


def path_graph(names=None) -> Graph:
    return Graph(range(5), range(1, 6), [0.1, 0.1, 0.9, 0.1, 0.1], names=names)


COMMANDS = {
    "cluster": (["cluster", "edges.csv", *PAID], "edges.csv"),
    "recluster": (["recluster", "old.json"], "old.json"),
    "dbmstclu": (["dbmstclu", "edges.csv"], "edges.csv"),
}
