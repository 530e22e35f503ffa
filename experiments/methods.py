"""The private methods that experiments compare, and their plans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ptclust.planning.plan import Plan, plan

if TYPE_CHECKING:
    from experiments.settings import Setting
    from ptclust.graph import Graph
    from ptclust.planning.plan import Clusterer
    from ptclust.planning.plan import Method as Mechanism

__all__ = ["METHODS", "PAPER_METHODS", "Method", "Plans"]


@dataclass(frozen=True)
class Method:
    """A private method: a mechanism, its budget and calibration, and a clusterer of its output."""

    name: str
    title: str
    tree: Literal["auto", "whole", "kruskal", "pamst", "gaussian", "laplace"]
    """The mechanism; ``whole`` perturbs all weights, by the noise of smaller deviation."""
    pure: bool
    """Whether it is run with delta = 0, whatever delta the setting allows."""
    calibration: Literal["sound", "published"] = "sound"
    clusterer: Clusterer = "dbmstclu"


PAPER_METHODS = (
    Method("published", "PTClust as published", "pamst", pure=True, calibration="published"),
    Method("sound", "PTClust, sound", "pamst", pure=True),
)
METHODS = (
    Method("auto", "ptclust's defaults", "auto", pure=False, clusterer="auto"),
    Method(
        "contraction", "whole graph + contraction", "whole", pure=False, clusterer="contraction"
    ),
    Method("levels", "Kruskal zCDP + levels", "kruskal", pure=False, clusterer="levels"),
    Method("perturbation", "whole graph + DBMSTClu", "whole", pure=False),
    Method("kruskal", "Kruskal zCDP + DBMSTClu", "kruskal", pure=False),
    Method("pamst", "PAMST zCDP + DBMSTClu", "pamst", pure=False),
    *reversed(PAPER_METHODS),
)
"""Of the utility benchmark."""


class Plans:
    """The plans of a setting; the calibration of drawn trees does not depend on the edges."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._plans: dict[tuple[str, float], Plan] = {}

    def get(self, graph: Graph, method: Method, epsilon: float) -> Plan:
        """Return the plan for a graph of this setting."""
        known = self._plans.get((method.name, epsilon))
        if known is not None and (
            method.tree in ("kruskal", "pamst") or known.n_edges == graph.n_edges
        ):
            return replace(known, n_edges=graph.n_edges)
        made = self._plans[method.name, epsilon] = self._made(graph, method, epsilon)
        return made

    def _made(self, graph: Graph, method: Method, epsilon: float) -> Plan:
        delta = 0 if method.pure else self._setting.delta
        if method.tree == "auto":  # what a user gets who says nothing of all this
            return plan(
                graph.topology,
                epsilon=epsilon,
                delta=delta,
                sensitivity=self._setting.sensitivity,
            )
        trees: tuple[Mechanism, ...] = ("gaussian", "laplace") if delta else ("laplace",)
        if method.tree != "whole":
            trees = (method.tree,)
        plans = [
            plan(
                graph.topology,
                epsilon=epsilon,
                delta=delta,
                sensitivity=self._setting.sensitivity,
                tree=tree,
                calibration=method.calibration,
            )
            for tree in trees
        ]
        return min(plans, key=lambda made: made.chosen.noise)
