"""What a budget will show: the real pipeline on graphs like real ones, and what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np

from ptclust._markup import counted, facts, rendered, wrapped
from ptclust._options import Bounds, CalibrationRule, Kind, Sampler, check_choice
from ptclust._registry import AUTO
from ptclust._statistics import agreement, seed_of
from ptclust._tables import right_aligned
from ptclust._traces import leaves_no_trace
from ptclust._types import Floats, Ints
from ptclust.errors import InputError, UsageError
from ptclust.graph.topology import Topology
from ptclust.planning.plan import Plan, PlanRequest, make_plan
from ptclust.planning.planting import MadeUpGraph, Planted, Planting
from ptclust.privacy import Sensitivity
from ptclust.privacy.randomness import RandomStream

_WORK = 1.5e9  # about so many steps are made, in a minute or so; a large graph needs more
_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
# Between the least and the largest of 39 a graph that is like them lies with probability 0.95, of
# 19 with 0.9.
_MANY, _FEW = 39, 19
_COVERAGE, _LIKELY = 0.9, 0.75  # of real graphs in the interval, and above the number beside it
_GOAL = 0.5  # agreement from which on clusters count as seen
_THE_SAME = 0.5  # agreement from which on two runs found about the same clusters
_LARGEST_TOTAL = 1e15
_SMALLEST = 4  # nodes that can be divided


@dataclass(frozen=True)
class Point:
    """Agreement with planted clusters at one epsilon: adjusted Rand indices (ARI)."""

    epsilon: float
    mechanism: str  # the mechanism that the plan chooses at this epsilon
    clusterer: str  # how what it releases is clustered
    reached: tuple[float, ...]  # the ARI of every planted graph
    contrasts: tuple[float, ...]  # how many times more a pair within has, of the same graphs

    def _ranked(self, share: int) -> tuple[float, float]:
        """Return the least and the largest but for one in so many at each end."""
        ordered = sorted(self.reached)
        rank = max(1, (len(ordered) + 1) // share)
        return ordered[rank - 1], ordered[-rank]

    @property
    def low(self) -> float:
        """Nine of ten real graphs lie between this and ``high``: the ends of 39 planted ones.

        A 40th that is like these would do so with probability 0.95; real ones are not quite.
        """
        return self._ranked(40)[0]

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self._ranked(40)[1]

    @property
    def likely(self) -> float:
        """Three of four graphs reach at least this."""
        return self._ranked(4)[0]

    @property
    def contrast(self) -> float | None:
        """The least contrast from which on three of four graphs reach 0.5, or None."""
        order = np.argsort(self.contrasts)[::-1]  # from the clearest graph on
        seen = np.array(self.reached)[order] >= _GOAL
        enough = np.flatnonzero(np.cumsum(seen) / np.arange(1, len(seen) + 1) >= _LIKELY)
        if not len(enough) or enough[-1] < 2:
            return None
        return float(np.array(self.contrasts)[order][enough[-1]])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers."""
        names = ("epsilon", "mechanism", "clusterer", "low", "likely", "high", "contrast")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Prediction:
    """How well clusters of graphs like real ones, planted on a topology, are found at a budget.

    It holds nothing private: the topology is public, the weights were made up.
    """

    n_nodes: int
    n_edges: int
    sensitivity: Sensitivity
    delta: float
    planting: Planting  # what was known or said of the graphs
    repetitions: int
    planned: float | None  # the epsilon that is to be spent
    points: tuple[Point, ...]  # by epsilon
    topology_clusters: int  # so many the topology shows by itself; 1 if it shows none
    topology_alone: float  # the mean agreement of these with the planted clusters
    left_out: str = ""  # what was not tried, and why

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers."""
        said = self.planting
        return {
            "n_nodes": self.n_nodes,
            "n_edges": self.n_edges,
            "sensitivity": self.sensitivity.to_dict(),
            "delta": self.delta,
            "kind": said.kind,
            "total": None if said.total is None else list(said.total),
            "weight_range": None if said.clip is None else list(said.clip),
            "n_clusters": said.n_clusters,
            "contrast": said.contrast,
            "coverage": _COVERAGE,
            "repetitions": self.repetitions,
            "planned": self.planned,
            "points": [point.to_dict() for point in self.points],
            "topology_clusters": self.topology_clusters,
            "topology_alone": self.topology_alone,
            "left_out": self.left_out,
        }

    def to_text(self) -> str:
        """Return the prediction as a page to read."""
        planted, legend = map(wrapped, self._words())
        marks = [" ", *(">" if each.epsilon == self.planned else " " for each in self.points)]
        rows = right_aligned(self._rows())
        lines = (f"{mark} {row}" for mark, row in zip(marks, rows, strict=True))
        return "\n".join([planted, "", *lines, "", legend])

    __str__ = to_text

    def plot(self, *, axes: Any = None) -> Any:
        """Draw agreement against epsilon into matplotlib's axes, and return them."""
        from ptclust.drawing.plots import plot_prediction

        return plot_prediction(self, axes)

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        graph = f"{self.n_nodes:,} nodes, {self.n_edges:,} edges"
        known = zip(("graph", "planted", "to read it"), (graph, *self._words()), strict=True)
        return facts("Prediction: nothing is spent", known, (head, rows))

    def _words(self) -> list[str]:
        """Return what was planted, and how to read what was found."""
        return rendered("prediction.txt", prediction=self, goal=_GOAL).split("\n\n")

    def _rows(self) -> list[list[str]]:
        rows = [["epsilon", "ARI, nine of ten", "three of four", "contrast seen from"]]
        for point in self.points:
            interval = f"{point.low:z.2f} to {point.high:z.2f}"
            seen = "none" if point.contrast is None else f"{point.contrast:.2g}"
            rows.append([f"{point.epsilon:g}", interval, f"{point.likely:z.2f}", seen])
        return rows


@leaves_no_trace
def predict(
    topology: Topology,
    *,
    sensitivity: Sensitivity,
    delta: float | Fraction,
    epsilons: Sequence[float] | None = None,
    planned: float | Fraction | None = None,
    kind: Kind = "distance",
    total: float | Bounds | None = None,
    n_clusters: int | None = None,
    contrast: float | None = None,
    clip: Bounds | None = None,
    mechanism: str = AUTO,
    split: float | Fraction | None = None,
    clusterer: str = AUTO,
    calibration: CalibrationRule = "sound",
    sampler: Sampler = "auto",
    repetitions: int | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Prediction:
    """Predict how well clusters would be found, before anything is spent.

    Graphs like real ones are planted on the topology and published as yours would be; the found
    clusters are compared with the planted ones. The answer is a wide interval: real graphs differ
    in the number and the contrast of their clusters, in the tails of their weights, and in how many
    nodes have a group that their weights do not show. Each planted graph draws all of these anew;
    docs/prediction.md says how often the interval was right.

    Parameters
    ----------
    topology : Topology
        Of a Graph, take ``graph.topology``.
    sensitivity, delta, mechanism, split, clusterer, calibration, sampler
        As for `ptclust.plan` and `ptclust.PTClust`.
    epsilons : sequence of float, optional
        By default 0.1, 0.3, 1, 3 and 10.
    planned : float, optional
        The epsilon that is to be spent; it is tried as well.
    kind : {"distance", "similarity"}, default "distance"
        What the weights are. Similarities are taken for counts.
    total : float or pair of float, optional
        Of counts: the sum of all weights, as far as it is known without looking, or an interval
        (`ptclust.building.caps.counted` makes it of numbers of persons and records). If None it is
        drawn, too.
    n_clusters : int, optional
        How many clusters you expect.
    contrast : float, optional
        How many times heavier pairs within clusters are than comparable pairs across, above 1;
        for distances, how many times closer.
    clip : pair of float, optional
        Public bounds of the weights. Without them distances are taken to lie in 0 to 1.
    repetitions : int, optional
        How many graphs are planted: by default 39, or 19 if the topology is large.
    random_state : int, default 0
        The same number gives the same prediction.

    Notes
    -----
    *Privacy.* Only the topology, which is public, is looked at. Nothing is spent.

    Examples
    --------
    >>> import numpy as np
    >>> from ptclust import Sensitivity, Topology
    >>> all_pairs = Topology(*np.triu_indices(40, 1))
    >>> said = {"kind": "similarity", "total": 5e5, "n_clusters": 2, "contrast": 50}
    >>> unit = {"sensitivity": Sensitivity(l1=1), "delta": 0}
    >>> prediction = predict(all_pairs, epsilons=[1e-4, 1], repetitions=9, **said, **unit)
    >>> [point.high > 0.5 for point in prediction.points]
    [False, True]
    """
    _check_topology(topology)
    request = PlanRequest(
        epsilon=1 if planned is None else planned,
        delta=delta,
        sensitivity=sensitivity,
        mechanism=mechanism,
        split=split,
        clusterer=clusterer,
        calibration=calibration,
        clip=clip,
        sampler=sampler,
    )
    check_choice("kind", kind, Kind)
    _check_contrast(contrast)
    if random_state is None:
        raise UsageError("random_state must be a number: predictions need no secret randomness")
    _check_whole("n_clusters", n_clusters, 2, topology.n_nodes // 2)
    _check_whole("repetitions", repetitions, 1, 10**6)
    _check_whole("random_state", random_state, 0, 2**63)
    bounds = _as_total(total, kind)
    planting = Planting(topology, kind, bounds, request.clip, n_clusters, contrast)
    tried = set(_EPSILONS) if epsilons is None else _as_epsilons(epsilons)
    if planned is not None:
        tried.add(float(planned))
    plans = {each: make_plan(topology, replace(request, epsilon=each)) for each in sorted(tried)}
    n_steps, left_out = _n_steps(plans.values()), ""
    number = repetitions or (_MANY if n_steps * _MANY <= _WORK else _FEW)
    if n_steps * number > _WORK and epsilons is None:
        only = float(request.epsilon)
        plans, left_out = {only: plans[only]}, f"all epsilons but {only:g}, as the graph is large"
    trial = _Trial(planting, int(random_state), progress)
    communities = trial.communities(make_plan(topology, request))
    seeds = (seed_of(trial.seed, "graph", i) for i in range(number))
    graphs = [planting.plant(communities, np.random.default_rng(seed)) for seed in seeds]
    return Prediction(
        n_nodes=topology.n_nodes,
        n_edges=topology.n_edges,
        sensitivity=sensitivity,
        delta=float(delta),
        planting=planting,
        repetitions=number,
        planned=None if planned is None else float(planned),
        points=tuple(trial.point(epsilon, plan, graphs) for epsilon, plan in plans.items()),
        topology_clusters=int(communities.max()) + 1,
        topology_alone=float(np.mean([agreement(each.truth, communities) for each in graphs])),
        left_out=left_out,
    )


def _n_steps(plans: Iterable[Plan]) -> float:
    """Return about how many steps a release by each of these plans takes."""
    return sum(each.choose_clusterer().cost.steps(each.n_nodes + each.n_edges) for each in plans)


@dataclass(frozen=True)
class _Trial:
    """The pipeline on planted graphs."""

    planting: Planting
    seed: int
    progress: Callable[[str], None]

    def communities(self, plan: Plan) -> Ints:
        """Return the clusters that the topology shows by itself; those of noise differ by run."""
        found = []
        for i in range(2):
            random = np.random.default_rng(seed_of(self.seed, "without clusters", i))
            weights = self.planting.without_clusters(random)
            found.append(self.labels(plan, weights, "without clusters", i))
        is_found_again = agreement(*found) >= _THE_SAME
        shown = found[0] if is_found_again else self.planting.topology.components
        communities: Ints = np.unique(shown, return_inverse=True)[1].astype(np.int64)
        return communities

    def labels(self, plan: Plan, weights: Floats, *key: object) -> Ints:
        """Return the clusters that are published; ``key`` tells one run's noise from another's."""
        graph = MadeUpGraph(self.planting.topology, weights, self.planting.kind)
        with RandomStream.seeded(seed_of(self.seed, "noise", *key)) as stream:
            published = plan.mechanism.draw(graph, plan.chosen, stream)
        return plan.choose_clusterer().cluster(published).labels

    def point(self, epsilon: float, plan: Plan, graphs: Sequence[Planted]) -> Point:
        """Return what is reached at one epsilon."""
        reached = []
        for i, graph in enumerate(graphs):
            self.progress(f"Predicting: epsilon = {epsilon:g}, graph {i + 1} of {len(graphs)}")
            reached.append(agreement(graph.truth, self.labels(plan, graph.weights, epsilon, i)))
        return Point(
            epsilon=epsilon,
            mechanism=plan.chosen.mechanism,
            clusterer=plan.choose_clusterer().name,
            reached=tuple(reached),
            contrasts=tuple(graph.contrast for graph in graphs),
        )


def _as_total(total: Any, kind: Kind) -> Bounds | None:
    """Return between which numbers the sum of counts lies."""
    if total is None:
        return None
    if kind == "distance":
        raise UsageError("total is for counts: give kind='similarity', or leave it out")
    try:
        low, high = map(float, (total, total) if np.isscalar(total) else total)
    except (TypeError, ValueError):
        raise UsageError(f"total must be a number or a pair of them, not {total!r}") from None
    if not 0 < low <= high <= _LARGEST_TOTAL:
        most = f"{_LARGEST_TOTAL:g}"
        raise UsageError(f"total must lie above 0 and be at most {most}, not {total!r}")
    return low, high


def _check_topology(topology: object) -> None:
    if not isinstance(topology, Topology):
        raise InputError(
            f"a prediction needs a Topology, not a {type(topology).__name__}: it looks at no "
            "weight. Of a Graph take graph.topology"
        )
    largest = int(np.bincount(topology.components).max(initial=0)) if topology.n_nodes else 0
    if largest < _SMALLEST:
        raise InputError(
            "there is nothing to predict where connected parts have at most "
            f"{counted(largest, 'node')}; clusters are planted on parts of at least {_SMALLEST}"
        )


def _check_contrast(contrast: Any) -> None:
    is_number = isinstance(contrast, (int, float, np.number))
    if contrast is not None and not (is_number and 1 < contrast < np.inf):
        raise UsageError(
            "contrast is how many times more a pair within a cluster has than one across: a number "
            f"above 1, not {contrast!r}"
        )


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value is not None and not (is_whole and least <= value <= most):
        raise UsageError(f"{name} must be a whole number from {least} to {most:,}, not {value!r}")


def _as_epsilons(epsilons: Sequence[float | Fraction]) -> set[float]:
    try:
        tried = {float(epsilon) for epsilon in epsilons}
    except (TypeError, ValueError):
        tried = set()
    if not tried or not all(0 < epsilon < np.inf for epsilon in tried):
        raise UsageError(f"epsilons must be positive numbers, not {epsilons!r}")
    return tried
