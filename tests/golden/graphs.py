"""A dozen small graphs with fixed weights, made of numpy alone, their edges in canonical order."""

from __future__ import annotations

import numpy as np

from ptclust.graph import Graph

__all__ = ["GRAPHS"]


def _planted(n_nodes, n_clusters, degree, n_across, seed, within=(0.1, 0.3), across=(0.9, 1.0)):
    """Return clusters with about ``degree`` light edges a node, and heavy edges across."""
    random = np.random.default_rng(seed)
    truth = np.sort(np.arange(n_nodes) % n_clusters)
    pairs: dict[tuple[int, int], float] = {}
    for node in range(n_nodes):
        same = np.flatnonzero(truth == truth[node])
        for other in random.choice(same, min(degree, len(same)), replace=False):
            if other != node:
                pair = (min(node, int(other)), max(node, int(other)))
                pairs.setdefault(pair, random.uniform(*within))
    for a in range(n_nodes - 1):
        if truth[a] == truth[a + 1]:
            pairs.setdefault((a, a + 1), random.uniform(*within))
    while n_across:
        a, b = sorted(random.choice(n_nodes, 2, replace=False).tolist())
        if truth[a] != truth[b] and (a, b) not in pairs:
            pairs[a, b] = random.uniform(*across)
            n_across -= 1
    sources, targets = zip(*sorted(pairs), strict=True)
    return Graph(sources, targets, [pairs[pair] for pair in sorted(pairs)], n_nodes=n_nodes)


def _complete(n_nodes, seed):
    random = np.random.default_rng(seed)
    first, second = np.triu_indices(n_nodes, 1)
    truth = np.arange(n_nodes) % 2
    weights = np.where(truth[first] == truth[second], 0.2, 0.8) + random.normal(0, 0.05, len(first))
    return Graph(first, second, weights, names=[f"node {i:02}" for i in range(n_nodes)])


def _path(n_nodes, heavy):
    weights = np.full(n_nodes - 1, 0.1)
    weights[list(heavy)] = 0.9
    return Graph(range(n_nodes - 1), range(1, n_nodes), weights)


def _star(n_nodes, seed):
    weights = np.random.default_rng(seed).uniform(0.1, 1.0, n_nodes - 1)
    return Graph([0] * (n_nodes - 1), range(1, n_nodes), weights)


def _grid(side, seed):
    random = np.random.default_rng(seed)
    number = np.arange(side * side).reshape(side, side)
    sources = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    targets = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    order = np.lexsort((targets, sources))
    return Graph(sources[order], targets[order], random.gamma(2.0, 1.0, len(sources)))


def _forest():
    two = _planted(40, 2, 4, 3, seed=5)
    sources = np.concatenate([two.sources, two.sources + 40, [80]])
    targets = np.concatenate([two.targets, two.targets + 40, [81]])
    return Graph(sources, targets, np.concatenate([two.weights, two.weights, [0.5]]), n_nodes=83)


GRAPHS = {
    "two clusters": lambda: _planted(60, 2, 6, 40, seed=1),
    "five clusters": lambda: _planted(100, 5, 8, 150, seed=2),
    "sparse clusters": lambda: _planted(80, 4, 2, 30, seed=3),
    "large and small weights": lambda: _planted(60, 3, 6, 60, 4, (-500.0, -100.0), (2e3, 9e3)),
    "complete": lambda: _complete(30, seed=6),
    "path": lambda: _path(50, (15, 33)),
    "star": lambda: _star(40, seed=7),
    "grid": lambda: _grid(8, seed=8),
    "forest": _forest,
    "equal weights": lambda: Graph(*np.triu_indices(12, 1), np.full(66, 0.5)),
    "one edge": lambda: Graph([0], [1], [0.25]),
    "larger": lambda: _planted(400, 4, 8, 900, seed=9),
}
