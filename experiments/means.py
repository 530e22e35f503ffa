"""Means over the repetitions of ``run_utility``, and the epsilon that a method needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._summary import margin_of
from experiments.settings import CONTROLLED
from experiments.utility import equal_name

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["GOAL", "Mean", "Means", "Needed"]

GOAL = 0.9


@dataclass(frozen=True)
class Mean:
    """Mean agreement of one method at one epsilon."""

    setting: str
    family: str
    method: str
    epsilon: float | None
    true_epsilon: float | None
    """What was spent in truth: more than epsilon, where the paper's scales were used."""
    repetitions: int
    ari: float
    ari_margin: float | None
    """Half the width of the 95 % t interval of the mean; None for a single repetition."""
    nmi: float
    nmi_margin: float | None
    n_clusters: float
    cpu: float | None = None
    """Of clustering, where it was measured."""
    by_weights: float | None = None
    """In what share of the runs weights support the clusters, if the clusterer says so."""


@dataclass(frozen=True)
class Needed:
    """The epsilon from which on the mean ARI reaches the goal."""

    epsilon: float
    true_epsilon: float
    at_most: bool
    """Whether the smallest epsilon of the grid was enough, so that less may be."""


class Means:
    """The means of all runs, by setting, family, method and epsilon."""

    def __init__(self, records: Sequence[dict[str, Any]]) -> None:
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for record in records:
            key = tuple(record[name] for name in ("setting", "family", "method", "epsilon"))
            groups.setdefault(key, []).append(record)
        self._means = {key: _mean(key, group) for key, group in groups.items()}
        self._there = {key[:2] for key in groups}
        self._epsilons: dict[tuple[str, str, str], list[float]] = {}
        for setting, family, method, epsilon in groups:
            if epsilon is not None:
                self._epsilons.setdefault((setting, family, method), []).append(epsilon)

    def __iter__(self) -> Any:
        return iter(self._means.values())

    def has(self, setting: str, family: str) -> bool:
        """Whether anything was measured there."""
        return (setting, family) in self._there

    def get(self, setting: str, family: str, method: str, epsilon: float | None) -> Mean | None:
        """Return the mean of one method, or None; controls have the epsilon None."""
        return self._means.get((setting, family, method, epsilon))

    def of(self, setting: str, family: str, method: str, epsilon: float | None) -> Mean:
        """Return a mean that is there."""
        return self._means[setting, family, method, epsilon]

    def curve(self, setting: str, family: str, method: str) -> list[Mean]:
        """Return the means of one method, epsilon rising."""
        epsilons = sorted(self._epsilons.get((setting, family, method), []))
        return [self.of(setting, family, method, epsilon) for epsilon in epsilons]

    def needed(self, setting: str, family: str, method: str, goal: float = GOAL) -> Needed | None:
        """Return the epsilon from which on the mean ARI stays at the goal, or None.

        It lies between the largest epsilon of the grid whose mean is below the goal and the next:
        there ARI is taken to be linear in the logarithm of epsilon.
        """
        curve = self.curve(setting, family, method)
        below = [i for i, mean in enumerate(curve) if mean.ari < goal]
        if not curve or (below and below[-1] == len(curve) - 1):
            return None
        first = curve[below[-1] + 1 if below else 0]
        assert first.epsilon and first.true_epsilon  # noqa: S101, PT018 - curves have both
        epsilon = first.epsilon
        if below:
            last = curve[below[-1]]
            share = (goal - last.ari) / (first.ari - last.ari)
            epsilon = float(last.epsilon or 0) * (first.epsilon / float(last.epsilon or 1)) ** share
        return Needed(epsilon, epsilon * first.true_epsilon / first.epsilon, at_most=not below)

    def topology(self, setting: str, family: str, epsilon: float) -> float:
        """Return the best ARI of the methods with equal weights, at their nearest epsilon."""
        best = -math.inf
        for method in CONTROLLED:
            curve = self.curve(setting, family, equal_name(method))
            if curve:
                near = min(
                    curve, key=lambda mean: abs(math.log(float(mean.epsilon or 1) / epsilon))
                )
                best = max(best, near.ari)
        plain = self.of(setting, family, "topology", None).ari
        return max(best, plain)


def _mean(key: tuple[Any, ...], group: Sequence[dict[str, Any]]) -> Mean:
    ari, nmi = ([record[name] for record in group] for name in ("ari", "nmi"))
    setting, family, method, epsilon = key
    return Mean(
        setting,
        family,
        method,
        epsilon,
        true_epsilon=group[0]["true_epsilon"],
        repetitions=len(group),
        ari=float(np.mean(ari)),
        ari_margin=margin_of(ari),
        nmi=float(np.mean(nmi)),
        nmi_margin=margin_of(nmi),
        n_clusters=float(np.mean([record["n_clusters"] for record in group])),
        cpu=_share("cpu", group),
        by_weights=_share("by_weights", group),
    )


def _share(name: str, group: Sequence[dict[str, Any]]) -> float | None:
    """Return the mean of a field that some records have; None if none has it."""
    values = [record[name] for record in group if name in record]
    return float(np.mean(values)) if values else None
