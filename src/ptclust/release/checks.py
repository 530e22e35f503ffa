"""Whether a clustering fits the tree that it is of; InputError says what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np

from ptclust._types import Ints
from ptclust.clustering.certainty import Certainty
from ptclust.clustering.clusterer import Clustering, Evidence, Level, Support, by_size
from ptclust.errors import InputError
from ptclust.privacy import _checks as check
from ptclust.trees.tree import Tree


def check_clustering(found: Clustering, tree: Tree) -> Clustering:
    """Return a clustering with read-only arrays, after checking all of it."""
    shift, scale = check.number("shift", found.shift), check.positive("scale", found.scale)
    dbcvi, size = check.number("dbcvi", found.dbcvi), found.min_cluster_size
    if abs(dbcvi) > 1 + 1e-9:
        raise InputError(f"dbcvi must lie in [-1, 1], not at {dbcvi:g}")
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise InputError(f"min_cluster_size must be a whole number of at least 1, not {size!r}")
    check.text("clusterer", found.clusterer)
    clustered = (tree.distances + shift) / scale
    if not np.all((clustered > 0) & (clustered <= 1)):
        raise InputError(
            "shift and scale must bring all noisy weights of the tree into (0, 1]; make one larger"
        )
    labels, cuts, topology = _labels("labels", found.labels, tree), found.cuts, None
    if cuts is not None:
        cuts = replace(cuts, edge_ids=_integers("cuts", cuts.edge_ids))
        _check_cuts(cuts.edge_ids, labels, int(size), tree)
    if found.topology_labels is not None:
        topology = _labels("topology_labels", found.topology_labels, tree)
    checked = replace(
        found,
        labels=labels,
        cuts=cuts,
        levels=_levels(found.levels, tree),
        topology_labels=topology,
        dbcvi=max(-1.0, min(1.0, dbcvi)),
        shift=shift,
        scale=scale,
        min_cluster_size=int(size),
    )
    if checked.levels and checked.level is None:
        raise InputError("labels must be those of one of the levels, small clusters dropped")
    if checked.certainty is not None:
        checked = replace(checked, certainty=_certainty(checked.certainty, checked))
    if checked.evidence is not None:
        _check_evidence(checked.evidence, checked.n_clusters)
    return checked


def _labels(name: str, given: Any, tree: Tree) -> Ints:
    labels = _integers(name, given)
    if len(labels) != tree.n_nodes:
        raise InputError(f"{len(labels)} labels were given for {tree.n_nodes} nodes")
    of_clusters = labels[labels >= 0]
    so_far = np.maximum.accumulate(np.concatenate([[-1], of_clusters]))
    numbered = not np.any(of_clusters > so_far[:-1] + 1) or (
        labels.max() < len(labels) and np.array_equal(labels, by_size(labels))
    )
    if np.any(labels < -1) or not numbered:
        raise InputError(
            "labels must number clusters 0, 1, 2, ..., the largest first or by first appearance; "
            "-1 for unclustered nodes"
        )
    return labels


def _check_cuts(cuts: Ints, labels: Ints, min_cluster_size: int, tree: Tree) -> None:
    """Check that the clusters are the pieces that the cuts leave, but for pieces too small."""
    is_cut = np.isin(tree.edge_ids, cuts)
    if np.count_nonzero(is_cut) != len(cuts):
        raise InputError("cuts must be distinct edge ids of the tree")
    a, b = (labels[ends[~is_cut]] for ends in (tree.sources, tree.targets))
    sizes = np.bincount(labels[labels >= 0])
    n_pieces = int(sizes.sum()) - np.count_nonzero(a >= 0)
    fits = np.array_equal(a, b) and n_pieces == len(sizes)
    if min_cluster_size == 1:
        fits = fits and not np.any(labels < 0)
    if not fits or np.any(sizes < min_cluster_size):
        what = "the pieces that the cuts leave of the tree, -1 those below min_cluster_size"
        raise InputError(f"labels must distinguish {what}")


def _levels(levels: tuple[Level, ...], tree: Tree) -> tuple[Level, ...]:
    """Return levels of which every one refines the one before."""
    checked: list[Level] = []
    for level in levels:
        labels = _labels("labels of a level", level.labels, tree)
        if np.any(labels < 0):
            raise InputError("every node must be in a cluster of every level")
        if checked:
            coarse = checked[-1].labels
            _, first, number = np.unique(labels, return_index=True, return_inverse=True)
            if not np.array_equal(coarse[first][number], coarse):
                raise InputError("every cluster of a level must be part of one of the level before")
        checked.append(Level(labels, check.number("support", level.support)))
    return tuple(checked)


def _certainty(certainty: Certainty, found: Clustering) -> Certainty:
    sizes = {"nodes": len(found.labels), "clusters": found.n_clusters}
    for name, size in sizes.items():
        values = np.asarray(getattr(certainty, name))
        if values.shape != (size,) or not np.all((values >= 0) & (values <= 1)):
            raise InputError(f"certainty must hold {size:,} probabilities of {name}, from 0 to 1")
    elsewhere = _integers("certainty.elsewhere", certainty.elsewhere)
    within = np.all((elsewhere >= -1) & (elsewhere < max(found.n_clusters, 1)))
    if len(elsewhere) != len(found.labels) or not within:
        raise InputError("certainty.elsewhere must hold a cluster, or -1, for every node")
    return replace(certainty, elsewhere=elsewhere)


def _check_evidence(evidence: Evidence, n_clusters: int) -> None:
    known = get_args(Support)
    if any(word not in known for word in (evidence.partition, *evidence.clusters)):
        raise InputError(f"evidence must be one of {', '.join(known)}")
    if len(evidence.clusters) not in (0, n_clusters):
        raise InputError(
            f"evidence of {len(evidence.clusters):,} clusters was given for {n_clusters:,}"
        )


def _integers(name: str, values: Any) -> Ints:
    """Return a read-only array of whole numbers."""
    given = np.asarray(values)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a one-dimensional array of whole numbers")
    result = given.astype(np.int64)
    result.setflags(write=False)
    return result
