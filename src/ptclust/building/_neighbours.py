"""What one unit can do to weights that are a sum over units."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

from ptclust.errors import UsageError
from ptclust.privacy._numbers import float_up, root_up
from ptclust.privacy.provenance import Neighbours
from ptclust.privacy.sensitivity import Sensitivity


def check_neighbours(neighbours: object) -> None:
    """Refuse anything but the two relations."""
    if neighbours not in get_args(Neighbours):
        raise UsageError(
            "neighbours must be 'add-remove' (tables with one unit more or less) or 'replace' (one "
            f"unit in place of another), not {neighbours!r}"
        )


def sensitivity_of_sum(
    *,
    linf: Fraction | int,
    l1: Fraction | int,
    squares: Fraction | int,
    neighbours: Neighbours,
) -> Sensitivity:
    """Return the sensitivity of weights that are a sum of one vector a unit.

    The entries of every vector x lie between 0 and ``linf``, and add up to at most ``l1``, their
    squares to at most ``squares``.

    Notes
    -----
    *Privacy.* One unit more or less adds or removes one vector, which the three bounds hold for. A
    unit in place of another changes the weights by x - y. Every entry of it lies between -linf and
    linf, as both are within [0, linf]: linf stays. ||x - y||_1 <= ||x||_1 + ||y||_1: l1 doubles.
    ||x - y||_2^2 = ||x||_2^2 + ||y||_2^2 - 2 x.y <= 2 squares, as x.y >= 0: l2 grows by sqrt(2).

    >>> sensitivity_of_sum(linf=2, l1=10, squares=20, neighbours="replace").to_dict()
    {'l1': 20.0, 'l2': 6.324555320336759, 'linf': 2.0}
    """
    check_neighbours(neighbours)
    vectors = 1 if neighbours == "add-remove" else 2
    l2 = root_up(Fraction(vectors * squares))
    return Sensitivity(l1=float_up(vectors * l1), l2=l2, linf=float_up(linf))
