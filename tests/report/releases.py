"""Releases to look at: planted clusters, levels, names that would like to be markup."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ptclust import Graph, PTClust, Release, Sensitivity
from ptclust.clustering import Clustering, Evidence, Level

HOSTILE = (
    "<script>document.title='owned'</script>",
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "'\"><svg onload=document.title='owned'>",
    "&lt;b&gt; {{ 7*7 }} {% raw %}",
    "]]><!-- --!> </table></details>",
    "javascript:document.title='owned'",
    "\u202eright to left \x1b[31m\u2028\u0000 nul",
    "x" * 400,
    "=HYPERLINK(\"http://example.com\")",
)  # fmt: skip


def planted(sizes: list[int], names: Any = None, *, tree: bool = True, seed: int = 0) -> Release:
    """Return a release of as many clusters, found for certain: noise is tiny."""
    random = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    n = len(truth)
    firsts = np.cumsum(sizes) - sizes
    b = np.arange(1, n)
    first = firsts[truth[b]]
    a = np.where(b > first, random.integers(first, np.maximum(b, first + 1)), b - 1)
    weights = np.where(truth[a] == truth[b], 0.2, 0.9) + 0.01 * random.random(n - 1)
    graph = Graph(a, b, weights, n_nodes=n, names=names)
    model = PTClust(
        epsilon=1.0,
        sensitivity=Sensitivity(l1=1e-7),
        mechanism="kruskal" if tree else "laplace",
        privacy_unit="one person",
    )
    release = model.fit(graph).release_
    # Names order the nodes anew: the truth goes with them.
    position = {name: i for i, name in enumerate(names)} if names is not None else None
    mine = truth if position is None else truth[[position[name] for name in release.names.tolist()]]
    return with_labels(release, mine)


def numbered(labels: Any) -> np.ndarray:
    """Number labels by first appearance."""
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number.reshape(-1)]


def with_labels(release: Release, labels: Any, levels: tuple[Any, ...] = ()) -> Release:
    found = Clustering(
        numbered(labels),
        dbcvi=0.0,
        shift=1.0,
        scale=4.0,
        clusterer="levels",
        levels=tuple(Level(numbered(each), 1.5 * i) for i, each in enumerate(levels)),
    )
    return Release(published=release.published, statement=release.statement, clustering=found)


def with_levels() -> Release:
    release = planted([20, 20, 20, 20], names=[f"node {i:03}" for i in range(80)])
    fine, coarse = release.labels, release.labels // 2
    made = with_labels(release, fine, (coarse, fine, np.arange(80)))
    assert made.clustering is not None
    evidence = Evidence("both", ("both", "weights", "topology", "none"))
    return replace(made, clustering=replace(made.clustering, evidence=evidence))
