"""By how much one person can change the private weights: the neighbouring relation."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

from ptclust.errors import UsageError
from ptclust.privacy._numbers import at_most, count, exact_positive, float_up, root_up, shown

NORMS = ("l1", "l2", "linf")

_WHICH_NORM = (
    "Declare what one person can change: every weight by at most d, as in a population average, "
    "linf=d; one edge only, or all edges by at most d in total, l1=d; the root of the sum of "
    "squared changes by at most d, l2=d. Several may be given together."
)


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """A bound on the difference x = w - w' between the weights of neighbouring graphs.

    Two graphs on the same topology are neighbours if one person could have made the difference
    between them. Exactly this is protected, so there is no default. The paper's relation (its
    Definition 2.1) is ``linf=mu``; Sealfon's (2016) is ``l1=mu``.

    Parameters
    ----------
    l1, l2, linf : float, optional
        Bounds on the sum of all changes (a person contributes to one edge, or this much in total),
        on the root of the sum of their squares, and on every single change (a person in a
        population average moves every weight a little).

    Notes
    -----
    *Privacy.* These numbers are public. They bound the weights of the graph after parallel rows
    were merged: a person who is in k rows that are summed moves the sum k times as far as one row.
    They must hold for every pair of neighbours, so they come from how the weights are made
    (clipping, averaging), never from a look at the weights. Derived bounds are rounded up.

    Examples
    --------
    A weight that averages 2,000 patients, each giving a number in [0, 1], moves by at most 1/2000:

    >>> average = Sensitivity(linf=1 / 2000)
    >>> average.l1_of(100), average.spread
    (0.05, 0.001)
    >>> print(average.describe())
    weights of neighbouring graphs differ by at most 0.0005 on every edge (linf)
    """

    l1: float | None = None
    l2: float | None = None
    linf: float | None = None

    def __post_init__(self) -> None:
        declared = self.to_dict()
        if not declared:
            raise UsageError(f"A sensitivity needs at least one bound. {_WHICH_NORM}")
        for norm, value in declared.items():
            object.__setattr__(self, norm, _checked(norm, value))

    def l1_of(self, n_edges: int) -> float:
        """Return the l1 bound on the changes of ``n_edges`` edges: min(l1, sqrt(k) l2, k linf)."""
        k = count("The number of edges", n_edges)
        bounds = [] if self.l1 is None else [self.l1]
        if self.l2 is not None:
            bounds.append(root_up(k * Fraction(self.l2) ** 2))
        if self.linf is not None:
            bounds.append(float_up(k * Fraction(self.linf)))
        return min(bounds) if k else 0.0

    def l2_of(self, n_edges: int) -> float:
        """Return the l2 bound on the changes: min(l2, l1, sqrt(k) linf), or less.

        Under l1 and linf the farthest change is by linf on as many edges as l1 allows, and by the
        rest on one more: sqrt(l1 linf), or less if linf does not divide l1.

        >>> Sensitivity(l1=7.0, linf=2.0).l2_of(10) ** 2  # 2, 2, 2 and 1
        13.000000000000002
        """
        k = count("The number of edges", n_edges)
        bounds = [bound for bound in (self.l1, self.l2) if bound is not None]
        if self.linf is not None:
            most = Fraction(self.linf)
            whole, rest = divmod(Fraction(self.l1), most) if self.l1 is not None else (k, 0)
            square = whole * most**2 + rest**2 if whole < k else k * most**2
            bounds.append(root_up(Fraction(square)))
        return min(bounds) if k else 0.0

    @property
    def largest_change(self) -> float:
        """Bound on the change of any one edge: min(linf, l2, l1)."""
        return min(self.to_dict().values())

    @property
    def largest_weight(self) -> float:
        """The size of weights up to which the spacing of floats is below 1/256 of any change."""
        exponent = math.frexp(self.largest_change)[1] - 1
        return math.ldexp(1.0, min(exponent + sys.float_info.mant_dig - 8, 1023))

    @property
    def spread(self) -> float:
        """Bound on the difference between the changes of two edges: min(2 linf, l1, sqrt(2) l2).

        It calibrates a step of the Exponential mechanism: a change common to all edges cancels.
        """
        return self.mean_spread(1)

    def mean_spread(self, n_edges: int) -> float:
        """Return the bound on the change of an edge minus the mean change of k = ``n_edges`` edges.

        With d the bound on any one change it is min(2 d, d + (l1 - d) / k, sqrt((k + 1) / k) l2),
        where the last is d + sqrt((l2^2 - d^2) / k) if d^2 <= l2^2 k / (k + 1). Under pure
        differential privacy it calibrates k steps that choose k edges
        (docs/proofs/private-trees.md, lemma of the mean).

        >>> Sensitivity(l1=1.5, linf=1.0).mean_spread(2)
        1.25
        """
        k = count("The number of edges", n_edges)
        if k == 0:
            return 0.0
        d = Fraction(self.largest_change)
        bounds = [float_up(2 * d)]
        if self.l1 is not None:
            bounds.append(float_up(d + (Fraction(self.l1) - d) / k))
        if self.l2 is not None:
            square = Fraction(self.l2) ** 2
            if (k + 1) * d**2 <= k * square:
                bounds.append(float_up(d + Fraction(root_up((square - d**2) / k))))
            else:
                bounds.append(root_up(square * (k + 1) / k))
        return min(bounds)

    def covers(self, other: Sensitivity, n_edges: int) -> bool:
        """Whether no norm for ``n_edges`` edges, derived ones included, is below that of ``other``.

        >>> Sensitivity(l1=2.0).covers(Sensitivity(l1=1.0, linf=1.0), 10)
        True
        """
        return (
            self.l1_of(n_edges) >= other.l1_of(n_edges)
            and self.l2_of(n_edges) >= other.l2_of(n_edges)
            and self.largest_change >= other.largest_change
        )

    def describe(self) -> str:
        """Say in words what neighbouring graphs are, for the privacy statement.

        Bounds of many digits are rounded up, and it says so: `to_dict` has what is protected.
        """
        declared = {
            "on every edge (linf)": self.linf,
            "in total over all edges (l1)": self.l1,
            "in the root of the sum of squares (l2)": self.l2,
        }
        parts = [
            f"by at most {_in_words(bound)} {where}"
            for where, bound in declared.items()
            if bound is not None
        ]
        return "weights of neighbouring graphs differ " + " and ".join(parts)

    def __str__(self) -> str:
        return ", ".join(f"{norm} <= {bound:.6g}" for norm, bound in self.to_dict().items())

    def to_dict(self) -> dict[str, float]:
        """Return the declared bounds by norm."""
        return {norm: getattr(self, norm) for norm in NORMS if getattr(self, norm) is not None}

    @classmethod
    def from_dict(cls, bounds: Mapping[str, Any]) -> Sensitivity:
        """Read what :meth:`to_dict` wrote."""
        if unknown := sorted(set(bounds) - set(NORMS)):
            listed = ", ".join(map(repr, unknown))
            raise UsageError(f"A sensitivity has the keys l1, l2 and linf; remove {listed}.")
        return cls(**bounds)


def check_sensitivity(sensitivity: object) -> Sensitivity:
    """Return ``sensitivity`` if it is a Sensitivity, else raise UsageError."""
    if not isinstance(sensitivity, Sensitivity):
        raise UsageError(
            f"sensitivity must be a Sensitivity, as Sensitivity(linf=0.001), not {sensitivity!r}"
        )
    return sensitivity


def _checked(norm: str, value: Any) -> float:
    """Return ``value`` as a float no smaller than it, or say why it cannot be a bound."""
    name = f"The sensitivity {norm}"
    if not isinstance(value, Real):
        raise UsageError(f"{name} must be a positive number, not {shown(value)}. {_WHICH_NORM}")
    return float_up(exact_positive(name, value, _WHICH_NORM))


def _in_words(bound: float) -> str:
    text = f"{bound:.0f}" if bound.is_integer() and bound < 1e15 else at_most(bound)
    return text if float(text) == bound else f"{text} (rounded up)"
