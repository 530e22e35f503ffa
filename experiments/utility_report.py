"""What ``run_utility`` measured, as pages to read, as JSON, and as figures."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from experiments._summary import wrapped
from experiments.heterogeneous_report import (
    about_heterogeneous,
    heterogeneous_tables,
    heterogeneous_targets,
)
from experiments.heterogeneous_targets import judged
from experiments.means import GOAL, Mean, Means
from experiments.real import REAL, available, missing
from experiments.targets import ABOVE, failures, outcomes
from experiments.utility_figure import draw_setting
from experiments.utility_words import figure_of, introduction, needed_of, value_of
from ptclust._files import written_at_once
from ptclust._tables import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from experiments.settings import Setting

__all__ = ["UtilityReport"]

_POINTS = 3  # of a curve that is worth drawing
_FAILURES = 8  # that the page tells, at most
_SHOWN = ("auto", "leiden-release")
"""The methods of planted graphs that the page shows; the file of details has all, and controls."""


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
        self, records: Sequence[dict[str, Any]], command: str, settings: Sequence[Setting]
    ) -> None:
        self._command = command
        self.means = Means(records)
        self._settings = [
            setting
            for setting in settings
            if any(self.means.has(setting.name, family) for family in setting.shapes)
        ]
        self._left_out: dict[str, list[str]] = {}
        for setting in settings:
            for family in setting.shapes:
                if family in REAL and not available(family):
                    self._left_out.setdefault(missing(family), []).append(family)
        self._planted = [setting for setting in self._settings if setting.planted]

    def to_json(self) -> str:
        """Return all means, the epsilon needed by every method, targets and failures as JSON."""
        needed = []
        for setting in self._planted:
            for family in setting.shapes:
                for method in setting.methods:
                    found = self.means.needed(setting.name, family, method.name)
                    where = {"setting": setting.name, "family": family, "method": method.name}
                    needed.append({**where, **(asdict(found) if found else {"epsilon": None})})
        targets = [{**asdict(found), "missed": found.missed} for found in outcomes(self.means)]
        document = {
            "command": self._command,
            "goal": GOAL,
            "targets": targets,
            "heterogeneous_targets": [asdict(found) for found in judged(self.means)],
            "failures": list(failures(self.means, self._settings)),
            "needed": needed,
            "means": [asdict(mean) for mean in self.means],
        }
        return json.dumps(document, indent=2)

    def to_markdown(self) -> str:
        """Return the page: targets, failures, the epsilon that every method needs, figures."""
        lines = [
            "# How much epsilon the clusters cost",
            "",
            f"Made by `{self._command}`;",
            "every number is in [utility-details.csv](utility-details.csv).",
            "",
            *introduction(),
            *about_heterogeneous(self._settings),
            *(f"Not run: {', '.join(names)}: {why}.\n" for why, names in self._left_out.items()),
            "## Targets",
            "",
            *self._targets(),
            "",
            "## Where it fails",
            "",
            *self._failures(),
        ]
        tables = heterogeneous_tables(self.means, self._settings)
        if tables:
            lines += ["", "## Heterogeneous graphs", "", *tables]
        if self._planted:
            lines += ["", *self._needed()]
        return "\n".join(lines)

    def _needed(self) -> list[str]:
        lines = [
            f"## Planted graphs: epsilon needed for a mean ARI of {GOAL:g}",
            "",
            *wrapped(
                f"From this epsilon on the mean ARI stays at {GOAL:g} or above; between the points",
                "of the grid it is taken to be linear in the logarithm of epsilon. `<=` means that",
                "the smallest epsilon tried was enough, `>` that the largest was not. Figures and",
                "details have the other methods and the controls.",
            ),
        ]
        for setting in self._planted:
            columns = [(setting, family) for family in setting.shapes]
            lines += ["", f"### {setting.title}{self._repetitions(setting)}", ""]
            lines += aligned(self._needed_rows(columns))
            if self._drawn(setting):
                lines += ["", f"![ARI against epsilon](figures/{figure_of(setting)})"]
        return lines

    def _drawn(self, setting: Setting) -> bool:
        """Whether there is a curve to draw."""
        return len(self._epsilons(setting, setting.shapes[0])) >= _POINTS

    def _epsilons(self, setting: Setting, family: str) -> set[float | None]:
        """Return the epsilons at which a method was run."""
        return {
            mean.epsilon
            for method in setting.methods
            for mean in self.means.curve(setting.name, family, method.name)
        }

    def _repetitions(self, setting: Setting) -> str:
        there = next(shape for shape in setting.shapes if self.means.has(setting.name, shape))
        n_repetitions = self.means.curve(setting.name, there, setting.methods[0].name)[
            0
        ].repetitions
        return f" ({n_repetitions} repetition{'s' * (n_repetitions > 1)})"

    def _targets(self) -> list[str]:
        heterogeneous, planted = heterogeneous_targets(self.means), self._planted_targets()
        if heterogeneous and planted:
            return [
                "### Heterogeneous graphs",
                "",
                *heterogeneous,
                "",
                "### Planted graphs",
                "",
                *planted,
            ]
        return heterogeneous or planted or ["None of the graphs of the targets is in this run."]

    def _planted_targets(self) -> list[str]:
        found = list(outcomes(self.means))
        if not found:
            return []
        missed = [each for each in found if each.missed]
        head = ["graph", "asked", "measured", "Leiden on our release", "topology only"]
        rows = [
            [
                f"{each.target.family}, {each.target.setting}",
                f"{each.target.ari:g} at {each.target.epsilon:g}",
                value_of(each.ari, each.margin),
                "" if each.leiden is None else value_of(each.leiden),
                value_of(max(each.equal, each.spectral)),
                value_of(each.sound),
                each.verdict,
            ]
            for each in missed
        ]
        return [
            *wrapped(
                "Set before the benchmark was run, for ptclust's defaults: a mean ARI at an",
                f"epsilon, and at least {ABOVE:g} above what the topology alone gives away, to the",
                "same methods on equal weights and to spectral clustering that is given K.",
                "*PTClust, sound* is the paper's with sound noise at the same epsilon.",
                f"{len(found) - len(missed)} of {len(found)} are met, {len(missed)} missed.",
            ),
            *(["", *aligned([[*head, "PTClust, sound", ""], *rows])] if rows else []),
        ]

    def _failures(self) -> list[str]:
        found = list(failures(self.means, self._settings))
        if not found:
            return ["Nowhere in this run."]
        if len(found) > _FAILURES:
            found[_FAILURES:] = [f"{len(found) - _FAILURES} more are in utility.json"]
        return [line for words in found for line in wrapped(f"{words}.", bullet=True)]

    def _needed_rows(self, columns: Sequence[tuple[Setting, str]]) -> list[list[str]]:
        rows = [["method", *(family for _, family in columns)]]
        for method in columns[0][0].methods:
            if method.name not in _SHOWN:
                continue
            cells = []
            for setting, family in columns:
                curve = self.means.curve(setting.name, family, method.name)
                needed = self.means.needed(setting.name, family, method.name)
                cells.append(needed_of(needed, curve))
            rows.append([method.title, *cells])
        return rows

    def to_details(self) -> str:
        """Return all means as CSV, with half the widths of their 95 % intervals."""
        table = io.StringIO()
        names = [field.name for field in fields(Mean)]
        writer = csv.DictWriter(table, names, lineterminator="\n")
        writer.writeheader()
        for mean in self.means:
            row = asdict(mean)
            writer.writerow({key: _short(row[key]) for key in names})
        return table.getvalue().rstrip()

    def save(self, directory: Path) -> None:
        """Write ``utility.md``, ``utility-details.csv``, ``utility.json``, and the figures."""
        pages = {
            "utility.md": self.to_markdown(),
            "utility-details.csv": self.to_details(),
            "utility.json": self.to_json(),
        }
        for name, text in pages.items():
            with written_at_once(directory / name) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")
        (directory / "figures").mkdir(exist_ok=True)
        for setting in self._planted:
            if self._drawn(setting):
                draw_setting(self.means, setting, directory / "figures" / figure_of(setting))


def _short(value: Any) -> Any:
    """Return numbers with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else value
