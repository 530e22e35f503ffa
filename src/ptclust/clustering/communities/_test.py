"""The test: whether unseen weights within clusters exceed those across by more than chance.

Compared are weights beyond those expected from their nodes, and "together" beyond what the numbers
of companions of nodes explain: whatever nodes differ by has no part in it. Weights are exchangeable
then among edges with similar expected weight, so the mean of such a group has no part in it either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering.communities._model import groups_of

if TYPE_CHECKING:
    from ptclust._types import Bools, Floats, Ints
    from ptclust.clustering.communities._model import Edges

#: Standard errors that are more than chance.
CLEAR = 3.0
# Groups of edges with similar expected weight, at most, and edges in one of them, at least.
_GROUPS, _IN_GROUP = 64, 30
# Rounds of taking out what nodes explain, and of taking out groups as well.
_ROUNDS, _TURNS = 10, 3
# Sums of squares below are rounding.
_ROUNDING = 1e-12


class WeightTest:
    """Tests partitions on edges that they have not seen."""

    def __init__(self, edges: Edges, expected: Floats) -> None:
        self._edges = edges
        self._scales = np.ones(edges.n_edges), expected
        self._squares = [np.maximum(edges.at_nodes(each**2), 1e-12) for each in self._scales]
        n_groups = int(np.clip(edges.n_edges // _IN_GROUP, 1, _GROUPS))
        group = groups_of(expected, n_groups)
        size = np.maximum(np.bincount(group, minlength=n_groups), 1)
        residual = self.beyond_nodes(edges.log_weights - expected)
        for _ in range(_TURNS):
            residual = residual - (np.bincount(group, residual, n_groups) / size)[group]
            residual = self.beyond_nodes(residual)
        self._residual = residual

    def beyond_nodes(self, values: Floats) -> Floats:
        """Return values less the best sum of one term for each end, constant or by expectation."""
        a, b = self._edges.sources, self._edges.targets
        for _ in range(_ROUNDS):
            for scale, square in zip(self._scales, self._squares, strict=True):
                term = self._edges.at_nodes(scale * values) / square / 2
                values = values - scale * (term[a] + term[b])
        return values

    def companions(self, together: Bools) -> Floats:
        """Return "together" beyond what the numbers of companions of nodes explain."""
        return self.beyond_nodes(together.astype(np.float64))

    def standard_errors(self, companions: Floats, given: Floats | None = None) -> float:
        """Return by how many standard errors weights support a partition, beyond a given one."""
        if given is not None:
            companions = companions - given * (companions @ given) / (given @ given + _ROUNDING)
        return float(self._ratio(companions * self._residual))

    def of_clusters(self, companions: Floats, a: Ints, b: Ints, n_clusters: int) -> Floats:
        """Return the same for every cluster, on the edges at its nodes.

        ``a`` and ``b`` are the clusters at the ends of the edges.
        """
        products, other = companions * self._residual, a != b
        total, squares = (
            np.bincount(a, values, n_clusters) + np.bincount(b[other], values[other], n_clusters)
            for values in (products, products**2)
        )
        ratio: Floats = np.where(
            squares > _ROUNDING, total / np.sqrt(np.maximum(squares, _ROUNDING)), 0.0
        )
        return ratio

    @staticmethod
    def _ratio(products: Floats) -> float:
        squares = float(products @ products)
        return float(products.sum()) / squares**0.5 if squares > _ROUNDING else 0.0
