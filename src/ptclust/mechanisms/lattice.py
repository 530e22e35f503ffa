"""Noise on real vectors, drawn on a lattice: sound in floating-point arithmetic.

Noise added to doubles in doubles leaves a trace of the input in the last bits of the sum (Mironov
2012). So the input is rounded to the lattice of multiples of 2^k, discrete noise is added there in
exact arithmetic, and the sum is rounded once. ``privacy.noise`` calibrates for the rounding, and
draws the noise, exactly.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from ptclust._options import Sampler
from ptclust._threads import in_threads
from ptclust._traces import leaves_no_trace
from ptclust._types import Floats, Ints
from ptclust.errors import PtclustError, UsageError, WeightError
from ptclust.privacy.noise import Noise
from ptclust.privacy.noise import _lattice_kernel as kernel
from ptclust.privacy.noise.opendp import check_drawn_by_opendp, lattice_measurement
from ptclust.privacy.randomness import RandomStream as Stream

_CHUNK = 20_000  # of OpenDP: 0.2 to 0.3 s of work, the longest that Ctrl-C waits
_EXACT_CHUNK = 1 << 18  # of our own: some milliseconds

_Draw = Callable[[Stream, Ints], dict[int, int]]


@leaves_no_trace
def add_noise(
    values: ArrayLike,
    noise: Noise,
    *,
    stream: Stream | None = None,
    sampler: Sampler = "auto",
    progress: Callable[[int], None] = lambda _: None,
) -> Floats:
    """Return ``values`` plus noise; ``progress`` is called with the number of values done so far.

    A reproducible stream draws the noise from numpy instead, for experiments. A secure stream
    changes nothing: every chunk of values has a stream under a key of its own, and OpenDP, which
    draws if ``sampler`` says so, has a cryptographic generator of its own.

    Notes
    -----
    *Privacy.* As calibrated, if no reproducible stream is given; with one, nothing is guaranteed. A
    value too large for the lattice (beyond 2^53 steps) is rounded after the noise, as any float is.
    That is post-processing; to refuse it would depend on the value. Only values that are not finite
    are refused, and no error shows one.

    >>> from ptclust.privacy.noise import noise_of_scale
    >>> add_noise([1.0, 2.0], noise_of_scale(0.1, 2)).shape
    (2,)
    """
    private_values = None
    with suppress(TypeError, ValueError):  # numpy quotes the value: ours must not even refer to it
        private_values = np.ascontiguousarray(values, dtype=np.float64)
    if private_values is None:
        raise WeightError("the values are not all numbers; give a row of floats")
    if private_values.shape != (noise.n_values,):
        shape = f"{private_values.shape}; calibrate it for as many as are released"
        raise UsageError(f"this noise is calibrated for {noise.n_values} values, not for {shape}")
    if not np.isfinite(private_values).all():
        raise WeightError("some values are not finite, and no noise hides that; replace them first")
    if stream is not None and stream.reproducible:
        generator = stream.numpy_generator()
        noisy = private_values + noise.scale * noise.law.simulate(generator, noise.n_values)
        progress(noise.n_values)
        return noisy
    if sampler == "opendp":
        check_drawn_by_opendp(noise)
        return _in_chunks(_noisy_chunk, private_values, noise, _CHUNK, progress)
    if not noise.n_values:
        return private_values.copy()
    with Stream.secure() as shared:
        draw = noise.law.sampler(noise, shared).draw
    add = partial(_exactly_noisy_chunk, draw)
    return _in_chunks(add, private_values, noise, _EXACT_CHUNK, progress)


def sampler_of(noise: Noise, sampler: Sampler = "auto", *, keyed: bool = False) -> str:
    """Return, for statements, what draws the noise: it follows from public numbers alone.

    >>> from ptclust.privacy.noise import noise_of_scale
    >>> sampler_of(noise_of_scale(1.0, 100)), sampler_of(noise_of_scale(1.0, 100), "opendp")
    ('ptclust, exact on the lattice', 'OpenDP')
    """
    if sampler == "opendp" and not keyed:
        check_drawn_by_opendp(noise)
        return "OpenDP"
    return "ptclust, exact on the lattice" + ", by key and edge" * keyed


def _in_chunks(
    add: Callable[[Floats, Noise], Floats],
    private_values: Floats,
    noise: Noise,
    size: int,
    progress: Callable[[int], None],
) -> Floats:
    """Add noise to chunks in threads: no sampler holds the lock while it works."""
    noisy = np.empty(noise.n_values)
    starts = range(0, noise.n_values, size)
    pieces = (private_values[start : start + size] for start in starts)
    with closing(in_threads(partial(_silently_noisy, add, noise), pieces)) as chunks:
        for start, done in zip(starts, chunks, strict=True):
            noisy[start : start + len(done)] = done
            progress(start + len(done))
    return noisy


def _exactly_noisy_chunk(draw: _Draw, private_values: Floats, noise: Noise) -> Floats:
    """Add noise of our own sampler, from a stream of its own."""
    steps = np.empty(len(private_values), dtype=np.int64)
    with Stream.secure() as stream:
        giants = draw(stream, steps)
    return added_on_lattice(private_values, steps, noise.granularity, giants)


def added_on_lattice(
    private_values: Floats, steps: Ints, granularity: int, giants: dict[int, int]
) -> Floats:
    """Return values, rounded to the lattice, plus steps of it; ``giants`` are steps by place.

    *Privacy.* What is returned depends on the exact integer sums alone.
    """
    powers, noisy = lattice_powers(granularity), np.empty(len(private_values))
    far = np.empty(len(private_values), dtype=np.int64)
    n_far = kernel.add_on_lattice(private_values, steps, powers, noisy, far)
    for place in {*far[:n_far].tolist(), *giants}:
        exact_steps = Fraction(float(private_values[place])) / Fraction(2) ** granularity
        total = math.floor(exact_steps + Fraction(1, 2)) + giants.get(place, int(steps[place]))
        noisy[place] = _as_float(total, granularity)
    return noisy


def lattice_powers(granularity: int) -> Floats:
    """Return 2^-k and 2^k as products of two floats each: k = -1074 has no single ones."""
    half = granularity // 2
    exponents = [-half, half - granularity, half, granularity - half]
    return np.ldexp(1.0, exponents)


def _as_float(total: int, granularity: int) -> float:
    """Return an integer of any size times 2^granularity; small ones as the kernel does."""
    if abs(total) < 2**63:
        return float(kernel.as_float(np.int64(total), lattice_powers(granularity)))
    try:
        return float(total * Fraction(2) ** granularity)
    except OverflowError:
        return math.copysign(sys.float_info.max, total)


def _noisy_chunk(private_values: Floats, noise: Noise) -> Floats:
    """Add noise of OpenDP's sampler, which does not take read-only arrays."""
    measurement = lattice_measurement(noise, len(private_values))
    return np.array(measurement(private_values.copy()), dtype=np.float64)


def _silently_noisy(
    add: Callable[[Floats, Noise], Floats], noise: Noise, private_values: Floats
) -> Floats:
    """Add noise; of an error from below only its type is reported, as its text may hold a value."""
    try:
        return add(private_values, noise)
    except Exception as error:
        failure = type(error).__name__
    what = f"the noise could not be drawn ({failure}; {noise})"
    raise PtclustError(f"{what}. Nothing was released; please report this")
