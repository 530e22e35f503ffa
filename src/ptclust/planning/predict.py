"""Predicting what a budget will show: the real pipeline, on clusters planted on the topology."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np

from ptclust._registry import AUTO
from ptclust._traces import leaves_no_trace
from ptclust.clustering.clusterer import CLUSTERERS
from ptclust.errors import InputError, UsageError
from ptclust.graph.topology import Kind, Topology
from ptclust.planning import effort as limits
from ptclust.planning.plan import CalibrationRule, PlanRequest
from ptclust.planning.planting import Bounds, Counts, Planting, TwoLevels
from ptclust.planning.result import Prediction
from ptclust.planning.simulation import Simulation
from ptclust.privacy import Sensitivity
from ptclust.privacy.noise import Sampler

_MEAN_COUNTS = (1000.0, 100.0, 10.0, 1.0)  # of a pair, where nobody said how many records there are
_MOST_RECORDS = 1e15


@leaves_no_trace
def predict(
    topology: Topology,
    *,
    sensitivity: Sensitivity,
    delta: float | Fraction,
    sizes: Sequence[int] | None = None,
    epsilons: Sequence[float] | None = None,
    planned: float | Fraction | None = None,
    kind: Kind = "distance",
    total: float | None = None,
    clip: tuple[float, float] | None = None,
    contrast: float = 1.0,
    mechanism: str = AUTO,
    split: float | Fraction | None = None,
    clusterer: str = AUTO,
    calibration: CalibrationRule = "sound",
    sampler: Sampler = "auto",
    repetitions: int | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Prediction:
    """Predict at which epsilon clusters of several sizes become visible, before anything is spent.

    Connected pieces of about equal size are planted as clusters on the topology, with weights that
    show them; the pipeline publishes these, and its clusters are compared with the planted ones.
    Every repetition plants anew. The same is done with weights without clusters, to see what
    the topology gives away by itself.

    Distances are small within clusters and large across. Similarities are counts of records as
    flows have them: the expected count of two nodes is the product of their sizes, which differ
    widely (log-normal, deviation 0.9 of the logarithm), times a factor of the pair (deviation 0.5),
    and 1/20 of that across clusters.

    Parameters
    ----------
    topology : Topology
        Of a Graph, take ``graph.topology``.
    sensitivity, delta, mechanism, split, clusterer, calibration, sampler
        As for `ptclust.plan` and `ptclust.PTClust`.
    sizes : sequence of int, optional
        Nodes of a cluster, about. By default up to four sizes, from half of the largest component
        down to 8.
    epsilons : sequence of float, optional
        By default from 0.01 to 100 by decades, and a few between the last that does not show the
        clusters and the first that does, until steps are of 1, 1.5, 2, 3, 5, 7, 10.
    planned : float, optional
        An epsilon to try as well: the one that is to be spent.
    kind : {"distance", "similarity"}, default "distance"
        What the weights are. Similarities are taken for counts, as those of a graph that was built
        of flows or visits.
    total : float, optional
        Of counts: about the sum of all weights, as far as you know it without a look at them. Of
        flows that is the number of records, of visits the number of persons times
        k (k - 1) / 2. By default several orders of magnitude are tried.
    clip : pair of float, optional
        Public bounds of the weights. Without them, distances are taken to lie in 0 to 1, and the
        prediction says so.
    contrast : float, default 1
        How far apart weights within and across clusters are. At 1 distances within lie in 10 to
        30 % of the range, those across in 90 to 100 %, as in the paper's experiments; a smaller
        contrast brings them closer in proportion, and below 1/4 they overlap. Counts across are
        1/20 of those within at 1, about half at 0.5.
    repetitions : int, optional
        By default up to 16.
    random_state : int, default 0
        The same number gives the same prediction.

    Returns
    -------
    Prediction
        Of sizes, epsilons and repetitions that are not given, as much is tried as fits in a bounded
        amount of work. Where 'auto' means a clusterer of which one run would take too long, another
        takes its place. ``left_out`` says what was not tried.

    Notes
    -----
    *Privacy.* Only the topology, which is public, is looked at; weights are made up. Nothing is
    spent.

    Examples
    --------
    >>> import numpy as np
    >>> from ptclust import Sensitivity, Topology
    >>> all_pairs = Topology(*np.triu_indices(40, 1))
    >>> trials = {"sizes": [20], "epsilons": [0.001, 1.0], "repetitions": 4}
    >>> prediction = predict(all_pairs, sensitivity=Sensitivity(linf=0.001), delta=1e-6, **trials)
    >>> prediction.curves[0].visible_from
    1.0
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
    _check(contrast, repetitions, random_state)
    plantings = _plantings(topology, kind, total, request.clip, float(contrast))
    given_sizes = None if sizes is None else limits.check_sizes(sizes, topology)
    given_epsilons = None if epsilons is None else _as_epsilons(epsilons)
    simulation = Simulation(topology, request, plantings[0], int(random_state), progress)
    left_out: list[str] = []
    some_epsilons = given_epsilons or (1.0,)
    fast = next(each.name for each in CLUSTERERS if each.needs == "tree")
    slow = max(
        (simulation.plan(epsilon).choose_clusterer() for epsilon in some_epsilons),
        key=lambda each: each.cost.steps(topology.n_nodes + topology.n_edges),
    ).name
    if clusterer == AUTO and slow != fast and simulation.n_steps(some_epsilons) > limits.WORK:
        # A single run would be too long to wait for.
        simulation = replace(simulation, request=replace(request, clusterer=fast), _plans={})
        left_out.append(
            f"clusterer={slow!r}, which 'auto' means here and which as a rule sees more: one run "
            f"takes long. The above holds for clusterer={fast!r}; to wait for the other, ask for it"
        )
    exactly = None if planned is None else float(planned)
    effort, not_tried = limits.fitted_effort(
        simulation.n_steps,
        topology=topology,
        sizes=given_sizes,
        epsilons=given_epsilons,
        planned=exactly,
        repetitions=repetitions,
        n_totals=len(plantings),
    )
    problems = {size: simulation.problem(size) for size in effort.sizes}
    simulations = [replace(simulation, planting=each, _controls={}) for each in plantings]
    curves = tuple(
        each.curve(size, effort)
        for each in simulations
        for size in effort.sizes
        if problems[size] is None
    )
    return Prediction(
        n_nodes=topology.n_nodes,
        n_edges=topology.n_edges,
        sensitivity=sensitivity,
        delta=float(delta),
        kind=kind,
        total=total,
        weight_range=request.clip,
        contrast=float(contrast),
        repetitions=effort.repetitions,
        planned=exactly,
        curves=curves,
        topology_clusters=max(each.topology_clusters for each in simulations),
        left_out=(*left_out, *not_tried, *filter(None, problems.values())),
    )


def _plantings(
    topology: Topology, kind: Kind, total: float | None, clip: Bounds | None, contrast: float
) -> tuple[Planting, ...]:
    """Return the weights that are to be made up: of counts, in one total or several."""
    if kind not in get_args(Kind):
        raise UsageError(f"kind must be 'distance' or 'similarity', not {kind!r}")
    if kind == "distance":
        if total is not None:
            raise UsageError("total is that of counts: say kind='similarity', or leave it out")
        return (TwoLevels(clip or (0.0, 1.0), contrast),)
    if total is None:
        return tuple(Counts(mean * topology.n_edges, contrast, clip) for mean in _MEAN_COUNTS)
    if isinstance(total, bool) or not isinstance(total, (int, float, np.number)):
        raise UsageError(f"total must be a number, not {total!r}")
    if not 0 < total <= _MOST_RECORDS:
        raise UsageError(f"total must lie above 0 and be at most {_MOST_RECORDS:g}, not {total!r}")
    return (Counts(float(total), contrast, clip),)


def _check(contrast: float, repetitions: int | None, random_state: int) -> None:
    number = isinstance(contrast, (int, float, np.number)) and not isinstance(contrast, bool)
    if not number or not 0 < contrast <= 1:
        raise UsageError(f"contrast must lie above 0 and be at most 1, not {contrast!r}")
    for name, value, least in (("repetitions", repetitions, 1), ("random_state", random_state, 0)):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if value is not None and (not whole or value < least):
            raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if random_state is None:
        raise UsageError("random_state must be a number: predictions need no secret randomness")


def _as_epsilons(epsilons: Sequence[float | Fraction]) -> tuple[float, ...]:
    try:
        listed = sorted({float(epsilon) for epsilon in epsilons})
    except (TypeError, ValueError):
        listed = []
    if not listed or not all(0 < epsilon < float("inf") for epsilon in listed):
        raise UsageError(f"epsilons must be positive numbers, not {epsilons!r}")
    return tuple(listed)
