"""Small graphs, and how tests publish them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptclust import Graph, Sensitivity
from ptclust.mechanisms import MECHANISMS

NAMES = MECHANISMS.names


MU = 0.01


#: So little noise that nothing is hidden: what comes out is what DBMSTClu finds.
TINY: dict[str, Any] = {
    "epsilon": 1.0,
    "sensitivity": Sensitivity(linf=1e-7),
    "clusterer": "dbmstclu",
}


#: Three weights of one cluster, a bridge, three of the other.
PATH = [0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1]


def path_graph(weights=PATH, **more) -> Graph:
    return Graph(range(len(weights)), range(1, len(weights) + 1), weights, **more)


def planted(n_nodes=40, seed=0) -> Graph:
    """Two clusters of light edges, and heavy edges between them, in a random order of nodes."""
    random = np.random.default_rng(seed)
    order, half = random.permutation(n_nodes), n_nodes // 2
    pairs = {(i, i + 1): 0.1 for i in range(n_nodes - 1) if i != half - 1}
    for i in range(half):
        pairs[i, half + i] = 0.9
        pairs.setdefault((i // 2, half - 1), 0.1)
    pairs.pop((half - 1, half - 1), None)
    ends = np.array(list(pairs))
    weights = np.array(list(pairs.values())) + random.uniform(0, 0.1, len(pairs))
    return Graph(order[ends[:, 0]], order[ends[:, 1]], weights)


def choices(mechanism: str) -> dict[str, Any]:
    return {"mechanism": mechanism, "delta": 1e-6 if mechanism == "gaussian" else 0}
