"""Conversions between zCDP and (epsilon, delta) by OpenDP, imported when first needed.

``opendp.prelude`` would import polars and scikit-learn: hence the imports from OpenDP's modules.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

_SMALLEST_RHO = 1e-300

_constructing = threading.RLock()


@contextmanager
def opendp_features(*names: str) -> Iterator[None]:
    """Enable OpenDP features while a constructor runs; the user's own choice stays as it was."""
    from opendp.mod import GLOBAL_FEATURES, disable_features, enable_features

    with _constructing:
        missing = [name for name in names if name not in GLOBAL_FEATURES]
        enable_features(*missing)
        try:
            yield
        finally:
            disable_features(*missing)


@lru_cache(maxsize=1)
def _conversion() -> Any:
    """Return a measurement whose privacy map takes rho to OpenDP's curve of (epsilon, delta)."""
    from opendp.combinators import make_zCDP_to_approxDP
    from opendp.domains import atom_domain
    from opendp.measurements import make_user_measurement
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import absolute_distance

    with opendp_features("contrib", "honest-but-curious"):
        # Only its map is used, the identity: the distance put in is the rho that is converted.
        of_rho = make_user_measurement(
            atom_domain(T=float, nan=False),
            absolute_distance(T=float),
            zero_concentrated_divergence(),
            lambda value: value,
            lambda rho: rho,
            TO=float,
        )
        return make_zCDP_to_approxDP(of_rho)


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """Return an epsilon such that rho-zCDP implies (epsilon, delta)-DP; infinite on overflow."""
    from opendp.mod import OpenDPException

    try:
        return float(_conversion().map(rho).epsilon(delta))
    except OpenDPException:
        return math.inf


@lru_cache(maxsize=1024)
def largest_rho(epsilon: Fraction, delta: float) -> float:
    """Return the largest float rho whose epsilon at ``delta`` is at most ``epsilon``, or 0."""

    def fits(rho: float) -> bool:
        return epsilon_of_zcdp(rho, delta) <= epsilon  # float and Fraction: compared exactly

    # The search starts from the rho of Bun and Steinke's simple conversion, which is not tight:
    # epsilon = rho + 2 sqrt(rho log(1/delta)).
    log_term = math.sqrt(-math.log(delta))
    root = float(epsilon) / (math.sqrt(log_term**2 + float(epsilon)) + log_term)
    low = max(root**2, _SMALLEST_RHO)
    while not fits(low):
        low /= 2
        if low < _SMALLEST_RHO:
            return 0.0
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    while True:  # low fits, high does not
        middle = low + (high - low) / 2
        if not low < middle < high:
            return low
        low, high = (middle, high) if fits(middle) else (low, middle)
