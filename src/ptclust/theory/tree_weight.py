"""How much heavier than the minimum spanning tree a private tree is: bounds in probability and in expectation.

The *excess* of a tree T is w(T) - w(MST). Proofs are in docs/proofs/bounds.md. All numbers are public.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ptclust.errors import UsageError
from ptclust.theory.selection import check_exponent

if TYPE_CHECKING:
    from ptclust.privacy import Noise
    from ptclust.privacy.exponential import TreeCalibration

__all__ = [
    "drawn_tree_excess",
    "expected_drawn_tree_excess",
    "expected_perturbed_tree_excess",
    "perturbed_tree_excess",
]


def drawn_tree_excess(
    exponent: float | TreeCalibration, n_steps: int, n_edges: int, gamma: float
) -> float:
    """Return what the excess of a tree drawn by PAMST or Kruskal stays below with probability 1 - gamma.

    Step j is off by at most (log(m - j) + E_j) / c with independent standard exponentials E_j, so the tree is by
    (log(m! / (m - k)!) + g) / c, g the (1 - gamma)-quantile of a Gamma(k) variable. That is less than the
    k (log m + log(k / gamma)) / c of a union bound.

    Parameters
    ----------
    exponent : float or TreeCalibration
        c, where an edge is selected with probability proportional to exp(-c w).
    n_steps : int
        k, the number of edges of the tree.
    n_edges : int
        m, the number of edges of the graph.
    gamma : float
        The probability with which the bound may fail.

    Examples
    --------
    >>> round(drawn_tree_excess(100.0, n_steps=99, n_edges=800, gamma=0.05), 2)
    7.71
    """
    from scipy.special import gammainccinv

    c = _exponent(exponent)
    _check_counts(n_steps, n_edges)
    _check_gamma(gamma)
    if n_steps == 0:
        return 0.0
    return (_log_choices(n_steps, n_edges) + float(gammainccinv(n_steps, gamma))) / c


def expected_drawn_tree_excess(
    exponent: float | TreeCalibration, n_steps: int, n_edges: int
) -> float:
    """Return a bound on the mean excess of a tree drawn by PAMST or Kruskal: log(m! / (m - k)!) / c <= k log(m) / c.

    Examples
    --------
    >>> round(expected_drawn_tree_excess(100.0, n_steps=99, n_edges=800), 2)
    6.55
    """
    c = _exponent(exponent)
    _check_counts(n_steps, n_edges)
    return _log_choices(n_steps, n_edges) / c


def perturbed_tree_excess(noise: Noise, n_steps: int, gamma: float) -> float:
    """Return what the excess of the minimum spanning tree of noisy weights stays below with probability 1 - gamma.

    With probability 1 - gamma no noise exceeds b = s log(m / gamma) for Laplace noise of scale s (Sealfon 2016), or
    sigma sqrt(2 log(m / gamma)) for Gaussian noise, and the two trees differ in min(k, m - k) edges at most, each
    worth 2 b.

    Parameters
    ----------
    noise : Noise
        On all m edges of the graph.
    n_steps : int
        k, the number of edges of the tree.
    gamma : float
        The probability with which the bound may fail.

    Examples
    --------
    >>> from ptclust.privacy import Noise
    >>> noise = Noise("laplace", scale=0.01, granularity=-40, n_values=800)
    >>> round(perturbed_tree_excess(noise, n_steps=99, gamma=0.05), 2)
    19.17
    """
    _check_counts(n_steps, noise.n_values)
    _check_gamma(gamma)
    differing = min(n_steps, noise.n_values - n_steps)
    if differing == 0:
        return 0.0
    tail = math.log(noise.n_values / gamma)
    return 2.0 * differing * noise.scale * (tail if _is_laplace(noise) else math.sqrt(2.0 * tail))


def expected_perturbed_tree_excess(noise: Noise, n_steps: int) -> float:
    """Return a bound on the mean excess of the minimum spanning tree of noisy weights.

    The largest of m noises is s (1 + 1/2 + ... + 1/m) on average for Laplace noise, at most
    sigma sqrt(2 log(2 m)) for Gaussian noise.

    Examples
    --------
    >>> from ptclust.privacy import Noise
    >>> noise = Noise("gaussian", scale=0.01, granularity=-40, n_values=800)
    >>> round(expected_perturbed_tree_excess(noise, n_steps=99), 2)
    7.61
    """
    from scipy.special import digamma

    m = noise.n_values
    _check_counts(n_steps, m)
    differing = min(n_steps, m - n_steps)
    if differing == 0:
        return 0.0
    harmonic = float(digamma(m + 1)) + np.euler_gamma
    largest = harmonic if _is_laplace(noise) else math.sqrt(2.0 * math.log(2.0 * m))
    return 2.0 * differing * noise.scale * largest


def _is_laplace(noise: Noise) -> bool:
    return noise.distribution == "laplace"


def _log_choices(n_steps: int, n_edges: int) -> float:
    """Return log(m (m - 1) ... (m - k + 1)): a chosen edge is no candidate any more."""
    return math.fsum(math.log(n_edges - j) for j in range(n_steps))


def _exponent(exponent: float | TreeCalibration) -> float:
    c = exponent if isinstance(exponent, int | float) else exponent.exponent
    check_exponent(c)
    return c


def _check_counts(n_steps: int, n_edges: int) -> None:
    if not 0 <= n_steps <= n_edges:
        raise UsageError(
            f"a spanning tree of a graph with {n_edges} edges has 0 to {n_edges} edges, not {n_steps}"
        )


def _check_gamma(gamma: float) -> None:
    if not 0 < gamma < 1:
        raise UsageError(
            f"gamma, the probability of failure, must lie between 0 and 1, not {gamma!r}"
        )
