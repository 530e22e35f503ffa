"""The test: whether unseen weights within clusters exceed those across by more than chance.

Compared are weights beyond those expected from their nodes, and "together" beyond what the numbers
of companions of nodes explain: whatever nodes differ by has no part in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ptclust._types import Bools, Floats, Ints
    from ptclust.clustering.communities._model import Edges

#: Standard errors that are more than chance.
CLEAR = 3.0
# Rounds of taking out what nodes explain.
_ROUNDS = 10
# Sums of squares below are rounding.
_ROUNDING = 1e-12


class WeightTest:
    """Tests partitions on edges that they have not seen."""

    def __init__(self, edges: Edges, expected: Floats, group: Ints) -> None:
        self._edges, self._group = edges, group
        self._in_group = np.maximum(np.bincount(group), 1)
        self._scales = np.ones(edges.n_edges), expected
        self._squares = [np.maximum(edges.at_nodes(each**2), 1e-12) for each in self._scales]
        self._residual = self.beyond_nodes(edges.log_weights - expected)

    def beyond_nodes(self, values: Floats) -> Floats:
        """Return values less what their nodes explain.

        That is the best sum of one term for each end, constant or by expectation, and of one for
        every group of edges with similar expected weight.
        """
        a, b = self._edges.sources, self._edges.targets
        for _ in range(_ROUNDS):
            for scale, square in zip(self._scales, self._squares, strict=True):
                term = self._edges.at_nodes(scale * values) / square / 2
                values = values - scale * (term[a] + term[b])
            values = values - (np.bincount(self._group, values) / self._in_group)[self._group]
        return values

    def companions(self, together: Bools) -> Floats:
        """Return "together" beyond what the numbers of companions of nodes explain."""
        return self.beyond_nodes(together.astype(np.float64))

    def standard_errors(self, companions: Floats, given: Floats | None = None) -> float:
        """Return by how many standard errors weights support a partition, beyond a given one."""
        if given is not None:
            companions = companions - given * (companions @ given) / (given @ given + _ROUNDING)
        everywhere = np.zeros(len(companions), np.int64)
        return float(_errors(companions * self._residual, everywhere, 1)[0])

    def of_clusters(self, companions: Floats, a: Ints, b: Ints, n_clusters: int) -> Floats:
        """Return the same for every cluster, on the edges at its nodes.

        ``a`` and ``b`` are the clusters at the ends of the edges.
        """
        products, other = companions * self._residual, a != b
        both = np.concatenate([products, products[other]])
        return _errors(both, np.concatenate([a, b[other]]), n_clusters)


def _errors(products: Floats, cluster: Ints, n_clusters: int) -> Floats:
    """Return the standard errors of the sums of products in every cluster.

    If few edges make up a sum, as many as these, it has tails of Student's distribution.
    """
    total, squares, fourths = (
        np.bincount(cluster, products**power, n_clusters) for power in (1, 2, 4)
    )
    n_edges = squares**2 / np.maximum(fourths, 1e-300)
    student = total / np.sqrt(np.maximum(squares, 1e-300))
    normal = np.sqrt(n_edges * np.log1p(student**2 / np.maximum(n_edges, 1.0)))
    return np.where(squares > _ROUNDING, np.sign(total) * normal, 0.0)
