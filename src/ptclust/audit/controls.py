"""Mechanisms that violate their claim on purpose: an audit has to catch each of them.

Nothing outside the audit imports this module, and nothing here is reachable from a release.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from ptclust._types import Floats, Ints
from ptclust.audit.mechanisms import NoiseAlone, Pair, ValuesRelease, WholeRelease, coarse
from ptclust.audit.statistical import Outcomes
from ptclust.audit.tables import BOUNDS, NODES, build_flows
from ptclust.building import graph_from_flows
from ptclust.graph import Graph
from ptclust.mechanisms.lattice import add_noise
from ptclust.pipeline import ReleaseRequest
from ptclust.privacy import Noise, Provenance, RandomStream, Sensitivity

TOO_LITTLE = 0.05  # the share of the noise that is left out where too little is added


def unsafe_exponent(exponent: float) -> float:
    """Return an exponent 5 % above the one that the budget affords."""
    return exponent * (1.0 + TOO_LITTLE)


def unsafe_too_little(noise: Noise, pair: Pair, secure: bool) -> NoiseAlone:
    """Return one value with 5 % less noise than was calibrated."""
    less = replace(noise, scale=noise.scale * (1.0 - TOO_LITTLE))
    return NoiseAlone(noise, pair, secure, less)


class UnsafeNumpyNoise(NoiseAlone):
    """One value plus noise of the right scale, but in floating-point numbers (Mironov 2012)."""

    def draw(self, weights: Floats, count: int, seed: int) -> Outcomes:
        """Return the features of ``count`` releases."""
        generator = np.random.default_rng(seed)
        return self.features(weights[0] + generator.laplace(0.0, self.noise.scale, count))


class UnsafePublishedScales(ValuesRelease):
    """Algorithm 3 with its printed scales; that they spend more, as its plan says, is ignored."""

    def tree_log_ratios(self) -> None:
        """Leave the tree out: the likelihood ratio is that of the weights alone."""


class UnsafePrivateShift(WholeRelease):
    """The whole release, shifted by what the smallest private weight calls for."""

    def request(self, weights: Floats) -> ReleaseRequest:
        """Ask for DBMSTClu with that shift."""
        enough = 100.0 * self.plan.chosen.weights.standard_deviation
        plan = replace(self.plan.request, clusterer="dbmstclu")
        return ReleaseRequest.of(plan, shift=enough - weights.min())


def unsafe_half_width(noise: Noise, weights: Floats, count: int, seed: int) -> Outcomes:
    """Publish one value with cube noise, and the half-width within which that noise is uniform.

    What is seen is the value, and the least value that the half-width allows for the weight.
    """
    generator = np.random.default_rng(seed)
    half_width = generator.gamma(2.0, noise.scale, count)
    value = weights[0] + half_width * generator.uniform(-1.0, 1.0, count)
    return {"value": value, "least weight that explains it": value - half_width}


def unsafe_rounding(weights: Floats) -> Ints:
    """Round weights to the lattice of step 1, but away from zero instead of to the nearest."""
    steps: Ints = np.copysign(np.ceil(np.abs(weights)), weights).astype(np.int64)
    return steps


def unsafe_stream(
    noises: tuple[Noise, Noise], weights: Floats, count: int, seed: int, *, reused: bool = True
) -> Outcomes:
    """Release one value twice with different scales, the noise of both from the same stream.

    What is seen are both values, and where the line through them says that noise is zero. Unless
    ``reused`` each has a stream of its own, and the two spend what they claim.
    """
    noisy = []
    for i, noise in enumerate(noises):
        with RandomStream.seeded(seed + (0 if reused else i)) as stream:
            added = replace(noise, n_values=count)
            noisy.append(coarse(add_noise(np.full(count, weights[0]), added, stream=stream), added))
    small, large = (noise.scale for noise in noises)
    without = (large * noisy[0] - small * noisy[1]) / (large - small)
    return {"first value": noisy[0], "second value": noisy[1], "both, noise cancelled": without}


def unsafe_unbounded(table: pl.DataFrame) -> Graph:
    """Build a graph of all records, with the sensitivity of bounded persons."""
    graph = graph_from_flows(table, nodes=NODES)
    graph.provenance = build_flows(table).provenance
    return graph


def unsafe_first_records(table: pl.DataFrame) -> Graph:
    """Build a graph of the first records of every person in the order of the table.

    For a table alone it is a bound. But what is first depends on who else is in the table, where
    its order does.
    """
    most = BOUNDS["max_pairs"] * BOUNDS["max_per_pair"]
    first = table.group_by("person", maintain_order=True).head(most)
    graph = graph_from_flows(first, nodes=NODES)
    claimed = Sensitivity(l1=most, l2=most, linf=most)
    graph.provenance = Provenance(sensitivity=claimed, unit="one person")
    return graph


def unsafe_pairs_that_occur(table: pl.DataFrame) -> Graph:
    """Build a graph whose persons are bounded, on the pairs that somebody went."""
    edges = table.select("origin", "destination").unique()
    return graph_from_flows(table, edges=edges, **BOUNDS)
