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
from typing import TYPE_CHECKING, Literal, cast

from ptclust.clustering import check_sizes, choose_clusterer, get_clusterer, with_options
from ptclust.privacy.noise import Noise
from ptclust.privacy.plan import Clusterer
from ptclust.release.account import PAMST

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from ptclust.graph import Topology
    from ptclust.privacy.statement import PrivacyStatement
    from ptclust.release.release import Release
    from ptclust.trees import Tree

__all__ = ["Clusterer", "Published", "Way", "check_options", "choose_way"]

Way = Literal["dbmstclu", "contraction", "levels"]


def choose_way(
    clusterer: Clusterer, *, whole_graph: bool, pamst: bool, n_edges: int, n_tree_edges: int
) -> Way:
    """Return the way of clustering, known before anything is spent; raise UsageError if there is none."""
    chosen = choose_clusterer(
        clusterer,
        publishes="graph" if whole_graph else "tree",
        preferred="dbmstclu" if pamst else None,
        n_edges=n_edges,
        n_tree_edges=n_tree_edges,
    )
    return cast("Way", chosen.name)


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

    @property
    def mechanism(self) -> str:
        """The first mechanism of the statement."""
        return self.statement.mechanisms[0].name if self.statement.mechanisms else ""

    @property
    def whole_graph(self) -> bool:
        """Whether the whole graph was perturbed."""
        return self.graph_weights is not None

    @property
    def topology(self) -> Topology:
        """The topology whose edges have noisy weights."""
        return self.tree.topology if self.graph_topology is None else self.graph_topology

    @property
    def noisy_weights(self) -> NDArray[np.float64]:
        """The noisy weights of all edges of the topology."""
        return self.tree.weights if self.graph_weights is None else self.graph_weights

    def way(self, clusterer: Clusterer) -> Way:
        """Return the way of clustering that ``clusterer`` means here."""
        return choose_way(
            clusterer,
            whole_graph=self.whole_graph,
            pamst=any(use.name == PAMST for use in self.statement.mechanisms),
            n_edges=self.topology.n_edges,
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
        chosen = with_options(get_clusterer(way), shift=shift, scale=scale)
        found = chosen.apply(self, min_cluster_size=min_cluster_size)
        return Release(
            tree=self.tree,
            labels=found.labels,
            dbcvi=found.dbcvi,
            statement=replace(self.statement, post_processing=found.description),
            shift=found.shift,
            scale=found.scale,
            min_cluster_size=min_cluster_size,
            clusterer=way,
            cuts=None if found.cuts is None else found.cuts.edge_ids,
            graph_topology=self.graph_topology,
            graph_weights=self.graph_weights,
        )


def check_options(
    way: Way, min_cluster_size: int, shift: float | None, scale: float | None
) -> None:
    """Refuse, before anything is spent, what a way of clustering would refuse."""
    check_sizes(None, min_cluster_size)
    with_options(get_clusterer(way), shift=shift, scale=scale)
