"""What was measured on heterogeneous graphs, as parts of the page of the utility report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from experiments._summary import wrapped
from experiments.heterogeneous_targets import judged
from experiments.real import REAL
from experiments.rivals import LEIDEN_RELEASE, NON_PRIVATE, RESOLUTIONS, TOPOLOGY_ONLY
from experiments.utility import SEED
from experiments.utility_words import value_of
from ptclust._tables import aligned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from experiments.means import Mean, Means
    from experiments.settings import Setting

__all__ = ["about_heterogeneous", "heterogeneous_tables", "heterogeneous_targets"]

_AT = (0.1, 0.3, 1.0, 10.0)


def about_heterogeneous(settings: Sequence[Setting]) -> list[str]:
    """Return what heterogeneous graphs there are, and which of them nobody has designed for."""
    there = [setting for setting in settings if not setting.planted]
    if not there:
        return []
    shapes = [shape for setting in there for shape in setting.shapes]
    designed = sorted(shape for shape in shapes if shape in REAL and REAL[shape].development)
    kept = [shape for shape in shapes if shape in REAL and not REAL[shape].development]
    paragraphs = [
        (
            "*Heterogeneous* graphs have heavy-tailed counts and nodes that differ in size by",
            "orders of magnitude. Weighted LFR graphs (Lancichinetti and Fortunato 2009),",
            "degree-corrected blocks, co-visits, roads with traffic and graphs without clusters",
            "are drawn; the others are real. A count is a similarity, and one count more or less",
            "is protected, unless the title says otherwise.",
        ),
        (
            "**Development and reporting use different graphs.** Methods were designed on planted",
            "graphs, weighted LFR graphs, co-visits and null graphs of seeds below 100, and on",
            f"{', '.join(designed) or 'no real graph'}. Reported are generated graphs of seeds",
            f"{SEED} and above, and, never designed for, {', '.join(kept) or 'no real graph'}.",
        ),
        (
            "The rival is *Leiden on our release*: igraph's Leiden for modularity at resolution 1",
            "on the same noisy weights, negative ones taken as zero. *The best* without privacy is",
            "that of Leiden, Louvain (resolution 1, and the best of",
            f"{', '.join(f'{r:g}' for r in RESOLUTIONS)} as an oracle knows it), HDBSCAN at",
            "distances 1 / (1 + count), and spectral clustering that is given K. *Topology only*",
            "is Leiden without weights.",
        ),
    ]
    references = sorted({(s, REAL[s].reference) for s in kept if REAL[s].reference})
    if references:
        words = "; ".join(f"in *{shape}* {reference}" for shape, reference in references)
        paragraphs.append((f"Nobody knows the clusters of the person trips; truth is {words}.",))
    return [line for words in paragraphs for line in (*wrapped(*words), "")]


def heterogeneous_targets(means: Means) -> list[str]:
    """Return how many targets are met, and the table of those that are missed."""
    found = list(judged(means))
    if not found:
        return []
    missed = [each for each in found if not each.met]
    rows = [[each.graph, each.asked, each.measured, each.verdict] for each in missed]
    return [
        *wrapped(
            "For ptclust's defaults, mean ARI as printed. *The best* is the best of all methods",
            f"without privacy, oracles among them. {len(found) - len(missed)} of {len(found)} are",
            f"met, {len(missed)} missed.",
        ),
        *(["", *aligned([["graph", "asked", "measured", ""], *rows])] if rows else []),
    ]


def heterogeneous_tables(means: Means, settings: Sequence[Setting]) -> list[str]:
    """Return a table with a row for every real graph, and one for every generator."""
    rows = []
    for setting in settings:
        there = [shape for shape in setting.shapes if means.has(setting.name, shape)]
        if setting.planted or not setting.controls or not there:
            continue
        groups = {shape: [shape] for shape in there} if there[0] in REAL else {setting.name: there}
        rows += [[name, *_row(means, setting, shapes)] for name, shapes in groups.items()]
        if setting.name == "real" and len(there) > 1:
            rows.append(["mean of these", *_row(means, setting, there)])
    if not rows:
        return []
    at = [f"{epsilon:g}" for epsilon in _AT]
    first = [f"{name} at {at[0]}" for name in ("defaults", LEIDEN_RELEASE.title)]
    titles = ["graph", first[0], *at[1:], first[1], *at[1:], "Leiden, not private", "the best"]
    return [
        *wrapped(
            "Mean ARI at four epsilons: the defaults, Leiden on the same release, methods without",
            "privacy, and Leiden without weights. A row of a generator is the mean over its",
            "parameters.",
        ),
        "",
        *aligned([[*titles, "topology only"], *rows]),
    ]


def _row(means: Means, setting: Setting, shapes: Sequence[str]) -> list[str]:
    """Return the cells of some graphs of a setting: means over them."""

    def cell(find: Callable[[str], Mean | None]) -> str:
        found = [mean.ari for mean in map(find, shapes) if mean is not None]
        return value_of(float(np.mean(found))) if found else ""

    def best(shape: str) -> Mean | None:
        found = (means.get(setting.name, shape, control.name, None) for control in NON_PRIVATE)
        return max((mean for mean in found if mean), key=lambda mean: mean.ari, default=None)

    def of(method: str, epsilon: float | None) -> str:
        return cell(lambda shape: means.get(setting.name, shape, method, epsilon))

    private = [of(method, epsilon) for method in ("auto", LEIDEN_RELEASE.name) for epsilon in _AT]
    return [*private, of("leiden", None), cell(best), of(TOPOLOGY_ONLY.name, None)]
