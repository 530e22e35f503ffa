"""Predicting what a budget will show: the real pipeline, on clusters planted on the public topology."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal

import numpy as np

from ptclust.errors import InputError, PrivacyWarning, UsageError
from ptclust.graph import Topology
from ptclust.prediction import effort as effort_module
from ptclust.prediction.effort import check_sizes, default_sizes, fitted_effort
from ptclust.prediction.result import Curve, Prediction
from ptclust.prediction.simulation import Simulation
from ptclust.privacy.plan import check_range

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from ptclust.privacy import Sensitivity
    from ptclust.privacy.plan import Calibration, Clusterer, Method

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
    tree: Method | Literal["auto"] = "auto",
    split: float | Fraction | None = None,
    clusterer: Clusterer = "auto",
    calibration: Calibration = "sound",
    repetitions: int | None = None,
    random_state: int = 0,
    stage: Callable[[str], None] = lambda _: None,
) -> Prediction:
    """Tell at which epsilon clusters of several sizes would become visible, before anything is spent.

    On the given topology, connected pieces of about equal size are planted as clusters, with weights that are small
    within and large across; the pipeline publishes them, and its clusters are compared with the planted ones. Every
    repetition plants anew. The same is done with all weights equal, to see what the topology gives away by itself.

    Parameters
    ----------
    topology : Topology
        Of a Graph, take ``graph.topology``.
    sensitivity, delta, tree, split, clusterer, calibration
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
    stage : callable
        Hears what is being done.

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
    _check(contrast, repetitions, random_state)
    given_sizes = None if sizes is None else check_sizes(sizes, topology)
    given_epsilons = None if epsilons is None else _as_epsilons(epsilons)
    choices = {
        "delta": delta,
        "sensitivity": sensitivity,
        "tree": tree,
        "split": split,
        "clusterer": clusterer,
        "calibration": calibration,
        "weight_range": check_range(weight_range),
    }
    simulation = Simulation(topology, choices, float(contrast), int(random_state), stage)
    instead: tuple[str, ...] = ()
    if clusterer == "auto" and simulation.n_steps(given_epsilons or [1.0]) > effort_module.WORK:
        # A single run would be too long to wait for.
        choices["clusterer"] = "levels"
        simulation = Simulation(topology, choices, float(contrast), int(random_state), stage)
        instead = (_INSTEAD,)
    effort, left_out = fitted_effort(
        simulation.n_steps,
        default_sizes=given_sizes or default_sizes(topology),
        sizes=given_sizes,
        epsilons=given_epsilons,
        planned=None if planned is None else _as_epsilons([planned])[0],
        repetitions=repetitions,
    )
    curves: list[Curve] = []
    problems: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # nobody's privacy is at stake here
        for size in effort.sizes:
            problem = simulation.problem(size)
            if problem is None:
                curves.append(simulation.curve(size, effort))
            else:
                problems.append(problem)
    return Prediction(
        n_nodes=topology.n_nodes,
        n_edges=topology.n_edges,
        sensitivity=sensitivity,
        delta=float(delta),
        weight_range=check_range(weight_range),
        contrast=float(contrast),
        repetitions=effort.repetitions,
        planned=None if planned is None else float(planned),
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
