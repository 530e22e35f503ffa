"""A small graph that changes from period to period."""

from __future__ import annotations

import numpy as np

from ptclust.graph import Graph


def month(number: int, *, move: tuple[int, ...] = (), n: int = 40) -> Graph:
    """Return counts among 40 places in two clusters; some places move to the other."""
    random = np.random.default_rng(number)
    truth = np.arange(n) % 2
    truth[list(move)] ^= 1
    a, b = np.triu_indices(n, 1)
    counts = random.poisson(np.where(truth[a] == truth[b], 300.0, 60.0))
    return Graph(a, b, counts.astype(float), kind="similarity")
