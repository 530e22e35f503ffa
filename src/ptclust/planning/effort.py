"""How much of a prediction is tried: sizes, epsilons and repetitions that fit in a bounded amount of work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptclust.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ptclust.graph.topology import Topology

__all__ = ["FINE", "Effort", "check_sizes", "default_sizes", "fitted_effort"]

WORK = 4e8
"""About so many steps are made; small graphs need fewer, very large ones more for a single run."""
_DECADES = (0.01, 0.1, 1.0, 10.0, 100.0)
FINE = tuple(
    float(f"{share * decade:.2g}") for decade in _DECADES[:-1] for share in (1, 1.5, 2, 3, 5, 7)
)
"""Epsilons between decades, for where the clusters come into sight."""
_HALVINGS = 3
"""So many epsilons of a decade are tried until its first that shows the clusters is known."""
_MOST_SIZES = 4
_SMALLEST = 8
"""Clusters of fewer nodes are planted only if asked for, or if the graph has no room for larger ones."""


@dataclass(frozen=True)
class Effort:
    """What will be tried."""

    sizes: tuple[int, ...]
    epsilons: tuple[float, ...]
    refined: bool
    """Whether epsilons between the last that does not show the clusters and the first that does are tried, too."""
    repetitions: int


def largest_component(topology: Topology) -> int:
    """Return the number of nodes of the largest connected part."""
    return int(np.bincount(topology.components).max(initial=0)) if topology.n_nodes else 0


def default_sizes(topology: Topology) -> tuple[int, ...]:
    """Return sizes from half of the largest component down to about 8 nodes, by steps of at least four.

    >>> from ptclust import Topology
    >>> default_sizes(Topology(range(999), range(1, 1000)))
    (500, 125, 31)
    """
    sizes = [_largest_size(topology)]
    while sizes[-1] // 4 >= _SMALLEST:
        sizes.append(sizes[-1] // 4)
    return _spread(tuple(sizes), _MOST_SIZES)


def _largest_size(topology: Topology) -> int:
    """Return how many nodes a planted cluster can have: half of the largest component, or there would be no other."""
    largest = largest_component(topology)
    if largest < 4:
        raise InputError(
            f"there is nothing to predict where connected parts have at most {largest} node{'s' * (largest != 1)}; "
            "clusters are planted on connected topologies of at least 4"
        )
    return largest // 2


def check_sizes(sizes: Sequence[int], topology: Topology) -> tuple[int, ...]:
    """Return the sizes, the largest first; raise UsageError if one does not fit, InputError if none can."""
    most = _largest_size(topology)
    listed = list(sizes)
    for size in listed:
        whole = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
        if not whole or not 2 <= size <= most:
            fits = "2" if most == 2 else f"a whole number from 2 to {most:,}"
            raise UsageError(
                f"a size of clusters must be {fits}, half of the largest connected part, not {size!r}"
            )
    if not listed:
        raise UsageError("give at least one size of clusters, or leave sizes out")
    return tuple(sorted({int(size) for size in listed}, reverse=True))


def fitted_effort(
    n_steps: Callable[[Sequence[float]], float],
    *,
    default_sizes: tuple[int, ...],
    sizes: tuple[int, ...] | None,
    epsilons: tuple[float, ...] | None,
    planned: float | None,
    repetitions: int | None,
) -> tuple[Effort, tuple[str, ...]]:
    """Return the most that fits in the work allowed, and what was left out for that; what is given is never cut.

    ``n_steps`` returns the mean steps of a run at some epsilons.
    """
    also = () if planned is None else (planned,)

    def effort(n_sizes: int, times: int, grid: tuple[float, ...], refined: bool) -> Effort:
        return Effort(
            sizes or _spread(default_sizes, n_sizes),
            tuple(sorted({*(epsilons or grid), *also})),
            refined and epsilons is None,
            repetitions or times,
        )

    few = _DECADES[1:-1]
    ladder = [
        *(effort(_MOST_SIZES, times, _DECADES, True) for times in (16, 8, 5, 3, 2)),
        effort(_MOST_SIZES, 2, _DECADES, False),
        *(effort(n_sizes, 2, few, False) for n_sizes in (_MOST_SIZES, 3, 2, 1)),
        effort(1, 1, few, False),
        effort(1, 1, also or (1.0,), False),
    ]
    chosen = next(
        (each for each in ladder if _runs(each) * n_steps(each.epsilons) <= WORK),
        ladder[-1],
    )
    return chosen, tuple(_left_out(chosen, default_sizes, sizes, epsilons, repetitions))


def _spread(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return so many of the sizes, the largest among them."""
    places = np.linspace(0, len(sizes) - 1, min(len(sizes), count)).round()
    return tuple(sizes[int(place)] for place in places)


def _runs(effort: Effort) -> int:
    """Return how many releases will be made: for every size, and once with equal weights."""
    n_epsilons = len(effort.epsilons)
    each = n_epsilons + _HALVINGS * effort.refined
    return effort.repetitions * (len(effort.sizes) * each + n_epsilons)


def _left_out(
    chosen: Effort,
    default_sizes: tuple[int, ...],
    sizes: tuple[int, ...] | None,
    epsilons: tuple[float, ...] | None,
    repetitions: int | None,
) -> list[str]:
    words = []
    missing = [size for size in default_sizes if size not in chosen.sizes]
    if sizes is None and missing:
        listed = ", ".join(f"{size:,}" for size in missing)
        words.append(f"clusters of {listed} nodes, for the graph is large (sizes=, --sizes)")
    if epsilons is None and not chosen.refined:
        tried = ", ".join(f"{epsilon:g}" for epsilon in chosen.epsilons)
        words.append(
            f"all epsilons but {tried}, for the graph is large: the first that shows clusters may lie between them"
        )
    if repetitions is None and chosen.repetitions < 8:
        times = "one repetition" if chosen.repetitions == 1 else f"{chosen.repetitions} repetitions"
        words.append(f"all but {times}, to keep it short (repetitions=)")
    return words
