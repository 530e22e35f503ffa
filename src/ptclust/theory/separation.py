"""The trade-off theorem: a cluster that an edge separates homogeneously stays so under Laplace noise, how probably.

Noise turns the weights of the n edges of a cluster's subtree, shifted and scaled into [theta_min, theta_max], and that
of the cut edge, theta_out, into Laplace variables of scale d. The separation H survives if max^2 < min * X_out and
min > 0. The paper bounds its probability by Cantelli's inequality for

    phi = (max Y)^2 - (min Z) X_out,    Y_j ~ Lap(theta_max, d), Z_j ~ Lap(theta_min, d), all independent,

and its analytic form is wrong in three places. docs/proofs/bounds.md tells what is true and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptclust.errors import UsageError
from ptclust.theory.order_statistics import laplace_order_moments
from ptclust.theory.partition import as_partition

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ptclust.clustering.normalise import Normalisation
    from ptclust.privacy import Noise
    from ptclust.trees import Tree

__all__ = ["TradeOff", "cluster_trade_offs", "trade_off"]


@dataclass(frozen=True)
class TradeOff:
    """Three lower bounds on the probability that noise leaves H intact, and what they are made of."""

    n_edges: int
    theta_min: float
    theta_max: float
    theta_out: float
    noise_scale: float
    """d, the scale of the noise on weights that were shifted and scaled."""
    mean: float
    """E[phi]"""
    variance: float
    """V[phi]"""
    printed: float
    """The analytic form of the supplement, as printed. Wrong: it may say 0.97 where the truth is 0.02."""
    corrected: float
    """E[phi]^2 / (V[phi] + E[phi]^2) from the right moments; 0 where the theorem does not apply."""
    sound: float
    """What is proved of the release itself, whose maximum and minimum share their noise; 0 where nothing is."""

    @property
    def applies(self) -> bool:
        """Whether E[phi] <= 0, without which the theorem says nothing. It implies theta_max^2 < theta_min theta_out."""
        return self.mean <= 0


def trade_off(
    n_edges: int, *, theta_min: float, theta_max: float, theta_out: float, noise_scale: float
) -> TradeOff:
    """Return moments and bounds of the trade-off theorem.

    Parameters
    ----------
    n_edges : int
        Number of edges of the cluster's subtree, the size of the cluster less 1.
    theta_min, theta_max : float
        The least and the largest weight of the subtree, shifted and scaled: (w + tau) / p.
    theta_out : float
        The weight of the cut edge, shifted and scaled alike.
    noise_scale : float
        Scale s / p of the Laplace noise on what was shifted and scaled.

    Examples
    --------
    >>> result = trade_off(12, theta_min=0.30, theta_max=0.45, theta_out=0.95, noise_scale=0.05)
    >>> result.applies, result.corrected, round(result.printed, 2)
    (False, 0.0, 0.97)
    >>> result = trade_off(12, theta_min=0.30, theta_max=0.35, theta_out=0.95, noise_scale=0.005)
    >>> result.applies, round(result.corrected, 3), round(result.sound, 3)
    (True, 0.997, 0.997)
    """
    _check(n_edges, theta_min, theta_max, theta_out, noise_scale)
    d = noise_scale
    raw = laplace_order_moments(n_edges, n_edges, 4)  # of the maximum; of the minimum with signs
    _, _, c2, c3, c4 = laplace_order_moments(n_edges, n_edges, 4, about=float(raw[1])).tolist()
    max_mean = theta_max + d * float(raw[1])
    min_mean = theta_min - d * float(raw[1])
    square = max_mean**2 + d**2 * c2  # E[(max Y)^2]
    # V[(e + D)^2] = 4 e^2 V[D] + 4 e E[D^3] + E[D^4] - V[D]^2: no difference of large numbers
    square_variance = d**2 * (4 * max_mean**2 * c2 + 4 * max_mean * d * c3 + d**2 * (c4 - c2**2))
    product_variance = d**2 * (c2 * (theta_out**2 + 2 * d**2) + 2 * min_mean**2)
    mean = square - min_mean * theta_out
    variance = square_variance + product_variance
    # Where max Y < 0, -max Y is exponential of scale d / n: what to take off to be left with max(max Y, 0).
    n = n_edges
    negative = _below_zero(theta_max / d) ** n
    lost = 2.0 * negative * (d / n) ** 2
    positive_mean = mean - lost
    positive_variance = variance - 24.0 * negative * (d / n) ** 4 + 2.0 * square * lost - lost**2
    both_negative = -math.expm1(n * math.log1p(-_below_zero(theta_min / d))) * _below_zero(
        theta_out / d
    )
    sound = _cantelli(positive_mean, positive_variance) - both_negative
    return TradeOff(
        n_edges,
        theta_min,
        theta_max,
        theta_out,
        noise_scale,
        mean,
        variance,
        printed=_printed(raw.tolist(), theta_min, theta_max, theta_out, d),
        corrected=_cantelli(mean, variance),
        sound=max(0.0, sound),
    )


def _below_zero(distance: float) -> float:
    """Return P[X < 0] for a Laplace variable whose mean is that many scales above 0."""
    return 0.5 * math.exp(-distance)


def _cantelli(mean: float, variance: float) -> float:
    """Return a lower bound on P[phi < 0]."""
    return mean**2 / (variance + mean**2) if mean < 0 else 0.0


def _printed(
    raw: list[float], theta_min: float, theta_max: float, theta_out: float, d: float
) -> float:
    """Return the bound as the supplement prints it; n alpha(n, k) k! is the k-th moment of the maximum."""
    _, m1, m2, m3, m4 = raw
    lambda_1 = (
        d**4 * m4
        + 12 * theta_max * d**3 * m3 / 6  # should be 24: the binomial 4 times 3!
        + 6 * theta_max**2 * d**2 * m2
        + 4 * theta_max**3 * d * m1
        + theta_max**4
    )
    lambda_2 = d**2 * m2 - 2 * theta_min * d * m1 + theta_min**2
    lambda_3 = d**2 * m2 + 2 * theta_max * d * m1 + theta_max**2
    lambda_4 = theta_min - d * m1
    common = lambda_1 + (theta_out**2 + d) * lambda_2  # should be theta^2 + 2 d^2
    numerator = common - (lambda_3**2 + theta_out**2 * lambda_4**2)
    return 1.0 - numerator / (common + 2 * lambda_3 * lambda_4)  # should be - 2 theta_out


def cluster_trade_offs(
    tree: Tree, labels: ArrayLike, *, noise: Noise, normalisation: Normalisation
) -> dict[tuple[int, int], TradeOff]:
    """Return the trade-off of every cluster with every cut edge at it, by (label, id of the edge).

    The paper writes minima and maxima over the whole tree; its proof, and this function, take them over the cluster's
    subtree. Clusters of a single node have no edge that could fail and are left out. All separations hold at once with
    probability 1 - sum(1 - t.sound) at least.

    Parameters
    ----------
    tree : Tree
        With the curator's weights.
    labels : array_like of int
        The cluster of every node.
    noise : Noise
        Laplace noise of the weight release.
    normalisation : Normalisation
        Shift tau and scale p, constants here.

    Notes
    -----
    *Privacy.* None: the bounds are computed from raw weights. For the curator's own eyes.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.privacy import Noise
    >>> from ptclust.clustering.normalise import Normalisation
    >>> from ptclust.trees import Tree
    >>> tree = Tree(Topology([0, 1, 2], [1, 2, 3]), [0.1, 0.1, 0.9])
    >>> noise = Noise("laplace", scale=0.01, granularity=-40, n_values=3)
    >>> found = cluster_trade_offs(tree, [0, 0, 0, 1], noise=noise, normalisation=Normalisation(0.1, 1.0))
    >>> {key: round(value.sound, 3) for key, value in found.items()}
    {(0, 2): 0.992}
    """
    if noise.distribution != "laplace":
        raise UsageError(
            f"the trade-off theorem is about Laplace noise, not {noise.distribution} noise; plan with delta=0"
        )
    partition = as_partition(labels, tree.n_nodes)
    thetas = normalisation.apply(tree.weights)
    a, b = partition.cluster[tree.sources], partition.cluster[tree.targets]
    found = {}
    for cluster in np.flatnonzero(partition.sizes > 1).tolist():
        inner = thetas[(a == cluster) & (b == cluster)]
        if not len(inner):
            continue
        for edge in np.flatnonzero((a == cluster) != (b == cluster)).tolist():
            key = int(partition.labels[cluster]), int(tree.edge_ids[edge])
            found[key] = trade_off(
                len(inner),
                theta_min=float(inner.min()),
                theta_max=float(inner.max()),
                theta_out=float(thetas[edge]),
                noise_scale=noise.scale / normalisation.scale,
            )
    return found


def _check(
    n_edges: int, theta_min: float, theta_max: float, theta_out: float, noise_scale: float
) -> None:
    if n_edges < 1:
        raise UsageError(f"a subtree that noise can spoil has at least 1 edge, not {n_edges}")
    if not 0 < noise_scale < math.inf:
        raise UsageError(f"noise_scale must be positive and finite, not {noise_scale!r}")
    if not (0 < theta_min <= theta_max < math.inf and 0 < theta_out < math.inf):
        # The values may come from raw weights, and a message is no place for them.
        raise UsageError(
            "the thetas must be positive and finite, theta_min no larger than theta_max; raise the shift"
        )
