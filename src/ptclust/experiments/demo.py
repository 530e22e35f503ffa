"""The built-in example: two moons, their clusters, a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptclust.clustering import dbmstclu
from ptclust.errors import FileError
from ptclust.experiments.points import moons
from ptclust.report import draw_points
from ptclust.trees import euclidean_spanning_tree

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["run_demo"]


def run_demo(directory: Path, seed: int) -> str:
    """Cluster two moons, leave ``moons.png`` in ``directory`` and return what to tell about it."""
    from sklearn.metrics import adjusted_rand_score

    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"the directory {directory} cannot be made: {error.strerror}") from None
    points, truth = moons(seed=seed)
    tree = euclidean_spanning_tree(points)
    result = dbmstclu(tree)
    picture = directory / "moons.png"
    title = f"DBMSTClu on two moons: {result.n_clusters} clusters"
    draw_points(points, result.labels, tree=tree, path=picture, title=title)
    sizes = ", ".join(str(size) for size in np.bincount(result.labels).tolist())
    return f"""\
Two moons of {len(points)} points, distances divided by the largest (make_moons, noise 0.09, seed {seed})
  minimum spanning tree   {tree.n_edges} of {len(points) * (len(points) - 1) // 2} edges
  DBMSTClu                {len(result.cuts)} cut(s), {result.n_clusters} clusters of {sizes} points
  DBCVI                   {result.dbcvi:.4f}
  agreement with truth    ARI {adjusted_rand_score(truth, result.labels):.2f}
  picture                 {picture}
Not private: this run shows DBMSTClu on open data."""
