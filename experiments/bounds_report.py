"""What ``run_bounds`` measured: a page to read, all numbers as CSV and JSON, and a figure."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from experiments._summary import as_csv, page, save_report
from experiments.bounds import DELTA, GAMMA, L1, LINF, N_SUBTREE_EDGES, SUBTREES
from ptclust._files import written_at_once
from ptclust._statistics import clopper_pearson

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["BoundsReport", "interval"]

_GRAPHS = {
    "moons": "two moons, 30 nodes",
    "paths": "two paths of 8 nodes with one light edge each, joined all to all",
}
_METHODS = {
    "pamst": "PAMST",
    "kruskal": "Kruskal",
    "laplace": "graph perturbation, Laplace",
    "gaussian": "graph perturbation, Gaussian",
}
_BOUNDED = {
    "partitioning": {"printed": "pamst", "supplement": "pamst", "corrected": "pamst"},
    "trade-off": {"printed": "release", "corrected": "release", "sound": "worst"},
}
"""The event whose probability each bound is below."""
_EVENTS = {"partitioning": ("pamst", "kruskal"), "trade-off": ("worst", "release")}
_TICKS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.25, 0.5, 1.0, 2.0, 4.0)
_COLOURS = {
    "printed": "#D55E00",
    "supplement": "#E69F00",
    "corrected": "#0072B2",
    "sound": "#0072B2",
    "pamst": "#000000",
    "kruskal": "#009E73",
    "release": "#000000",
    "worst": "#777777",
    "laplace": "#D55E00",
    "gaussian": "#0072B2",
}


_PAGE = """\
# Bounds beside simulated frequencies

Made by `{{ command }}`. Proofs are in [proofs/bounds.md](proofs/bounds.md), all numbers in
[bounds.csv](bounds.csv), frequencies with their 99 % Clopper-Pearson intervals. A lower bound above
the interval of what it bounds is *false*; all such are listed here. One of 0 or less is empty.

## Theorem D: the tree has a partitioning topology

PAMST with the paper's exponent for linf = {{ linf }}, and Kruskal with the same. The bounds are for
PAMST; the corrected one holds for Kruskal, too.

{% for line in partitioning %}
- {{ line }}
{% endfor %}

## Trade-off: noise leaves the separation of a cluster intact

A subtree of {{ n_edges }} edges whose weights are spread evenly, tau = 0, p = 1. *release* is how
often H survives noise on those weights, *worst* how often it does with the same noise on the
smallest weight for the minimum and on the largest for the maximum, which the sound bound bounds.

{% for line in trade_off %}
- {{ line }}
{% endfor %}

## Weight of the tree above the minimum

Two moons, 100 nodes; linf = {{ linf }}, l1 = {{ l1 }}; delta = {{ delta }} for Gaussian noise and 0
elsewhere. The bounds hold for all weights, and these are favourable. No spanning tree of this graph
exceeds the minimum by more than {{ most }}. {{ tightest }}
"""


class BoundsReport:
    """Bounds beside frequencies and quantiles.

    Parameters
    ----------
    records : list of dict
        From ``run_bounds``.
    command : str
        What to type to get the same again.
    """

    def __init__(self, records: Sequence[dict[str, Any]], command: str) -> None:
        self._records, self._command = list(records), command

    def of(self, part: str, case: str) -> list[dict[str, Any]]:
        """Return the records of one part and case, by ascending epsilon or noise."""
        found = [r for r in self._records if (r["part"], r["case"]) == (part, case)]
        return sorted(found, key=lambda record: float(record["x"]))

    def to_json(self) -> str:
        """Return all records as JSON."""
        return json.dumps(
            {"gamma": GAMMA, "linf": LINF, "l1": L1, "delta": DELTA, "records": self._records},
            indent=2,
        )

    def to_markdown(self) -> str:
        """Return which bounds were contradicted; the numbers are in the CSV file."""
        subtrees = {
            case: f"weights {low:g} to {high:g}, cut edge {out:g}"
            for case, (low, high, out) in SUBTREES.items()
        }
        most = next(record["most"] for record in self._records if record["part"] == "weight")
        return page(
            _PAGE,
            command=self._command,
            linf=f"{LINF:g}",
            l1=f"{L1:g}",
            delta=f"{DELTA:g}",
            n_edges=N_SUBTREE_EDGES,
            partitioning=self._false("partitioning", _GRAPHS, "epsilon"),
            trade_off=self._false("trade-off", subtrees, "noise of scale"),
            most=f"{most:.1f}",
            tightest=self._tightest(),
        )

    def _false(self, part: str, cases: dict[str, str], x: str) -> list[str]:
        """Return one item per case: which bounds are false, and where."""
        rows = [row for row in self._rows() if row[0] == part and row[-1]]
        lines = []
        for case, title in cases.items():
            false: dict[str, list[str]] = {}
            for _, found, at, quantity, *_ in rows:
                if found == case:
                    false.setdefault(quantity, []).append(at)
            places = [f"*{name}* is false at {x} {', '.join(at)}" for name, at in false.items()]
            lines.append(f"{title}: {'; '.join(places) or 'no bound is false'}.")
        return lines

    def _tightest(self) -> str:
        """Return how far the bounds on the quantile are from it, at the largest epsilon."""
        last = [(title, self.of("weight", name)[-1]) for name, title in _METHODS.items()]
        ratios = [f"{record['bound'] / record['quantile']:.0f} ({title})" for title, record in last]
        return (
            f"At epsilon = {last[0][1]['x']:g} the bound on the {1 - GAMMA:.0%} quantile is this "
            f"many times the quantile: {', '.join(ratios)}."
        )

    def to_csv(self) -> str:
        """Return all bounds, frequencies and weights."""
        return as_csv(
            [["part", "case", "x", "quantity", "value", "low", "high", "note"], *self._rows()]
        )

    def _rows(self) -> list[list[str]]:
        """Return one row per number: an epsilon or noise scale x, the quantity and its value."""
        rows = []
        for record in sorted(
            self._records, key=lambda each: (each["part"], each["case"], each["x"])
        ):
            start = [record["part"], record["case"], f"{record['x']:g}"]
            if record["part"] == "weight":
                mean, margin = record["mean"], 1.96 * record["error"]
                ends = f"{mean - margin:.2f}", f"{mean + margin:.2f}"
                rows += [
                    [*start, "quantile", f"{record['quantile']:.2f}", "", "", ""],
                    [*start, "bound", f"{record['bound']:.1f}", "", "", ""],
                    [*start, "mean", f"{mean:.2f}", *ends, ""],
                    [*start, "mean_bound", f"{record['mean_bound']:.1f}", "", "", ""],
                ]
                continue
            for bound, event in _BOUNDED[record["part"]].items():
                limit = interval(record[event], record["draws"])[1]
                rows.append([*start, bound, *_bound(record[bound], limit)])
            rows += [
                [*start, event, *_frequency(record[event], record["draws"]), ""]
                for event in _EVENTS[record["part"]]
            ]
        return rows

    def draw(self, *paths: Path) -> None:
        """Draw bounds and frequencies, one panel per graph and subtree, and weights of trees."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(14.0, 7.5), layout="constrained")
        panels = figure.subplots(2, 3)
        for axes, case in zip(panels[:, 0], _GRAPHS, strict=True):
            bounds = ["printed", "supplement", "corrected"]
            self._draw_probabilities(axes, "partitioning", case, bounds, ["pamst", "kruskal"])
            axes.set_title(f"Theorem D: {_GRAPHS[case]}", fontsize=8)
            axes.set_xlabel("epsilon of the paper's PAMST")
        for axes, (case, (low, high, out)) in zip(panels[:, 1], SUBTREES.items(), strict=True):
            bounds = ["printed", "sound"]
            self._draw_probabilities(axes, "trade-off", case, bounds, ["worst", "release"])
            axes.set_title(f"Trade-off: weights {low:g} to {high:g}, cut edge {out:g}", fontsize=8)
            axes.set_xlabel("scale of the noise")
        for axes, name, bound, title in (
            (panels[0, 2], "quantile", "bound", f"{1 - GAMMA:.0%} quantile of the excess weight"),
            (panels[1, 2], "mean", "mean_bound", "mean excess weight"),
        ):
            self._draw_weights(axes, name, bound)
            axes.set_title(f"{title} (lines) and its bound (dashed)", fontsize=8)
        for path in paths:
            with written_at_once(path) as temporary:
                figure.savefig(temporary, dpi=130, metadata=_undated(path))

    def _draw_probabilities(
        self, axes: Any, part: str, case: str, bounds: Sequence[str], measured: Sequence[str]
    ) -> None:
        records = self.of(part, case)
        x = [record["x"] for record in records]
        for name in bounds:
            values = [max(record[name], -1.0) for record in records]
            axes.plot(x, values, "--", color=_COLOURS[name], linewidth=1.4, label=f"bound, {name}")
        for name in measured:
            frequencies = [record[name] / record["draws"] for record in records]
            label = {"worst": "at worst"}.get(name, _METHODS.get(name, name))
            axes.plot(x, frequencies, "o-", color=_COLOURS[name], markersize=3, label=label)
        _log_axis(axes, x)
        axes.set_ylim(-0.03, 1.03)
        axes.set_ylabel("probability")
        axes.legend(fontsize=7)

    def _draw_weights(self, axes: Any, name: str, bound: str) -> None:
        x = [record["x"] for record in self.of("weight", next(iter(_METHODS)))]
        for method, title in _METHODS.items():
            records = self.of("weight", method)
            colour = _COLOURS[method]
            axes.plot(
                x,
                [record[name] for record in records],
                "o-",
                color=colour,
                markersize=3,
                label=title,
            )
            axes.plot(x, [record[bound] for record in records], "--", color=colour, linewidth=1.2)
        _log_axis(axes, x)
        axes.set_yscale("log")
        axes.set_xlabel("epsilon")
        axes.legend(fontsize=7)

    def save(self, directory: Path) -> None:
        """Write ``bounds.md``, ``.csv``, ``.json``, ``.png`` and ``.svg`` to a directory."""
        save_report(self, directory, "bounds")
        self.draw(directory / "bounds.png", directory / "bounds.svg")


def interval(hits: int, draws: int, level: float = 0.99) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a probability, from ``hits`` of ``draws``.

    >>> [round(end, 4) for end in interval(0, 1000)]
    [0.0, 0.0053]
    """
    low, high = clopper_pearson(hits, draws, (1.0 - level) / 2.0)
    return float(low), float(high)


def _bound(value: float, limit: float) -> list[str]:
    """Return the cells of a bound: nothing if it is empty, a note if what it bounds is below."""
    if value <= 0 or not math.isfinite(value):
        return ["", "", "", ""]
    return [f"{value:.4f}", "", "", "false" if value > limit else ""]


def _frequency(hits: int, draws: int) -> list[str]:
    low, high = interval(hits, draws)
    return [f"{hits / draws:.4f}", f"{low:.4f}", f"{high:.4f}"]


def _log_axis(axes: Any, x: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, its ticks at some of the values themselves."""
    axes.set_xscale("log")
    ticks = [value for value in x if value in _TICKS]
    axes.set_xticks(ticks, [f"{value:g}" for value in ticks])
    axes.set_xticks([], minor=True)


def _undated(path: Path) -> dict[str, None]:
    """Return what keeps the date out of a picture, so that a second run gives the same file."""
    return {"Date": None} if path.suffix == ".svg" else {}
