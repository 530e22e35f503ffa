"""Noise on real vectors, drawn on a lattice by OpenDP: sound in floating-point arithmetic.

Noise added to doubles in doubles leaves a trace of the input in the last bits of the sum (Mironov
2012). OpenDP rounds the input to the lattice of multiples of 2^k, adds discrete noise there in
exact arithmetic, and rounds once at the end. The rounding of the input may add up to 2^k to the
change of every value, so the scale grows by that little: below one in a million, by choice of k.
"""

from __future__ import annotations

import math
import operator
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust.errors import PtclustError, UsageError, WeightError
from ptclust.privacy._numbers import exact_positive, exponent_below, float_up, root_up
from ptclust.privacy._opendp import opendp_features
from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import Noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from ptclust.privacy._numbers import Number
    from ptclust.privacy.noise import Distribution
    from ptclust.privacy.randomness import RandomStream
    from ptclust.privacy.sensitivity import Sensitivity

_ENLARGEMENT_BITS = 21  # rounding to the lattice enlarges the scale by at most 2^-21
_FINENESS_BITS = 40  # the lattice is this much finer than the scale: noise looks continuous
_FINEST = -1074  # the exponent of the smallest float
_CHUNK = 20_000  # 0.2 to 0.3 s of work: the longest that Ctrl-C waits


def laplace_noise(sensitivity: Sensitivity, n_values: int, epsilon: Number) -> Noise:
    """Return the least Laplace noise under which ``n_values`` values are epsilon-DP.

    Notes
    -----
    *Privacy.* The scale is l1/epsilon, where l1 bounds the change of these values together,
    enlarged for the rounding to the lattice. OpenDP's privacy map confirms it.

    Examples
    --------
    >>> from ptclust.privacy import Sensitivity
    >>> round(laplace_noise(Sensitivity(linf=0.001), 100, 0.5).scale, 6)
    0.2
    """
    return _calibrated("laplace", sensitivity, n_values, epsilon)


def gaussian_noise(sensitivity: Sensitivity, n_values: int, rho: Number) -> Noise:
    """Return the least Gaussian noise under which ``n_values`` values are rho-zCDP.

    Notes
    -----
    *Privacy.* Sigma is l2/sqrt(2 rho), where l2 bounds the change of these values together,
    enlarged for the rounding to the lattice. OpenDP's privacy map confirms it.

    Examples
    --------
    >>> from ptclust.privacy import Sensitivity
    >>> round(gaussian_noise(Sensitivity(linf=0.001), 100, 0.5).scale, 6)
    0.01
    """
    return _calibrated("gaussian", sensitivity, n_values, rho)


def least_noise(sensitivity: Sensitivity, n_values: int, budget: Budget) -> Noise:
    """Return the noise that a budget affords: Laplace for a pure one, Gaussian for zCDP."""
    if budget.rho is None:
        return laplace_noise(sensitivity, n_values, budget.epsilon)
    return gaussian_noise(sensitivity, n_values, budget.rho)


def noise_of_scale(scale: float, n_values: int) -> Noise:
    """Return Laplace noise of a given scale, whatever it protects; ``spent_by`` says how much.

    Examples
    --------
    >>> noise_of_scale(0.5, 10).scale
    0.5
    """
    checked = exact_positive("scale", scale, "It is the b of the Laplace distribution.")
    granularity = exponent_below(checked) - _FINENESS_BITS - max(n_values, 1).bit_length()
    return Noise("laplace", float(checked), max(granularity, _FINEST), n_values)


def spent_by(noise: Noise, sensitivity: Sensitivity) -> Budget | None:
    """Return what noise spends under ``sensitivity``, by OpenDP's privacy map: None without values.

    Examples
    --------
    >>> from ptclust.privacy import Sensitivity
    >>> print(spent_by(noise_of_scale(2.0, 100), Sensitivity(linf=1.0)))
    epsilon = 50
    """
    if noise.n_values == 0:
        return None
    loss = _privacy_loss(noise, _distance(noise.distribution, sensitivity, noise.n_values))
    return Budget.pure(loss) if noise.distribution == "laplace" else Budget.zcdp(loss)


def add_noise(
    values: ArrayLike,
    noise: Noise,
    *,
    stream: RandomStream | None = None,
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """Return ``values`` plus noise.

    Parameters
    ----------
    values : array of float
        The private values, ``noise.n_values`` of them.
    noise : Noise
    stream : RandomStream, optional
        A reproducible stream draws the noise from numpy instead, for experiments. A secure stream
        changes nothing: OpenDP has a cryptographic generator of its own.
    progress : callable, optional
        Called with the number of values done so far.

    Notes
    -----
    *Privacy.* As calibrated, if no reproducible stream is given; with one, nothing is guaranteed. A
    value too large for the lattice (beyond 2^53 steps) is rounded after the noise, as any float is:
    post-processing, so it is not refused, which would depend on the value. Only values that are no
    finite numbers are, and no error shows one.

    Examples
    --------
    >>> add_noise([1.0, 2.0], noise_of_scale(0.1, 2)).shape
    (2,)
    """
    private_values = None
    with suppress(TypeError, ValueError):  # numpy quotes the value: ours must not even refer to it
        private_values = np.ascontiguousarray(values, dtype=np.float64)
    if private_values is None:
        raise WeightError("the values are not all numbers; give a row of floats")
    if private_values.shape != (noise.n_values,):
        raise UsageError(
            f"this noise is calibrated for {noise.n_values} values in one row, not for the shape "
            f"{private_values.shape}; calibrate it for as many as are released"
        )
    if not np.isfinite(private_values).all():
        raise WeightError(
            "some values are not finite, and noise cannot hide those; remove or replace them first"
        )
    if stream is not None and stream.reproducible:
        generator = stream.numpy_generator()
        draw = generator.laplace if noise.distribution == "laplace" else generator.normal
        noisy = private_values + draw(0.0, noise.scale, noise.n_values)
        if progress is not None:
            progress(noise.n_values)
        return noisy
    return _add_lattice_noise(private_values, noise, progress)


def _add_lattice_noise(
    private_values: NDArray[np.float64], noise: Noise, progress: Callable[[int], None] | None
) -> NDArray[np.float64]:
    """Run OpenDP's sampler on chunks in threads: it holds no lock while it works."""
    noisy = np.empty(noise.n_values)
    starts = range(0, noise.n_values, _CHUNK)
    executor = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="ptclust-noise")
    try:
        pieces = [private_values[start : start + _CHUNK] for start in starts]
        chunks = [executor.submit(_noisy_chunk, piece, noise) for piece in pieces]
        for start, chunk in zip(starts, chunks, strict=True):
            done = chunk.result()
            noisy[start : start + len(done)] = done
            if progress is not None:
                progress(start + len(done))
    finally:
        executor.shutdown(cancel_futures=True)  # after an error or Ctrl-C no further chunk starts
    return noisy


def _noisy_chunk(private_values: NDArray[np.float64], noise: Noise) -> NDArray[np.float64]:
    failure = None
    try:
        measurement = _measurement(noise, len(private_values))
        writable = private_values.copy()  # OpenDP does not take read-only arrays
        noisy = np.array(measurement(writable), dtype=np.float64)
    except Exception as error:  # its text may hold a value, and so may its cause
        failure = type(error).__name__
    if failure is not None:
        raise PtclustError(
            f"OpenDP could not draw the noise ({failure}; {noise}). Nothing was released; please "
            "report this"
        )
    return noisy


def _measurement(noise: Noise, n_values: int) -> Any:
    """Return the OpenDP measurement that adds this noise to ``n_values`` floats."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance

    values = vector_domain(atom_domain(T=float, nan=False), size=n_values)
    with opendp_features("contrib"):
        if noise.distribution == "laplace":
            return make_laplace(values, l1_distance(T=float), noise.scale, k=noise.granularity)
        return make_gaussian(values, l2_distance(T=float), noise.scale, k=noise.granularity)


def _calibrated(
    distribution: Distribution, sensitivity: Sensitivity, n_values: int, amount: Number
) -> Noise:
    parameter = "epsilon" if distribution == "laplace" else "rho"
    budget = exact_positive(parameter, amount, "Smaller means more private.")
    try:
        n_values = operator.index(n_values)
    except TypeError:
        raise UsageError(f"the number of values must be an integer, not {n_values!r}") from None
    if n_values == 0:
        return Noise(distribution, 0.0, _FINEST, 0)
    distance = _distance(distribution, sensitivity, n_values)
    change = Fraction(distance)
    if distribution == "laplace":
        roundings, per_change = Fraction(n_values), 1 / budget
    else:
        roundings = Fraction(root_up(Fraction(n_values)))
        per_change = Fraction(root_up(1 / (2 * budget)))
    no_larger = exponent_below(change / roundings) - _ENLARGEMENT_BITS
    as_fine = exponent_below(change * per_change) - _FINENESS_BITS
    granularity = max(min(no_larger, as_fine), _FINEST)
    exact_scale = (change + roundings * Fraction(2) ** granularity) * per_change
    step = Fraction(1, 2**52)
    while True:
        noise = Noise(distribution, float_up(exact_scale), granularity, n_values)
        if _privacy_loss(noise, distance) <= budget:
            return noise
        exact_scale *= 1 + step  # OpenDP rounds its map up; a few steps of the last digit suffice
        step *= 2


def _distance(distribution: Distribution, sensitivity: Sensitivity, n_values: int) -> float:
    bound = sensitivity.l1_of if distribution == "laplace" else sensitivity.l2_of
    distance = bound(n_values)
    if not math.isfinite(distance):
        raise UsageError(
            f"under the sensitivity {sensitivity} the change of {n_values} values together exceeds "
            "the largest float; rescale the weights and it"
        )
    return distance


def _privacy_loss(noise: Noise, distance: float) -> float:
    """Return OpenDP's privacy map: epsilon of Laplace, rho of Gaussian noise, rounded up."""
    return float(_measurement(noise, noise.n_values).map(distance))
