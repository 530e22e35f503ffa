"""How much of a prediction is tried: what fits in a bounded amount of work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ptclust.errors import InputError, UsageError
from ptclust.graph.topology import Topology

WORK = 4e8  # about so many steps are made; a very large graph needs more for a single run
_DECADES = (0.01, 0.1, 1.0, 10.0, 100.0)
# Epsilons between decades, for where the clusters become visible.
_STEPS = (1, 1.5, 2, 3, 5, 7)
FINE = tuple(float(f"{step * decade:.2g}") for decade in _DECADES[:-1] for step in _STEPS)
_HALVINGS = 3  # so many epsilons of a decade are tried to find its first that shows the clusters
_MOST_SIZES = 4
_SMALLEST = 8  # smaller clusters are planted only if requested, or if the graph is too small


@dataclass(frozen=True)
class Effort:
    """What will be tried."""

    sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    refined: bool  # tries epsilons between the last without and the first with visible clusters
    repetitions: int
    n_totals: int = 1  # of counts: so many orders of magnitude

    @property
    def n_runs(self) -> int:
        """How many releases will be made: for every size, and once without clusters."""
        each = len(self.epsilons) + _HALVINGS * self.refined
        of_total = self.repetitions * (len(self.sizes) * each + len(self.epsilons))
        return self.n_totals * of_total


def default_sizes(topology: Topology) -> tuple[int, ...]:
    """Return sizes from half of the largest component down to about 8 nodes, by steps of 4 or more.

    >>> from ptclust import Topology
    >>> default_sizes(Topology(range(999), range(1, 1000)))
    (500, 125, 31)
    """
    sizes = [_largest_size(topology)]
    while sizes[-1] // 4 >= _SMALLEST:
        sizes.append(sizes[-1] // 4)
    return _spread(tuple(sizes), _MOST_SIZES)


def _largest_size(topology: Topology) -> int:
    """Return half of the largest component: with a larger cluster there would be no other."""
    largest = int(np.bincount(topology.components).max(initial=0)) if topology.n_nodes else 0
    if largest < 4:
        raise InputError(
            "there is nothing to predict where connected parts have at most "
            f"{largest} node{'s' * (largest != 1)}; clusters are planted on parts of at least 4"
        )
    return largest // 2


def check_sizes(sizes: Sequence[int], topology: Topology) -> tuple[int, ...]:
    """Return the sizes, largest first; UsageError if one does not fit, InputError if none can."""
    most, listed = _largest_size(topology), list(sizes)
    if not listed:
        raise UsageError("give at least one size of clusters, or leave sizes out")
    for size in listed:
        whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
        if not whole or not 2 <= size <= most:
            fits = "2" if most == 2 else f"a whole number from 2 to {most:,}"
            raise UsageError(
                f"cluster sizes must be {fits}, half of the largest connected part, not {size!r}"
            )
    return tuple(sorted({int(size) for size in listed}, reverse=True))


def fitted_effort(
    n_steps: Callable[[Sequence[float]], float],
    *,
    topology: Topology,
    sizes: tuple[int, ...] | None,
    epsilons: tuple[float, ...] | None,
    planned: float | None,
    repetitions: int | None,
    n_totals: int = 1,
) -> tuple[Effort, tuple[str, ...]]:
    """Return the most that fits in the work allowed, and what was left out; nothing given is cut.

    ``n_steps`` returns the mean steps of a run at some epsilons.
    """
    also = () if planned is None else (planned,)
    usual_sizes = sizes or default_sizes(topology)
    most_sizes = _MOST_SIZES if n_totals == 1 else _MOST_SIZES // 2

    def effort(n_sizes: int, times: int, grid: tuple[float, ...], refined: bool) -> Effort:
        return Effort(
            sizes or _spread(usual_sizes, n_sizes),
            tuple(sorted({*(epsilons or grid), *also})),
            refined and epsilons is None,
            repetitions or times,
            n_totals,
        )

    few = _DECADES[1:-1]
    ladder = [
        *(effort(most_sizes, times, _DECADES, True) for times in (16, 8, 5, 3, 2)),
        effort(most_sizes, 2, _DECADES, False),
        *(effort(n_sizes, 2, few, False) for n_sizes in (most_sizes, 3, 2, 1)),
        effort(1, 1, few, False),
        effort(1, 1, also or (1.0,), False),
    ]
    fitting = (each for each in ladder if each.n_runs * n_steps(each.epsilons) <= WORK)
    chosen = next(fitting, ladder[-1])
    left_out = []
    if missing := ", ".join(f"{size:,}" for size in usual_sizes if size not in chosen.sizes):
        left_out.append(f"clusters of {missing} nodes, to keep it short (sizes=)")
    if epsilons is None and not chosen.refined:
        tried = ", ".join(f"{epsilon:g}" for epsilon in chosen.epsilons)
        why = "for the graph is large: the first that shows clusters may lie between them"
        left_out.append(f"all epsilons but {tried}, {why}")
    if repetitions is None and chosen.repetitions < 8:
        times = "one repetition" if chosen.repetitions == 1 else f"{chosen.repetitions} repetitions"
        left_out.append(f"all but {times}, to keep it short (repetitions=)")
    return chosen, tuple(left_out)


def _spread(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return so many of the sizes, the largest among them."""
    places = np.linspace(0, len(sizes) - 1, min(len(sizes), count)).round()
    return tuple(sizes[int(place)] for place in places)
