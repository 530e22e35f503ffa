"""Noise on real vectors, drawn on a lattice by OpenDP: sound in floating-point arithmetic.

Noise added to doubles in doubles leaves a trace of the input in the last bits of the sum (Mironov
2012). OpenDP rounds the input to the lattice of multiples of 2^k, adds discrete noise there in
exact arithmetic, and rounds once at the end. ``privacy.noise`` calibrates for that rounding.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from ptclust._traces import leaves_no_trace
from ptclust._types import Floats
from ptclust.errors import PtclustError, UsageError, WeightError
from ptclust.privacy.noise import Noise, lattice_measurement
from ptclust.privacy.randomness import RandomStream as Stream

_CHUNK = 20_000  # 0.2 to 0.3 s of work: the longest that Ctrl-C waits


def counting(n_weights: int, progress: Callable[[str], None]) -> Callable[[int], None]:
    """Return a progress callback for `add_noise` that reports its counts in words."""
    progress(f"Noise on {n_weights:,} weights")
    return lambda done: progress(f"Noise on {n_weights:,} weights: {done:,} done")


@leaves_no_trace
def add_noise(
    values: ArrayLike,
    noise: Noise,
    *,
    stream: Stream | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Floats:
    """Return ``values`` plus noise; ``progress`` is called with the number of values done so far.

    A reproducible stream draws the noise from numpy instead, for experiments. A secure stream
    changes nothing: OpenDP has a cryptographic generator of its own.

    Notes
    -----
    *Privacy.* As calibrated, if no reproducible stream is given; with one, nothing is guaranteed. A
    value too large for the lattice (beyond 2^53 steps) is rounded after the noise, as any float is:
    post-processing, so it is not refused, which would depend on the value. Only values that are no
    finite numbers are, and no error shows one.

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
        draw = generator.laplace if noise.distribution == "laplace" else generator.normal
        noisy = private_values + draw(0.0, noise.scale, noise.n_values)
        progress(noise.n_values)
        return noisy
    return _add_lattice_noise(private_values, noise, progress)


def _add_lattice_noise(
    private_values: Floats, noise: Noise, progress: Callable[[int], None]
) -> Floats:
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
            progress(start + len(done))
    finally:
        executor.shutdown(cancel_futures=True)  # after an error or Ctrl-C no further chunk starts
    return noisy


def _noisy_chunk(private_values: Floats, noise: Noise) -> Floats:
    failure = None
    try:
        writable = private_values.copy()  # OpenDP does not take read-only arrays
        noisy = np.array(lattice_measurement(noise, len(writable))(writable), dtype=np.float64)
    except Exception as error:  # its text may hold a value, and so may its cause
        failure = type(error).__name__
    if failure is not None:
        what = f"OpenDP could not draw the noise ({failure}; {noise})"
        raise PtclustError(f"{what}. Nothing was released; please report this")
    return noisy
