"""The certificate of recovery from a few numbers, for every tree that keeps to them; and how much noise it bears.

From intervals of weights, a to b within clusters and c to d across, stability becomes b**2 / a < c (1 - 1 / s) for
clusters of s nodes: the paper's homogeneity, but for a factor that small clusters feel. docs/proofs/recovery.md has the
proof, and what follows for the private pipeline.
"""

from __future__ import annotations

import math
from typing import Literal

from ptclust.errors import UsageError
from ptclust.theory.certificate import Condition, RecoveryCertificate

__all__ = ["certify_interval", "noise_allowance", "probability_of_no_larger_noise"]

_PAIR = 2  # a cluster of two nodes is never kept: two singletons have V_C = 1


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

    Parameters
    ----------
    a, b : float
        The least and the largest weight of the tree's edges within clusters.
    c, d : float
        The least and the largest weight of its edges across.
    smallest, largest : int
        The least and the largest number of nodes of a cluster.
    n_nodes, n_clusters : int
        The number of nodes, and of clusters, at least two. Each is one piece of the tree.

    Examples
    --------
    >>> certificate = certify_interval(
    ...     0.1, 0.25, 0.9, 1.0, smallest=20, largest=30, n_nodes=100, n_clusters=4
    ... )
    >>> certificate.holds
    True
    >>> certify_interval(0.1, 0.3, 0.9, 1.0, smallest=20, largest=30, n_nodes=100, n_clusters=4).failed[0].name
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
    a: float,
    b: float,
    c: float,
    d: float,
    *,
    smallest: int,
    largest: int,
    n_nodes: int,
    n_clusters: int,
    shift: float = 0.0,
) -> float:
    """Return the largest t such that recovery is certain if every weight moves by t at most and all move by ``shift``.

    Parameters are those of ``certify_interval``, before noise. The answer is 0 if not even weights without noise are
    certified. A constant ``shift``, the paper's tau, keeps small weights positive but draws all ratios towards 1.

    Examples
    --------
    >>> shape = {"smallest": 50, "largest": 50, "n_nodes": 100, "n_clusters": 2}
    >>> round(noise_allowance(0.1, 0.2, 0.9, 1.0, **shape), 4)
    0.0349
    """

    def certified(t: float) -> bool:
        return certify_interval(
            a - t + shift,
            b + t + shift,
            c - t + shift,
            d + t + shift,
            smallest=smallest,
            largest=largest,
            n_nodes=n_nodes,
            n_clusters=n_clusters,
        ).holds

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
    """Return the probability that ``n_draws`` independent noises are all of size ``allowance`` at most.

    Parameters
    ----------
    allowance : float
    n_draws : int
        Edges of the tree whose weights are released.
    scale : float
        Scale of the Laplace distribution, or standard deviation of the Gaussian.
    noise : {"laplace", "gaussian"}

    Examples
    --------
    >>> round(probability_of_no_larger_noise(0.04, 99, scale=0.004), 4)
    0.9955
    """
    if noise not in ("laplace", "gaussian"):
        raise UsageError(f"noise must be 'laplace' or 'gaussian', not {noise!r}")
    if not (allowance >= 0 and scale > 0 and n_draws >= 0):
        raise UsageError(
            f"allowance and n_draws must be at least 0 and scale above 0, not {allowance!r}, {n_draws!r} and {scale!r}"
        )
    size = allowance / scale
    beyond = math.exp(-size) if noise == "laplace" else math.erfc(size / math.sqrt(2))
    if beyond == 1 or n_draws == 0:
        return float(n_draws == 0)
    return math.exp(n_draws * math.log1p(-beyond))


def _check(
    a: float, b: float, c: float, d: float, smallest: int, largest: int, n: int, k: int
) -> None:
    if not (0 < a <= b and 0 < c <= d < math.inf and b < math.inf):
        raise UsageError(
            "weights must be positive and finite, and a <= b and c <= d the ends of their intervals; "
            "a positive shift may be missing"
        )
    if not 1 <= smallest <= largest:
        raise UsageError(
            f"cluster sizes must be at least 1 and smallest <= largest, not {smallest!r} and {largest!r}"
        )
    if k < 2 or not k * smallest <= n <= k * largest:
        raise UsageError(
            f"{k!r} clusters of {smallest!r} to {largest!r} nodes cannot make up {n!r} nodes; "
            "there must be two clusters or more"
        )


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
    """Return the worst margin of preference: linear in the size of the cluster, and in 1 / M for c <= M <= d."""
    if largest == 1:
        return math.inf
    worth = smallest * (1 - b / c)
    margin = worth - n_nodes * max(0.0, b / c - c / d)
    for size in (smallest, largest):
        for heaviest in (c, d):
            right = (
                worth + smallest * (1 - c / heaviest) + (size + 2 * smallest) * (c - b) / heaviest
            )
            for q, x in ((1, 1.0), (size - 1, 1 - a / b)):
                margin = min(margin, right - q * (x + 1 - b / heaviest))
    return margin


def _progress(validity: float, ratio: float, smallest: int, n_nodes: int, n_clusters: int) -> float:
    """Return the worst margin of progress; ``ratio`` is c / d."""
    if n_clusters == 3:
        return _PAIR * smallest * (validity - (1 - ratio))
    return smallest * validity - 2 * (1 - math.sqrt(ratio)) * (n_nodes - smallest)
