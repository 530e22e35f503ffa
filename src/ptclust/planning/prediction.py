"""What a budget will show: the real pipeline on graphs like real ones, and what it found."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ptclust._markup import facts
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
_THE_SAME = 0.5  # agreement from which on two runs found about the same clusters
_LARGEST_TOTAL = 1e15
_SMALLEST = 4  # nodes that can be divided


COVERAGE, LIKELY = 0.9, 0.75
GOAL = 0.5  # agreement from which on clusters count as seen


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
        seen = np.array(self.reached)[order] >= GOAL
        share = np.cumsum(seen) / np.arange(1, len(seen) + 1)
        enough = np.flatnonzero(share >= LIKELY)
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

    def at(self, epsilon: float) -> Point:
        """Return the point at this epsilon; KeyError if it was not tried."""
        found = {point.epsilon: point for point in self.points}
        return found[epsilon]

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
            "coverage": COVERAGE,
            "repetitions": self.repetitions,
            "planned": self.planned,
            "points": [point.to_dict() for point in self.points],
            "topology_clusters": self.topology_clusters,
            "topology_alone": self.topology_alone,
            "left_out": self.left_out,
        }

    def to_text(self) -> str:
        """Return the prediction as a page to read."""
        words = (
            f"Prediction: {self.repetitions} graphs like real ones, planted on this topology and "
            f"published. Nothing is spent. {self._said} All else is drawn for each."
        )
        rows = right_aligned(self._rows())
        marked = [" "] + [">" if p.epsilon == self.planned else " " for p in self.points]
        lines = [f"{mark} {row}" for mark, row in zip(marked, rows, strict=True)]
        return "\n".join([*_wrapped(words), "", *lines, "", *_wrapped(self._legend)])

    @property
    def _said(self) -> str:
        said, known = self.planting, []
        if said.kind == "distance":
            low, high = said.clip or (0.0, 1.0)
            taken = "" if said.clip else ", as assumed (clip=)"
            known.append(f"Distances lie in {low:g} to {high:g}{taken}.")
        elif said.total is None:
            known.append("The total of the counts is unknown: give the number of records.")
        else:
            least, most = (f"{each:,.0f}" for each in said.total)
            known.append(f"Counts add up to {least if least == most else f'{least} to {most}'}.")
        if said.n_clusters is not None:
            known.append(f"There are {said.n_clusters:,} clusters.")
        if said.contrast is not None:
            known.append(f"The contrast is {said.contrast:g}.")
        return " ".join(known)

    @property
    def _legend(self) -> str:
        more = "closer" if self.planting.kind == "distance" else "heavier"
        lines = (
            "ARI: adjusted Rand index; 1 is the same, 0 is chance. Nine of ten such graphs lie in "
            "the interval, and three of four reach the number after it. Contrast: how many times "
            f"{more} pairs within clusters have to be for three of four to reach {GOAL:g}."
        )
        if self.topology_clusters > 1:
            lines += (
                f" The topology alone shows {self.topology_clusters:,} clusters, whatever the "
                f"weights (mean ARI {_two_digits(self.topology_alone)}), which are public."
            )
        return lines + (f" Left out: {self.left_out}." if self.left_out else "")

    def plot(self, *, axes: Any = None) -> Any:
        """Draw agreement against epsilon with matplotlib, and return the axes."""
        from ptclust.drawing.plots import plot_prediction

        return plot_prediction(self, axes)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        known: list[tuple[str, object]] = [
            ("graph", f"{self.n_nodes:,} nodes, {self.n_edges:,} edges"),
            ("planted", f"{self.repetitions} graphs. {self._said}"),
            ("to read it", self._legend),
        ]
        return facts("Prediction: nothing is spent", known, (head, rows))

    def _rows(self) -> list[list[str]]:
        rows = [["epsilon", "ARI, nine of ten", "three of four", "contrast seen from"]]
        for point in self.points:
            interval = f"{_two_digits(point.low)} to {_two_digits(point.high)}"
            seen = "none" if point.contrast is None else f"{point.contrast:.2g}"
            rows.append([f"{point.epsilon:g}", interval, _two_digits(point.likely), seen])
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
    clusters are compared with the planted ones. The answer is an interval, and it is wide: real
    graphs differ widely in the number and the contrast of their clusters, in the tails of their
    weights, and in how many nodes have a group that their weights do not show. Each planted graph
    draws all of these anew; docs/prediction.md has their distributions, and how often the interval
    was right.

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
        Of counts: the sum of all weights, as far as it is known without looking, or an interval for
        it: `ptclust.building.caps.counted` makes it of the number of persons and records. If None
        it is drawn, too.
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
    *Privacy.* Only the topology, which is public, is looked at; weights are made up. Nothing is
    spent.

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
    if not isinstance(topology, Topology):
        raise InputError(
            f"a prediction needs a Topology, not a {type(topology).__name__}: it looks at no "
            "weight. Of a Graph take graph.topology"
        )
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
    _check(topology, kind, n_clusters, contrast, repetitions, random_state)
    planting = Planting(
        topology,
        kind,
        total=_as_total(total, kind),
        clip=request.clip,
        n_clusters=n_clusters,
        contrast=contrast,
    )
    exactly = None if planned is None else float(planned)
    tried = _EPSILONS if epsilons is None else _as_epsilons(epsilons)
    tried = tuple(sorted({*tried, *(() if exactly is None else (exactly,))}))
    trial = _Trial(planting, request, int(random_state), progress)
    number, left_out = repetitions or _MANY, ""
    if trial.n_steps(tried) * number > _WORK and repetitions is None:
        number = _FEW
    if trial.n_steps(tried) * number > _WORK and epsilons is None:
        tried = (float(request.epsilon),)
        left_out = f"all epsilons but {tried[0]:g}, as the graph is large"
    graphs = trial.plant(number)
    return Prediction(
        n_nodes=topology.n_nodes,
        n_edges=topology.n_edges,
        sensitivity=sensitivity,
        delta=float(delta),
        planting=planting,
        repetitions=number,
        planned=exactly,
        points=tuple(trial.point(epsilon, graphs) for epsilon in tried),
        topology_clusters=int(trial.communities.max()) + 1,
        topology_alone=float(np.mean([agreement(g.truth, trial.communities) for g in graphs])),
        left_out=left_out,
    )


@dataclass
class _Trial:
    """The pipeline on planted graphs."""

    planting: Planting
    request: PlanRequest  # its epsilon is replaced by those that are tried
    seed: int
    progress: Callable[[str], None]

    def plan(self, epsilon: float) -> Plan:
        """Return the plan that the real release would follow."""
        return make_plan(self.planting.topology, replace(self.request, epsilon=epsilon))

    def n_steps(self, epsilons: Sequence[float]) -> float:
        """Return about how many steps a release at all of these epsilons takes."""
        many = self.planting.topology.n_nodes + self.planting.topology.n_edges
        return sum(self.plan(each).choose_clusterer().cost.steps(many) for each in epsilons)

    def plant(self, number: int) -> list[Planted]:
        """Return so many graphs, and keep the communities that the topology shows by itself."""
        plan, found = self.plan(float(self.request.epsilon)), []
        for i in range(2):  # clusters of noise are not found again
            random = np.random.default_rng(seed_of(self.seed, "without clusters", i))
            weights = self.planting.without_clusters(random)
            found.append(self.labels(plan, weights, "without clusters", i))
        is_found_again = agreement(*found) >= _THE_SAME
        shown = found[0] if is_found_again else self.planting.topology.components
        self.communities = np.unique(shown, return_inverse=True)[1].astype(np.int64)
        seeds = (seed_of(self.seed, "graph", i) for i in range(number))
        return [self.planting.plant(self.communities, np.random.default_rng(s)) for s in seeds]

    def labels(self, plan: Plan, weights: Floats, *key: object) -> Ints:
        """Return the clusters that are published; ``key`` tells one run's noise from another's."""
        graph = MadeUpGraph(self.planting.topology, weights, self.planting.kind)
        with RandomStream.seeded(seed_of(self.seed, "noise", *key)) as stream:
            published = plan.mechanism.draw(graph, plan.chosen, stream)
        return plan.choose_clusterer().cluster(published).labels

    def point(self, epsilon: float, graphs: Sequence[Planted]) -> Point:
        """Return what is reached at one epsilon."""
        plan, reached = self.plan(epsilon), []
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


def _as_total(total: float | Bounds | None, kind: Kind) -> Bounds | None:
    """Return between which numbers the sum of counts lies."""
    if total is None:
        return None
    if kind == "distance":
        raise UsageError("total is for counts: give kind='similarity', or leave it out")
    try:
        low, high = (float(total),) * 2 if np.isscalar(total) else map(float, total)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(f"total must be a number or a pair of them, not {total!r}") from None
    if not 0 < low <= high <= _LARGEST_TOTAL:
        most = f"{_LARGEST_TOTAL:g}"
        raise UsageError(f"total must lie above 0 and be at most {most}, not {total!r}")
    return low, high


def _check(
    topology: Topology,
    kind: object,
    n_clusters: object,
    contrast: object,
    repetitions: object,
    random_state: object,
) -> None:
    check_choice("kind", kind, Kind)
    largest = int(np.bincount(topology.components).max(initial=0)) if topology.n_nodes else 0
    if largest < _SMALLEST:
        raise InputError(
            "there is nothing to predict where connected parts have at most "
            f"{largest} node{'s' * (largest != 1)}; clusters are planted on parts of at least 4"
        )
    number = isinstance(contrast, (int, float, np.number)) and not isinstance(contrast, bool)
    if contrast is not None and not (number and 1 < contrast < np.inf):  # type: ignore[operator]
        raise UsageError(
            "contrast is how many times more a pair within a cluster has than one across: a number "
            f"above 1, not {contrast!r}"
        )
    if random_state is None:
        raise UsageError("random_state must be a number: predictions need no secret randomness")
    whole = {"n_clusters": (n_clusters, 2, topology.n_nodes // 2)}
    whole |= {"repetitions": (repetitions, 1, 10**6), "random_state": (random_state, 0, 2**63)}
    for name, (value, least, most) in whole.items():
        is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if value is not None and not (is_whole and least <= value <= most):  # type: ignore[operator]
            raise UsageError(
                f"{name} must be a whole number from {least} to {most:,}, not {value!r}"
            )


def _as_epsilons(epsilons: Sequence[float | Fraction]) -> tuple[float, ...]:
    try:
        listed = sorted({float(epsilon) for epsilon in epsilons})
    except (TypeError, ValueError):
        listed = []
    if not listed or not all(0 < epsilon < float("inf") for epsilon in listed):
        raise UsageError(f"epsilons must be positive numbers, not {epsilons!r}")
    return tuple(listed)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 88, break_on_hyphens=False)


def _two_digits(number: float) -> str:
    return f"{number:.2f}".replace("-0.00", "0.00")
