"""What a cut of every edge within a cluster would leave of that cluster, in two sweeps over the rooted tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ptclust._kernel import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Sides(NamedTuple):
    """Both sides, within its cluster, of the edge above every node in preorder; nothing beyond the cluster counts."""

    n_below: NDArray[np.int64]  # nodes at and below the node
    heaviest_below: NDArray[np.float64]  # heaviest edge below it
    heaviest_above: NDArray[np.float64]  # heaviest edge of the cluster on the other side
    cuts_below: NDArray[np.int64]  # edges that leave the cluster at or below it
    within: NDArray[np.bool_]  # whether the edge above it is within a cluster


@kernel
def sweep_clusters(
    parent: NDArray[Any],
    weight: NDArray[np.float64],
    cluster: NDArray[np.int64],
    runner_up: NDArray[np.float64],
    sides: Sides,
) -> None:
    """Fill ``sides``; all arrays are indexed by preorder number.

    On entry ``n_below`` is 1 and all else is 0. ``runner_up`` is room for the second heaviest branch below a node: what
    is heaviest beside the heaviest branch.
    """
    heaviest = sides.heaviest_below
    for p in range(len(parent) - 1, 0, -1):
        up = parent[p]
        if cluster[p] != cluster[up]:
            sides.cuts_below[p] += 1
            sides.cuts_below[up] += 1
            continue
        sides.within[p] = True
        sides.n_below[up] += sides.n_below[p]
        sides.cuts_below[up] += sides.cuts_below[p]
        branch = max(weight[p], heaviest[p])
        runner_up[up] = max(runner_up[up], min(branch, heaviest[up]))
        heaviest[up] = max(heaviest[up], branch)
    for p in range(1, len(parent)):
        if not sides.within[p]:
            continue
        up = parent[p]
        is_heaviest = max(weight[p], heaviest[p]) == heaviest[up]
        beside = runner_up[up] if is_heaviest else heaviest[up]
        if sides.within[up]:
            beside = max(beside, sides.heaviest_above[up], weight[up])
        sides.heaviest_above[p] = beside
