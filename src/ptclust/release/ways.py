"""Ways of clustering what was released. All are post-processing: they see published values only, and cost nothing.

``dbmstclu``
    The paper's Algorithm 1, on the released tree: one edge decides a cut.
``levels``
    Cuts of the released tree that account for the noise on its weights.
``contraction``
    Clusters of the whole released graph, by the sum of the evidence of all edges between two groups. It needs a release
    of all weights (``laplace``, ``gaussian``).
``auto``
    ``contraction`` where all weights were released and there are clearly more of them than a tree has, ``dbmstclu``
    on the paper's tree, PAMST, and ``levels`` on others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ptclust.clustering import dbcvi, dbmstclu, without_small
from ptclust.errors import UsageError
from ptclust.privacy.noise import Noise
from ptclust.privacy.plan import Clusterer, averages, check_clusterer
from ptclust.release.account import PAMST
from ptclust.release.normalise import check_constants, normalisation
from ptclust.trees import Tree

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from ptclust.graph import Topology
    from ptclust.privacy.statement import PrivacyStatement
    from ptclust.release.release import Release

__all__ = ["Clusterer", "Published", "Way", "check_options", "choose_way"]

Way = Literal["dbmstclu", "contraction", "levels"]


def choose_way(
    clusterer: Clusterer, *, whole_graph: bool, pamst: bool, n_edges: int, n_tree_edges: int
) -> Way:
    """Return the way of clustering, known before anything is spent; raise UsageError if there is none."""
    check_clusterer(clusterer)
    if clusterer == "contraction" and not whole_graph:
        raise UsageError(
            "clusterer='contraction' averages over all edges of a graph, and only the weights of a tree are released; "
            "use tree='gaussian' or tree='laplace', or another clusterer"
        )
    if clusterer != "auto":
        return clusterer
    if whole_graph and averages(n_edges, n_tree_edges):
        return "contraction"
    return "dbmstclu" if pamst else "levels"


@dataclass(frozen=True)
class Published:
    """What the mechanisms gave out; nothing that follows sees anything else."""

    tree: Tree
    statement: PrivacyStatement
    graph_topology: Topology | None
    graph_weights: NDArray[np.float64] | None

    @property
    def noise(self) -> Noise:
        """The noise on the weights, as the statement has it."""
        for use in self.statement.mechanisms:
            if use.noise in ("Laplace", "Gaussian") and use.scale:
                kind: Any = use.noise.lower()
                granularity = int(use.parameters.get("granularity_exponent", 0))
                n_values = int(use.parameters.get("n_values", self.tree.n_edges))
                return Noise(kind, use.scale, granularity, n_values)
        return Noise("laplace", 0.0, 0, 0)

    def way(self, clusterer: Clusterer) -> Way:
        """Return the way of clustering that ``clusterer`` means here."""
        topology = self.tree.topology if self.graph_topology is None else self.graph_topology
        return choose_way(
            clusterer,
            whole_graph=self.graph_weights is not None,
            pamst=any(use.name == PAMST for use in self.statement.mechanisms),
            n_edges=topology.n_edges,
            n_tree_edges=self.tree.n_edges,
        )

    def cluster(
        self,
        clusterer: Clusterer = "auto",
        *,
        min_cluster_size: int = 1,
        shift: float | None = None,
        scale: float | None = None,
    ) -> Release:
        """Return the release: these values and their clusters."""
        from ptclust.release.release import Release

        way = self.way(clusterer)
        check_options(way, min_cluster_size, shift, scale)
        normal = normalisation(self.tree.weights, self.noise.standard_deviation, shift, scale)
        scaled = Tree(self.tree.topology, normal.apply(self.tree.weights), self.tree.edge_ids)
        words = []
        if self.graph_weights is not None:
            words.append("the tree is the minimum spanning tree of the released weights")
        if way == "dbmstclu":
            origin = "from the released weights and the public noise" if shift is None else "given"
            words.append(
                f"released weights were shifted by {normal.shift:.6g} ({origin}) and divided by {normal.scale:.6g}"
            )
        found = self._found(way, scaled)
        words.append(_WORDS[way])
        if min_cluster_size > 1:
            words.append(f"clusters of fewer than {min_cluster_size} nodes became noise")
        return Release(
            tree=self.tree,
            labels=without_small(found.labels, min_cluster_size),
            dbcvi=dbcvi(scaled, found.labels) if found.dbcvi is None else found.dbcvi,
            statement=replace(self.statement, post_processing=tuple(words)),
            shift=normal.shift,
            scale=normal.scale,
            min_cluster_size=min_cluster_size,
            clusterer=way,
            cuts=found.cuts,
            graph_topology=self.graph_topology,
            graph_weights=self.graph_weights,
        )

    def _found(self, way: Way, scaled: Tree) -> _Found:
        if way == "dbmstclu":
            clustering = dbmstclu(scaled)
            return _Found(clustering.labels, clustering.cuts.edge_ids, clustering.dbcvi)
        if way == "levels":
            from ptclust.clustering.level_cuts import cut_levels

            cut = cut_levels(self.tree, self.noise)
            return _Found(cut.labels, cut.edge_ids)
        from ptclust.clustering.contraction import contract

        topology, weights = self.graph_topology, self.graph_weights
        assert topology is not None and weights is not None  # noqa: S101, PT018 - else choose_way had refused
        return _Found(
            contract(topology.sources, topology.targets, weights, topology.n_nodes, self.noise),
            None,
        )


class _Found(NamedTuple):
    labels: NDArray[np.int64]
    cuts: NDArray[np.int64] | None
    """Ids of the cut edges, if the clusters are the pieces that these leave of the tree."""
    dbcvi: float | None = None
    """DBCVI on the tree, where it is known already."""


_WORDS: dict[Way, str] = {
    "dbmstclu": "DBMSTClu cut the released tree",
    "levels": "the released tree was cut at weights of the upper of two levels, or that stand out, given the public "
    "noise",
    "contraction": "groups of nodes were joined by the summed evidence of all released weights between them, given the "
    "public noise",
}


def check_options(
    way: Way, min_cluster_size: int, shift: float | None, scale: float | None
) -> None:
    """Refuse, before anything is spent, what a way of clustering would refuse."""
    whole = isinstance(min_cluster_size, (int, np.integer)) and type(min_cluster_size) is not bool
    if not whole or min_cluster_size < 1:
        raise UsageError(
            f"min_cluster_size must be a whole number of at least 1, not {min_cluster_size!r}"
        )
    check_constants(shift, scale)
    if way != "dbmstclu" and (shift is not None or scale is not None):
        raise UsageError(
            f"shift and scale are for clusterer='dbmstclu', and this release is clustered by {way!r}; leave them out, "
            "or ask for that clusterer"
        )
