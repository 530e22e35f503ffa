"""OpenDP's samplers: the reference of the tests, and ``sampler="opendp"``; an optional dependency.

``opendp.prelude`` would import polars and scikit-learn: hence the imports from OpenDP's modules.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ptclust.errors import UsageError
from ptclust.privacy.noise.distribution import Noise

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


def check_drawn_by_opendp(noise: Noise) -> None:
    """Refuse noise that OpenDP does not draw, and any if it is not installed."""
    if noise.law.opendp is None:
        raise UsageError(
            f"OpenDP draws no {noise.distribution} noise, which is the least here: leave "
            "sampler='opendp' out, or take mechanism='laplace'"
        )
    try:
        import_module("opendp")
    except ImportError:
        raise UsageError(
            "sampler='opendp' needs OpenDP: pip install 'ptclust[opendp]', or leave it out, as "
            "ptclust's own sampler is exact"
        ) from None


def lattice_measurement(noise: Noise, n_values: int) -> Any:
    """Return the OpenDP measurement that adds this noise to ``n_values`` floats."""
    check_drawn_by_opendp(noise)
    make, metric = noise.law.opendp or ("", "")
    from opendp import measurements, metrics
    from opendp.domains import atom_domain, vector_domain

    values = vector_domain(atom_domain(T=float, nan=False), size=n_values)
    with opendp_features("contrib"):
        distance = getattr(metrics, metric)(T=float)
        return getattr(measurements, make)(values, distance, noise.scale, k=noise.granularity)
