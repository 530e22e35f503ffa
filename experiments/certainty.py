"""Whether probabilities of a release mean what they say: reliability on graphs of known groups.

A node is right if it is with the majority of its true group; a cluster comes again if a second
release of the same graph has one that shares more than half of the nodes of both. Releases of one
cluster claim nothing and are counted apart. Every release counts the same, whatever its size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments import heterogeneous
from experiments._code import code_digest
from experiments._records import Records
from experiments._summary import wrapped
from experiments.heterogeneous import KnownGraph
from experiments.real import BIKE, CONTACTS, COUNTS, FILES, TABLES, available, real_graph
from experiments.settings import BENCHMARK, DELTA, drawn
from ptclust._files import written_at_once
from ptclust._tables import aligned
from ptclust.clustering.certainty import SURE, Certainty
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import plan

if TYPE_CHECKING:
    from pathlib import Path

    from ptclust._types import Bools, Floats, Ints
    from ptclust.release import Release

__all__ = ["CertaintyReport", "run_certainty"]

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
_BINS = 10
_GROUPS = ("development", "reported", "generated")
#: What was asked for: of those given at least SURE so many are right, and the mean error of a bin.
_RIGHT, _ERROR = 0.85, 0.1
_FAMILIES = ("circles", "blobs-10", "chains", "multiscale", "blocks")


def _graphs(seed: int) -> Iterator[tuple[str, str, Callable[[], KnownGraph]]]:
    """Yield group, name and maker of every graph that is there."""
    for name in ("bike", *FILES, *CONTACTS, *COUNTS, *TABLES):
        if available(name):
            group = "development" if name in FILES or name in BIKE else "reported"
            yield group, name, lambda name=name: real_graph(name)  # type: ignore[misc]
    for mixing in ((0.4, 0.4), (0.8, 0.1), (0.8, 0.4)):
        yield (
            "generated",
            f"lfr {mixing[0]:g} {mixing[1]:g}",
            lambda mixing=mixing: heterogeneous.weighted_lfr(  # type: ignore[misc]
                1000, mu_t=mixing[0], mu_w=mixing[1], seed=seed
            ),
        )
    setting = next(each for each in BENCHMARK if each.name == "linf-1000")
    for shape in setting.shapes:
        if shape in _FAMILIES:

            def planted(shape: str = shape) -> KnownGraph:
                made = drawn(setting, shape, seed)
                return KnownGraph(made.graph, made.truth, setting.sensitivity)

            yield "generated", shape, planted


def right_nodes(truth: Ints, labels: Ints) -> Bools:
    """Return whether each node is in the cluster that has most of its true group."""
    groups = np.unique(truth, return_inverse=True)[1]
    counts = np.zeros((int(groups.max()) + 1, int(labels.max()) + 2))
    np.add.at(counts, (groups, labels), 1)  # the last column is for unclustered nodes
    found: Bools = (labels == counts[:, :-1].argmax(axis=1)[groups]) & (labels >= 0)
    return found


def _released(known: KnownGraph, epsilon: float, seed: int) -> Release:
    made = plan(known.graph.topology, epsilon=epsilon, delta=DELTA, sensitivity=known.sensitivity)
    return publish(known.graph, ReleaseRequest.of(made.request, random_state=seed), plan=made)


def _compared(
    known: KnownGraph, first: Callable[[], Release], second: Callable[[], Release]
) -> dict[str, Any]:
    release = first()
    labels = release.labels
    comes = Certainty.of(labels, [second().labels]).clusters > 0
    nodes, clusters = release.probabilities, release.cluster_probabilities
    return {
        "n_clusters": release.n_clusters,
        "evidence": None if release.evidence is None else release.evidence.partition,
        "nodes": _binned(nodes, right_nodes(known.truth, labels)),
        "clusters": _binned(clusters, comes),
    }


def _binned(given: Floats, right: Bools) -> list[list[float]]:
    """Return for every bin of probability the share of all, their mean, and the share of right."""
    bins = np.minimum((given * _BINS + 1e-9).astype(np.int64), _BINS - 1)
    count = np.bincount(bins, minlength=_BINS)
    sums = [np.bincount(bins, each, minlength=_BINS) for each in (given, right)]
    return [(each / max(len(given), 1)).tolist() for each in (count, *sums)]


def run_certainty(
    output: Path,
    *,
    only: Sequence[str] | None,
    repetitions: int,
    seed: int,
    resume: bool,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Release every graph at every epsilon, and compare probabilities with what is true."""
    key = ("group", "name", "epsilon", "repetition")
    settings = {"seed": seed, "code": code_digest()}
    rows: list[dict[str, Any]] = []
    with Records.of(output, "certainty", key, resume=resume, **settings) as records:
        for group, name, make in _graphs(seed):
            if only and name not in only:
                continue
            known = make()
            for epsilon in EPSILONS:
                for i in range(repetitions):
                    progress(f"{name}, epsilon = {epsilon:g}, release {i + 1} of {repetitions}")
                    case = group, name, epsilon, i
                    first = partial(_released, known, epsilon, seed + i)
                    second = partial(_released, known, epsilon, seed + i + 1)
                    rows.append(records.made(case, partial(_compared, known, first, second)))
    return rows


class CertaintyReport:
    """What ``run_certainty`` found, as a page to read, a picture and JSON."""

    def __init__(self, rows: list[dict[str, Any]], command: str) -> None:
        self._command = command
        self._one = [row for row in rows if row["n_clusters"] < 2]
        self._rows = [row for row in rows if row["n_clusters"] >= 2]

    def _sums(self, what: str, group: str | None = None) -> Floats:
        """Return share, mean probability and share of right, of all and by bin."""
        rows = [np.array(row[what]) for row in self._rows if group in (None, row["group"])]
        return np.mean(rows, axis=0) if rows else np.zeros((3, _BINS))

    def error(self, what: str, group: str | None = None) -> float:
        """Return the expected calibration error of nodes or clusters."""
        _, given, right = self._sums(what, group)
        return float(np.abs(given - right).sum())

    def sure(self, what: str, group: str | None = None) -> tuple[float, float]:
        """Return the share that is given at least SURE, and how many of these are right."""
        share, _, right = self._sums(what, group)[:, round(SURE * _BINS) :].sum(axis=1)
        return float(share), float(right / share) if share else float("nan")

    @property
    def kept(self) -> bool:
        """Whether what was asked for holds."""
        return all(
            self.error(what) <= _ERROR and self.sure(what)[1] >= _RIGHT
            for what in ("nodes", "clusters")
        )

    def _table(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        for what in ("nodes", "clusters"):
            for group in (None, *_GROUPS):
                count = sum(group in (None, row["group"]) for row in self._rows)
                if count:
                    share, right = self.sure(what, group)
                    error = self.error(what, group)
                    cells = f"{count:,}", f"{share:.2f}", f"{right:.3f}", f"{error:.3f}"
                    rows.append((what, group or "all", *cells))
        head = "of", "graphs", "releases", f"given at least {SURE:g}", "of these right", "error"
        return [head, *rows]

    def _by_epsilon(self) -> list[tuple[str, ...]]:
        head = ("epsilon", "releases", "one cluster", "nodes given at least 0.9", "right", "error")
        rows: list[tuple[str, ...]] = [head]
        for epsilon in EPSILONS:
            part = CertaintyReport(
                [row for row in (*self._rows, *self._one) if row["epsilon"] == epsilon], ""
            )
            if part._rows:
                share, right = part.sure("nodes")
                counts = f"{len(part._rows):,}", f"{len(part._one):,}"
                error = part.error("nodes")
                rows.append(
                    (f"{epsilon:g}", *counts, f"{share:.2f}", f"{right:.3f}", f"{error:.3f}")
                )
        return rows

    def to_json(self) -> str:
        """Return all rows as JSON."""
        return json.dumps({"command": self._command, "rows": [*self._rows, *self._one]})

    def to_markdown(self) -> str:
        """Return the tables."""
        return "\n".join(
            [
                *wrapped(
                    f"Made by `{self._command}`: {len(self._rows):,} releases;",
                    f"{len(self._one):,} more show one cluster and claim nothing. Asked for:",
                    f"of those given at least {SURE:g}, at least {_RIGHT:.0%} right, and an",
                    f"expected calibration error of at most {_ERROR:g}:",
                    f"{'kept' if self.kept else 'NOT kept'}.",
                ),
                "",
                *aligned(self._table()),
                "",
                *aligned(self._by_epsilon()),
                "",
            ]
        )

    def save(self, output: Path) -> None:
        """Write the tables, all rows and the reliability diagram."""
        for name, text in (
            ("certainty.md", self.to_markdown()),
            ("certainty.json", self.to_json()),
        ):
            with written_at_once(output / name) as temporary:
                temporary.write_text(text, encoding="utf-8")
        self.draw(output / "certainty.png")

    def draw(self, path: Path) -> None:
        """Draw what was given against what is right, for nodes and clusters."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8.0, 4.0), layout="constrained")
        words = {"nodes": "with most of its true group", "clusters": "in a second release, too"}
        for axes, (what, right_words) in zip(figure.subplots(1, 2), words.items(), strict=True):
            axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=0.8)
            for group in (None, *_GROUPS):
                share, given, right = self._sums(what, group)
                seen = share > 0.002
                style: dict[str, Any] = {"linewidth": 1.0, "alpha": 0.7}
                if group is None:
                    style = {"linewidth": 2.2, "color": "black", "marker": "o", "markersize": 4}
                axes.plot(
                    given[seen] / share[seen], right[seen] / share[seen],
                    label=group or "all", **style,
                )  # fmt: skip
            axes.set(xlabel=f"probability of {what}", ylabel=f"share {right_words}")
            axes.set(xlim=(0, 1.02), ylim=(0, 1.02), aspect="equal")
            axes.set_title(f"{what}: error {self.error(what):.3f}", fontsize=10)
        figure.axes[0].legend(fontsize=8, frameon=False)
        figure.savefig(path, dpi=110)
