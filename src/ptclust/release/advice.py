"""What to try when a release has one cluster, or single nodes only; from the release alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering import CLUSTERERS
from ptclust.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from ptclust.release.release import Release

_MOSTLY_NOISE = 0.7
"""From this share of the standard deviation of released weights on, they differ by noise mostly."""


def advise(release: Release) -> tuple[str, ...]:
    """Return what happened and why that may be, what costs nothing, and what would cost."""
    tree, labels = release.tree, release.labels
    if release.clustering is None or not tree.n_edges:
        return ()
    ends = labels[tree.sources], labels[tree.targets]
    has_edge = np.zeros(tree.n_nodes, bool)
    has_edge[tree.sources] = has_edge[tree.targets] = True
    inner = np.flatnonzero(has_edge)
    sizes = np.bincount(labels + 1)[labels[inner] + 1]
    alone = np.count_nonzero((sizes == 1) | (labels[inner] < 0))
    if np.array_equal(*ends) and not alone:
        seen = "All nodes that are connected are in one cluster"
        sizing = ""
    elif 2 * alone > len(inner):
        seen = f"{alone:,} of {len(inner):,} connected nodes are alone or unclustered"
        size = 2 if release.clustering.min_cluster_size == 1 else 1
        sizing = f", or min_cluster_size={size}"
    else:
        return ()
    return (
        f"{seen}: {_reason(release)}.",
        f"At no cost: recluster this release by {_others(release)}{sizing}.",
        "At the cost of a new release: a larger epsilon, or a smaller sensitivity if one privacy "
        "unit truly moves the weights by less; the noise shrinks with either.",
    )


def _reason(release: Release) -> str:
    """Compare the noise with what there is to see."""
    noise = release.weight_noise.standard_deviation
    with np.errstate(over="ignore", invalid="ignore"):  # the squares of huge weights overflow
        spread = float(np.std(release.noisy_weights))
    if not np.isfinite(spread):
        return (
            f"the noise on a weight has a standard deviation of {noise:.3g}, and the released "
            "weights differ by more than can be compared with it; count in larger units"
        )
    numbers = (
        f"the noise on a weight has a standard deviation of {noise:.3g}, and the released weights "
        f"have one of {spread:.3g}"
    )
    if noise >= _MOSTLY_NOISE * spread:
        return f"{numbers}, so what they differ by is mostly noise"
    return f"{numbers}, so noise alone does not explain it; another clusterer may see more"


def _others(release: Release) -> str:
    publishes = MECHANISMS[release.published.mechanism].publishes
    counts = release.topology.n_edges, release.tree.n_edges
    names = (
        f"clusterer={each.name!r}"
        for each in CLUSTERERS
        if each.name != release.clusterer and each.suits(publishes, *counts)
    )
    return " or ".join(names) or "another clusterer"
