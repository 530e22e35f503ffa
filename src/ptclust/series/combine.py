"""All periods of a series as one release of the mean weights; post-processing."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from ptclust.errors import UsageError
from ptclust.graph.topology import as_distances
from ptclust.mechanisms import MECHANISMS, Calibration
from ptclust.privacy._numbers import float_up
from ptclust.privacy.noise import spent_by
from ptclust.privacy.sensitivity import Sensitivity
from ptclust.published import Published
from ptclust.release import Release
from ptclust.trees.mst import minimum_spanning_edges
from ptclust.trees.tree import Tree

if TYPE_CHECKING:
    from ptclust.series.series import Series


def combine(series: Series) -> Release:
    """Return the mean of all periods, weighted with the inverse variances of their noise.

    Notes
    -----
    *Privacy.* Post-processing: it spends nothing. The statement says what the releases spend
    together, which is what noise of this size on mean weights spends: a person who moves the
    weights of every period by at most d moves their mean by at most d, and mu of all is the root of
    the sum of squares.
    """
    releases, spent = list(series.releases.values()), series.verify()
    if series.terms.rule != "gaussian" or spent is None:
        raise UsageError("periods are combined where all of them have Gaussian noise")
    first = releases[0]
    for each in releases[1:]:
        same = each.kind == first.kind and each.topology == first.topology
        if not same or each.statement.sensitivity != first.statement.sensitivity:
            raise UsageError(
                "periods are combined if they have one topology, one kind and one sensitivity"
            )
    precision = np.array([1.0 / each.weight_noise.scale**2 for each in releases])
    shares = precision / precision.sum()
    weights = sum(
        (share * each.noisy_weights for share, each in zip(shares, releases, strict=True)),
        start=np.zeros(first.topology.n_edges),
    )
    noise = replace(first.weight_noise, scale=float(precision.sum() ** -0.5))
    topology, kind = first.topology, first.kind
    edges = minimum_spanning_edges(
        topology.sources, topology.targets, as_distances(weights, kind), topology.n_nodes
    )
    tree = Tree(topology.restricted_to(edges), weights[edges], edges, kind=kind)
    published = Published(first.published.mechanism, noise, tree, topology, weights)
    sensitivity = Sensitivity(**first.statement.sensitivity)
    rho = spent_by(noise, sensitivity)
    assert rho is not None  # noqa: S101 - there are values
    whole = replace(spent, _zcdp=rho.amount)
    mechanism = MECHANISMS[first.published.mechanism]
    words = f"the mean of {len(releases)} releases of the series {series.name!r}"
    statement = replace(
        first.statement,
        epsilon=float_up(whole.epsilon * (1 + Fraction(1, 10**9))),
        rho=float_up(rho.amount),
        mechanisms=mechanism.uses(Calibration(mechanism.name, None, noise, whole, rho)),
        composition="",
        composition_rule="",
        neighbours="",
        id=str(uuid4()),
        caveats=(*first.statement.caveats[:-1], f"{words}: it spends nothing beside them"),
    )
    return Release(published=published, statement=statement).recluster()
