"""ARI against epsilon, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.controls import CONTROLS
from experiments.means import GOAL
from experiments.utility import equal_name
from ptclust._files import written_at_once

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.means import Means
    from experiments.settings import Setting

__all__ = ["draw_setting"]

_COLOURS = {
    "auto": "#000000",
    "leiden-release": "#E69F00",
    "communities": "#7B3294",
    "levels": "#009E73",
    "perturbation": "#F0C75E",
    "kruskal": "#56B4E9",
    "pamst": "#0072B2",
    "sound": "#CC79A7",
    "published": "#D55E00",
}
_CONTROLS = {
    "dbmstclu": ("#777777", "--"),
    "hdbscan": ("#777777", (0, (1, 3))),
    "topology": ("#B22222", ":"),
    "spectral": ("#B22222", "-."),
}
_COLUMNS = 4


def draw_setting(means: Means, setting: Setting, path: Path) -> None:
    """Draw a panel for every family of a setting."""
    from matplotlib.figure import Figure

    families = setting.shapes
    n_rows = -(-len(families) // _COLUMNS)
    shape = n_rows, min(_COLUMNS, len(families))
    figure = Figure(figsize=(3.4 * shape[1], 2.6 * n_rows + 1.0), layout="constrained")
    panels = figure.subplots(*shape, squeeze=False, sharex=True, sharey=True)
    for family, axes in zip(families, panels.flat, strict=False):
        _draw_panel(axes, means, setting, family)
    for axes in panels.flat[len(families) :]:
        axes.set_visible(False)
    for row in panels:
        row[0].set_ylabel("ARI")
    for axes in panels[-1]:
        axes.set_xlabel("epsilon (as published: claimed)")
    figure.suptitle(f"{setting.title}, delta = 1e-6", fontsize=10)
    handles, titles = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, titles, fontsize=7, ncols=5, loc="outside lower center", frameon=False)
    with written_at_once(path) as temporary:
        figure.savefig(temporary, dpi=100, format="png")


def _draw_panel(axes: Any, means: Means, setting: Setting, family: str) -> None:
    axes.set_title(family, fontsize=9)
    axes.set_xscale("log")
    axes.set_ylim(-0.05, 1.05)
    axes.axhline(GOAL, color="#dddddd", linewidth=0.8, zorder=0)
    for method in reversed(setting.methods):  # the first is drawn last, on top
        curve = means.curve(setting.name, family, method.name)
        epsilons = [mean.epsilon for mean in curve]
        ari = np.array([mean.ari for mean in curve])
        margin = np.array([mean.ari_margin or 0.0 for mean in curve])
        colour = _COLOURS[method.name]
        style = {"auto": ":", "published": "--"}.get(method.name, "-")
        width = 2.6 if method.name == "auto" else 1.3
        axes.plot(epsilons, ari, style, color=colour, linewidth=width, label=method.title)
        axes.fill_between(
            epsilons, ari - margin, ari + margin, color=colour, alpha=0.15, linewidth=0
        )
    equal = means.curve(setting.name, family, equal_name("auto"))
    axes.plot(
        [mean.epsilon for mean in equal],
        [mean.ari for mean in equal],
        ".",
        color="#B22222",
        markersize=4,
        label="topology only: ptclust's defaults",
    )
    for control in CONTROLS:
        mean = means.of(setting.name, family, control.name, None)
        colour, dashes = _CONTROLS[control.name]
        axes.axhline(mean.ari, color=colour, linestyle=dashes, linewidth=0.9, label=control.title)
