"""The private methods that experiments compare, and their plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ptclust.mechanisms import MECHANISMS
from ptclust.pipeline import ReleaseRequest, publish
from ptclust.planning import Plan, plan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from experiments.settings import Setting
    from ptclust._options import CalibrationRule
    from ptclust.graph import Graph
    from ptclust.release import Release

__all__ = ["METHODS", "PAPER_METHODS", "WHOLE", "Method", "Plans", "release_of"]

WHOLE = "whole"
_OF_TREES = tuple(each.name for each in MECHANISMS if each.publishes == "tree")
"""They are calibrated to the number of nodes, whatever that of edges."""


@dataclass(frozen=True)
class Method:
    """A private method: a mechanism, its budget and calibration, and a clusterer of its output."""

    name: str
    title: str
    mechanism: str
    """A mechanism, or ``auto``; ``whole`` perturbs all weights, by the noise of least deviation."""
    pure: bool
    """Whether it is run with delta = 0, whatever delta the setting allows."""
    calibration: CalibrationRule = "sound"
    clusterer: str = "dbmstclu"
    search: Callable[[Release, NDArray[np.int64]], NDArray[np.int64]] | None = None
    """In place of a clusterer: what others do with a release; of the truth, who says so uses K."""


PAPER_METHODS = (
    Method("published", "PTClust as published", "pamst", pure=True, calibration="published"),
    Method("sound", "PTClust, sound", "pamst", pure=True),
)
METHODS = (
    Method("auto", "ptclust's defaults", "auto", pure=False, clusterer="auto"),
    Method("communities", "whole graph + communities", WHOLE, pure=False, clusterer="communities"),
    Method("levels", "Kruskal zCDP + levels", "kruskal", pure=False, clusterer="levels"),
    Method("perturbation", "whole graph + DBMSTClu", WHOLE, pure=False),
    Method("kruskal", "Kruskal zCDP + DBMSTClu", "kruskal", pure=False),
    Method("pamst", "PAMST zCDP + DBMSTClu", "pamst", pure=False),
    *reversed(PAPER_METHODS),
)
"""Of the utility benchmark, beside Leiden on the same releases: see `rivals.PLANTED_METHODS`."""


class Plans:
    """The plans of a setting; the calibration of drawn trees does not depend on the edges."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._plans: dict[tuple[str, float], Plan] = {}

    def get(self, graph: Graph, method: Method, epsilon: float) -> Plan:
        """Return the plan for a graph of this setting."""
        known = self._plans.get((method.name, epsilon))
        if known is not None and (method.mechanism in _OF_TREES or known.n_edges == graph.n_edges):
            return replace(known, n_edges=graph.n_edges)
        made = self._plans[method.name, epsilon] = self._made(graph, method, epsilon)
        return made

    def _made(self, graph: Graph, method: Method, epsilon: float) -> Plan:
        delta = 0 if method.pure else self._setting.delta
        mechanisms = [method.mechanism]
        if method.mechanism == WHOLE:
            mechanisms = [
                each.name
                for each in MECHANISMS
                if each.publishes == "graph" and (delta or "pure" in each.variants)
            ]
        plans = [
            plan(
                graph.topology,
                epsilon=epsilon,
                delta=delta,
                sensitivity=self._setting.sensitivity,
                mechanism=mechanism,
                calibration=method.calibration,
            )
            for mechanism in mechanisms
        ]
        return min(plans, key=lambda made: made.chosen.noise)


def release_of(
    graph: Graph, plan: Plan, *, clusterer: str | None = None, random_state: int
) -> Release:
    """Carry out a plan with noise from a seed; ``clusterer`` takes the place of the plan's own."""
    wanted = plan.request if clusterer is None else replace(plan.request, clusterer=clusterer)
    return publish(graph, ReleaseRequest.of(wanted, random_state=random_state), plan=plan)
