"""Sentences and cells of the utility report."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from experiments._summary import wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.means import Mean, Needed
    from experiments.settings import Setting

__all__ = [
    "figure_of",
    "introduction",
    "needed_of",
    "value_of",
]


def introduction() -> list[str]:
    """Return what was measured, and how, in paragraphs."""
    paragraphs = (
        (
            "Mean adjusted Rand index (ARI) between the clusters found and the true ones: 1 for",
            "the same partition, about 0 for an unrelated one. Every repetition draws a new graph,",
            "unless it is a real one, and new noise, from seeds on which no method was designed.",
            "delta = 1e-6, but for the paper's PTClust, which is pure. Methods that begin with the",
            "same mechanism cluster the same releases.",
        ),
        (
            "In planted graphs edges across clusters join random pairs, but for *blobs-10* and",
            "*blobs-30*, whose many small clusters would show in the topology. These have decoys:",
            "the topology holds two plantings of the same kind, drawn independently, and is as",
            "likely with their roles exchanged. Only the weights show which one is real.",
        ),
        (
            "*ptclust's defaults* are `PTClust(epsilon=, delta=, sensitivity=)` and nothing else.",
            "*Leiden on our release* is igraph's, at resolution 1, on the noisy weights of all",
            "edges.",
            "*PTClust as published* does not spend the epsilon it is given, but far more.",
        ),
    )
    return [line for words in paragraphs for line in (*wrapped(*words), "")]


def figure_of(setting: Setting) -> str:
    """Return the name of the file of a figure."""
    return f"utility-{setting.name}.png"


def value_of(value: float, margin: float | None = None) -> str:
    """Return a mean, with its margin if there is one."""
    words = f"{value:.2f}".replace("-0.00", "0.00")
    return words if margin is None else f"{words} ± {margin:.2f}"


def needed_of(needed: Needed | None, curve: Sequence[Mean]) -> str:
    """Return the epsilon at which the goal was reached, or that the largest was not enough."""
    if needed is not None:
        sign, epsilon, spent = "<= " * needed.at_most, needed.epsilon, needed.true_epsilon
    else:
        sign, epsilon, spent = (
            "> ",
            float(curve[-1].epsilon or 0),
            float(curve[-1].true_epsilon or 0),
        )
    words = f"{sign}{float(f'{epsilon:.2g}'):g}"
    if math.isclose(spent, epsilon, rel_tol=1e-6):
        return words
    truly = f"{spent:,.0f}" if spent >= 10 else f"{spent:.2g}"
    return f"{words} (truly {sign}{truly})"
