"""The built-in example: a graph over two moons, its clusters published, pictures, the statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import adjusted_rand_score

from ptclust._files import make_directory
from ptclust._types import Ints
from ptclust.clustering import dbmstclu
from ptclust.datasets import planted_graph
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import plan
from ptclust.privacy import Sensitivity
from ptclust.report import draw_points
from ptclust.trees import minimum_spanning_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


__all__ = ["run_demo"]

_SENSITIVITY = Sensitivity(linf=1e-4)


def run_demo(
    directory: Path,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    seed: int = 8,
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """Publish the clusters of a planted graph; write release and pictures, return the text to show.

    ``seed`` fixes the example; the noise is fresh and secure every time. Files have the id of the
    release in their names, so that every run adds its own and replaces none.
    """
    make_directory(directory)
    progress("Making a graph over two moons")
    planted = planted_graph("moons", 200, seed=seed)
    points = np.asarray(planted.points)
    tree = minimum_spanning_tree(planted.graph)
    exact = dbmstclu(tree)
    planned = plan(planted.graph.topology, epsilon=epsilon, delta=delta, sensitivity=_SENSITIVITY)
    request = ReleaseRequest(plan=planned.request, privacy_unit="one person of the example")
    release = publish(planted.graph, request, plan=planned, progress=progress)
    run = release.statement.id[:8]
    target, picture, private_picture = (
        directory / name
        for name in (f"release-{run}.json", f"moons-{run}.png", f"moons-private-{run}.png")
    )
    release.save(target)
    draw_points(
        points,
        exact.labels,
        tree=tree,
        path=picture,
        title=f"DBMSTClu, not private: {exact.n_clusters} clusters",
    )
    draw_points(
        points,
        release.labels,
        tree=release.tree,
        path=private_picture,
        title=f"PTClust, epsilon = {epsilon:g}, delta = {delta:g}: {release.n_clusters} clusters",
    )
    by_paper = release.recluster("dbmstclu")

    def agreement(labels: Ints) -> str:
        return f"{adjusted_rand_score(planted.truth, labels):.2f} against the truth"

    return f"""\
THE GRAPH, made up for this demo: two moons of {planted.graph.n_nodes} points, weights from people
{planned.to_text()}

CLUSTERS
  DBMSTClu, not private    {exact.n_clusters} clusters, ARI {agreement(exact.labels)}
  PTClust, published       {release.n_clusters} clusters, ARI {agreement(release.labels)}
  the same by DBMSTClu     {by_paper.n_clusters} clusters, ARI {agreement(by_paper.labels)}
  pictures                 {picture}, {private_picture}
  release                  {target}

{release.statement.to_text()}"""
