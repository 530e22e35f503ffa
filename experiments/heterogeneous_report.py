"""What was measured on heterogeneous graphs, as parts of the page of the utility report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments._summary import wrapped
from experiments.heterogeneous_targets import judged
from experiments.real import REAL
from experiments.rivals import NON_PRIVATE, RESOLUTIONS, TOPOLOGY_ONLY
from experiments.utility import SEED, equal_name
from experiments.utility_words import value_of
from ptclust._tables import aligned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from experiments.means import Mean, Means
    from experiments.settings import Setting

__all__ = ["about_heterogeneous", "heterogeneous_tables", "heterogeneous_targets", "misses"]

_AT = (0.1, 1.0, 10.0)
_GENERATED = ("lfr-1000", "lfr-10000", "lfr-100000", "co-visits", "blocks", "roads", "null")


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
            "orders of magnitude. Weighted LFR graphs (Lancichinetti and Fortunato 2009; *0.5,",
            "0.2* are the shares of edges and of weight across clusters), degree-corrected blocks,",
            "co-visits of generated people, roads with traffic and graphs without clusters are",
            "drawn; the others are real. A count is a similarity, and one count more or less is",
            "protected, unless the title says otherwise. `experiments/heterogeneous.py` and",
            "`experiments/real.py` say how each is made.",
        ),
        (
            "**Development and reporting use different graphs.** Methods were designed on planted",
            "graphs, weighted LFR graphs, co-visits and null graphs of seeds below 100, and on",
            f"{', '.join(designed) or 'no real graph'}. Reported are generated graphs of seeds",
            f"{SEED} and above, and, never designed for, {', '.join(kept) or 'no real graph'}.",
        ),
        (
            "Without privacy: igraph's Leiden and Louvain for modularity at resolution 1, and with",
            f"the resolution of {', '.join(f'{r:g}' for r in RESOLUTIONS)} that agrees most with",
            "the truth, which only an oracle can choose; HDBSCAN at distances 1 / (1 + count);",
            "spectral clustering that is given K. On our release, that is the noisy weights of all",
            "edges, negative ones taken as zero: Leiden, Louvain, and the recursive sparsest cuts",
            "of Deng et al. (2025), which shift all weights by 10 log(n) times the scale of the",
            "noise; their hierarchy is cut at the true K, the sparsest cut first. *Topology only*",
            "sees no weight: ptclust's defaults where all weights are the same, and Leiden.",
        ),
    ]
    references = sorted({(s, REAL[s].reference) for s in kept if REAL[s].reference})
    if references:
        words = "; ".join(f"in *{shape}* {reference}" for shape, reference in references)
        paragraphs.append((f"Nobody knows the clusters of the person trips; truth is {words}.",))
    return [line for words in paragraphs for line in (*wrapped(*words), "")]


def heterogeneous_targets(means: Means) -> list[str]:
    """Return the table of targets."""
    found = list(judged(means))
    if not found:
        return []
    n_met = sum(each.met for each in found)
    rows = [["graph", "asked", "measured", ""]]
    rows += [[each.graph, each.asked, each.measured, each.verdict] for each in found]
    return [
        *wrapped(
            "For ptclust's defaults, mean ARI as printed. *The best* is the best of all methods",
            f"without privacy, oracles among them. {n_met} of {len(found)} are met,",
            f"{len(found) - n_met} missed.",
        ),
        "",
        *aligned(rows),
    ]


def misses(means: Means) -> Iterator[str]:
    """Yield every missed target in words."""
    for each in judged(means):
        if not each.met:
            yield f"{each.graph}: asked {each.asked}, measured {each.measured}; {each.reason}"


def heterogeneous_tables(means: Means, settings: Sequence[Setting]) -> list[str]:
    """Return two tables with a row for every graph: private methods, and all others."""
    graphs = [
        (setting, shape)
        for setting in settings
        for shape in setting.shapes
        if not setting.planted and setting.controls and means.has(setting.name, shape)
    ]
    if not graphs:
        return []
    methods = [method for method in graphs[0][0].methods if method.name != "auto"]
    private = [
        [
            "graph",
            *(f"defaults at {epsilon:g}" for epsilon in _AT),
            "clusters",
            *(method.title for method in methods),
        ]
    ]
    others = [
        [
            "graph",
            *(control.title.replace(", not private", "") for control in NON_PRIVATE),
            "topology only: ptclust's defaults",
            TOPOLOGY_ONLY.title,
        ]
    ]
    for setting, shape in graphs:
        where = setting.name, shape
        name = f"{setting.name}: {shape}" if setting.name in _GENERATED else shape
        ours = [means.get(*where, "auto", epsilon) for epsilon in _AT]
        found = [means.get(*where, method.name, 1.0) for method in methods]
        clusters = f"{ours[1].n_clusters:.0f}" if ours[1] else ""
        private.append([name, *map(_cell, ours), clusters, *map(_cell, found)])
        controls = [means.get(*where, control.name, None) for control in NON_PRIVATE]
        equal = means.get(*where, equal_name("auto"), 1.0)
        plain = means.get(*where, TOPOLOGY_ONLY.name, None)
        others.append([name, *map(_cell, [*controls, equal, plain])])
    return [
        *wrapped("Mean ARI with 95 % intervals; methods beside the defaults at epsilon = 1."),
        "",
        *aligned(private),
        "",
        *wrapped("Without privacy, and without weights:"),
        "",
        *aligned(others),
    ]


def _cell(mean: Mean | None) -> str:
    return "" if mean is None else value_of(mean.ari, mean.ari_margin)
