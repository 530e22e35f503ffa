"""CPU time and memory of ptclust and its peers, on the same arrays, in one run.

Every measurement is a process of its own, so that its peak memory is its own. It loads the arrays,
warms up on a small graph (imports, compiled kernels from the cache), and runs its task once. The
tasks take turns, round by round, so that none has the machine to itself while others share it; the
median of the rounds counts. Memory is touched right before each (`touch_memory`). Ratios are what
to look at: seconds differ from machine to machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from experiments._processes import peak_bytes, run_module
from ptclust._types import Array, Floats, Ints

__all__ = [
    "GRAPHS",
    "TASKS",
    "Case",
    "Measurement",
    "full_cases",
    "quick_cases",
    "run_benchmark",
    "touch_memory",
]

Data = dict[str, Array]  # edges: sources, targets, weights, n_nodes; maybe truth; or points
_Edges = tuple[Array, Array, Floats]
Answer = float | Array  # the weight of a tree, the number of its edges, or labels
_BYTES_AN_EDGE = 400  # more than any task needs
_LITTLE = 10**8
_WARM_UP = 300_000  # the size of the graph to warm up on: large enough to reach every kernel
_TINY = 3000  # some kernels are for some kinds of graphs alone


# The graphs: each of about so many edges.


def random_edges(n_nodes: int, n_edges: int, seed: int = 0) -> tuple[Array, Array, Floats]:
    """Return about ``n_edges`` distinct uniform edges in random order, and uniform weights.

    >>> sources, targets, weights = random_edges(1000, 5000)
    >>> 4900 < len(weights) <= 5000
    True
    """
    random = np.random.default_rng(seed)
    a, b = random.integers(n_nodes, size=(2, n_edges))
    return _simple(a, b, n_nodes, random)


def _simple(a: Ints, b: Ints, n_nodes: int, random: np.random.Generator) -> _Edges:
    """Return the distinct edges among these in random order, and uniform weights."""
    keys = np.unique((np.minimum(a, b) * n_nodes + np.maximum(a, b))[a != b])
    low, high = np.divmod(random.permutation(keys), n_nodes)
    return low.astype(np.int32), high.astype(np.int32), random.random(len(keys))


def _data(sources: Array, targets: Array, weights: Floats, **more: Array) -> Data:
    n_nodes = int(max(sources.max(), targets.max())) + 1
    ends = {"sources": sources.astype(np.int32), "targets": targets.astype(np.int32)}
    return {**ends, "weights": weights, "n_nodes": np.array(n_nodes), **more}


def _random(n_edges: int) -> Data:
    return _data(*random_edges(n_edges // 10, n_edges))


def _grid(n_edges: int) -> Data:
    side = int((n_edges / 2) ** 0.5) + 1
    nodes = np.arange(side**2).reshape(side, side)
    a, b = (
        np.r_[x.ravel(), y.ravel()]
        for x, y in ((nodes[1:], nodes[:, 1:]), (nodes[:-1], nodes[:, :-1]))
    )
    return _data(*_simple(a, b, side**2, np.random.default_rng(0)))


def _preferential(n_edges: int) -> Data:
    """Ten edges from every node to earlier ones, by their degree (Barabasi and Albert 1999)."""
    random, n_nodes = np.random.default_rng(0), n_edges // 10
    new = np.repeat(np.arange(1, n_nodes), 10)
    # An end of a uniform earlier edge is a node by its degree; follow the chain to a new node.
    place = (random.random(len(new)) * 2 * (np.arange(len(new)) // 10 * 10)).astype(np.int64)
    old = np.where(place % 2, -1 - place // 2, new[place // 2])
    while (open_ := np.flatnonzero(old < 0)).size:
        old[open_] = old[-1 - old[open_]]
    old[new == 1] = 0
    return _data(*_simple(new, np.minimum(old, new - 1), n_nodes, random))


def _complete(n_edges: int) -> Data:
    a, b = np.triu_indices(int((2 * n_edges) ** 0.5) + 1, 1)
    return _data(*_simple(a, b, int(b.max()) + 1, np.random.default_rng(0)))


def _sorted(n_edges: int) -> Data:
    edges = _random(n_edges)
    order = np.lexsort((edges["targets"], edges["sources"]))
    return {**edges, **{name: edges[name][order] for name in ("sources", "targets")},
            "weights": np.sort(edges["weights"])}  # fmt: skip


def _equal(n_edges: int) -> Data:
    return {**(edges := _random(n_edges)), "weights": np.full(len(edges["weights"]), 0.5)}


def _tree(parents: Ints) -> Data:
    """Return the tree of the parents of the nodes from 1 on; weights ascend from the root."""
    return _data(parents, np.arange(1, len(parents) + 1), np.linspace(0.1, 1.0, len(parents)))


def _star(n_edges: int) -> Data:
    return _tree(np.zeros(n_edges, np.int64))


def _path(n_edges: int) -> Data:
    return _tree(np.arange(n_edges))


def _broom(n_edges: int) -> Data:
    return _tree(np.minimum(np.arange(n_edges), n_edges // 2))


def _caterpillar(n_edges: int) -> Data:
    return _tree(
        np.where((places := np.arange(n_edges)) < n_edges // 2, places, places - n_edges // 2)
    )


def _planted(n_edges: int) -> Data:
    """Fifty clusters, twelve edges in twenty inside them: similarities of 10 there, of 1 across."""
    random, n_nodes = np.random.default_rng(0), n_edges // 10
    truth = np.sort(random.integers(50, size=n_nodes))
    first, last = (np.searchsorted(truth, truth, side) for side in ("left", "right"))
    a = np.repeat(np.arange(n_nodes), 10)
    inside = random.random(len(a)) < 0.6
    near = first[a] + (random.random(len(a)) * (last - first)[a]).astype(np.int64)
    b = np.where(inside, near, random.integers(n_nodes, size=len(a)))
    a, b, _ = _simple(a, b, n_nodes, random)
    weights = np.where(truth[a] == truth[b], 10.0, 1.0) * random.uniform(0.8, 1.2, len(a))
    return _data(a, b, weights, truth=truth)


def _points(n_points: int) -> Data:
    random = np.random.default_rng(0)
    truth = random.integers(20, size=n_points)
    centres = 100.0 * np.stack(np.divmod(np.arange(20), 5), axis=1)
    return {"points": centres[truth] + random.normal(size=(n_points, 2)), "truth": truth}


GRAPHS: dict[str, Callable[[int], Data]] = {
    "random": _random, "grid": _grid, "preferential": _preferential, "complete": _complete,
    "sorted weights": _sorted, "equal weights": _equal, "star": _star, "path": _path,
    "broom": _broom, "caterpillar": _caterpillar, "planted": _planted, "points": _points,
}  # fmt: skip


# The tasks: what comes before is not measured, what is returned is.


def _edges(data: Data) -> tuple[Array, Array, Floats, int]:
    return data["sources"], data["targets"], data["weights"], int(data["n_nodes"])


def _graph(data: Data, kind: Any = "distance") -> Any:
    from ptclust.graph import Graph

    sources, targets, weights, n_nodes = _edges(data)
    return Graph(sources, targets, weights, n_nodes=n_nodes, kind=kind)


def _igraph(data: Data) -> Any:
    import igraph

    sources, targets, _, n_nodes = _edges(data)
    return igraph.Graph(n=n_nodes, edges=np.stack([sources, targets], axis=1))


def _mst(data: Data) -> Callable[[], Answer]:
    from ptclust.trees import minimum_spanning_tree

    return lambda: minimum_spanning_tree(_graph(data)).total_weight


def _private(data: Data, by: str) -> Callable[[], Answer]:
    from ptclust.pipeline import private_spanning_tree
    from ptclust.privacy import Sensitivity

    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": Sensitivity(linf=1e-5)}
    return lambda: private_spanning_tree(_graph(data), mechanism=by, **asked).n_edges


def _dbmstclu(data: Data) -> Callable[[], Answer]:
    from ptclust.clustering import dbmstclu
    from ptclust.trees import minimum_spanning_tree

    tree = minimum_spanning_tree(_graph(data))
    return lambda: len(dbmstclu(tree).labels)


def _scipy_mst(data: Data) -> Callable[[], Answer]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    sources, targets, weights, n = _edges(data)
    return lambda: minimum_spanning_tree(
        coo_array((weights, (sources, targets)), shape=(n, n)).tocsr()
    ).sum()


def _igraph_mst(data: Data) -> Callable[[], Answer]:
    import igraph  # noqa: F401

    weights = data["weights"]
    return lambda: weights[_igraph(data).spanning_tree(weights, return_tree=False)].sum()


def _networkit_mst(data: Data) -> Callable[[], Answer]:
    import networkit

    sources, targets, weights, n_nodes = _edges(data)

    def run() -> Answer:
        coo = (weights, (sources.astype(np.uint64), targets.astype(np.uint64)))
        graph = networkit.GraphFromCoo(coo, n=n_nodes, weighted=True, directed=False)
        forest = networkit.graph.PrimMSF(graph)
        forest.run()
        return float(forest.getTotalWeight())

    return run


def _rustworkx_mst(data: Data) -> Callable[[], Answer]:
    import rustworkx

    sources, targets, weights, n_nodes = _edges(data)

    def run() -> Answer:
        graph = rustworkx.PyGraph()
        graph.add_nodes_from(range(n_nodes))
        graph.add_edges_from(
            list(zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True))
        )
        return float(sum(edge[2] for edge in rustworkx.minimum_spanning_edges(graph, float)))

    return run


def _networkx_mst(data: Data) -> Callable[[], Answer]:
    import networkx as nx

    sources, targets, weights, _ = _edges(data)

    def run() -> Answer:
        graph = nx.Graph()
        columns = (sources.tolist(), targets.tolist(), weights.tolist())
        graph.add_weighted_edges_from(zip(*columns, strict=True))
        return float(nx.minimum_spanning_tree(graph).size(weight="weight"))

    return run


def _pamst_by_steps(data: Data) -> Callable[[], Answer]:
    """Algorithm 2 as printed: every step weighs all edges that leave the nodes reached."""
    sources, targets, weights, n_nodes = _edges(data)

    def run() -> Answer:
        random = np.random.default_rng(0)
        reached, n_tree = np.zeros(n_nodes, dtype=bool), 0
        reached[random.integers(n_nodes)] = True
        while (leaving := np.flatnonzero(reached[sources] != reached[targets])).size:
            chances = np.exp(-20.0 * (weights[leaving] - weights[leaving].min()))
            edge = random.choice(leaving, p=chances / chances.sum())
            reached[sources[edge]] = reached[targets[edge]] = True
            n_tree += 1
        return n_tree

    return run


def _ptclust(data: Data, norm: str) -> Callable[[], Answer]:
    from ptclust import PTClust, Sensitivity

    graph = _graph(data, "similarity")
    change = Sensitivity(l1=1) if norm == "l1" else Sensitivity(linf=0.2 / graph.n_edges**0.5)
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "privacy_unit": "one record"}
    return lambda: PTClust(**asked, sensitivity=change).fit(graph).labels_


def _igraph_leiden(data: Data) -> Callable[[], Answer]:
    graph, weights = _igraph(data), data["weights"]
    return lambda: np.array(
        graph.community_leiden(objective_function="modularity", weights=weights).membership
    )


def _leidenalg(data: Data) -> Callable[[], Answer]:
    import leidenalg

    graph, weights = _igraph(data), data["weights"].tolist()
    kind = leidenalg.ModularityVertexPartition
    return lambda: np.array(
        leidenalg.find_partition(graph, kind, weights=weights, seed=0).membership
    )


def _points_dbmstclu(data: Data) -> Callable[[], Answer]:
    from ptclust import DBMSTClu

    return lambda: DBMSTClu().fit(data["points"]).labels_


def _sklearn_hdbscan(data: Data) -> Callable[[], Answer]:
    from sklearn.cluster import HDBSCAN

    return lambda: HDBSCAN(min_cluster_size=20, copy=True).fit(data["points"]).labels_


def _fast_hdbscan(data: Data) -> Callable[[], Answer]:
    import fast_hdbscan

    return lambda: fast_hdbscan.HDBSCAN(min_cluster_size=20).fit(data["points"]).labels_


@dataclass(frozen=True)
class Task:
    """Something to measure: of a family that is compared, up to a size that it can bear."""

    title: str
    family: str
    prepare: Callable[[Data], Callable[[], Answer]]
    most: int = 10**8
    baseline: bool = False  # the peer that is 1 in its family
    kind: str = ""  # tasks of one kind are peers, where a family has several

    @property
    def is_ours(self) -> bool:
        """Whether it is ptclust that is measured."""
        return self.title.startswith("ptclust")


_minimum_tree = partial(Task, family="tree", kind="minimum spanning tree")
_private_tree = partial(Task, family="tree", kind="private tree")
_cut_tree = partial(Task, family="tree", kind="clusters of the minimum tree")
TASKS = {
    "scipy_mst": _minimum_tree("scipy: minimum_spanning_tree", prepare=_scipy_mst, baseline=True),
    "mst": _minimum_tree("ptclust: minimum_spanning_tree", prepare=_mst),
    "igraph_mst": _minimum_tree("igraph: spanning_tree", prepare=_igraph_mst),
    "networkit_mst": _minimum_tree("networkit: PrimMSF", prepare=_networkit_mst),
    "rustworkx_mst": _minimum_tree(
        "rustworkx: minimum_spanning_edges", prepare=_rustworkx_mst, most=2 * 10**6
    ),
    "networkx_mst": _minimum_tree(
        "networkx: minimum_spanning_tree", prepare=_networkx_mst, most=10**5
    ),
    "kruskal": _private_tree(
        "ptclust: private tree, kruskal", prepare=partial(_private, by="kruskal")
    ),
    "pamst": _private_tree("ptclust: private tree, pamst", prepare=partial(_private, by="pamst")),
    "pamst_by_steps": _private_tree(
        "Algorithm 2 step by step (numpy)", prepare=_pamst_by_steps, most=3 * 10**4
    ),
    "dbmstclu": _cut_tree("ptclust: DBMSTClu on the tree", prepare=_dbmstclu),
    "leiden": Task("igraph: community_leiden", "clusters", _igraph_leiden, baseline=True),
    "ptclust_l1": Task("ptclust: PTClust, l1", "clusters", partial(_ptclust, norm="l1")),
    "ptclust_linf": Task("ptclust: PTClust, linf", "clusters", partial(_ptclust, norm="linf")),
    "leidenalg": Task("leidenalg: find_partition", "clusters", _leidenalg, 2 * 10**6),
    "hdbscan": Task("scikit-learn: HDBSCAN", "points", _sklearn_hdbscan, 3 * 10**4, baseline=True),
    "fast_hdbscan": Task("fast_hdbscan: HDBSCAN", "points", _fast_hdbscan),
    "points": Task("ptclust: DBMSTClu of points", "points", _points_dbmstclu),
}  # fmt: skip

_FAMILY = {"planted": "clusters", "points": "points"}  # of a graph; all others are for trees


@dataclass(frozen=True)
class Case:
    """A graph of a size, in edges, or in points."""

    graph: str
    size: int

    @property
    def tasks(self) -> list[str]:
        """The tasks that it is for."""
        family = _FAMILY.get(self.graph, "tree")
        return [name for name, task in TASKS.items()
                if task.family == family and self.size <= task.most]  # fmt: skip


@dataclass(frozen=True)
class Measurement:
    """What a task took on a case, and what it answered."""

    graph: str
    size: int
    task: str
    cpu_seconds: float
    peak_bytes: int
    answer: float  # the weight of the tree, the number of edges or nodes; agreement with the truth


def full_cases(largest: int) -> list[Case]:
    """Return all graphs in three sizes; most are a tenth as large as the largest."""
    fewer = {"random": 1, "planted": 1, "points": 100}
    sizes = [largest // 100, largest // 10, largest]
    return [Case(name, size // fewer.get(name, 10)) for name in GRAPHS for size in sizes]


def quick_cases() -> list[Case]:
    """Return all graphs, tiny: so that every task runs."""
    return [Case(name, _TINY) for name in GRAPHS]


def run_benchmark(
    cases: list[Case], rounds: int, progress: Callable[[str], None] = lambda _: None
) -> list[Measurement]:
    """Measure all tasks of all cases, in turns; every answer is checked."""
    found = []
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            data: dict[str, Any] = dict(GRAPHS[case.graph](case.size))
            np.savez(Path(folder) / "data.npz", **data)
            runs: dict[str, list[dict[str, float]]] = {name: [] for name in case.tasks}
            for turn in range(rounds):
                for name in case.tasks:
                    progress(f"{case.graph}, {case.size:,}: {name}, round {turn + 1} of {rounds}")
                    runs[name].append(run_module(__name__, name, folder, case.graph, case.size))
        for name, each in runs.items():
            seconds = median(run["cpu_seconds"] for run in each)
            peak = int(median(run["peak_bytes"] for run in each))
            found.append(Measurement(case.graph, case.size, name, seconds, peak, each[0]["answer"]))
        _check_agreement([m for m in found if (m.graph, m.size) == (case.graph, case.size)])
    return found


def touch_memory(n_bytes: int) -> None:
    """Write to so much memory, at most 4 GB, and free it, if it is more than a little.

    A virtual machine asks its host anew for memory that it has not used for a few seconds. That
    takes longer than many a task, and has nothing to do with it. Another process does it, so that
    the peak of this one stays its own.
    """
    if n_bytes >= _LITTLE:
        write = f"import numpy; numpy.ones({min(n_bytes, 2**32)}, numpy.uint8)"
        subprocess.run([sys.executable, "-c", write], check=True)  # noqa: S603


def _check_agreement(measured: list[Measurement]) -> None:
    """Raise an error unless all minimum spanning trees have one weight."""
    weights = {m.task: m.answer for m in measured if m.task.endswith("mst") and m.task != "pamst"}
    if weights and not np.allclose(list(weights.values()), weights["mst"], rtol=1e-9):
        raise AssertionError(f"minimum spanning trees differ on {measured[0].graph}: {weights}")


def measure(task: str, folder: Path, graph: str, size: int) -> dict[str, float]:
    """Run a task once, after a warm-up on a small graph, and on a tiny one of the same kind."""
    prepare = TASKS[task].prepare
    small = {"points": "points", "clusters": "planted"}.get(TASKS[task].family, "random")
    prepare(GRAPHS[small](min(_WARM_UP, TASKS[task].most // 30)))()
    prepare(GRAPHS[graph](_TINY))()
    with np.load(folder / "data.npz") as file:
        data = dict(file)
    run = prepare(data)
    touch_memory(size * _BYTES_AN_EDGE)
    start = time.process_time()
    answer = run()
    seconds = time.process_time() - start
    peak = peak_bytes()
    if isinstance(answer, np.ndarray) and answer.ndim:
        from sklearn.metrics import adjusted_rand_score

        answer = adjusted_rand_score(data["truth"], answer)
    return {"cpu_seconds": seconds, "peak_bytes": peak, "answer": float(answer)}


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps(measure(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
    )
