"""The bounds of the theory against drawn trees and drawn noise, on graphs with known clusters.

Three parts, as in docs/proofs/bounds.md: Theorem D (is every cluster in one piece?), the trade-off
theorem (does noise leave a separation intact?), and how much heavier than the minimum spanning tree
a private tree is.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._records import Records
from ptclust._statistics import seed_of
from ptclust.datasets import planted_graph
from ptclust.graph import Graph
from ptclust.mechanisms import MECHANISMS, Kruskal, Pamst
from ptclust.mechanisms.exponential import ALONE
from ptclust.privacy import Budget, RandomStream, Sensitivity
from ptclust.theory import (
    drawn_tree_excess,
    expected_drawn_tree_excess,
    expected_perturbed_tree_excess,
    perturbed_tree_excess,
    theorem_d,
    trade_off,
)
from ptclust.trees import minimum_spanning_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = [
    "DELTA",
    "GAMMA",
    "L1",
    "LINF",
    "N_SUBTREE_EDGES",
    "SUBTREES",
    "Effort",
    "light_and_heavy_paths",
    "run_bounds",
]

GAMMA = 0.05
"""The bounds on the weight of a tree may fail with this probability; the quantile is 1 - GAMMA."""
LINF = 1e-3
"""One privacy unit moves every weight by this much at most ..."""
L1 = 0.1
"""... and all weights together by this much; it matters to Laplace noise on all edges only."""
DELTA = 1e-6
"""For Gaussian noise."""
SUBTREES = {"narrow": (0.30, 0.35, 0.95), "wide": (0.10, 0.30, 0.95)}
"""Least and largest weight of a subtree of 12 edges, and that of the cut edge; H holds in both."""
N_SUBTREE_EDGES = 12
_OF_TREES = Pamst(), Kruskal()
_KEY = "part", "case", "x", "draws"


@dataclass(frozen=True)
class Effort:
    """How long to work on it."""

    epsilons: tuple[float, ...]
    noise_scales: tuple[float, ...]
    tree_draws: int
    noise_draws: int

    @classmethod
    def quick(cls) -> Effort:
        """Return less than a minute of work."""
        epsilons = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
        return cls(epsilons, (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05), 2_000, 20_000)

    @classmethod
    def full(cls) -> Effort:
        """Return a finer grid and narrower intervals: a few minutes."""
        epsilons = (0.25, 0.35, 0.5, 0.6, 0.75, 0.85, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)
        scales = (
            0.0002,
            0.0003,
            0.0005,
            0.0007,
            0.001,
            0.0015,
            0.002,
            0.003,
            0.005,
            0.007,
            0.01,
            0.015,
            0.02,
            0.03,
            0.05,
        )
        return cls(epsilons, scales, 20_000, 500_000)


def run_bounds(
    directory: Path,
    effort: Effort,
    *,
    seed: int = 0,
    resume: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Draw trees and noise, and compare frequencies and quantiles with the bounds, case by case.

    Records are appended to ``results.jsonl`` in ``directory`` as they are made, and those found
    there are not made again unless ``resume`` is false.

    Parameters
    ----------
    directory : Path
        Created if need be.
    effort : Effort
    seed : int, default 0
    resume : bool, default True
    progress : callable
        Progress callback.
    """
    graphs = {"moons": _moons(30), "paths": light_and_heavy_paths(8, 2, 1.2)}
    jobs: list[tuple[tuple[str, str, float, int], Callable[[int], dict[str, Any]]]] = []
    for name, (graph, labels) in graphs.items():
        for epsilon in effort.epsilons:
            key = "partitioning", name, epsilon, effort.tree_draws
            jobs.append((key, _Partitioning(graph, labels, epsilon, effort.tree_draws)))
    for name, weights in SUBTREES.items():
        for scale in effort.noise_scales:
            key = "trade-off", name, scale, effort.noise_draws
            jobs.append((key, _TradeOff(*weights, scale, effort.noise_draws)))
    heavy, _ = _moons(100)
    for mechanism in (*(each.name for each in _OF_TREES), "laplace", "gaussian"):
        for epsilon in effort.epsilons:
            key = "weight", mechanism, epsilon, effort.tree_draws // 4
            jobs.append((key, _Weight(heavy, mechanism, epsilon, effort.tree_draws // 4)))
    wanted = []
    with Records.of(directory, "bounds", _KEY, resume=resume, seed=seed) as records:
        for done, (key, job) in enumerate(jobs):
            progress(f"{key[0]}, {key[1]}: {done + 1} of {len(jobs)}")
            wanted.append(records.made(key, partial(job, seed_of(seed, *key))))
            records.flush()
    return wanted


def light_and_heavy_paths(
    size: int, n_clusters: int, alpha: float
) -> tuple[Graph, NDArray[np.int64]]:
    """Return a graph on which Theorem D fails in both forms of the paper, and its clusters.

    Clusters are paths of weight 1 but for one edge of weight 1 / alpha; all pairs across are joined
    by edges just heavier than alpha, so that the clusters are strongly homogeneous. Most of the
    time the lightest edge that leads on within a cluster is one of weight 1, and the gap to the
    edges across is only alpha - 1.

    Examples
    --------
    >>> graph, labels = light_and_heavy_paths(3, 2, 1.2)
    >>> graph.n_nodes, graph.n_edges, labels.tolist()
    (6, 13, [0, 0, 0, 1, 1, 1])
    """
    labels = np.arange(size * n_clusters) // size
    a, b = np.triu_indices(len(labels), 1)
    within = (labels[a] == labels[b]) & (b == a + 1)
    across = labels[a] != labels[b]
    weights = np.where(across, alpha * 1.001, np.where(a % size == 0, 1.0 / alpha, 1.0))
    kept = within | across
    return Graph(a[kept], b[kept], weights[kept], n_nodes=len(labels)), labels


def _moons(n_nodes: int) -> tuple[Graph, NDArray[np.int64]]:
    planted = planted_graph("moons", n_nodes, seed=0)
    return planted.graph, planted.truth


@dataclass(frozen=True)
class _Partitioning:
    """How often PAMST and Kruskal, with the paper's exponent, keep every cluster in one piece."""

    graph: Graph
    labels: NDArray[np.int64]
    epsilon: float
    draws: int

    def __call__(self, seed: int) -> dict[str, Any]:
        forms = theorem_d(
            self.graph, self.labels, epsilon=self.epsilon, utility_sensitivity=2 * LINF
        )
        crosses = self.labels[self.graph.sources] != self.labels[self.graph.targets]
        n_cuts = int(self.labels.max())
        record: dict[str, Any] = asdict(forms)
        for mechanism in _OF_TREES:
            with RandomStream.seeded(seed_of(seed, mechanism.name)) as stream:
                draw = partial(mechanism.draw_edges, self.graph, forms.exponent, stream)
                record[mechanism.name] = sum(
                    int(crosses[draw()].sum()) == n_cuts for _ in range(self.draws)
                )
        return record


@dataclass(frozen=True)
class _TradeOff:
    """How often H survives noise on a subtree whose weights are spread evenly."""

    lightest: float
    heaviest: float
    out: float
    scale: float
    draws: int

    def __call__(self, seed: int) -> dict[str, Any]:
        bounds = trade_off(
            N_SUBTREE_EDGES,
            theta_min=self.lightest,
            theta_max=self.heaviest,
            theta_out=self.out,
            noise_scale=self.scale,
        )
        random = np.random.default_rng(seed)
        weights = np.linspace(self.lightest, self.heaviest, N_SUBTREE_EDGES)
        noise = random.laplace(scale=self.scale, size=(self.draws, N_SUBTREE_EDGES))
        noisy = weights + noise
        outer = self.out + random.laplace(scale=self.scale, size=self.draws)
        low = noisy.min(axis=1)
        worst_low = self.lightest + noise.min(axis=1)
        worst_top = self.heaviest + noise.max(axis=1)
        return {
            "mean": bounds.mean,
            "printed": bounds.printed,
            "corrected": bounds.corrected,
            "sound": bounds.sound,
            "release": int(((noisy.max(axis=1) ** 2 < low * outer) & (low > 0)).sum()),
            "worst": int(((worst_top**2 < worst_low * outer) & (worst_low > 0)).sum()),
        }


@dataclass(frozen=True)
class _Weight:
    """How much heavier than the minimum spanning tree the private trees of one mechanism are."""

    graph: Graph
    mechanism: str
    epsilon: float
    draws: int

    def __call__(self, seed: int) -> dict[str, Any]:
        graph, sensitivity = self.graph, Sensitivity(linf=LINF, l1=L1)
        n_steps, mechanism = graph.n_nodes - 1, MECHANISMS[self.mechanism]
        delta = 0 if "pure" in mechanism.variants else DELTA
        budget = Budget.approximate(self.epsilon, delta)
        calibration = mechanism.calibrate(graph.topology, sensitivity, budget, split=ALONE)
        if calibration.tree is not None:
            bound = drawn_tree_excess(calibration.tree, n_steps, graph.n_edges, GAMMA)
            mean_bound = expected_drawn_tree_excess(calibration.tree, n_steps, graph.n_edges)
        else:
            bound = perturbed_tree_excess(calibration.weights, n_steps, GAMMA)
            mean_bound = expected_perturbed_tree_excess(calibration.weights, n_steps)
        with RandomStream.seeded(seed) as stream:
            draw = partial(mechanism.draw_tree, graph, calibration, stream)
            weights = np.array([graph.weights[draw().edge_ids].sum() for _ in range(self.draws)])
        least = minimum_spanning_tree(graph).total_weight
        heaviest = minimum_spanning_tree(
            Graph(graph.sources, graph.targets, -graph.weights, n_nodes=graph.n_nodes)
        )
        excess = weights - least
        return {
            "most": -heaviest.total_weight - least,
            "bound": bound,
            "mean_bound": mean_bound,
            "quantile": float(np.quantile(excess, 1 - GAMMA)),
            "mean": float(excess.mean()),
            "error": float(excess.std(ddof=1) / math.sqrt(self.draws)),
        }
