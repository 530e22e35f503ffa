"""What every rule and constant of the default clusterer buys, over groups of families.

Releases of development graphs are made once; the clusterer runs on them as it is, and with one rule
taken out or one constant changed. Seeds and graphs are not those of docs/utility.md, but for the
bike rides, contacts and tables, of which other noise is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from unittest.mock import patch

import numpy as np

from experiments import heterogeneous
from experiments.heterogeneous import KnownGraph
from experiments.real import BIKE, CONTACTS, COUNTS, FILES, TABLES, available, real_graph
from experiments.rivals import leiden
from experiments.settings import BENCHMARK, drawn
from ptclust._statistics import agreement
from ptclust.clustering import CLUSTERERS
from ptclust.clustering.communities import _search
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import plan
from ptclust.published import Published

__all__ = ["VARIANTS", "run_ablation"]

_HERE = "ptclust.clustering.communities."


@dataclass(frozen=True)
class _Case:
    group: str
    name: str
    published: Published
    truth: np.ndarray


def _graphs() -> Iterator[tuple[str, str, KnownGraph, tuple[float, ...]]]:
    for name in FILES:
        if available(name):
            yield "real", name, real_graph(name), (0.3, 1.0, 10.0)
    for name in (*BIKE, *CONTACTS, *COUNTS, *TABLES):
        group = "bikes" if name in BIKE else "tables" if name in TABLES else "people"
        if available(name):
            yield group, name, real_graph(name), (1.0, 10.0)
    for mixing in ((0.4, 0.4), (0.8, 0.1), (0.8, 0.4)):
        known = heterogeneous.weighted_lfr(1000, mu_t=mixing[0], mu_w=mixing[1], seed=77)
        yield "lfr", str(mixing), known, (0.1,)
    for setting in BENCHMARK:
        if setting.name in ("linf-1000", "l1-100"):
            for shape in setting.shapes:
                planted = drawn(setting, shape, 77)
                known = KnownGraph(planted.graph, planted.truth, setting.sensitivity)
                yield "planted", f"{shape}, {setting.name}", known, (1.0,)
        if setting.name == "linf-10000":
            for shape in ("circles", "blobs-3", "blobs-30", "multiscale"):
                planted = drawn(setting, shape, 77)
                known = KnownGraph(planted.graph, planted.truth, setting.sensitivity)
                yield "planted-10000", shape, known, (1.2,)
    for topology, n_nodes in (("complete", 150), ("preferential", 400), ("geometric", 1000)):
        for seed in (77, 78):
            null = heterogeneous.null_graph(topology, n_nodes, seed=seed)  # type: ignore[arg-type]
            yield "null", f"{topology}-{seed}", null, (0.3,)


def _cases() -> Iterator[_Case]:
    for group, name, known, epsilons in _graphs():
        for epsilon in epsilons:
            made = plan(
                known.graph.topology,
                epsilon=epsilon,
                delta=1e-6,
                sensitivity=known.sensitivity,
            )
            request = ReleaseRequest.of(made.request, random_state=77)
            release = publish(known.graph, request, plan=made)
            yield _Case(group, f"{name} at {epsilon:g}", release.published, known.truth)


def _constants(**values: object) -> dict[str, object]:
    """Return what is patched: names are modules and constants, joined by two underscores."""
    return {_HERE + name.replace("__", ".", 1): value for name, value in values.items()}


def _no_pairs(*_: object) -> float:
    return -np.inf


def _not_settled(*_: object) -> None:
    return None


def _without(source: str) -> property:
    return property(
        lambda view: tuple(
            each
            for each in _search.SOURCES
            if each != source and (each != "topology" or not view.edges.is_complete)
        )
    )


VARIANTS: dict[str, dict[str, object]] = {
    "as it is": {},
    "no compressed weights": {_HERE + "_search.View.sources": _without("log weights")},
    "no plain weights": {_HERE + "_search.View.sources": _without("weights")},
    "resolution 1 alone": _constants(_trial__RESOLUTIONS=(1.0, 1.0, 1.0)),
    "resolutions 0.5, 1, 2": _constants(_trial__RESOLUTIONS=(1.0, 2.0, 0.5)),
    "no descriptions": _constants(_trial__NAMINGS=()),
    "names count whole": _constants(_trial__NAMINGS=(1.0,)),
    "names count half": _constants(_trial__NAMINGS=(0.5,)),
    "descriptions from scales 1, 5, 20": _constants(_search___SCALES=(1.0, 5.0, 20.0)),
    "the shortest alone is changed": _constants(_search___BEST=1),
    "no joins by pairs": {_HERE + "_search.join_blocks": lambda labels, *_: labels},
    "no moves by ratios": {_HERE + "_search.View.moved": lambda _, labels, *__, **___: labels},
    "one group": _constants(_model__GROUPS=(1,)),
    "groups up to 64": _constants(_model__GROUPS=(1, 4, 16, 64)),
    "no pairs of clusters": {_HERE + "_trial.nats_of_pairs": _no_pairs},
    "pairs smoothed by 50": _constants(_blocks___SMOOTHING=50.0),
    "at most 128 pieces": _constants(_search__MOST=128),
    "ratios smoothed by 1": _constants(_search___SMOOTHING=1.0),
    "one round of learning": _constants(_search___ROUNDS=1),
    "five parts": _constants(_trial___FEW=0),
    "naming costs nothing": _constants(_trial___NAMING=0.0),
    "naming costs 0.15": _constants(_trial___NAMING=0.15),
    "any share of standard errors": _constants(_trial___AGREED=0.0),
    "2 standard errors": _constants(_trial__CLEAR=2.0),
    "4 standard errors": _constants(_trial__CLEAR=4.0),
    "always all is tried": {_HERE + "_trial.Trial.settled": _not_settled},
    "one start with all edges": {
        _HERE + "_search.Recipe.with_all_edges": lambda recipe, view, _: recipe.search(view)
    },
    "background 0.2": _constants(_model___BACKGROUND=0.2),
    "unit from 1 deviation on": _constants(_model___ABOVE_NOISE=1.0),
}
"""What is changed, by a name for it."""


@cache
def _known_cases() -> list[_Case]:
    return list(_cases())


def _scores(variant: str) -> dict[str, list[float]]:
    """Return the ARI of every release by group; of null graphs 1 for what weights do not claim."""
    clusterer = CLUSTERERS["communities"]
    scores: dict[str, list[float]] = {}
    with ExitStack() as stack:
        for name, value in VARIANTS.get(variant, {}).items():
            stack.enter_context(patch(name, value))
        for case in _known_cases():
            if variant == "Leiden on the release":
                weights = case.published.noisy_weights
                if case.published.kind == "distance":
                    weights = 1.0 - weights
                labels = leiden(case.published.topology, np.maximum(weights, 0.0))
                score = agreement(case.truth, labels)
            else:
                found = clusterer.cluster(case.published)
                score = agreement(case.truth, found.labels)
                if case.group == "null":
                    score = float(found.evidence is None or not found.evidence.has_weights)
            scores.setdefault(case.group, []).append(score)
    return scores


def run_ablation(words: Sequence[str] = (), n_processes: int = 2) -> Iterator[str]:
    """Yield the lines of a table of mean scores, in Markdown, as they are found."""
    names = ["Leiden on the release"]
    names += [name for name in VARIANTS if not words or any(word in name for word in words)]
    with ProcessPoolExecutor(n_processes) as pool:
        for name, scores in zip(names, pool.map(_scores, names), strict=False):
            if name == names[0]:
                yield f"| | {' | '.join(scores)} | mean |"
                yield "|---" * (len(scores) + 2) + "|"
            means = [float(np.mean(each)) for each in scores.values()]
            cells = " | ".join(f"{mean:.2f}" for mean in (*means, float(np.mean(means))))
            yield f"| {name} | {cells} |"
