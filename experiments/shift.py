"""Does the rule for the shift tau matter? Several rules on the same releases.

Every rule is post-processing: it sees the released weights and the public standard deviation of
their noise.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from experiments.methods import release_of
from experiments.utility import SETTINGS, Case, Plans, agreement
from ptclust._statistics import seed_of
from ptclust.clustering import dbmstclu
from ptclust.datasets import PAPER
from ptclust.errors import PrivacyWarning
from ptclust.trees import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from experiments.utility import Setting

__all__ = ["RULES", "compare_shifts"]

Rule = Callable[[NDArray[np.float64], float], NDArray[np.float64]]

_EPSILONS: dict[str, dict[str, tuple[float, ...]]] = {
    "linf-100": {
        "published": (3.0, 5.0, 7.0),
        "sound": (2.0, 3.0, 5.0),
        "pamst": (0.3, 0.5, 0.7),
        "kruskal": (0.2, 0.3, 0.5),
        "perturbation": (0.5, 0.7, 1.0),
    },
    "linf-1000": {
        "published": (30.0, 50.0, 70.0),
        "sound": (15.0, 20.0, 30.0),
        "pamst": (0.7, 1.0, 1.5),
        "kruskal": (0.7, 1.0, 1.5),
        "perturbation": (1.0, 1.2, 1.5),
    },
    "l1-100": {"sound": (30.0, 50.0), "kruskal": (30.0, 50.0), "perturbation": (0.7, 1.0, 1.5)},
}


def _least(factor: float) -> Rule:
    """Shift only if need be, so that the least weight ends at ``factor`` times the noise."""
    return lambda weights, noise: weights + max(0.0, factor * noise - weights.min())


def _always(factor: float) -> Rule:
    """Shift up or down, so that the smallest weight ends exactly there."""
    return lambda weights, noise: weights - weights.min() + factor * noise


def _clip(factor: float) -> Rule:
    """Raise all smaller weights to that value, and shift none."""
    return lambda weights, noise: np.maximum(weights, factor * noise)


DEFAULT = "shift to 1 noise"
RULES: dict[str, Rule] = {
    **{f"shift to {f:g} noise": _least(f) for f in (0.1, 0.5, 1.0, 2.0, 3.0, 10.0, 100.0)},
    **{f"always shift to {f:g} noise": _always(f) for f in (0.5, 1.0, 2.0)},
    **{f"clip at {f:g} noise": _clip(f) for f in (0.25, 0.5, 1.0, 2.0)},
}


def compare_shifts(
    repetitions: int, *, seed: int = 0, progress: Callable[[str], None] = lambda _: None
) -> str:
    """Return a markdown table: mean ARI of every rule in every setting, and against the default.

    Rules are compared on the same releases; differences have 95 % intervals.
    """
    found: dict[str, list[dict[str, float]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        for setting in SETTINGS:
            progress(f"Shifts: {setting.title}")
            found[setting.name] = list(_outcomes(setting, repetitions, seed))
    lines = [
        f"| rule | {' | '.join(found)} | difference to the default | releases with another ARI |",
        f"|{'---|' * (len(found) + 3)}",
    ]
    everything = [outcome for outcomes in found.values() for outcome in outcomes]
    for rule in RULES:
        means = [np.mean([one[rule] for one in outcomes]) for outcomes in found.values()]
        change = np.array([one[rule] - one[DEFAULT] for one in everything])
        margin = 1.96 * change.std() / math.sqrt(len(change))
        cells = " | ".join(f"{mean:.3f}" for mean in means)
        other = np.count_nonzero(np.abs(change) > 1e-12)
        lines.append(
            f"| {rule} | {cells} | {change.mean():+.3f} ± {margin:.3f} | {other} of {len(change)} |"
        )
    return "\n".join(lines)


def _outcomes(setting: Setting, repetitions: int, seed: int) -> Iterator[dict[str, float]]:
    """Yield the ARI of every rule on one release after the other."""
    plans = Plans(setting)
    for family in PAPER:
        for repetition in range(repetitions):
            planted = Case(setting, family, repetition, seed).planted()
            for method in setting.methods:
                for epsilon in _EPSILONS[setting.name].get(method.name, ()):
                    planned = plans.get(planted.graph, method, epsilon)
                    state = seed_of(
                        seed, "shift", setting.name, family, method.name, epsilon, repetition
                    )
                    tree = release_of(planted.graph, planned, random_state=state).tree
                    noise = planned.chosen.weights.standard_deviation
                    yield {
                        name: agreement(planted.truth, _clustered(tree, rule(tree.weights, noise)))
                        for name, rule in RULES.items()
                    }


def _clustered(tree: Tree, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    scaled = Tree(tree.topology, weights / weights.max(), tree.edge_ids)
    return dbmstclu(scaled).labels
