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
NUMBER = {frozenset(edge[:2]): i for i, edge in enumerate(EDGES)}


def matrix(lengths):
    return csr_array((lengths, (A, B)), shape=(N_NODES, N_NODES))


def shortest_path_tree(clocks, random):
    root = int(random.integers(N_NODES))
    _, before = dijkstra(matrix(clocks), directed=False, indices=root, return_predecessors=True)
    pairs = ((v, int(before[v])) for v in range(N_NODES) if v != root)
    return tuple(sorted(NUMBER[frozenset(pair)] for pair in pairs))


def smallest_tree(clocks, _random):
    # scipy takes a stored zero for no edge; clocks are positive, and their order is that of the
    # Gumbel keys
    found = minimum_spanning_tree(matrix(clocks)).tocoo()
    return tuple(sorted(NUMBER[frozenset(pair)] for pair in zip(found.row, found.col)))


def chi2_quantile(drawn, expected):
    statistic = sum((drawn[tree] - DRAWS * p) ** 2 / (DRAWS * p) for tree, p in expected.items())
    return chi2.sf(statistic, len(expected) - 1)


CASES = {
    "PAMST": (shortest_path_tree, pamst_distribution),
    "Kruskal": (smallest_tree, kruskal_distribution),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("off", [1.0, 1.3])
def test_clocks_draw_the_mechanisms_distribution_and_no_other(name, off):
    draw, distribution = CASES[name]
    expected = distribution(N_NODES, EDGES, EXPONENT)
    assert sum(expected.values()) == pytest.approx(1.0)
    random = np.random.default_rng(11)
    clocks = random.exponential(size=(DRAWS, len(EDGES))) * np.exp(off * EXPONENT * WEIGHTS)
    drawn = Counter(draw(row, random) for row in clocks)
    assert set(drawn) <= set(expected)
    if off == 1.0:
        assert chi2_quantile(drawn, expected) > 1e-6
    else:
        assert chi2_quantile(drawn, expected) < 1e-6
