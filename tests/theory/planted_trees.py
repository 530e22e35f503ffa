"""Trees with planted clusters of all kinds, near the edge of what DBMSTClu recovers."""

from __future__ import annotations

import numpy as np

from ptclust.graph import Graph, Topology
from ptclust.trees import Tree, minimum_spanning_tree


def path(*weights):
    n = len(weights)
    return Tree(Topology(range(n), range(1, n + 1)), weights)


def sizes_of_clusters(random):
    n_clusters = int(random.integers(2, 9))
    low = int(random.choice([1, 3, 3, 4, 6]))
    sizes = random.integers(low, low + int(random.choice([1, 2, 4, 9])), size=n_clusters)
    sizes[sizes == 2] = 3
    if random.random() < 0.3:
        sizes[random.integers(n_clusters)] *= int(random.integers(2, 9))
    return sizes


def joined(random, first, sizes, shape):
    """The parent of every node: paths, stars and random trees on consecutive blocks of nodes."""
    block = np.repeat(np.arange(len(sizes)), sizes)
    local = np.arange(len(block)) - first[block]
    reach = {"path": 1, "star": 10**6, "random": 0}[shape]
    parent = (random.random(len(block)) * local).astype(int)
    parent = np.maximum(local - reach, 0) if reach else parent
    return block, local, first[block] + parent


def interval_weights(random, n, low, high):
    """Some at either end, the others between."""
    kind = random.integers(0, 3, size=n)
    return np.choose(kind, [np.full(n, low), np.full(n, high), random.uniform(low, high, n)])


def case(random):
    """Return a tree and the planted labels; edges and nodes in random order."""
    sizes = sizes_of_clusters(random)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    shapes = ["path", "star", "random"]
    label, local, parent = joined(random, first, sizes, shapes[random.integers(3)])
    inner = np.flatnonzero(local > 0)
    _, _, towards = joined(
        random, np.zeros(1, int), np.array([len(sizes)]), shapes[random.integers(3)]
    )
    k = np.arange(1, len(sizes))
    end_a = first[k] + (random.random(len(k)) * sizes[k]).astype(int)
    end_b = first[towards[k]] + (random.random(len(k)) * sizes[towards[k]]).astype(int)
    a, b, c, d = weight_intervals(random, sizes)
    within = interval_weights(random, len(inner), a, b)
    across = interval_weights(random, len(k), c, d)
    if random.random() < 0.15:  # several scales
        within *= random.choice([1, 0.1, 0.01], size=len(sizes))[label[inner]]
        across *= random.choice([1, 0.5, 0.05], p=[0.8, 0.1, 0.1], size=len(k))
    sources = np.concatenate([inner, end_a])
    targets = np.concatenate([parent[inner], end_b])
    weights = np.concatenate([within, across])
    if random.random() < 0.15:
        weights = np.maximum(1, np.round(weights * random.choice([5, 10, 30])))
    return shuffled(random, sources, targets, weights, label, (a, b, c, d))


def weight_intervals(random, sizes):
    """a to b within, c to d across; b^2 / a often about c (1 - 1 / s), the edge of stability."""
    c = 1.0
    d = c * (1 + random.choice([0, 0.02, 0.1, 0.3, 1.0]) * random.random())
    b = random.choice([0.05, 0.2, 0.5, 0.8, 0.97]) * random.uniform(0.7, 1)
    a = b / (1 + random.choice([0, 0.1, 1, 3]) * random.random())
    if random.random() < 0.4:
        s = max(sizes.min(), 3)
        a = min(b, b**2 / (c * (1 - 1 / s)) * random.uniform(0.9, 1.1))
    return a, b, c, d


def shuffled(random, sources, targets, weights, label, ends):
    name = random.permutation(len(label))
    labels = np.empty(len(label), int)
    labels[name] = label
    sources, targets = name[sources], name[targets]
    if random.random() < 0.2:  # a graph with more edges, and its minimum spanning tree
        extra = random.integers(0, len(label), size=(2 * len(label), 2))
        sources, targets = np.append(sources, extra[:, 0]), np.append(targets, extra[:, 1])
        same = labels[extra[:, 0]] == labels[extra[:, 1]]
        a, b, c, d = ends
        more = np.where(
            same,
            interval_weights(random, len(same), a, b),
            interval_weights(random, len(same), c, d),
        )
        weights = np.append(weights, more)
        low, high = np.minimum(sources, targets), np.maximum(sources, targets)
        _, distinct = np.unique(low * len(label) + high, return_index=True)
        distinct = random.permutation(distinct[low[distinct] != high[distinct]])
        return minimum_spanning_tree(
            Graph(sources[distinct], targets[distinct], weights[distinct], n_nodes=len(label))
        ), labels
    order = random.permutation(len(weights))
    topology = Topology(sources[order], targets[order], n_nodes=len(label))
    return Tree(topology, weights[order]), labels
