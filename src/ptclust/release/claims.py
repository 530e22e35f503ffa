"""Check that a release spends what its statement claims, as far as its values show."""

from __future__ import annotations

import numpy as np

from ptclust.errors import InputError, warn_of_privacy
from ptclust.mechanisms import MECHANISMS, Mechanism
from ptclust.privacy.budget import Budget
from ptclust.privacy.sensitivity import Sensitivity
from ptclust.privacy.statement import ROUNDING, MechanismUse, PrivacyStatement
from ptclust.published import Published
from ptclust.release.release import Release
from ptclust.trees.mst import minimum_spanning_edges


def check_claim(release: Release) -> None:
    """Recompute what a release spends; InputError says where its statement claims less.

    What no file can show is listed in ``statement.taken_on_trust``. Where a mechanism cannot tell
    what it spent, a PrivacyWarning says so.
    """
    statement, published, uses = release.statement, release.published, release.statement.mechanisms
    mechanism, sensitivity = MECHANISMS[published.mechanism], Sensitivity(**statement.sensitivity)
    _check_published(published, mechanism)
    shown, keeps = None, False
    if uses:
        _check_number(published)
        shown = mechanism.recalibrate(published, sensitivity, uses)
        if shown is not None and statement.rho is not None:
            # Its curve may afford what rho does not.
            budget = Budget.approximate(statement.epsilon, statement.delta)
            keeps = mechanism.keeps(shown, sensitivity, budget)
    elif release.topology.n_edges:
        raise InputError("weights are published, and the statement has no mechanism that did it")
    unit = "epsilon" if statement.rho is None else "rho"
    total, spent = getattr(statement, unit), sum(use.share for use in uses)
    if uses and spent < total * (1 - ROUNDING):
        raise InputError(
            f"the mechanisms spend {unit} {spent:.10g} of {total:.10g}: some are missing"
        )
    if not keeps:
        _check_afforded(statement, total, "it states")
    if altered := statement.altered_words:
        warn_of_privacy(
            f"the words of {', '.join(altered)} are not those of ptclust: somebody else wrote them "
            "into the statement"
        )
    if not uses:
        return
    built = statement.provenance
    if built is not None and not sensitivity.covers(built.sensitivity, published.noise.n_values):
        raise InputError(
            f"its sensitivity ({sensitivity}) is smaller than the one that follows from how its "
            f"graph was built ({built.sensitivity})"
        )
    if (epsilon := statement.requested_epsilon) is not None:  # the calibration is "published"
        requested = Budget.approximate(epsilon, statement.delta)
        printed = mechanism.calibrate_published(release.topology, sensitivity, requested)
        if [use.scale for use in uses] != [use.scale for use in mechanism.uses(printed)]:
            raise InputError(
                f"the scales are not those printed for a requested_epsilon of {epsilon:g}"
            )
    if shown is None:
        warn_of_privacy(
            f"what {published.mechanism!r} spends cannot be computed from a release: the epsilon "
            "of its statement is taken on trust"
        )
        return
    expected = mechanism.uses(shown)
    if len(expected) != len(uses):
        raise InputError(
            f"{published.mechanism!r} is {len(expected)} mechanisms, and the statement has "
            f"{len(uses)}"
        )
    for i, (claimed, true) in enumerate(zip(uses, expected, strict=True)):
        _check_use(f"mechanisms[{i}]", claimed, true)
    if not keeps:
        _check_afforded(statement, sum(true.share for true in expected), "its noise spends")
    if statement.numerical_slack < shown.slack * (1 - ROUNDING):
        raise InputError(
            f"numerical_slack is {statement.numerical_slack:g}, and the draw of the tree needs "
            f"{shown.slack:g}"
        )


def _check_published(published: Published, mechanism: Mechanism) -> None:
    """Check that what was published is what the mechanism publishes.

    The tree of a whole graph is free only as post-processing: another one may tell of raw weights.
    """
    kinds = {True: "all edges", False: "a tree"}
    whole, wanted = published.whole_graph, mechanism.publishes == "graph"
    if (whole or published.tree_alone) != wanted:
        raise InputError(
            f"{mechanism.name!r} publishes weights of {kinds[wanted]}, and those of {kinds[whole]} "
            "are given"
        )
    topology = published.topology
    ends = topology.sources, topology.targets
    if whole and not np.array_equal(
        minimum_spanning_edges(*ends, published.distances, topology.n_nodes),
        published.tree.edge_ids,
    ):
        raise InputError("the tree is not the minimum spanning tree of the noisy weights")


def _check_number(published: Published) -> None:
    """Check that noise was drawn for as many values as there are, of a tree alone as may be."""
    n_values, whole = published.noise.n_values, published.topology
    n_pairs = whole.n_nodes * (whole.n_nodes - 1) // 2
    if n_values > n_pairs or (not published.tree_alone and n_values != whole.n_edges):
        raise InputError(f"the noise is for {n_values} values, and {whole.n_edges} are published")


def _check_afforded(statement: PrivacyStatement, spent: float, who: str) -> None:
    """Check that epsilon and delta cover what is spent, but for rounding."""
    affords, unit = statement.epsilon, "epsilon"
    if statement.rho is not None:
        budget = Budget.approximate(statement.epsilon, statement.delta)
        affords, unit = float(budget.to_zcdp().amount), "rho"
    if spent > affords * (1 + ROUNDING):
        raise InputError(
            f"epsilon {statement.epsilon:.13g} and delta {statement.delta:.10g} allow a {unit} of "
            f"{affords:.13g}, and {who} {spent:.13g}"
        )


def _check_use(where: str, claimed: MechanismUse, true: MechanismUse) -> None:
    for name in ("name", "purpose", "share_of", "noise", "scale", "parameters"):
        stated, shown = getattr(claimed, name), getattr(true, name)
        if stated != shown:
            raise InputError(f"{where}: {name} is {stated!r}, and the release shows {shown!r}")
    if claimed.share < true.share * (1 - ROUNDING):
        raise InputError(
            f"{where} claims to spend {claimed.share_of} {claimed.share:.10g}, and its noise "
            f"spends {true.share:.10g}"
        )
