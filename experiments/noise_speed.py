"""CPU time of exact lattice noise beside OpenDP's, in one process, alternating."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from experiments._summary import wrapped
from ptclust._options import Sampler
from ptclust._types import Floats
from ptclust.mechanisms.lattice import add_noise
from ptclust.privacy import Noise, Sensitivity
from ptclust.privacy.noise import cube_noise, gaussian_noise, laplace_noise

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 0.02  # the share of OpenDP's time that is the goal


@dataclass(frozen=True)
class NoiseReport:
    """CPU nanoseconds a value, of ptclust and of OpenDP, by distribution."""

    n_values: int
    opendp_values: int
    nanoseconds: dict[str, tuple[float, float]]

    def to_json(self) -> str:
        """Return all numbers as JSON."""
        content = {
            name: {"ptclust": ours, "opendp": theirs, "ratio": ours / theirs}
            for name, (ours, theirs) in self.nanoseconds.items()
        }
        sizes = {"n_values": self.n_values, "opendp_values": self.opendp_values}
        return json.dumps({**sizes, "nanoseconds": content}, indent=2)

    def to_markdown(self) -> str:
        """Return the ratios as a table."""
        lines = [
            *wrapped(
                f"CPU time of noise on {self.n_values:,} values, as a share of OpenDP's (goal",
                f"{MOST}), which was measured on {self.opendp_values:,} values, as its time is",
                "linear. OpenDP has no cube noise; that is beside its Laplace noise.",
            ),
            "",
            "| noise | share of OpenDP's time |",
            "|---|---|",
        ]
        for name, (ours, theirs) in self.nanoseconds.items():
            lines.append(f"| {name} | {ours / theirs:.4f} |")
        return "\n".join(lines)


def run_noise_speed(
    n_values: int, opendp_values: int, repeat: int, progress: Callable[[str], None]
) -> NoiseReport:
    """Measure both samplers on the same lattice; OpenDP, whose time is linear, on fewer values.

    OpenDP has no cube noise: that is compared with its Laplace noise, which it replaces.
    """
    values = np.random.default_rng(0).random(n_values)
    change = Sensitivity(linf=1e-4)
    found: dict[str, tuple[float, float]] = {}
    laplace, gaussian = laplace_noise(change, n_values, 1), gaussian_noise(change, n_values, 1)
    pairs = ((laplace, laplace), (gaussian, gaussian), (cube_noise(change, n_values, 1), laplace))
    for noise, other in pairs:
        progress(f"Noise: {noise.distribution}")
        _nanoseconds(values[:5000], noise, "auto")  # compiles
        runs = [
            (
                _nanoseconds(values, noise, "auto"),
                _nanoseconds(values[:opendp_values], other, "opendp"),
            )
            for _ in range(repeat)
        ]
        found[noise.distribution] = (median(x for x, _ in runs), median(y for _, y in runs))
    return NoiseReport(n_values, opendp_values, found)


def _nanoseconds(values: Floats, noise: Noise, sampler: Sampler) -> float:
    noise, start = replace(noise, n_values=len(values)), time.process_time()
    add_noise(values, noise, sampler=sampler)
    return (time.process_time() - start) / len(values) * 1e9
