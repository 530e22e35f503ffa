"""What theory promises of a planned release: how probably it finds given clusters exactly.

Two things have to go well. The drawn tree has to keep every cluster in one piece (Theorem D,
corrected), and no noise may move a weight so far that the certificate of recovery is lost. A
minimum spanning tree of a perturbed graph asks for the second alone, of all edges.

The certificate follows from a few numbers, for every tree that keeps to them: weights of a to b
within clusters and of c to d across. Stability becomes b**2 / a < c (1 - 1 / s) for clusters of s
nodes: the paper's homogeneity, but for a factor that matters for small clusters.
docs/proofs/recovery.md has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ptclust.errors import UsageError
from ptclust.theory.bounds import partitioning_probability
from ptclust.theory.partition import as_partition
from ptclust.theory.recovery import Condition, RecoveryCertificate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ptclust.graph import Graph
    from ptclust.mechanisms import Calibration

_PAIR = 2  # a cluster of two nodes is never kept: two singletons have V_C = 1


@dataclass(frozen=True)
class Promise:
    """Lower bounds on the probability that a release goes well. Not to be published."""

    mechanism: str
    tree: float | None
    """That every cluster is one piece of the drawn tree; None if the whole graph is perturbed."""
    noise_allowance: float
    """By how much every weight may move while recovery stays certain."""
    recovery: float
    """That DBMSTClu returns exactly the clusters."""

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers."""
        return dict(vars(self))


def recovery_promise(graph: Graph, labels: ArrayLike, calibration: Calibration) -> Promise:
    """Return how probably a release as planned finds these clusters exactly, at least.

    Shift and scale are left to their defaults: where no weight moves below one deviation of the
    noise, the shift is 0. The bounds hold for any weights of these extremes and are far from tight:
    a 0 says nothing.

    There are two clusters at least, each connected within itself, as is the graph. *Privacy.* None:
    for the curator's own eyes.

    >>> from ptclust import Sensitivity, plan
    >>> from ptclust.graph import Graph
    >>> graph = Graph(range(7), range(1, 8), [0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1])
    >>> budget = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": Sensitivity(linf=1e-4)}
    >>> planned = plan(graph.topology, **budget, tree="pamst")
    >>> promise = recovery_promise(graph, [0, 0, 0, 0, 1, 1, 1, 1], planned.chosen)
    >>> round(promise.tree, 3), round(promise.recovery, 3)
    (1.0, 1.0)
    """
    partition = as_partition(labels, graph.n_nodes)
    cross = partition.cluster[graph.sources] != partition.cluster[graph.targets]
    within, across = graph.weights[~cross], graph.weights[cross]
    deviation = calibration.weights.standard_deviation
    allowance = 0.0
    if len(within) and len(across) and within.min() > 0:
        ends = (within.min(), within.max(), across.min(), across.max())
        a, b, c, d = (float(end) for end in ends)
        sizes = {"smallest": int(partition.sizes.min()), "largest": int(partition.sizes.max())}
        counts = {"n_nodes": graph.n_nodes, "n_clusters": partition.n_clusters}
        allowance = max(0.0, min(noise_allowance(a, b, c, d, **sizes, **counts), a - deviation))
    tree, n_draws = None, graph.n_edges
    if calibration.tree is not None:
        tree = partitioning_probability(graph, labels, calibration.tree)
        n_draws = graph.topology.n_tree_edges
    quiet = 0.0
    if allowance > 0:
        laplace = calibration.weights.distribution == "laplace"
        kind: Literal["laplace", "gaussian"] = "laplace" if laplace else "gaussian"
        scale = calibration.weights.scale
        quiet = probability_of_no_larger_noise(allowance, n_draws, scale=scale, noise=kind)
    return Promise(calibration.mechanism, tree, allowance, (1.0 if tree is None else tree) * quiet)


def certify_interval(
    a: float,
    b: float,
    c: float,
    d: float,
    *,
    smallest: int,
    largest: int,
    n_nodes: int,
    n_clusters: int,
) -> RecoveryCertificate:
    """Certify that DBMSTClu recovers the clusters of every tree that keeps to these numbers.

    The tree's edges weigh from a to b within clusters and from c to d across. There are at least
    two clusters, of ``smallest`` to ``largest`` nodes each, and each is one piece of the tree.

    >>> shape = {"smallest": 20, "largest": 30, "n_nodes": 100, "n_clusters": 4}
    >>> certify_interval(0.1, 0.25, 0.9, 1.0, **shape).holds
    True
    >>> certify_interval(0.1, 0.3, 0.9, 1.0, **shape).failed[0].name
    'stability'
    """
    _check(a, b, c, d, smallest, largest, n_nodes, n_clusters)
    largest = min(largest, n_nodes - (n_clusters - 1) * smallest)
    found = [Condition("partition", math.inf), Condition("order", 1 - b / c)]
    if b < c:
        found.append(Condition("stability", _stability(a / b, b / c, smallest, largest)))
        if n_clusters > 2:
            preference = _preference(a, b, c, d, smallest, largest, n_nodes)
            progress = _progress(1 - b / c, c / d, smallest, n_nodes, n_clusters)
            found += [Condition("preference", preference), Condition("progress", progress)]
    return RecoveryCertificate(n_nodes, n_clusters, tuple(found))


def noise_allowance(
    a: float, b: float, c: float, d: float, *, shift: float = 0.0, **shape: int
) -> float:
    """Return how far every weight may move, besides ``shift``, such that recovery stays certain.

    Parameters are those of ``certify_interval``, before noise. The answer is 0 if not even weights
    without noise are certified. A constant ``shift``, the paper's tau, keeps small weights positive
    but draws all ratios towards 1.

    >>> shape = {"smallest": 50, "largest": 50, "n_nodes": 100, "n_clusters": 2}
    >>> round(noise_allowance(0.1, 0.2, 0.9, 1.0, **shape), 4)
    0.0349
    """

    def certified(t: float) -> bool:
        ends = a - t + shift, b + t + shift, c - t + shift, d + t + shift
        return certify_interval(*ends, **shape).holds

    if not certified(0.0):
        return 0.0
    low, high = 0.0, min(a + shift, (c - b) / 2)
    for _ in range(100):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if certified(middle):
            low = middle
        else:
            high = middle
    return low


def probability_of_no_larger_noise(
    allowance: float,
    n_draws: int,
    *,
    scale: float,
    noise: Literal["laplace", "gaussian"] = "laplace",
) -> float:
    """Return the probability that ``n_draws`` independent noises are all within ``allowance``.

    ``scale`` is the scale of the Laplace distribution, or the standard deviation of the Gaussian.

    >>> round(probability_of_no_larger_noise(0.04, 99, scale=0.004), 4)
    0.9955
    """
    if noise not in ("laplace", "gaussian"):
        raise UsageError(f"noise must be 'laplace' or 'gaussian', not {noise!r}")
    if not (allowance >= 0 and scale > 0 and n_draws >= 0):
        given = f"{allowance!r}, {n_draws!r} and {scale!r}"
        raise UsageError(f"allowance and n_draws must be at least 0 and scale above 0, not {given}")
    size = allowance / scale
    beyond = math.exp(-size) if noise == "laplace" else math.erfc(size / math.sqrt(2))
    if beyond == 1 or n_draws == 0:
        return float(n_draws == 0)
    return math.exp(n_draws * math.log1p(-beyond))


def _check(
    a: float, b: float, c: float, d: float, smallest: int, largest: int, n: int, k: int
) -> None:
    if not (0 < a <= b and 0 < c <= d < math.inf and b < math.inf):
        raise UsageError("weights must be positive and finite, a <= b and c <= d; raise the shift")
    if not 1 <= smallest <= largest:
        sizes = f"{smallest!r} and {largest!r}"
        raise UsageError(f"sizes must be at least 1 and smallest <= largest, not {sizes}")
    if k < 2 or not k * smallest <= n <= k * largest:
        clusters = f"{k!r} clusters of {smallest!r} to {largest!r} nodes"
        raise UsageError(f"{clusters} cannot make up {n!r} nodes; there are at least two clusters")


def _stability(inner: float, outer: float, smallest: int, largest: int) -> float:
    """Return the worst margin of stability; ``inner`` is a / b, ``outer`` is b / c.

    The worst cut leaves a singleton, V_C = 1, and a rest with V_C = 1 - a / b.
    """
    if largest == 1:
        return math.inf
    if smallest <= _PAIR:
        return -_PAIR * outer
    return min((s - 1) * inner - s * outer for s in (smallest, largest))


def _preference(
    a: float, b: float, c: float, d: float, smallest: int, largest: int, n_nodes: int
) -> float:
    """Return the worst margin of preference: linear in the size, and in 1 / M for c <= M <= d."""
    if largest == 1:
        return math.inf
    worth = smallest * (1 - b / c)
    margin = worth - n_nodes * max(0.0, b / c - c / d)
    for size in (smallest, largest):
        for heaviest in (c, d):
            right = worth + smallest * (1 - c / heaviest)
            right += (size + 2 * smallest) * (c - b) / heaviest
            for q, x in ((1, 1.0), (size - 1, 1 - a / b)):
                margin = min(margin, right - q * (x + 1 - b / heaviest))
    return margin


def _progress(validity: float, ratio: float, smallest: int, n_nodes: int, n_clusters: int) -> float:
    """Return the worst margin of progress; ``ratio`` is c / d."""
    if n_clusters == 3:
        return _PAIR * smallest * (validity - (1 - ratio))
    return smallest * validity - 2 * (1 - math.sqrt(ratio)) * (n_nodes - smallest)
