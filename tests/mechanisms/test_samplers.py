"""docs/proofs/samplers.md: PAMST is a shortest-path tree, Kruskal a minimum spanning tree."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree
from scipy.stats import chi2

from tests.mechanisms.paper import kruskal_distribution, pamst_distribution

N_NODES, EXPONENT, DRAWS = 5, 2.0, 8_000  # no tree is expected fewer than 4.9 times
EDGES = [
    (0, 1, 0.1), (0, 2, 0.9), (0, 3, 0.4), (1, 2, 0.3), (1, 4, 1.2), (2, 3, 0.2), (2, 4, 0.7),
    (3, 4, 0.5),
]  # fmt: skip
A, B = (np.array(ends) for ends in list(zip(*EDGES, strict=True))[:2])
WEIGHTS = np.array([w for *_, w in EDGES])
NUMBER = np.full((N_NODES, N_NODES), -1)
NUMBER[A, B] = NUMBER[B, A] = np.arange(len(EDGES))


def matrix(clocks):
    """All draws at once: a copy of the graph a row of clocks."""
    first = N_NODES * np.arange(DRAWS, dtype=np.int32)[:, None]
    ends = (A + first).astype(np.int32).ravel(), (B + first).astype(np.int32).ravel()
    return csr_array((clocks.ravel(), ends), shape=(N_NODES * DRAWS, N_NODES * DRAWS))


def shortest_path_trees(clocks, random):
    roots = N_NODES * np.arange(DRAWS) + random.integers(N_NODES, size=DRAWS)
    _, before, _ = dijkstra(
        matrix(clocks), directed=False, indices=roots, return_predecessors=True, min_only=True
    )
    (reached,) = np.nonzero(before >= 0)  # all but the roots
    return reached, before[reached]


def smallest_trees(clocks, _random):
    # scipy takes a stored zero for no edge; clocks are positive, and their order is that of the
    # Gumbel keys
    found = minimum_spanning_tree(matrix(clocks)).tocoo()
    order = np.argsort(found.row // N_NODES, kind="stable")
    return found.row[order], found.col[order]


def trees(ends, others):
    """Count trees by their edges, ascending."""
    edges = NUMBER[ends % N_NODES, others % N_NODES].reshape(DRAWS, N_NODES - 1)
    return Counter(map(tuple, np.sort(edges, axis=1).tolist()))


def chi2_quantile(drawn, expected):
    statistic = sum((drawn[tree] - DRAWS * p) ** 2 / (DRAWS * p) for tree, p in expected.items())
    return chi2.sf(statistic, len(expected) - 1)


CASES = {
    "PAMST": (shortest_path_trees, pamst_distribution),
    "Kruskal": (smallest_trees, kruskal_distribution),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("off", [1.0, 1.3])
def test_clocks_draw_the_mechanisms_distribution_and_no_other(name, off):
    draw, distribution = CASES[name]
    expected = distribution(N_NODES, EDGES, EXPONENT)
    assert sum(expected.values()) == pytest.approx(1.0)
    random = np.random.default_rng(11)
    clocks = random.exponential(size=(DRAWS, len(EDGES))) * np.exp(off * EXPONENT * WEIGHTS)
    drawn = trees(*draw(clocks, random))
    assert set(drawn) <= set(expected)
    if off == 1.0:
        assert chi2_quantile(drawn, expected) > 1e-6
    else:
        assert chi2_quantile(drawn, expected) < 1e-6
