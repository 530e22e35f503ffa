"""What ``run_utility`` measured, as a table to read, as JSON, and as a figure."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._files import written_at_once
from ptclust.experiments._summary import aligned, margin_of
from ptclust.experiments.controls import CONTROLS
from ptclust.experiments.utility import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ptclust.experiments.utility import Setting

__all__ = ["Mean", "UtilityReport"]

GOAL = 0.9
_SHOWN = (0.5, 1.0, 2.0, 5.0, 10.0, 50.0)
_COLOURS = {
    "published": "#D55E00",
    "sound": "#CC79A7",
    "pamst": "#0072B2",
    "kruskal": "#009E73",
    "perturbation": "#E69F00",
}
_GREYS = (("#000000", "--"), ("#777777", ":"), ("#777777", "-."))


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
    margin: float | None
    """Half the width of the 95 % t interval of the mean; None for a single repetition."""
    n_clusters: float


class UtilityReport:
    """Means over repetitions, and what follows from them.

    Parameters
    ----------
    records : list of dict
        From ``run_utility``.
    command : str
        What to type to get the same again.
    settings : sequence of Setting
        Those of the run.
    """

    def __init__(
        self,
        records: Sequence[dict[str, Any]],
        command: str,
        settings: Sequence[Setting] = SETTINGS,
    ) -> None:
        self._command, self._settings = command, tuple(settings)
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for record in records:
            key = tuple(record[name] for name in ("setting", "family", "method", "epsilon"))
            groups.setdefault(key, []).append(record)
        self._means = {key: _mean(key, group) for key, group in groups.items()}
        self.families = tuple(dict.fromkeys(key[1] for key in groups))
        self.epsilons = tuple(sorted({key[3] for key in groups if key[3] is not None}))

    def mean(self, setting: str, family: str, method: str, epsilon: float | None) -> Mean:
        """Return the mean of one method; controls have the epsilon None."""
        return self._means[setting, family, method, epsilon]

    def needed(self, setting: str, family: str, method: str, goal: float = GOAL) -> Mean | None:
        """Return the mean at the least epsilon from which on all means reach the goal, or None."""
        needed = None
        for epsilon in reversed(self.epsilons):
            mean = self.mean(setting, family, method, epsilon)
            if mean.ari < goal:
                break
            needed = mean
        return needed

    def to_json(self) -> str:
        """Return all means, and the epsilon needed by every method, as JSON."""
        needed = []
        for setting in self._settings:
            for family in self.families:
                for method in setting.methods:
                    found = self.needed(setting.name, family, method.name)
                    needed.append(
                        {
                            "setting": setting.name,
                            "family": family,
                            "method": method.name,
                            "epsilon": found.epsilon if found else None,
                            "true_epsilon": found.true_epsilon if found else None,
                        }
                    )
        means = [asdict(mean) for mean in self._means.values()]
        return json.dumps({"goal": GOAL, "needed": needed, "means": means}, indent=2)

    def to_markdown(self) -> str:
        """Return a table for every setting and family."""
        lines = [
            "# Agreement with planted clusters against epsilon",
            "",
            f"Made by `{self._command}`.",
            "Mean adjusted Rand index (ARI) with its 95 % interval; every repetition draws a new graph and new noise.",
            f"*Needed* is the least epsilon of the grid from which on the mean stays at {GOAL} or above, *clusters*",
            "the mean number found there (or at the largest epsilon); 2 are planted.",
            "PTClust as published does not spend the epsilon it is given: what it truly spends is in brackets.",
            "Controls have no epsilon.",
        ]
        for setting in self._settings:
            for family in self.families:
                repetitions = self.mean(setting.name, family, CONTROLS[0].name, None).repetitions
                title = f"## {family}, {setting.title} ({repetitions} repetitions)"
                lines += ["", title, "", *aligned(self._rows(setting, family))]
        grid = ", ".join(f"{epsilon:g}" for epsilon in self.epsilons)
        return "\n".join([*lines, "", f"Grid of epsilon: {grid}."])

    def _rows(self, setting: Setting, family: str) -> list[list[str]]:
        shown = [epsilon for epsilon in _SHOWN if epsilon in self.epsilons]
        rows = [["method", "needed", *(f"ARI at {epsilon:g}" for epsilon in shown), "clusters"]]
        for method in setting.methods:
            needed = self.needed(setting.name, family, method.name)
            last = needed or self.mean(setting.name, family, method.name, self.epsilons[-1])
            means = [self.mean(setting.name, family, method.name, epsilon) for epsilon in shown]
            cells = [_needed(last, reached=needed is not None), *map(_cell, means)]
            rows.append([method.title, *cells, f"{last.n_clusters:.1f}"])
        for control in CONTROLS:
            mean = self.mean(setting.name, family, control.name, None)
            cells = ["", *[_cell(mean)] * len(shown)]
            rows.append([control.title, *cells, f"{mean.n_clusters:.1f}"])
        return rows

    def draw(self, path: Path) -> None:
        """Draw ARI against epsilon, one panel for every setting and family."""
        from matplotlib.figure import Figure

        shape = len(self._settings), len(self.families)
        figure = Figure(figsize=(2.5 + 4.5 * shape[1], 3.2 * shape[0]), layout="constrained")
        panels = figure.subplots(*shape, squeeze=False, sharex=True, sharey=True)
        for setting, row in zip(self._settings, panels, strict=True):
            for family, axes in zip(self.families, row, strict=True):
                self._draw_panel(axes, setting, family)
            row[0].set_ylabel("ARI")
            row[-1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
        for axes in panels[-1]:
            axes.set_xlabel("epsilon (PTClust as published: what it claims)")
        with written_at_once(path) as temporary:
            figure.savefig(temporary, dpi=130)

    def _draw_panel(self, axes: Any, setting: Setting, family: str) -> None:
        axes.set_title(f"{family}, {setting.title}", fontsize=9)
        axes.set_xscale("log")
        axes.set_ylim(-0.05, 1.05)
        axes.axhline(GOAL, color="#dddddd", linewidth=0.8, zorder=0)
        for method in setting.methods:
            colour = _COLOURS[method.name]
            means = [self.mean(setting.name, family, method.name, e) for e in self.epsilons]
            ari = np.array([mean.ari for mean in means])
            margin = np.array([mean.margin or 0.0 for mean in means])
            style = "--" if method.calibration == "published" else "-"
            axes.plot(self.epsilons, ari, style, color=colour, linewidth=1.4, label=method.title)
            axes.fill_between(
                self.epsilons, ari - margin, ari + margin, color=colour, alpha=0.15, linewidth=0
            )
        for control, (colour, style) in zip(CONTROLS, _GREYS, strict=True):
            mean = self.mean(setting.name, family, control.name, None)
            axes.axhline(
                mean.ari, color=colour, linestyle=style, linewidth=0.9, label=control.title
            )

    def save(self, directory: Path) -> None:
        """Write ``utility.md``, ``utility.json`` and ``utility.png`` to a directory."""
        for name, text in (("utility.md", self.to_markdown()), ("utility.json", self.to_json())):
            with written_at_once(directory / name) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")
        self.draw(directory / "utility.png")


def _mean(key: tuple[Any, ...], group: Sequence[dict[str, Any]]) -> Mean:
    ari = [record["ari"] for record in group]
    setting, family, method, epsilon = key
    return Mean(
        setting,
        family,
        method,
        epsilon,
        true_epsilon=group[0]["true_epsilon"],
        repetitions=len(group),
        ari=float(np.mean(ari)),
        margin=margin_of(ari),
        n_clusters=float(np.mean([record["n_clusters"] for record in group])),
    )


def _cell(mean: Mean) -> str:
    value = f"{mean.ari:.2f}".replace("-0.00", "0.00")
    return value if mean.margin is None else f"{value} ± {mean.margin:.2f}"


def _needed(mean: Mean, *, reached: bool) -> str:
    """Return the epsilon at which the goal was reached, or that the largest tried was not enough."""
    if mean.epsilon is None or mean.true_epsilon is None:
        return ""
    more = "" if reached else "> "
    words = f"{more}{mean.epsilon:g}"
    if math.isclose(mean.true_epsilon, mean.epsilon, rel_tol=1e-6):
        return words
    truly = f"{mean.true_epsilon:,.0f}" if mean.true_epsilon >= 10 else f"{mean.true_epsilon:.2g}"
    return f"{words} (truly {more}{truly})"
