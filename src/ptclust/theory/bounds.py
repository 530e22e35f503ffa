"""How good the Exponential mechanism's choices are: edges, trees, and the clusters in a tree.

A step selects r with probability proportional to exp(-c w(r)); its *excess* is w(r) less the least
weight among the candidates. The excess of a tree T is w(T) - w(MST). An exponent is given as c, or
as the calibration of a tree, which has it.

Theorem D says that the private tree has a partitioning topology, every cluster in one piece, with
high probability. The paper prints one form in its text and another in its supplement; both are
false. docs/proofs/bounds.md proves a third, *corrected* one, and all other bounds here.

A release finds given clusters exactly if two things go well. A drawn tree has to keep every cluster
in one piece (Theorem D, corrected), and no noise may move a weight so far that the certificate of
recovery is lost. That follows from a few numbers, for every tree that keeps to them: weights of a
to b within clusters and of c to d across (docs/proofs/recovery.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ptclust._traces import guard_functions
from ptclust.clustering.dbcvi import positive_weights
from ptclust.errors import GraphError
from ptclust.graph import Graph
from ptclust.mechanisms import Calibration
from ptclust.mechanisms.exponential import TreeCalibration
from ptclust.privacy.noise import DISTRIBUTIONS, LAPLACE, Noise
from ptclust.theory.cluster import links_of_clusters
from ptclust.theory.partition import as_partition, check_connected, extremes, require
from ptclust.theory.recovery import Condition, RecoveryCertificate

Exponent = float | TreeCalibration  # c, or what a mechanism was calibrated to

_PAIR = 2  # a cluster of two nodes is never kept: two singletons have V_C = 1


def excess_probability(exponent: float, n_candidates: int, excess: float) -> float:
    """Return the largest probability that a choice is off by ``excess`` or more.

    It is N exp(-c x) / (1 + N exp(-c x)) with N = n_candidates - 1, and is reached where all
    candidates but the best are off by exactly x.
    """
    from scipy.special import expit

    c = _exponent(exponent)
    _check_candidates(n_candidates)
    log_others = math.log(n_candidates - 1) if n_candidates > 1 else -math.inf
    return float(expit(log_others - c * excess)) if excess > 0 else 1.0


def expected_excess(exponent: float, n_candidates: int) -> float:
    """Return a bound on the mean excess of a step: log(n_candidates) / c."""
    _check_candidates(n_candidates)
    return math.log(n_candidates) / _exponent(exponent)


def paper_exponent(epsilon: float, utility_sensitivity: float, n_steps: int = 1) -> float:
    """Return the paper's exponent c = epsilon / (2 Delta_u k) of k steps that share epsilon.

    Its utility -abs(w(r) - min w) has Delta_u = 2 mu; ``ptclust.privacy`` knows the exponent that a
    budget truly affords.
    """
    _check_positive("epsilon", epsilon)
    _check_positive("utility_sensitivity", utility_sensitivity)
    require(n_steps >= 1, f"at least 1 step is needed, not {n_steps}")
    return epsilon / (2.0 * utility_sensitivity * n_steps)


def paper_utility_threshold(
    epsilon: float, utility_sensitivity: float, n_candidates: int, t: float
) -> float:
    """Return how far below the best utility a choice falls with probability exp(-t) at most.

    It is 2 Delta_u (t + log R) / epsilon for R candidates, as a theorem of section 2 rightly says.
    """
    _check_candidates(n_candidates)
    return (t + math.log(n_candidates)) / paper_exponent(epsilon, utility_sensitivity)


@dataclass(frozen=True)
class TheoremD:
    """What the three forms of Theorem D say the probability of a partitioning topology is at least.

    The printed forms are reported as they come out; below 0 they say nothing.
    """

    exponent: float  # c of the mechanism, epsilon / (2 Delta_u (n - 1))
    printed: float  # the form of the text, with log|E| inside A. False
    supplement: float  # the form of the supplement, with log|E| outside. False, too
    corrected: float  # what holds; see ``partitioning_probability``


def partitioning_probability(graph: Graph, labels: ArrayLike, exponent: Exponent) -> float:
    """Return how probably a tree of PAMST or Kruskal keeps every cluster in one piece, at least.

    It is the product over clusters i of (1 + x_i)^-(n_i - 1), where n_i is the size of the cluster
    and x_i = sum over its boundary edges e of exp(-c (w(e) - b_i)), b_i being the heaviest edge of
    the minimum spanning tree of the cluster. Every cluster must be connected in the graph.

    >>> graph = Graph([0, 1, 2, 3], [1, 2, 3, 0], [0.1, 0.8, 0.2, 0.9])
    >>> round(partitioning_probability(graph, [0, 0, 1, 1], exponent=10.0), 4)
    0.9954
    """
    c = _exponent(exponent)
    partition = as_partition(labels, graph.n_nodes)
    bottleneck, n_pieces = links_of_clusters(graph, partition)
    if (torn := n_pieces - partition.n_clusters) > 0:
        pieces = f"there are {torn} pieces more than there are clusters"
        raise GraphError(f"{pieces}; every cluster must be connected by edges of its own")
    a, b = partition.cluster[graph.sources], partition.cluster[graph.targets]
    cross = a != b
    log_x = np.full(partition.n_clusters, -np.inf)
    for cluster in (a[cross], b[cross]):
        with np.errstate(under="ignore"):
            np.logaddexp.at(log_x, cluster, -c * (graph.weights[cross] - bottleneck[cluster]))
    several = partition.sizes > 1  # a cluster of a single node is never torn
    log_terms = np.logaddexp(0.0, log_x[several]) * (partition.sizes[several] - 1)
    return float(np.exp(-log_terms.sum()))


def theorem_d(
    graph: Graph, labels: ArrayLike, *, epsilon: float, utility_sensitivity: float
) -> TheoremD:
    """Return all three forms of Theorem D for the paper's PAMST.

    The graph is connected, as is every cluster within itself, and ``utility_sensitivity`` is the
    paper's Delta_u = 2 mu.
    """
    check_connected(graph, "Theorem D")
    positive_weights(graph, "Theorem D")
    steps = graph.n_nodes - 1
    c = paper_exponent(epsilon, utility_sensitivity, steps)
    corrected = partitioning_probability(graph, labels, c)
    partition = as_partition(labels, graph.n_nodes)
    several = partition.sizes > 1
    # Any two edges of a simple graph lie in one spanning tree, so alpha_i is over all edges of C_i.
    largest, smallest = (end[several] for end in extremes(graph, partition)[:2])
    gap = largest**2 / smallest - smallest
    n_steps = partition.sizes[several] - 1
    log_m = np.log(graph.n_edges)
    inside = np.exp(-(epsilon * gap + log_m) / (2.0 * utility_sensitivity * steps))
    outside = np.exp(-c * gap + log_m)
    printed, supplement = (1.0 - float(n_steps @ risk) for risk in (inside, outside))
    return TheoremD(c, printed, supplement, corrected)


def drawn_tree_excess(exponent: Exponent, n_steps: int, n_edges: int, gamma: float) -> float:
    """Return what the excess of a tree drawn by PAMST or Kruskal is at most, but for ``gamma``.

    It is (log(m! / (m - k)!) + g) / c, g the (1 - gamma)-quantile of a Gamma(k) variable. All
    numbers are public: ``n_steps`` is k and ``n_edges`` m, the numbers of edges of the tree and of
    the graph.

    >>> round(drawn_tree_excess(100.0, n_steps=99, n_edges=800, gamma=0.05), 2)
    7.71
    """
    from scipy.special import gammainccinv

    _check_gamma(gamma)
    quantile = float(gammainccinv(n_steps, gamma)) if n_steps > 0 else 0.0
    return expected_drawn_tree_excess(exponent, n_steps, n_edges) + quantile / _exponent(exponent)


def expected_drawn_tree_excess(exponent: Exponent, n_steps: int, n_edges: int) -> float:
    """Return a bound on the mean excess of a tree drawn by PAMST or Kruskal.

    It is log(m! / (m - k)!) / c <= k log(m) / c: a chosen edge is no longer a candidate.
    """
    _check_steps(n_steps, n_edges)
    return math.fsum(math.log(n_edges - j) for j in range(n_steps)) / _exponent(exponent)


def perturbed_tree_excess(noise: Noise, n_steps: int, gamma: float) -> float:
    """Return what the excess of a minimum spanning tree under noise is at most, but for ``gamma``.

    ``noise`` is on all m edges of the graph, and ``n_steps`` is k, the number of edges of the tree.
    With probability 1 - gamma no noise exceeds some b, and the two trees differ in min(k, m - k)
    edges at most, each worth 2 b. For Laplace noise of scale s, b = s log(m / gamma) (Sealfon
    2016). All numbers are public.

    >>> from ptclust.privacy import Noise
    >>> noise = Noise("laplace", scale=0.01, granularity=-40, n_values=800)
    >>> round(perturbed_tree_excess(noise, n_steps=99, gamma=0.05), 2)
    19.17
    """
    _check_gamma(gamma)
    return _perturbed_excess(noise, n_steps, noise.law.largest(noise.n_values, gamma))


def expected_perturbed_tree_excess(noise: Noise, n_steps: int) -> float:
    """Return a bound on the mean excess of the minimum spanning tree of noisy weights."""
    return _perturbed_excess(noise, n_steps, noise.law.mean_largest(noise.n_values))


def _perturbed_excess(noise: Noise, n_steps: int, largest: float) -> float:
    _check_steps(n_steps, noise.n_values)
    return 2.0 * min(n_steps, noise.n_values - n_steps) * noise.scale * largest


@dataclass(frozen=True)
class Promise:
    """Lower bounds on the probability that a release goes well. Not to be published."""

    mechanism: str
    tree: float | None  # that the drawn tree keeps every cluster whole; None if none is drawn
    noise_allowance: float  # by how much every weight may move while recovery stays certain
    recovery: float  # that DBMSTClu returns exactly the clusters


def recovery_promise(graph: Graph, labels: ArrayLike, calibration: Calibration) -> Promise:
    """Return how probably a release as planned finds these clusters exactly, at least.

    Shift and scale are left to their defaults: where no weight moves below one deviation of the
    noise, the shift is 0. The bounds hold for any weights of these extremes and are far from tight:
    a 0 says nothing. Graph and clusters, at least two, are connected.

    >>> from ptclust import Sensitivity, plan
    >>> graph = Graph(range(7), range(1, 8), [0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1])
    >>> budget = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": Sensitivity(linf=1e-4)}
    >>> planned = plan(graph.topology, **budget, mechanism="pamst")
    >>> promise = recovery_promise(graph, [0, 0, 0, 0, 1, 1, 1, 1], planned.chosen)
    >>> round(promise.tree, 3), round(promise.recovery, 3)
    (1.0, 1.0)
    """
    partition, noise = as_partition(labels, graph.n_nodes), calibration.weights
    cross = partition.cluster[graph.sources] != partition.cluster[graph.targets]
    within, across = graph.weights[~cross], graph.weights[cross]
    allowance = quiet = 0.0
    if len(within) and len(across) and within.min() > 0:
        a, b, c, d = (float(end(part)) for part in (within, across) for end in (np.min, np.max))
        sizes = {"smallest": int(partition.sizes.min()), "largest": int(partition.sizes.max())}
        counts = {"n_nodes": graph.n_nodes, "n_clusters": partition.n_clusters}
        certain = noise_allowance(a, b, c, d, **sizes, **counts)
        allowance = max(0.0, min(certain, a - noise.standard_deviation))
    tree, n_draws = None, graph.n_edges
    if calibration.tree is not None:
        tree = partitioning_probability(graph, labels, calibration.tree)
        n_draws = graph.topology.n_tree_edges
    if allowance > 0:
        quiet = noise.law.probability_within(n_draws, allowance / noise.scale)
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
    ordered = 0 < a <= b < math.inf and 0 < c <= d < math.inf
    require(ordered, "weights must be positive and finite, a <= b and c <= d; raise the shift")
    sizes = f"sizes must be at least 1 and smallest <= largest, not {smallest!r} and {largest!r}"
    require(1 <= smallest <= largest, sizes)
    fits = n_clusters >= 2 and n_clusters * smallest <= n_nodes <= n_clusters * largest
    clusters = f"{n_clusters!r} clusters of {smallest!r} to {largest!r} nodes"
    require(fits, f"{clusters} cannot make up {n_nodes!r} nodes; there are at least two clusters")
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
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if certified(middle) else (low, middle)
    return low


def probability_of_no_larger_noise(
    allowance: float, n_draws: int, *, scale: float, noise: str = LAPLACE.name
) -> float:
    """Return the probability that noises, ``n_draws`` of this scale, are within ``allowance``."""
    law, given = DISTRIBUTIONS[noise], f"{allowance!r}, {n_draws!r} and {scale!r}"
    fits = allowance >= 0 and scale > 0 and n_draws >= 0
    require(fits, f"allowance and n_draws must be at least 0 and scale above 0, not {given}")
    return law.probability_within(n_draws, allowance / scale)


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


def _exponent(exponent: Exponent) -> float:
    c = exponent if isinstance(exponent, int | float) else exponent.exponent
    _check_positive("an exponent", c)
    return c


def _check_positive(name: str, value: float) -> None:
    require(0 < value < math.inf, f"{name} must be positive and finite, not {value!r}")


def _check_candidates(n: int) -> None:
    require(n >= 1, f"a choice needs at least 1 candidate, not {n}")


def _check_steps(n_steps: int, n_edges: int) -> None:
    fits = 0 <= n_steps <= n_edges
    require(fits, f"a tree of such a graph has 0 to {n_edges} edges, not {n_steps}")


def _check_gamma(gamma: float) -> None:
    fits = 0 < gamma < 1
    require(fits, f"gamma, a probability of failure, must be between 0 and 1, not {gamma!r}")


guard_functions(__name__)
