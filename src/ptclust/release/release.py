"""A release: the published tree, its noisy weights, the clusters, and what is guaranteed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ptclust._frames import data_frame
from ptclust.errors import FileError, InputError
from ptclust.graph import Topology
from ptclust.privacy.statement import PrivacyStatement
from ptclust.release._parts import finite, integers
from ptclust.release.ways import Published, Way
from ptclust.trees import Tree

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from ptclust.privacy.noise import Noise
    from ptclust.privacy.plan import Clusterer

__all__ = ["Release"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Release:
    """Everything that is published of a private clustering; immutable.

    Parameters
    ----------
    tree : Tree
        The published tree with its noisy weights as they were released, before shift and scale.
    labels : array_like of int
        The cluster of every node, numbered by first appearance; -1 for noise.
    dbcvi : float
        DBCVI of the clusters on the tree.
    statement : PrivacyStatement
        What is guaranteed.
    shift, scale : float
        (noisy weight + shift) / scale lies within (0, 1] on the tree; that is what DBMSTClu clusters.
    min_cluster_size : int, default 1
        Clusters of fewer nodes became noise.
    clusterer : {"dbmstclu", "levels", "contraction"}, default "dbmstclu"
        How the clusters were found.
    cuts : array_like of int, optional
        The edge ids of the cut edges, in order, if the clusters are the pieces that these cuts leave of the tree.
    graph_topology : Topology, optional
        The whole topology, if the whole graph was perturbed; ``edge_ids`` of the tree count its edges.
    graph_weights : array_like of float, optional
        The noisy weight of every edge of ``graph_topology``.

    Raises
    ------
    InputError
        If the parts do not fit together, or the tree holds private weights.

    Notes
    -----
    *Privacy.* A release holds published values only: whatever is computed from it is post-processing. A tree marked
    private is refused.

    Examples
    --------
    >>> from ptclust.graph import Topology
    >>> from ptclust.privacy.statement import MechanismUse, PrivacyStatement
    >>> statement = PrivacyStatement(
    ...     variant="pure", epsilon=1.0, sensitivity={"l1": 0.1}, randomness="secure",
    ...     mechanisms=[MechanismUse(
    ...         name="Laplace mechanism", purpose="all weights", share=1.0, share_of="epsilon",
    ...         noise="Laplace", scale=0.1,
    ...     )],
    ... )
    >>> tree = Tree(Topology([0, 1, 2], [1, 2, 3], names="abcd"), [-0.1, 0.8, 0.0])
    >>> release = Release(tree=tree, labels=[0, 0, 1, 1], dbcvi=0.75, statement=statement, shift=0.2, scale=1.0)
    >>> release
    Release(n_nodes=4, n_clusters=2, epsilon=1, delta=0)
    >>> release.clustered_weights.round(3).tolist()
    [0.1, 1.0, 0.2]
    """

    tree: Tree
    labels: NDArray[np.int64]
    dbcvi: float
    statement: PrivacyStatement
    shift: float
    scale: float
    min_cluster_size: int = 1
    clusterer: Way = "dbmstclu"
    cuts: NDArray[np.int64] | None = None
    graph_topology: Topology | None = None
    graph_weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        self._check_parts()
        for name in ("shift", "scale", "dbcvi"):
            self._set(name, finite(name, getattr(self, name)))
        if self.scale <= 0:
            raise InputError(f"scale must be above 0, not {self.scale:g}")
        if abs(self.dbcvi) > 1 + 1e-9:
            raise InputError(f"dbcvi must lie in [-1, 1], not at {self.dbcvi:g}")
        self._set("dbcvi", max(-1.0, min(1.0, self.dbcvi)))
        self._set("labels", integers("labels", self.labels))
        self._check_clustered_weights()
        self._check_labels()
        if self.cuts is not None:
            self._set("cuts", integers("cuts", self.cuts))
            self._check_cuts(self.cuts)
        if self.graph_topology is not None or self.graph_weights is not None:
            self._check_graph()

    @property
    def names(self) -> NDArray[Any]:
        """The names of the nodes, in node order."""
        return self.tree.names

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.tree.n_nodes

    @property
    def n_clusters(self) -> int:
        """Number of clusters, not counting noise."""
        return int(self.labels.max(initial=-1)) + 1

    @property
    def n_noise(self) -> int:
        """Number of nodes that are noise."""
        return int(np.count_nonzero(self.labels < 0))

    @property
    def clustered_weights(self) -> NDArray[np.float64]:
        """The weights of the tree as they were clustered: (noisy weight + shift) / scale, in (0, 1]."""
        weights: NDArray[np.float64] = (self.tree.weights + self.shift) / self.scale
        return weights

    @property
    def noise(self) -> Noise:
        """The noise on the weights, as the statement has it."""
        return self._published.noise

    def recluster(
        self,
        clusterer: Clusterer = "auto",
        *,
        min_cluster_size: int = 1,
        shift: float | None = None,
        scale: float | None = None,
    ) -> Release:
        """Return the same published values with clusters found in another way. This costs no privacy.

        Parameters
        ----------
        clusterer : {"auto", "dbmstclu", "levels", "contraction"}
            ``ptclust.release.ways`` tells them apart. ``contraction`` needs a release of all weights.
        min_cluster_size : int, default 1
            Clusters of fewer nodes become noise, label -1.
        shift, scale : float, optional
            tau and p of the paper, for ``dbmstclu``.

        Notes
        -----
        *Privacy.* Post-processing: nothing but this release is read.
        """
        return self._published.cluster(
            clusterer, min_cluster_size=min_cluster_size, shift=shift, scale=scale
        )

    @property
    def _published(self) -> Published:
        return Published(self.tree, self.statement, self.graph_topology, self.graph_weights)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release as JSON, in the format that ``release_schema`` describes.

        Names that are neither whole numbers nor text are written as text. The file appears complete or not at all.

        Raises
        ------
        FileError
            If there is a file of this name already and ``overwrite`` is not set, or the file cannot be written.
        """
        from ptclust._files import written_at_once
        from ptclust.release._format import encode

        file = Path(path)
        if file.exists() and not file.is_dir() and not overwrite:
            raise FileError(
                f"{file} exists already, and a release has been paid for with privacy budget; choose another name, or "
                "say overwrite=True if the one in that file is not wanted any more"
            )
        with written_at_once(file) as temporary:
            temporary.write_bytes(encode(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Release:
        """Read a release that ``save`` wrote, and check all of it.

        Raises
        ------
        FileError
            If the file cannot be read, is no release, is of a newer version, is damaged or was changed. The digest in
            the file detects accidents and careless edits; it is no signature and proves nothing about the author.
        """
        from ptclust.release._format import decode

        return decode(Path(path))

    def to_dataframe(self, backend: Literal["polars", "pandas"] = "polars") -> Any:
        """Return a table with the columns ``node`` and ``label``."""
        return data_frame({"node": self.names, "label": self.labels}, backend)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the columns ``node`` and ``label`` as CSV."""
        from ptclust.release._exports import write_table

        write_table(self, Path(path), "csv")

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the columns ``node`` and ``label`` as Parquet."""
        from ptclust.release._exports import write_table

        write_table(self, Path(path), "parquet")

    def to_graphml(self, path: str | os.PathLike[str]) -> None:
        """Write the tree as GraphML: nodes with their ``label``, edges with their noisy ``weight`` and ``edge_id``."""
        from ptclust.release._exports import write_graphml

        write_graphml(self, Path(path))

    def __repr__(self) -> str:
        statement = self.statement
        private = "" if statement.private else ", NOT PRIVATE"
        return (
            f"Release(n_nodes={self.n_nodes}, n_clusters={self.n_clusters}, epsilon={statement.epsilon:g}, "
            f"delta={statement.delta:g}{private})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, ({entry.name: getattr(self, entry.name) for entry in fields(self)},)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_parts(self) -> None:
        for name, kind in (("tree", Tree), ("statement", PrivacyStatement)):
            part = getattr(self, name)
            if not isinstance(part, kind):
                raise InputError(f"{name} must be a {kind.__name__}, not {type(part).__name__}")
        if self.tree.private:
            raise InputError(
                "the tree holds private weights; a release is made of noisy weights only"
            )
        ids = self.tree.edge_ids
        if ids.dtype.kind not in "iu" or (len(ids) and ids[0] < 0):
            raise InputError("edge_ids of the tree must be whole numbers from 0")
        size = self.min_cluster_size
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise InputError(f"min_cluster_size must be a whole number of at least 1, not {size!r}")
        self._set("min_cluster_size", int(size))
        if self.clusterer not in get_args(Way):
            raise InputError(
                f"clusterer must be one of {', '.join(get_args(Way))}, not {self.clusterer!r}"
            )

    def _check_clustered_weights(self) -> None:
        clustered = self.clustered_weights
        if not np.all((clustered > 0) & (clustered <= 1)):
            raise InputError(
                "shift and scale must bring all noisy weights of the tree into (0, 1]; add a larger "
                "shift, or divide by a larger scale"
            )

    def _check_labels(self) -> None:
        labels = self.labels
        if len(labels) != self.n_nodes:
            raise InputError(f"{len(labels)} labels were given for {self.n_nodes} nodes")
        of_clusters = labels[labels >= 0]
        so_far = np.maximum.accumulate(np.concatenate([[-1], of_clusters]))
        if np.any(labels < -1) or np.any(of_clusters > so_far[:-1] + 1):
            raise InputError(
                "labels must number the clusters 0, 1, 2, ... by first appearance, with -1 for noise"
            )

    def _check_cuts(self, cuts: NDArray[np.int64]) -> None:
        """Check that the clusters are the pieces that the cuts leave, but for pieces too small."""
        is_cut = np.isin(self.tree.edge_ids, cuts)
        if np.count_nonzero(is_cut) != len(cuts):
            raise InputError("cuts must be distinct edge ids of the tree")
        a, b = (self.labels[ends[~is_cut]] for ends in (self.tree.sources, self.tree.targets))
        sizes = np.bincount(self.labels[self.labels >= 0])
        n_pieces = int(sizes.sum()) - np.count_nonzero(a >= 0)
        fits = np.array_equal(a, b) and n_pieces == self.n_clusters
        if self.min_cluster_size == 1:
            fits = fits and not self.n_noise
        if not fits or np.any(sizes < self.min_cluster_size):
            raise InputError(
                "labels must tell apart the pieces that the cuts leave of the tree, with -1 for pieces of fewer than "
                "min_cluster_size nodes"
            )

    def _check_graph(self) -> None:
        topology, ids = self.graph_topology, self.tree.edge_ids
        if topology is None or self.graph_weights is None:
            raise InputError("graph_topology and graph_weights must be given together")
        weights = np.array(self.graph_weights, dtype=np.float64)
        if weights.shape != (topology.n_edges,):
            raise InputError(
                f"{weights.size} graph_weights were given for {topology.n_edges} edges"
            )
        if not np.isfinite(weights).all():
            raise InputError("graph_weights must be finite")
        if topology.n_nodes != self.n_nodes or not np.array_equal(topology.names, self.names):
            raise InputError("graph_topology and tree must have the same nodes, of the same names")
        part = (len(ids) == 0 or int(ids[-1]) < topology.n_edges) and (
            np.array_equal(topology.sources[ids], self.tree.sources)
            and np.array_equal(topology.targets[ids], self.tree.targets)
            and np.array_equal(weights[ids], self.tree.weights)
        )
        if not part:
            raise InputError(
                "edges and weights of the tree must be those of graph_topology at its edge_ids"
            )
        weights.setflags(write=False)
        self._set("graph_weights", weights)


def _rebuilt(parts: dict[str, Any]) -> Release:
    return Release(**parts)
