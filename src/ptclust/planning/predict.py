"""Predicting what a budget will show: the real pipeline, on clusters planted on the public topology."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ptclust._registry import AUTO
from ptclust.errors import InputError, UsageError
from ptclust.graph.topology import Topology
from ptclust.planning import effort as effort_module
from ptclust.planning.effort import check_sizes, default_sizes, fitted_effort
from ptclust.planning.plan import PlanRequest
from ptclust.planning.result import Curve, Prediction
from ptclust.planning.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from ptclust.planning.plan import CalibrationRule
    from ptclust.privacy import Sensitivity

__all__ = ["predict"]

_INSTEAD = (
    "clusterer='contraction', which 'auto' means here and which as a rule sees more, for one run of it on this graph "
    "takes long. The above holds for clusterer='levels'; to wait for the other, ask for it"
)


def predict(
    topology: Topology,
    *,
    sensitivity: Sensitivity,
    delta: float | Fraction,
    sizes: Sequence[int] | None = None,
    epsilons: Sequence[float] | None = None,
    planned: float | Fraction | None = None,
    weight_range: tuple[float, float] | None = None,
    contrast: float = 1.0,
    mechanism: str = AUTO,
    split: float | Fraction | None = None,
    clusterer: str = AUTO,
    calibration: CalibrationRule = "sound",
    repetitions: int | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Prediction:
    """Tell at which epsilon clusters of several sizes would become visible, before anything is spent.

    On the given topology, connected pieces of about equal size are planted as clusters, with weights that are small
    within and large across; the pipeline publishes them, and its clusters are compared with the planted ones. Every
    repetition plants anew. The same is done with all weights equal, to see what the topology gives away by itself.

    Parameters
    ----------
    topology : Topology
        Of a Graph, take ``graph.topology``.
    sensitivity, delta, mechanism, split, clusterer, calibration
        As for `ptclust.plan` and `ptclust.PTClust`.
    sizes : sequence of int, optional
        Nodes of a cluster, about. By default up to four sizes, from half of the largest component down to 8.
    epsilons : sequence of float, optional
        By default from 0.01 to 100 by decades, and a few between the last that does not show the clusters and the
        first that does, until steps are of 1, 1.5, 2, 3, 5, 7, 10.
    planned : float, optional
        An epsilon to try as well: the one that is to be spent.
    weight_range : pair of float, optional
        Public bounds of the weights. Without them, weights are taken to lie in 0 to 1, and the prediction says so.
    contrast : float, default 1
        How far apart weights within and across clusters are. At 1 those within lie in 10 to 30 % of the range, those
        across in 90 to 100 %, as in the paper's experiments; a smaller contrast brings them closer in proportion, and
        below 1/4 they overlap.
    repetitions : int, optional
        By default up to 16.
    random_state : int, default 0
        The same number gives the same prediction.
    progress : callable
        Called with what is being done.

    Returns
    -------
    Prediction
        Of sizes, epsilons and repetitions that are not given, as much is tried as fits in a bounded amount of work;
        what was left out is in its ``left_out``. Where 'auto' means a clusterer of which one run would take too long,
        another takes its place, and the prediction says so.

    Notes
    -----
    *Privacy.* Only the topology, which is public, is looked at; weights are made up. Nothing is spent.

    Examples
    --------
    >>> import numpy as np
    >>> from ptclust import Sensitivity, Topology
    >>> all_pairs = Topology(*np.triu_indices(40, 1))
    >>> linf = Sensitivity(linf=0.001)
    >>> prediction = predict(
    ...     all_pairs, sensitivity=linf, delta=1e-6, sizes=[20], epsilons=[0.001, 1.0], repetitions=4
    ... )
    >>> prediction.curves[0].visible_from
    1.0
    """
    if not isinstance(topology, Topology):
        raise InputError(
            f"a prediction is made for a Topology, not an object of type {type(topology).__name__}: it looks at no "
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
        weight_range=weight_range,
    )
    return predict_request(
        topology,
        request,
        planned=planned is not None,
        sizes=sizes,
        epsilons=epsilons,
        contrast=contrast,
        repetitions=repetitions,
        random_state=random_state,
        progress=progress,
    )


def predict_request(
    topology: Topology,
    request: PlanRequest,
    *,
    planned: bool = True,
    sizes: Sequence[int] | None = None,
    epsilons: Sequence[float] | None = None,
    contrast: float = 1.0,
    repetitions: int | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Prediction:
    """Return the prediction for a request; its epsilon is tried as well if it is ``planned``."""
    _check(contrast, repetitions, random_state)
    given_sizes = None if sizes is None else check_sizes(sizes, topology)
    given_epsilons = None if epsilons is None else _as_epsilons(epsilons)
    simulation = Simulation(topology, request, float(contrast), int(random_state), progress)
    instead: tuple[str, ...] = ()
    steps = simulation.n_steps(given_epsilons or [1.0])
    if request.clusterer == AUTO and steps > effort_module.WORK:
        # A single run would be too long to wait for.
        simulation = replace(simulation, request=replace(request, clusterer="levels"), _plans={})
        instead = (_INSTEAD,)
    effort, left_out = fitted_effort(
        simulation.n_steps,
        default_sizes=given_sizes or default_sizes(topology),
        sizes=given_sizes,
        epsilons=given_epsilons,
        planned=float(request.epsilon) if planned else None,
        repetitions=repetitions,
    )
    curves: list[Curve] = []
    problems: list[str] = []
    for size in effort.sizes:
        problem = simulation.problem(size)
        if problem is None:
            curves.append(simulation.curve(size, effort))
        else:
            problems.append(problem)
    return Prediction(
        n_nodes=topology.n_nodes,
        n_edges=topology.n_edges,
        sensitivity=request.sensitivity,
        delta=float(request.delta),
        weight_range=request.weight_range,
        contrast=float(contrast),
        repetitions=effort.repetitions,
        planned=float(request.epsilon) if planned else None,
        curves=tuple(curves),
        left_out=(*instead, *left_out, *problems),
    )


def _check(contrast: float, repetitions: int | None, random_state: int) -> None:
    number = isinstance(contrast, (int, float, np.number)) and not isinstance(contrast, bool)
    if not number or not 0 < contrast <= 1:
        raise UsageError(
            f"contrast must lie above 0 and be at most 1, not {contrast!r}; 1 is as clear as in the paper's experiments"
        )
    for name, value, least in (("repetitions", repetitions, 1), ("random_state", random_state, 0)):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if value is not None and (not whole or value < least):
            raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if random_state is None:
        raise UsageError(
            "random_state must be a whole number: a prediction needs no secret randomness"
        )


def _as_epsilons(epsilons: Sequence[float | Fraction]) -> tuple[float, ...]:
    try:
        listed = sorted({float(epsilon) for epsilon in epsilons})
    except (TypeError, ValueError):
        listed = []
    if not listed or not all(0 < epsilon < float("inf") for epsilon in listed):
        raise UsageError(f"epsilons must be positive numbers, not {epsilons!r}")
    return tuple(listed)
