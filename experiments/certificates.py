"""How often recovery is certified, and how often it happens, on planted graphs and random trees."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np

from experiments._summary import as_csv, save_report, wrapped
from experiments.planted import Family, planted_graph
from ptclust._files import make_directory
from ptclust._tables import aligned
from ptclust.datasets.planted import ACROSS, PAPER, WITHIN
from ptclust.graph import Topology
from ptclust.theory import certify_recovery, recovered
from ptclust.trees import Tree, minimum_spanning_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["CertificatesReport", "Share", "random_tree", "run_certificates"]

_DENSITIES: dict[str, tuple[int | None, int | None]] = {  # neighbours, edges across
    "sparse": (2, 40),
    "default": (None, None),
    "dense": (16, None),
}
_N_CLUSTERS = {100: (None, 10), 1000: (None, 10, 30)}
_SIZES = ((3, 5), (6, 10), (20, 40))
_COUNTS = (2, 3, 10, 30)

_Labelled = tuple[Tree, "NDArray[np.int64]"]


@dataclass(frozen=True)
class Share:
    """What became of some trees of one kind."""

    part: str
    """``planted`` or ``trees``."""
    case: str
    n_nodes: int | None
    n_clusters: int
    density: str | None
    trees: int
    certified: int
    recovered: int
    reason: str | None
    """The condition that most often fails first."""


def run_certificates(
    *, quick: bool = False, seed: int = 0, progress: Callable[[str], None] = lambda _: None
) -> list[Share]:
    """Certify and cluster minimum spanning trees of planted graphs, and random trees.

    Parameters
    ----------
    quick : bool, default False
        A tenth of the trees.
    seed : int, default 0
    progress : callable
        Progress callback.
    """
    return [*_planted_shares(quick, seed, progress), *_tree_shares(quick, seed, progress)]


def random_tree(
    sizes: tuple[int, int], n_clusters: int, random: np.random.Generator
) -> tuple[Tree, NDArray[np.int64]]:
    """Return randomly joined random trees, one a cluster, with the weights of planted graphs.

    Parameters
    ----------
    sizes : tuple of int
        The least and the largest number of nodes of a cluster.
    n_clusters : int
    random : numpy.random.Generator

    Examples
    --------
    >>> tree, truth = random_tree((3, 5), 4, np.random.default_rng(0))
    >>> tree.n_nodes == len(truth), truth.max().item()
    (True, 3)
    """
    size = random.integers(sizes[0], sizes[1] + 1, size=n_clusters)
    first = np.cumsum(size) - size
    truth = np.repeat(np.arange(n_clusters), size)
    local = np.arange(len(truth)) - first[truth]
    inner = np.flatnonzero(local > 0)
    outer = np.arange(1, n_clusters)
    parents = first[truth[inner]] + random.integers(0, local[inner])
    earlier = random.integers(0, first[outer])
    sources = np.concatenate([inner, first[outer] + random.integers(0, size[outer])])
    targets = np.concatenate([parents, earlier])
    within = random.uniform(*WITHIN, len(inner))
    across = random.uniform(*ACROSS, len(outer))
    order = random.permutation(len(sources))
    topology = Topology(sources[order], targets[order], n_nodes=len(truth))
    return Tree(topology, np.concatenate([within, across])[order]), truth


def _planted_shares(quick: bool, seed: int, progress: Callable[[str], None]) -> Iterator[Share]:
    for n_nodes, counts in _N_CLUSTERS.items():
        repetitions = (20 if n_nodes == 100 else 10) // (10 if quick else 1)
        for family in get_args(Family):
            progress(f"{family}, {n_nodes} nodes")
            for n_clusters in counts:
                if n_clusters is not None and family in PAPER:
                    continue
                for density, degrees in _DENSITIES.items():
                    seeds = [seed * repetitions + i for i in range(repetitions)]
                    trees = [_planted(family, n_nodes, n_clusters, degrees, s) for s in seeds]
                    yield _share("planted", family, trees, n_nodes=n_nodes, density=density)


def _planted(
    family: Family,
    n_nodes: int,
    n_clusters: int | None,
    degrees: tuple[int | None, int | None],
    seed: int,
) -> _Labelled:
    neighbours, cross_edges = degrees
    planted = planted_graph(
        family,
        n_nodes,
        n_clusters=n_clusters,
        neighbours=neighbours,
        cross_edges=cross_edges,
        seed=seed,
    )
    return minimum_spanning_tree(planted.graph), planted.truth


def _tree_shares(quick: bool, seed: int, progress: Callable[[str], None]) -> Iterator[Share]:
    for sizes in _SIZES:
        for n_clusters in _COUNTS:
            progress(f"{n_clusters} clusters of {sizes[0]} to {sizes[1]} nodes")
            random = np.random.default_rng([seed, n_clusters, *sizes])
            trees = [random_tree(sizes, n_clusters, random) for _ in range(50 if quick else 500)]
            yield _share("trees", f"{sizes[0]} to {sizes[1]}", trees)


def _share(
    part: str,
    case: str,
    trees: list[_Labelled],
    *,
    n_nodes: int | None = None,
    density: str | None = None,
) -> Share:
    certificates = [certify_recovery(tree, truth) for tree, truth in trees]
    first = Counter(made.failed[0].name for made in certificates if not made.holds)
    return Share(
        part=part,
        case=case,
        n_nodes=n_nodes,
        n_clusters=certificates[0].n_clusters,
        density=density,
        trees=len(trees),
        certified=sum(made.holds for made in certificates),
        recovered=sum(recovered(tree, truth).holds for tree, truth in trees),
        reason=first.most_common(1)[0][0] if first else None,
    )


class CertificatesReport:
    """What ``run_certificates`` found, as a table to read and as JSON.

    Parameters
    ----------
    shares : list of Share
    command : str
        What to type to get the same again.
    """

    def __init__(self, shares: list[Share], command: str) -> None:
        self._shares, self._command = shares, command

    def to_json(self) -> str:
        """Return all shares as JSON."""
        return json.dumps({"shares": [asdict(share) for share in self._shares]}, indent=2)

    def to_markdown(self) -> str:
        """Return how many trees are certified and recovered; every case is in the CSV file."""
        low, high = WITHIN
        rows = [["trees", "number", "certified", "recovered", "recovered, not certified"]]
        for title, group in self._groups().items():
            trees, certified, recovered = (
                sum(getattr(share, name) for share in group)
                for name in ("trees", "certified", "recovered")
            )
            shares = (f"{found / trees:.1%}" for found in (certified, recovered))
            rows.append([title, f"{trees:,}", *shares, f"{recovered - certified:,}"])
        return "\n".join(
            [
                *wrapped(
                    f"Made by `{self._command}`. *Certified* is the share of trees on which",
                    "`certify_recovery` holds, *recovered* the share on which DBMSTClu returns",
                    f"exactly the planted clusters. Weights are {low:g} to {high:g} within and",
                    f"{ACROSS[0]:g} to {ACROSS[1]:g} across (`multiscale` multiplies them), so",
                    "that all clusters are strongly homogeneous. Every case is in",
                    "[certificates.csv](certificates.csv).",
                ),
                "",
                *aligned(rows),
            ]
        )

    def _groups(self) -> dict[str, list[Share]]:
        groups: dict[str, list[Share]] = {}
        for share in self._shares:
            title = f"random, clusters of {share.case}"
            if share.part == "planted":
                family = share.case if share.case == "multiscale" else "other families"
                title = f"minimum spanning trees, {family}"
            groups.setdefault(title, []).append(share)
        return groups

    def to_csv(self) -> str:
        """Return one row per case."""
        names = "part", "case", "nodes", "clusters", "density", "trees"
        rows = [[*names, "certified", "recovered", "fails"]]
        for share in self._shares:
            nodes = "" if share.n_nodes is None else str(share.n_nodes)
            case = [share.part, share.case, nodes, str(share.n_clusters), share.density or ""]
            rows.append([*case, str(share.trees), *_percent(share), share.reason or ""])
        return as_csv(rows)

    def save(self, directory: Path) -> None:
        """Write ``certificates.md``, ``.csv`` and ``.json``."""
        make_directory(directory)
        save_report(self, directory, "certificates")


def _percent(share: Share) -> list[str]:
    return [f"{found / share.trees:.1%}" for found in (share.certified, share.recovered)]
