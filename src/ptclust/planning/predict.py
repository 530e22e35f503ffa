"""Predicting what a budget will show: the real pipeline, on clusters planted on the topology."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ptclust._registry import AUTO
from ptclust._traces import leaves_no_trace
from ptclust.clustering.clusterer import CLUSTERERS
from ptclust.errors import InputError, UsageError
from ptclust.graph.topology import Topology
from ptclust.planning import effort as limits
from ptclust.planning.plan import CalibrationRule, PlanRequest
from ptclust.planning.result import Prediction
from ptclust.planning.simulation import Simulation
from ptclust.privacy import Sensitivity


@leaves_no_trace
def predict(
    topology: Topology,
    *,
    sensitivity: Sensitivity,
    delta: float | Fraction,
    sizes: Sequence[int] | None = None,
    epsilons: Sequence[float] | None = None,
    planned: float | Fraction | None = None,
    clip: tuple[float, float] | None = None,
    contrast: float = 1.0,
    mechanism: str = AUTO,
    split: float | Fraction | None = None,
    clusterer: str = AUTO,
    calibration: CalibrationRule = "sound",
    repetitions: int | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Prediction:
    """Predict at which epsilon clusters of several sizes become visible, before anything is spent.

    Connected pieces of about equal size are planted as clusters on the topology, with weights that
    are small within and large across; the pipeline publishes them, and its clusters are compared
    with the planted ones. Every repetition plants anew. The same is done with all weights equal, to
    see what the topology gives away by itself.

    Parameters
    ----------
    topology : Topology
        Of a Graph, take ``graph.topology``.
    sensitivity, delta, mechanism, split, clusterer, calibration
        As for `ptclust.plan` and `ptclust.PTClust`.
    sizes : sequence of int, optional
        Nodes of a cluster, about. By default up to four sizes, from half of the largest component
        down to 8.
    epsilons : sequence of float, optional
        By default from 0.01 to 100 by decades, and a few between the last that does not show the
        clusters and the first that does, until steps are of 1, 1.5, 2, 3, 5, 7, 10.
    planned : float, optional
        An epsilon to try as well: the one that is to be spent.
    clip : pair of float, optional
        Public bounds of the weights. Without them, weights are taken to lie in 0 to 1, and the
        prediction says so.
    contrast : float, default 1
        How far apart weights within and across clusters are. At 1 those within lie in 10 to 30 % of
        the range, those across in 90 to 100 %, as in the paper's experiments; a smaller contrast
        brings them closer in proportion, and below 1/4 they overlap.
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
    )
    _check(contrast, repetitions, random_state)
    given_sizes = None if sizes is None else limits.check_sizes(sizes, topology)
    given_epsilons = None if epsilons is None else _as_epsilons(epsilons)
    simulation = Simulation(topology, request, float(contrast), int(random_state), progress)
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
    )
    problems = {size: simulation.problem(size) for size in effort.sizes}
    return Prediction(
        n_nodes=topology.n_nodes,
        n_edges=topology.n_edges,
        sensitivity=sensitivity,
        delta=float(delta),
        weight_range=request.clip,
        contrast=float(contrast),
        repetitions=effort.repetitions,
        planned=exactly,
        curves=tuple(
            simulation.curve(size, effort) for size in effort.sizes if problems[size] is None
        ),
        left_out=(*left_out, *not_tried, *filter(None, problems.values())),
    )


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
