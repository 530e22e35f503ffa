"""Planted graphs of more families than `ptclust.datasets` has, and decoys that hide clusters.

- ``chains``: long and thin.
- ``multiscale``: blobs of different sizes. Every cluster has a scale from 1 down to 1/6, by which
  its weights are multiplied. Every cluster is strongly homogeneous, but what separates two light
  clusters is lighter than what holds a heavy one together, so that no threshold finds all.
- ``blocks``: no geometry. The edges within are a random tree and random pairs, hubs among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from ptclust._types import Floats, Ints
from ptclust.datasets import PlantedGraph, blobs
from ptclust.datasets.planted import FAMILIES as OWN_FAMILIES
from ptclust.datasets.planted import (
    check_clusters,
    cross_pairs,
    distinct,
    draw_weights,
    layout,
    near_pairs,
    scaled,
)
from ptclust.graph import Graph

__all__ = ["FAMILIES", "Family", "chains", "planted_graph", "with_decoys"]

Family = Literal["circles", "moons", "blobs", "chains", "multiscale", "blocks"]

_SPREAD = 6.0  # the range of scales in ``multiscale``: of the clusters' weights, and of their sizes


def chains(
    n_points: int = 100, n_clusters: int = 4, *, noise: float = 0.002, seed: int = 0
) -> tuple[Floats, Ints]:
    """Return waves above each other, long and thin, and which of them each point belongs to."""
    random = np.random.default_rng(seed)
    truth = random.permutation(np.arange(n_points) % n_clusters)
    along = random.random(n_points)
    height = truth / n_clusters + 0.06 * np.sin(2.0 * np.pi * (3.0 * along + truth / n_clusters))
    points = np.stack([2.0 * along, height], axis=1)
    return scaled(points + noise * random.standard_normal(points.shape), truth)


def _blocks(n_nodes: int, n_clusters: int, *, seed: int) -> tuple[None, Ints]:
    return None, np.random.default_rng(seed).permutation(np.arange(n_nodes) % n_clusters)


def _random_pairs(_: None, truth: Ints, degree: int, random: Generator) -> Ints:
    """Return the pairs of a random tree of every cluster, and random pairs up to a mean degree.

    By a Pareto law some members are far more likely to be in a pair than others: the hubs.
    """
    found = []
    for cluster in range(truth.max() + 1):
        members = np.flatnonzero(truth == cluster)
        size = len(members)
        later = np.arange(1, size)
        tree = np.stack([random.integers(0, later), later], axis=1)
        attraction = 1.0 + random.pareto(2.0, size)
        wanted = max(0, size * degree // 2 - len(tree))
        more = random.choice(size, size=(wanted, 2), p=attraction / attraction.sum())
        found.append(random.permutation(members)[distinct(np.concatenate([tree, more]))])
    return np.concatenate(found)


def _near_pairs(points: Floats, truth: Ints, neighbours: int, _: Generator) -> Ints:
    return near_pairs(points, truth, neighbours)


@dataclass(frozen=True)
class Recipe:
    """What distinguishes a family of planted graphs."""

    layout: Callable[..., Any]  # of numbers of nodes and clusters, and a seed: points and truth
    n_clusters: int  # by default
    neighbours: int = 8
    spread: float = 1.0  # the largest scale of the clusters' weights over the smallest
    within: Callable[..., Ints] = _near_pairs  # the pairs that hold every cluster together


FAMILIES = {
    **{family: Recipe(partial(layout, family), k) for family, k in OWN_FAMILIES.items()},
    "chains": Recipe(chains, 4, neighbours=2),
    "multiscale": Recipe(partial(blobs, spread=_SPREAD), 4, spread=_SPREAD),
    "blocks": Recipe(_blocks, 3, within=_random_pairs),
}


def planted_graph(
    family: Family,
    n_nodes: int = 100,
    *,
    n_clusters: int | None = None,
    neighbours: int | None = None,
    cross_edges: int | None = None,
    complete: bool = False,
    decoys: bool = False,
    seed: int = 0,
) -> PlantedGraph:
    """Return a planted graph as `ptclust.datasets.planted_graph` does, of any family.

    Where clusters are many and small, nearest neighbours stand out among random pairs, and the
    topology alone gives the clusters away. With ``decoys`` the edges across are those of a second
    planting of the same family, drawn independently and joined likewise; its pairs that lie in one
    cluster are edges within. Only the weights tell which of the two is real: the topology is as
    likely with their roles exchanged. If ``cross_edges`` is given, as many of the decoys, and
    random pairs if they are too few, and then the two plantings are no longer alike.
    """
    defaults = {name: recipe.n_clusters for name, recipe in FAMILIES.items()}
    k = check_clusters(defaults, family, n_nodes, n_clusters, cross_edges)
    recipe = FAMILIES[family]
    near = recipe.neighbours if neighbours is None else neighbours
    points, truth = recipe.layout(n_nodes, k, seed=seed)
    random = np.random.default_rng([seed, n_nodes])
    if complete:
        pairs = np.stack(np.triu_indices(n_nodes, 1), axis=1)
    else:
        pairs = recipe.within(points, truth, near, random)
        if decoys:
            second = recipe.layout(n_nodes, k, seed=int(random.integers(2**32)))
            decoy = recipe.within(*second, near, random)
            pairs = with_decoys(pairs, decoy, truth, cross_edges, random)
        else:
            wanted = 4 * n_nodes if cross_edges is None else cross_edges
            pairs = np.concatenate([pairs, cross_pairs(truth, wanted, random)])
    a, b = random.permutation(pairs).T
    scales = np.geomspace(1.0, 1.0 / recipe.spread, k)
    weights = draw_weights(truth[a], truth[b], scales, random)
    return PlantedGraph(Graph(a, b, weights, n_nodes=n_nodes), truth, points, family)


def with_decoys(
    within: Ints, decoy: Ints, truth: Ints, wanted: int | None, random: Generator
) -> Ints:
    """Return the pairs of both plantings, ``wanted`` across, filled up with random pairs."""
    pairs = np.unique(np.sort(np.concatenate([within, decoy]), axis=1), axis=0)
    apart = truth[pairs[:, 0]] != truth[pairs[:, 1]]
    across = random.permutation(pairs[apart])
    number = max(len(across), int(truth.max())) if wanted is None else wanted
    more = np.sort(cross_pairs(truth, number, random), axis=1)
    across = np.concatenate([across, more])
    _, first = np.unique(across, axis=0, return_index=True)
    across = across[np.sort(first)]
    joining = _joining(truth[across])  # first, so that the graph stays connected
    across = np.concatenate([across[joining], np.delete(across, joining, axis=0)])
    return np.concatenate([pairs[~apart], across[:number]])


def _joining(clusters: Ints) -> Ints:
    """Return which of these pairs of clusters join all of them, early ones rather than late."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    distinct, first = np.unique(np.sort(clusters, axis=1), axis=0, return_index=True)
    n_clusters = int(clusters.max()) + 1
    ends = tuple(distinct.T.astype(np.int32))  # scipy before 1.15 wants these
    rank = coo_array((first + 1.0, ends), shape=(n_clusters, n_clusters))
    joining: Ints = minimum_spanning_tree(rank.tocsr()).data.astype(np.int64) - 1
    return joining
