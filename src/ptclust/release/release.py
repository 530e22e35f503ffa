"""A release: published values, their clusters, and the statement of what is guaranteed."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ptclust._files import held, written_at_once
from ptclust._markup import quoted
from ptclust._registry import AUTO
from ptclust._tables import data_frame
from ptclust._traces import leaves_no_trace
from ptclust._types import Array, Floats, Ints
from ptclust.clustering.certainty import Certainty, find_again, without_uncertain
from ptclust.clustering.clusterer import (
    Clustering,
    ClusteringRequest,
    Evidence,
    Level,
)
from ptclust.clustering.normalise import normalisation
from ptclust.errors import InputError, UsageError
from ptclust.graph.labels import write_labels
from ptclust.graph.topology import Kind, Topology
from ptclust.mechanisms import MECHANISMS
from ptclust.privacy.noise import Noise
from ptclust.privacy.statement import PrivacyStatement
from ptclust.published import Published
from ptclust.release import exports
from ptclust.release.checks import check_clustering
from ptclust.release.comparison import Comparison, Follows, follow
from ptclust.release.summary import Summary, advise
from ptclust.trees.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable


@leaves_no_trace
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Release:
    """Everything that is published of a private clustering; immutable.

    Without a clustering all nodes are unclustered, and ``recluster`` finds clusters at no cost.
    InputError says which parts do not fit together.

    Notes
    -----
    *Privacy.* It holds published values only: whatever is computed from it is post-processing.

    Examples
    --------
    >>> from ptclust import PTClust, Sensitivity
    >>> from ptclust.datasets import planted_graph
    >>> planted = planted_graph("moons", 100)
    >>> model = PTClust(epsilon=1, delta=1e-6, sensitivity=Sensitivity(linf=1e-6))
    >>> release = model.fit(planted.graph).release_
    >>> release
    Release(n_nodes=100, n_clusters=2, epsilon=1, delta=1e-06)
    >>> release.recluster("dbmstclu").clusterer
    'dbmstclu'
    >>> bool(release.probabilities.min() > 0.9)
    True
    >>> release.plot(planted.points).get_title()
    '2 clusters of 100 nodes, found by communities; epsilon = 1, delta = 1e-06'
    >>> comparison = model.fit(planted.graph).release_.compare(release)
    >>> comparison
    Comparison(n_common=100, agreement=1.000)
    >>> print(comparison.cost)
    rho = 0.0560289 (zCDP)
    """

    published: Published
    statement: PrivacyStatement
    clustering: Clustering | None = None
    follows: Follows | None = None

    def __post_init__(self) -> None:
        for name, kind in (("published", Published), ("statement", PrivacyStatement)):
            part = getattr(self, name)
            if not isinstance(part, kind):
                raise InputError(f"{name} must be a {kind.__name__}, not {type(part).__name__}")
        if self.published.kind != self.statement.kind:
            raise InputError(
                f"the statement is about a {self.statement.kind}, and the published weights are of "
                f"kind {self.published.kind!r}"
            )
        if self.clustering is not None:
            checked = check_clustering(self.clustering, self.published.tree)
            object.__setattr__(self, "clustering", checked)
        if self.follows is not None and len(self.follows.numbers) != self.n_clusters:
            raise InputError(
                f"follows.numbers has {len(self.follows.numbers)} numbers, and there are "
                f"{self.n_clusters} clusters"
            )

    @property
    def tree(self) -> Tree:
        """The published tree with its noisy weights as released, before shift and scale."""
        return self.published.tree

    @property
    def kind(self) -> Kind:
        """What the weights are: of distances a small one means close, of similarities a large."""
        return self.published.kind

    @property
    def topology(self) -> Topology:
        """The topology whose weights were published: the whole one, or that of the tree."""
        return self.published.topology

    @property
    def noisy_weights(self) -> Floats:
        """The noisy weight of every edge of ``topology``."""
        return self.published.noisy_weights

    @property
    def weight_noise(self) -> Noise:
        """The noise on the weights."""
        return self.published.noise

    @property
    def labels(self) -> Ints:
        """The cluster of every node, -1 for unclustered nodes.

        Cluster 0 is the largest; after `follow`, clusters have the numbers of an earlier release.
        """
        if self.clustering is None:
            return np.full(self.n_nodes, -1)
        found = self.clustering.labels
        return found if self.follows is None else self.follows.rename(found)

    @property
    def levels(self) -> tuple[Level, ...]:
        """Nested partitions, coarse to fine, if the clusterer finds several; see `recluster`."""
        return () if self.clustering is None else self.clustering.levels

    @property
    def evidence(self) -> Evidence | None:
        """What supports the clusters: released weights, the public topology, both or none.

        ``evidence.partition`` is about all clusters, ``evidence.clusters`` about each by number.
        None if the clusterer gives none.
        """
        return None if self.clustering is None else self.clustering.evidence

    @property
    def certainty(self) -> Certainty | None:
        """How probable nodes and clusters are, if that was computed; see ``probabilities``."""
        return None if self.clustering is None else self.clustering.certainty

    def find_certainty(self, progress: Callable[[str], None] = lambda _: None) -> Certainty:
        """Return how probable nodes and clusters are; computed once, and kept by ``save``.

        Noise is added to the released weights once more, eight times (once beyond 100,000 edges),
        and the clusters that are found then are compared with those shown (docs/certainty.md).
        """
        if self.clustering is None:
            raise UsageError("there are no clusters yet: recluster() first")
        if (found := self.clustering.certainty) is None:
            found = Certainty.of(self.labels, self._found_again(progress))
            object.__setattr__(self, "clustering", replace(self.clustering, certainty=found))
        return found

    def _found_again(self, progress: Callable[[str], None] = lambda _: None) -> list[Ints]:
        if self.clustering is None or self.n_clusters < 2:  # nothing is told apart
            return []
        return find_again(self.clustering, self.published, progress)

    @property
    def probabilities(self) -> Floats:
        """For every node, the probability that it belongs to its cluster; see `find_certainty`.

        0 if all nodes are in one cluster.
        """
        return self.find_certainty().nodes

    @property
    def cluster_probabilities(self) -> Floats:
        """For every cluster, the probability that another release of the graph shows it, too."""
        return self.find_certainty().clusters

    def probability_together(self, a: Any, b: Any) -> float:
        """Return the probability that two nodes, given by name, are in one cluster.

        It is the share of redraws of the noise in which they are, among those that show more than
        one cluster; 0 if none does. It is computed anew.
        """
        node = {name: number for number, name in enumerate(self.names.tolist())}
        for name in (a, b):
            if name not in node:
                raise InputError(f"the release has no node {quoted(name)}")
        again = [each for each in self._found_again() if each.max() > 0]
        return float(np.mean([each[node[a]] == each[node[b]] for each in again])) if again else 0.0

    @property
    def clusterer(self) -> str | None:
        """The name of the clusterer, None if there are no clusters yet."""
        return None if self.clustering is None else self.clustering.clusterer

    @property
    def dbcvi(self) -> float:
        """DBCVI of the clusters on the tree; unclustered nodes count as 0."""
        return 0.0 if self.clustering is None else self.clustering.dbcvi

    @property
    def names(self) -> Array:
        """The names of the nodes, in node order."""
        return self.tree.names

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.tree.n_nodes

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return 0 if self.clustering is None else self.clustering.n_clusters

    @property
    def n_unclustered(self) -> int:
        """Number of nodes in no cluster."""
        return int(np.count_nonzero(self.labels < 0))

    @property
    def advice(self) -> tuple[str, ...]:
        """What to try if all nodes are in one cluster, or most of them alone; else empty."""
        return advise(self)

    @property
    def summary(self) -> Summary:
        """The clusters with their members, and noise against separation."""
        return Summary(self)

    def plot(
        self,
        coordinates: Any = None,
        *,
        axes: Any = None,
        levels: bool = False,
        title: str | None = None,
    ) -> Any:
        """Draw the clusters with matplotlib, and return the axes.

        If ``probabilities`` were computed, less probable nodes are paler.

        Parameters
        ----------
        coordinates : array of shape (n_nodes, 2), or mapping of names to pairs, optional
            Where the nodes are, such as stations on a map: public knowledge that you add. Without,
            the nodes of a cluster are packed into a disc, linked clusters near each other.
        axes : matplotlib Axes, optional
            Where to draw; by default a new figure.
        levels : bool, default False
            Draw every level of the hierarchy beside the others, and return an array of axes.
        title : str, optional
        """
        from ptclust.drawing.layout import as_places
        from ptclust.drawing.plots import plot_clusters, plot_levels

        places = None if coordinates is None else as_places(coordinates, self.names)
        edges = self.tree.sources, self.tree.targets
        if title is None:
            title = f"{self.summary.heading}; {self.summary.guarantee}"
        if levels:
            named = [
                (f"level {i}: {level.n_clusters:,} clusters", level.labels)
                for i, level in enumerate(self.levels)
            ] or [("one level", self.labels)]
            return plot_levels(named, edges=edges, places=places, title=title)
        return plot_clusters(
            self.labels,
            edges=edges,
            names=self.names,
            places=places,
            axes=axes,
            probabilities=None if self.certainty is None else self.certainty.nodes,
            title=title,
        )

    def recluster(
        self,
        clusterer: str = AUTO,
        *,
        level: int | None = None,
        n_clusters: int | None = None,
        min_cluster_size: int = 1,
        min_probability: float = 0.0,
        shift: float | None = None,
        scale: float | None = None,
    ) -> Release:
        """Return the same published values with clusters by another clusterer, or of another level.

        Parameters
        ----------
        clusterer : str
            A name such as "dbmstclu" or "levels", of all weights also "communities"; or "auto".
        level : int, optional
            Which of ``levels``, from 0, the coarsest.
        n_clusters : int, optional
            In place of ``level``: the one with this number of clusters.
        min_cluster_size : int, default 1
            Clusters of fewer nodes are dropped: their nodes are unclustered, label -1.
        min_probability : float, default 0
            Nodes whose ``probabilities`` are smaller are unclustered, label -1; there are no levels
            to choose from then.
        shift, scale : float, optional
            tau and p of the paper, for ``dbmstclu``.
        """
        return self.clustered(
            ClusteringRequest(
                clusterer=clusterer,
                level=level,
                n_clusters=n_clusters,
                min_cluster_size=min_cluster_size,
                min_probability=min_probability,
                shift=shift,
                scale=scale,
            )
        )

    def clustered(
        self, request: ClusteringRequest, progress: Callable[[str], None] = lambda _: None
    ) -> Release:
        """Return the same published values, clustered as requested; see `recluster`."""
        mechanism = MECHANISMS[self.published.mechanism]
        found = request.cluster(self.published, mechanism, before=self.clustering)
        made = self._clustered(found)
        if (least := request.min_probability) > 0:
            found = without_uncertain(found, made.find_certainty(progress), least)
            made = self._clustered(found)
        return made

    def _clustered(self, found: Clustering) -> Release:
        statement = replace(self.statement, post_processing=found.description)
        return Release(published=self.published, statement=statement, clustering=found)

    def follow(self, earlier: Release) -> Release:
        """Return this release with its clusters numbered as in an earlier one.

        A cluster keeps its number, and its colour, if most of its nodes stay; a new one gets a
        number that none had before. The file names the earlier release by its digest.
        """
        plain = replace(self, follows=None)
        return replace(plain, follows=follow(plain, earlier))

    def to_networkx(self, onto: Any = None) -> Any:
        """Return a networkx graph whose nodes have ``cluster``: a new one, or the one given.

        A new one has the released topology, and ``noisy_weight`` on its edges. Of a graph that is
        given, ``onto``, every node of a name in this release gets its cluster.
        """
        return exports.to_networkx(self, onto)

    def to_igraph(self, onto: Any = None) -> Any:
        """Return an igraph graph whose vertices have ``cluster``: a new one, or the one given.

        Vertices of a graph that is given are known by their attribute ``name``, without such by
        their numbers.
        """
        return exports.to_igraph(self, onto)

    def to_linkage(self) -> Floats:
        """Return the single-linkage merges along the released tree as scipy's linkage matrix.

        Heights are the noisy weights, as distances, shifted and scaled into (0, 1] as for DBMSTClu.
        """
        normal = normalisation(self.tree.distances, self.weight_noise.standard_deviation)
        heights = normal.apply(self.tree.distances)
        return Tree(self.tree.topology, heights, self.tree.edge_ids).to_linkage()

    def compare(self, earlier: Release) -> Comparison:
        """Match the clusters with those of an earlier release, and say what both cost together.

        ``compare(earlier).labels`` are the labels of this release under their earlier numbers.
        """
        if not isinstance(earlier, Release):
            raise InputError(
                f"a release is compared with a Release, not a {type(earlier).__name__}"
            )
        return Comparison(self, earlier)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release as JSON, in the format that ``release_schema`` describes.

        Names that are neither whole numbers nor text are written as text. The file appears complete
        or not at all. FileError if it cannot be written, or exists and ``overwrite`` is not set.
        """
        from ptclust.release.format import write

        file = Path(path)
        paid = "a release has been paid for with privacy budget: "
        with held(file, overwrite, paid), written_at_once(file) as temporary:
            write(self, temporary)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Release:
        """Read a release that ``save`` wrote, and check all of it; FileError says what is wrong.

        What its noise spends under its sensitivity is computed anew, and the statement must not
        claim less. ``statement.taken_on_trust`` lists what no file can show.

        The digest in the file detects accidents and careless edits; it is not a signature and
        proves nothing about the author.
        """
        from ptclust.release.format import decode

        return decode(Path(path))

    def to_dataframe(self, backend: Literal["polars", "pandas"] = "polars") -> Any:
        """Return a polars, or pandas, data frame; see ``labels_frame``."""
        return self.labels_frame(backend=backend)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame of the nodes; see ``labels_frame``."""
        return self.labels_frame()

    def labels_frame(
        self, node: str = "node", *, backend: Literal["polars", "pandas"] = "pandas"
    ) -> Any:
        """Return the cluster of every node, to be merged with your own table.

        If they were computed, the column ``probability`` has the ``probabilities``; if it is known
        what supports the clusters, ``evidence`` says it of every node's.

        Parameters
        ----------
        node : str
            What to call the column of the nodes: as in your table. They have the ids, and the
            types, that they had when the graph was made.
        backend : {"pandas", "polars"}

        Examples
        --------
        >>> import pandas, ptclust
        >>> visits = pandas.DataFrame({"person": [1, 1, 2], "clinic": [30, 10, 10]})
        >>> graph = ptclust.graph_from_visits(
        ...     visits, item="clinic", items=[10, 20, 30], max_items=2
        ... )
        >>> release = ptclust.PTClust(epsilon=1).fit(graph).release_
        >>> visits.merge(release.labels_frame("clinic"), on="clinic").columns.tolist()
        ['person', 'clinic', 'cluster']
        """
        columns = {"cluster": self.labels, **self.further_columns}
        if node in ("evidence", "probability", *columns):
            raise UsageError(f"node= is the column of the nodes; another one is called {node}")
        return data_frame({node: self.names, **columns}, backend)

    @property
    def further_columns(self) -> dict[str, Array]:
        """What tables say of nodes beside the cluster: ``probability``, ``evidence``, if known."""
        columns: dict[str, Array] = {}
        if self.certainty is not None:
            columns["probability"] = self.certainty.nodes.round(3)
        if self.clustering is not None and self.evidence is not None and self.evidence.clusters:
            words = np.array([*self.evidence.clusters, ""])  # the last is of unclustered nodes
            columns["evidence"] = words[self.clustering.labels]
        return columns

    def to_csv(
        self,
        path: str | os.PathLike[str],
        *,
        escape_formulas: bool = True,
        overwrite: bool = False,
    ) -> None:
        """Write ``node``, ``cluster`` and what else `labels_frame` has as CSV, as ``save`` does.

        Spreadsheets carry out text that begins with ``=``, ``+``, ``-``, ``@`` or a control
        character. With ``escape_formulas`` an apostrophe is written before names, if they are text,
        that do; ``ptclust check`` reads them all the same.
        """
        columns = self.names, self.labels, Path(path), self.further_columns
        with held(Path(path), overwrite):
            write_labels(*columns, escape_formulas=escape_formulas)

    def to_parquet(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the columns of ``to_csv`` as Parquet; FileError if it exists."""
        exports.write(exports.parquet(self), Path(path), overwrite=overwrite)

    def to_graphml(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the tree as GraphML; FileError if it exists.

        A node has a ``cluster``, an edge ``weight`` and ``edge_id``, the graph the ``kind`` of its
        weights.
        """
        exports.write(exports.graphml(self), Path(path), overwrite=overwrite)

    def to_gexf(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the tree as GEXF, for Gephi; FileError if it exists.

        A node has its name, ``cluster`` and colour, an edge ``noisy_weight``.
        """
        exports.write(exports.gexf(self), Path(path), overwrite=overwrite)

    def to_geojson(
        self, path: str | os.PathLike[str], coordinates: ArrayLike, *, overwrite: bool = False
    ) -> None:
        """Write the nodes as GeoJSON: points with ``node``, ``cluster`` and ``marker-color``.

        ``coordinates`` are longitudes and latitudes in degrees, in the order of ``names``: public
        knowledge that you add.
        """
        exports.write(exports.geojson(self, coordinates), Path(path), overwrite=overwrite)

    def to_text(self) -> str:
        """Return guarantee, clusters and how sure they are as text; ``statement`` has the rest."""
        return self.summary.to_text()

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.summary.to_html()

    def __repr__(self) -> str:
        statement = self.statement
        private = "" if statement.private else ", NOT PRIVATE"
        evidence = ""
        if self.evidence is not None and not self.evidence.has_weights:
            evidence = f", evidence={self.evidence.partition!r}"
        return (
            f"Release(n_nodes={self.n_nodes}, n_clusters={self.n_clusters}, "
            f"epsilon={statement.epsilon:g}, delta={statement.delta:g}{evidence}{private})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Release, **vars(self)), ()
