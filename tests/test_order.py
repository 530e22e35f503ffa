"""Nothing of a release follows the order in which its graph came in, whatever it came from."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import numpy as np
import polars as pl
import pytest
import scipy.sparse

from ptclust import Graph, PTClust, Sensitivity, read_graph
from ptclust.clustering import CLUSTERERS
from ptclust.errors import GraphError
from ptclust.graph import read_topology
from ptclust.mechanisms import MECHANISMS
from tests.lazy import lazy

igraph, nx, pd = lazy("igraph"), lazy("networkx"), lazy("pandas")

N_NODES = 12
RANDOM = np.random.default_rng(7)
EDGES = [
    (a, b, 0.2 + 0.6 * (a % 2 != b % 2) + RANDOM.normal(0, 0.05))
    for a in range(N_NODES)
    for b in range(a)
    if RANDOM.random() < 0.8
]


def flipped(edges):
    return [(b, a, w) if i % 3 else (a, b, w) for i, (a, b, w) in enumerate(edges)]


def shuffled(edges):
    return [edges[i] for i in np.random.default_rng(1).permutation(len(edges))]


ORDERS = {
    "heaviest first": lambda edges: sorted(edges, key=lambda edge: -edge[2]),
    "lightest first": lambda edges: sorted(edges, key=lambda edge: edge[2]),
    "lightest first, flipped": lambda edges: flipped(sorted(edges, key=lambda edge: edge[2])),
    "shuffled": shuffled,
    "shuffled and flipped": lambda edges: flipped(shuffled(edges)),
}


def columns(edges):
    return [list(column) for column in zip(*edges)]


def name(node):
    """Names that are not in the order of the numbers."""
    return f"{'zyxwvutsrqpo'[node]}{node}"


def table(edges):
    sources, targets, weights = columns(edges)
    named = {"source": map(name, sources), "target": map(name, targets)}
    return {role: list(values) for role, values in named.items()} | {"distance": weights}


def by_appearance(edges):
    """Return the nodes numbered by first appearance, as a library that is fed rows does."""
    nodes = dict.fromkeys(node for a, b, _ in edges for node in (a, b))
    number = {node: i for i, node in enumerate(nodes)}
    return list(nodes), [(number[a], number[b], w) for a, b, w in edges]


def of_rows(edges, **options):
    sources, targets, weights = columns(edges)
    return Graph(sources, targets, weights, **options)


def of_arrays(edges, _):
    return of_rows(edges, n_nodes=N_NODES)


def of_named_arrays(edges, _):
    nodes, numbered = by_appearance(edges)
    return of_rows(numbered, names=[name(node) for node in nodes])


def of_networkx(edges, _):
    graph = nx.Graph()
    graph.add_weighted_edges_from((name(a), name(b), w) for a, b, w in edges)
    return Graph.from_networkx(graph)


def of_igraph(edges, _):
    nodes, numbered = by_appearance(edges)
    a, b, w = columns(numbered)
    graph = igraph.Graph(n=len(nodes), edges=list(zip(a, b)), edge_attrs={"weight": w})
    graph.vs["name"] = [name(node) for node in nodes]
    return Graph.from_igraph(graph)


def matrix(edges):
    sources, targets, weights = columns(edges)
    return scipy.sparse.coo_array((weights, (sources, targets)), shape=(N_NODES,) * 2)


def of_csv(edges, folder, ending="csv", separator=","):
    rows = table(edges)
    lines = [separator.join(rows), *(separator.join(map(repr, row)) for row in zip(*rows.values()))]
    (folder / f"edges.{ending}").write_text("\n".join(lines).replace("'", ""))
    return folder / f"edges.{ending}"


def of_parquet(edges, folder):
    pl.DataFrame(table(edges)).write_parquet(folder / "edges.parquet")
    return folder / "edges.parquet"


def of_graphml(edges, folder):
    graph = nx.Graph()
    graph.add_weighted_edges_from(((name(a), name(b), w) for a, b, w in edges), weight="distance")
    nx.write_graphml(graph, folder / "edges.graphml")
    return folder / "edges.graphml"


def of_matrix_market(edges, folder):
    lines = [f"{a + 1} {b + 1} {w!r}" for a, b, w in edges]
    head = "%%MatrixMarket matrix coordinate real general"
    size = f"{N_NODES} {N_NODES} {len(edges)}"
    (folder / "edges.mtx").write_text("\n".join([head, size, *lines]) + "\n")
    return folder / "edges.mtx"


def of_npz(edges, folder):
    nodes, numbered = by_appearance(edges)
    sources, targets, weights = columns(numbered)
    names = [name(node) for node in nodes]
    path = folder / "edges.npz"
    np.savez(path, sources=sources, targets=targets, weights=weights, names=names)
    return path


def of_saved_matrix(edges, folder):
    scipy.sparse.save_npz(folder / "edges.npz", matrix(edges))
    return folder / "edges.npz"


def frame_of(make):
    return lambda edges, _: Graph.from_dataframe(make(table(edges)), weight="distance")


FILES = {
    "csv": of_csv,
    "tsv": lambda edges, folder: of_csv(edges, folder, "tsv", "\t"),
    "txt": lambda edges, folder: of_csv(edges, folder, "txt", ";"),
    "parquet": of_parquet,
    "graphml": of_graphml,
    "mtx": of_matrix_market,
    "npz": of_npz,
    "saved matrix": of_saved_matrix,
}
SOURCES = {
    "arrays": of_arrays,
    "named arrays": of_named_arrays,
    "networkx": of_networkx,
    "igraph": of_igraph,
    "scipy": lambda edges, _: Graph.from_scipy(matrix(edges)),
    "polars": frame_of(pl.DataFrame),
    "pandas": frame_of(lambda columns: pd.DataFrame(columns)),
}


def make(source, edges, folder):
    if source in FILES:
        return read_graph(FILES[source](edges, folder), kind="distance")
    return SOURCES[source](edges, folder)


def published(graph, mechanism, clusterer="auto"):
    """Everything in a release but its id and time."""
    release = (
        PTClust(
            epsilon=2,
            delta=1e-6 if mechanism == "gaussian" else 0,
            sensitivity=Sensitivity(l1=0.01),
            mechanism=mechanism,
            clusterer=clusterer,
            random_state=5,
        )
        .fit(graph)
        .release_
    )
    return [
        release.names.tolist(),
        *(getattr(release.topology, ends).tolist() for ends in ("sources", "targets")),
        release.noisy_weights.tolist(),
        release.tree.edge_ids.tolist(),
        *(getattr(release.tree, ends).tolist() for ends in ("sources", "targets")),
        release.tree.weights.tolist(),
        release.labels.tolist(),
        release.statement.post_processing,
    ]


@pytest.mark.parametrize("mechanism", MECHANISMS.names)
@pytest.mark.parametrize("source", [*SOURCES, *FILES])
def test_the_same_release_from_any_order(source, mechanism, tmp_path):
    expected = published(make(source, EDGES, tmp_path), mechanism)
    for order in ORDERS.values():
        assert published(make(source, order(EDGES), tmp_path), mechanism) == expected


@pytest.mark.parametrize("clusterer", CLUSTERERS.names)
def test_the_same_clusters_from_any_order(clusterer, tmp_path):
    made = [
        published(make("named arrays", order(EDGES), tmp_path), "laplace", clusterer)
        for order in ORDERS.values()
    ]
    assert all(other == made[0] for other in made)


@pytest.mark.parametrize("source", FILES)
def test_the_topology_alone_has_the_same_order(source, tmp_path):
    for order in ORDERS.values():
        path = FILES[source](order(EDGES), tmp_path)
        assert read_topology(path) == read_graph(path, kind="distance").topology


@pytest.mark.parametrize("how", ["min", "max", "sum"])
@pytest.mark.parametrize("source", ["named arrays", "networkx", "polars", "csv", "parquet", "npz"])
def test_parallel_rows_merge_to_the_same_bits_in_any_order(source, how, tmp_path):
    rows = [(a, b, w + part) for a, b, w in EDGES for part in (0.1, 1e-9, 1e9, -1e9)]

    def merged(rows):
        nodes, numbered = by_appearance(rows)
        if source == "named arrays":
            return of_rows(numbered, names=[name(node) for node in nodes], merge=how)
        if source == "networkx":
            graph = nx.MultiGraph()
            graph.add_weighted_edges_from((name(a), name(b), w) for a, b, w in rows)
            return Graph.from_networkx(graph, merge=how)
        if source == "polars":
            return Graph.from_dataframe(pl.DataFrame(table(rows)), weight="distance", merge=how)
        return read_graph(FILES[source](rows, tmp_path), kind="distance", merge=how)

    first, *others = (merged(order(rows)) for order in ORDERS.values())
    for other in others:
        assert other.topology == first.topology
        assert other.weights.tolist() == first.weights.tolist()


@dataclass(frozen=True)
class Same:
    """A name that reads as all others of its kind."""

    name: str

    def __str__(self):
        return "Same"


class TestLabelsGoBack:
    """In the order of the caller's nodes, where the caller has one."""

    def clear(self):
        """Two paths of close nodes and one long edge, fed in an odd order."""
        names = ["m", "c", "x", "a", "q", "b"]
        joined = [("x", "m", 9.0), ("q", "x", 9.0), ("a", "b", 9.0), ("c", "a", 9.0), ("m", "c", 1)]
        return names, joined, {"m": 0, "x": 0, "q": 0, "a": 1, "b": 1, "c": 1}

    def check(self, given, nodes, groups):
        options = {"epsilon": 1, "sensitivity": Sensitivity(l1=1e-9), "mechanism": "laplace"}
        model = PTClust(**options, clusterer="dbmstclu", random_state=0).fit(given)
        by_name = dict(zip(model.release_.names.tolist(), model.release_.labels.tolist()))
        assert model.labels_.tolist() == [by_name[node] for node in nodes]
        assert len({(groups[node], label) for node, label in by_name.items()}) == 2

    def test_networkx(self):
        names, joined, groups = self.clear()
        graph = nx.Graph()
        graph.add_nodes_from(names)
        graph.add_weighted_edges_from((a, b, 10 - w) for a, b, w in joined)
        self.check(graph, names, groups)

    def test_igraph(self):
        names, joined, groups = self.clear()
        ends = [(names.index(a), names.index(b)) for a, b, _ in joined]
        weights = [10 - w for *_, w in joined]
        graph = igraph.Graph(n=6, edges=ends, edge_attrs={"weight": weights})
        graph.vs["name"] = names
        self.check(graph, names, groups)

    @pytest.mark.parametrize("kind", ["distance", "similarity"])
    def test_a_graph_has_its_own_order(self, kind):
        names, joined, groups = self.clear()
        rows = [
            (names.index(a), names.index(b), w if kind == "similarity" else 10 - w)
            for a, b, w in joined
        ]
        graph = of_rows(rows, names=names, kind=kind)
        assert graph.names.tolist() == sorted(names)
        assert graph.names[graph.node_of].tolist() == names
        self.check(graph, sorted(names), groups)


class TestNamesOfAnyKind:
    @pytest.mark.parametrize(
        "same",
        [
            [2, 2.0, np.int64(2), np.float64(2), Fraction(2)],
            [1, True, np.True_, 1.0],
            [0.0, -0.0, 0, False],
            [0.5, Fraction(1, 2), Decimal("0.5")],
            [(1, "a"), (1.0, "a"), (True, "a")],
        ],
    )
    def test_equal_names_have_one_spelling(self, same):
        """Which of two equal names came first is of the order of rows."""
        shown = set()
        for first, second in permutations(same, 2):
            frame = pd.DataFrame({"source": [first, second], "target": ["x", "y"]}, dtype=object)
            graph = Graph.from_dataframe(frame.assign(distance=[1, 2]), weight="distance")
            shown.add(repr(graph.names.tolist()))
            graph = nx.Graph()
            graph.add_edge(first, "x", weight=1)
            graph.add_edge(second, "y", weight=2)
            shown.add(repr(Graph.from_networkx(graph).names.tolist()))
        assert len(shown) == 1

    @pytest.mark.parametrize(
        ("names", "said"),
        [
            ([float("nan"), 1], "called NaN"),
            ([np.float32("nan"), 1], "called NaN"),
            ([(object(),), (object(),)], "no text of their own"),
            ([print, len, lambda: None], "no text of their own"),
            ([Same("a"), Same("b")], "two nodes have names that read 'Same'"),
        ],
    )
    def test_names_that_tell_nothing_apart_are_refused(self, names, said):
        n = len(names)
        with pytest.raises(GraphError, match=said):
            Graph(range(n - 1), range(1, n), range(n - 1), names=names)

    def test_numbers_come_before_texts_and_those_before_others(self):
        names = [(2, "b"), "b", 10, 2.5, "B", (1, "z"), -3, frozenset({1})]
        n = len(names)
        graph = Graph(range(n - 1), range(1, n), range(n - 1), names=names)
        expected = [-3, 2.5, 10, "B", "b", frozenset({1}), (1, "z"), (2, "b")]
        assert graph.names.tolist() == expected

    def test_names_without_a_text_of_their_own_are_refused(self):
        with pytest.raises(GraphError, match="object have no text of their own"):
            Graph([0], [1], [0.5], names=[object(), object()])
