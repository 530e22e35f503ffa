"""How probable clusters are: noise is added again, and the clusters found are compared.

The noise of a release is known. Its weights with fresh noise of the same distribution are what
another release might have shown, with twice the variance; they share the noise that was there
before. One errs on the low side and the other on the high side, and on real graphs the two cancel
(docs/certainty.md has the measured calibration). Where pairs of nodes have no edge, every second
time some of the edges are left out, too: no noise changes clusters of the public topology alone.

*Privacy.* Post-processing: published values and the public topology, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ptclust._statistics import seed_of
from ptclust._traces import shown_half_built
from ptclust.clustering.clusterer import CLUSTERERS, Clustering, by_size, without_small
from ptclust.graph.topology import as_distances
from ptclust.mechanisms.lattice import add_noise
from ptclust.privacy import RandomStream
from ptclust.published import Published
from ptclust.trees.mst import minimum_spanning_edges
from ptclust.trees.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ptclust._types import Bools, Floats, Ints

#: A node or cluster of at least this probability is called sure.
SURE = 0.9
# So often noise is drawn again up to so many edges, and once beyond.
_REDRAWS, _FEW_EDGES = 8, 100_000
# The share of edges that is left out every second time, unless nearly all pairs have one.
_LEFT_OUT, _DENSE = 0.1, 0.9
# A cluster comes again as one that shares more than this part of the nodes of both: one at most.
_SAME = 0.5


@shown_half_built
@dataclass(frozen=True)
class Certainty:
    """The probabilities of nodes and clusters."""

    nodes: Floats
    """For every node, the probability that it belongs to its cluster; 0 if unclustered."""
    clusters: Floats
    """For every cluster, the probability that another release shows it, too."""
    elsewhere: Ints
    """The other cluster to which a node may equally well belong; -1 if there is none."""

    @classmethod
    def of(cls, labels: Ints, again: Sequence[Ints]) -> Certainty:
        """Compare clusters with those that were found again.

        A node's probability is the mean overlap of its clusters, 2 |A and B| / (|A| + |B|). That of
        a cluster is how often it comes again. A node may equally well belong to another cluster if
        it is found there at least as often.

        >>> shown, first, second = np.array([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1]])
        >>> found = Certainty.of(shown, [first, second])
        >>> found.nodes.round(2).tolist(), found.clusters.tolist(), found.elsewhere.tolist()
        ([0.9, 0.9, 0.67, 0.9, 0.9], [1.0, 1.0], [-1, -1, 1, -1, -1])
        """
        n_clusters = int(labels.max(initial=-1)) + 1
        if n_clusters < 2 or not again:  # nothing is told apart
            none = np.full(len(labels), -1)
            return cls(np.zeros(len(labels)), np.zeros(n_clusters), none)
        overlap, there, comes = zip(*(_matched(labels, each) for each in again), strict=True)
        nodes = np.where(labels < 0, 0.0, np.mean(overlap, axis=0))
        clusters = np.mean(comes, axis=0)[:n_clusters]
        return cls(nodes, clusters, _elsewhere(labels, np.array(there)))

    def without(self, labels: Ints, kept: Ints) -> Certainty:
        """Return it for other labels, of the same clusters under new numbers, or without some."""
        number, first = np.unique(kept, return_index=True)
        old = labels[first[number >= 0]]
        new = np.full(len(self.clusters) + 1, -1)  # the last is for none
        new[old] = np.arange(len(old))
        elsewhere = np.where(kept < 0, -1, new[self.elsewhere])
        return Certainty(self.nodes, self.clusters[old], elsewhere)


def _matched(labels: Ints, again: Ints) -> tuple[Floats, Ints, Bools]:
    """Return every node's overlap, the shown cluster where it is found, and which come again.

    Where it is found is -1 if that is none of those shown.
    """
    width = int(again.max()) + 1
    codes, pair, both = np.unique(
        (labels + 1) * width + again, return_inverse=True, return_counts=True
    )
    shown, found = codes // width, codes % width
    sizes, found_sizes = np.bincount(labels + 1), np.bincount(again)
    total = sizes[shown] + found_sizes[found]
    is_same = (both > _SAME * (total - both)) & (shown > 0)
    counterpart = np.full(width, -1)
    counterpart[found[is_same]] = shown[is_same] - 1
    comes = np.zeros(len(sizes) - 1, bool)
    comes[shown[is_same] - 1] = True
    return (2.0 * both / total)[pair], counterpart[again], comes


def _elsewhere(labels: Ints, there: Ints) -> Ints:
    """Return the other cluster in which a node is found at least as often as in its own."""
    own = (there == labels).sum(0)
    most, best = np.maximum(own, 1), np.full(len(labels), -1)
    for each in there:
        votes = np.where((each >= 0) & (each != labels) & (labels >= 0), (there == each).sum(0), 0)
        more = (votes > most) | ((votes == most) & (best < 0))
        best, most = np.where(more, each, best), np.where(more, votes, most)
    return best


def find_again(
    clustering: Clustering,
    published: Published,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Ints]:
    """Return the labels that each redraw of the noise gives; the same release gives the same."""
    count = _REDRAWS if published.topology.n_edges <= _FEW_EDGES else 1
    again = []
    for number in range(count):
        progress(f"Adding noise again to see how sure clusters are: {number + 1} of {count}")
        found = CLUSTERERS[clustering.clusterer].cluster(_redrawn(published, number))
        again.append(_same_level(found, clustering))
    return again


def _same_level(found: Clustering, shown: Clustering) -> Ints:
    """Return the level that is as fine as the one that is shown."""
    if not shown.level or not found.levels:
        return found.labels
    return min(found.levels, key=lambda each: abs(each.n_clusters - shown.n_clusters)).labels


def _redrawn(published: Published, number: int) -> Published:
    """Return published values with noise added once more, and some edges left out."""
    weights, topology, kind = published.noisy_weights, published.topology, published.kind
    noise = published.noise
    if noise.n_values != len(weights):  # a tree of a larger graph
        fewer = replace(noise, n_values=len(weights))
        scale = noise.scale * noise.standard_deviation / fewer.standard_deviation
        noise = replace(fewer, scale=scale)
    with RandomStream.seeded(seed_of("certainty", number)) as stream:
        weights = add_noise(weights, noise, stream=stream)
    if not published.whole_graph:
        tree = Tree(topology, weights, published.tree.edge_ids, kind=kind)
        return Published(published.mechanism, published.noise, tree)
    n_nodes, n_edges = topology.n_nodes, topology.n_edges
    if number % 2 == 0 and n_edges <= _DENSE * n_nodes * (n_nodes - 1) / 2:
        random = np.random.default_rng(number)
        kept = np.flatnonzero(random.random(n_edges) >= _LEFT_OUT)
        topology, weights = topology.restricted_to(kept), weights[kept]
    distances = as_distances(weights, kind)
    edges = minimum_spanning_edges(topology.sources, topology.targets, distances, n_nodes)
    tree = Tree(topology.restricted_to(edges), weights[edges], edges, kind=kind)
    return Published(published.mechanism, published.noise, tree, topology, weights)


def without_uncertain(found: Clustering, certainty: Certainty, least: float) -> Clustering:
    """Leave nodes of a smaller probability unclustered, and number the clusters anew."""
    labels = np.where(certainty.nodes < least, -1, found.labels)
    number = np.cumsum(np.bincount(labels[labels >= 0], minlength=1) > 0) - 1
    labels = np.where(labels < 0, -1, number[labels])
    labels = without_small(by_size(labels), found.min_cluster_size)
    evidence = found.evidence
    words = f"nodes of a probability below {least:g} were left unclustered"
    return replace(
        found,
        labels=labels,
        cuts=None,
        levels=(),
        evidence=None if evidence is None else evidence.renumbered(found.labels, labels),
        certainty=certainty.without(found.labels, labels),
        description=(*found.description, words),
    )
