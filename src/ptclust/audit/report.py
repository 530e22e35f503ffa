"""The results of an audit: a page to read, all findings as CSV and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from ptclust._files import written_at_once
from ptclust._tables import aligned
from ptclust._version import __version__

Verdict = Literal["stands", "refuted"]

_ROUNDING = 1e-9  # by how much, relatively, an exact loss may exceed the claim: far above rounding
_INTRODUCTION = """\
A claim *stands* if nothing was found that contradicts it, and is *refuted* otherwise. Claims of
ptclust should stand; the controls, which are broken on purpose, should be refuted. *Found* is the
largest loss over all pairs of neighbours that were searched (exactly), or a lower bound on the loss
between one pair (from draws). All these lower bounds hold together with probability {confidence}.
Under secure randomness they differ a little from run to run. The table has the smallest and largest
*found* over *claim* of each section. Every finding is in {name}.csv and, with `--json`, on standard
output. docs/audit.md explains the method."""


@dataclass(frozen=True)
class Finding:
    """One claim, and the worst that was found against it."""

    section: str
    mechanism: str
    setting: str  # graph, or how many draws there were
    neighbours: str
    unit: Literal["epsilon", "rho"]
    claim: float
    delta: float
    found: float
    witness: str
    expected: Verdict

    @property
    def ratio(self) -> float:
        """What was found over what was claimed."""
        return self.found / self.claim

    @property
    def verdict(self) -> Verdict:
        """Whether the claim stands."""
        return "refuted" if self.found > self.claim * (1.0 + _ROUNDING) else "stands"

    @property
    def as_expected(self) -> bool:
        """Whether a claim of ptclust stands, or a control was caught."""
        return self.verdict == self.expected

    @property
    def problem(self) -> str:
        """What is wrong, in words, if this is not as expected."""
        what = f"{self.mechanism} ({self.setting}; {self.neighbours})"
        numbers = f"{self.unit} = {self.claim:.6g} claimed, {self.found:.6g} found"
        if self.expected == "stands":
            return f"claim refuted: {what}: {numbers}; {self.witness}"
        return f"control not caught, so the audit itself cannot be trusted: {what}: {numbers}"


@dataclass(frozen=True)
class AuditReport:
    """All findings of a run."""

    command: str
    seed: int
    error: float
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether every claim stands and every control was caught."""
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words: claims that were refuted, and controls that were not caught."""
        return tuple(finding.problem for finding in self.findings if not finding.as_expected)

    @property
    def summary(self) -> str:
        """One line: how many claims stand, how many controls were caught."""
        parts = []
        for expected, thing in (("stands", "claims stand"), ("refuted", "controls were caught")):
            group = [each.as_expected for each in self.findings if each.expected == expected]
            parts.append(f"{sum(group)} of {len(group)} {thing}")
        return ", ".join(parts)

    def to_json(self) -> str:
        """Return all findings as JSON."""
        derived = "ratio", "verdict", "as_expected"
        findings = [
            asdict(finding) | {name: getattr(finding, name) for name in derived}
            for finding in self.findings
        ]
        document = {
            "library": "ptclust",
            "library_version": __version__,
            "command": self.command,
            "seed": self.seed,
            "error_probability": self.error,
            "passed": self.passed,
            "problems": self.problems,
            "findings": findings,
        }
        return json.dumps(document, indent=2)

    def to_markdown(self) -> str:
        """Return a page to read: one row per section, and every finding that is not as expected."""
        rows = [["section", "findings", "as expected", "smallest ratio", "largest ratio"]]
        for section in dict.fromkeys(finding.section for finding in self.findings):
            group = [finding for finding in self.findings if finding.section == section]
            ratios = [finding.ratio for finding in group]
            expected = sum(finding.as_expected for finding in group)
            counts = str(len(group)), str(expected)
            rows.append([section, *counts, f"{min(ratios):.4f}", f"{max(ratios):.4f}"])
        lines = [
            "# Audit of the privacy claims",
            "",
            f"Made by `{self.command}`: {self.summary}.",
            *(f"**{problem}**" for problem in self.problems),
            "",
            _INTRODUCTION.format(confidence=f"{1.0 - self.error:.6g}", name=self._name),
            "",
            *aligned(rows),
        ]
        return "\n".join(lines)

    def to_csv(self) -> str:
        """Return one row per finding."""
        names = "section", "mechanism", "setting", "neighbours"
        rows = []
        for each in self.findings:
            delta = f", delta {each.delta:g}" if each.delta else ""
            claim = f"{each.unit} {each.claim:.4g}{delta}"
            found = f"{each.found:.4g}", f"{each.ratio:.4f}", each.witness, each.verdict
            rows.append([*(getattr(each, name) for name in names), claim, *found])
        columns = [*names, "claim", "found", "ratio", "witness", "verdict"]
        return pl.DataFrame(rows, schema=columns, orient="row").write_csv().rstrip("\n")

    def save(self, directory: Path) -> None:
        """Write the page, the CSV and the JSON file, which have the name of the report."""
        texts = {"md": self.to_markdown(), "csv": self.to_csv(), "json": self.to_json()}
        for suffix, text in texts.items():
            with written_at_once(directory / f"{self._name}.{suffix}") as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")

    @property
    def _name(self) -> str:
        return "audit-quick" if "--quick" in self.command else "audit"
