"""Check that a release spends what its statement claims, as far as its values show."""

from __future__ import annotations

import numpy as np

from ptclust.errors import InputError, warn_of_privacy
from ptclust.mechanisms import MECHANISMS, Calibration, Mechanism
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
    statement, published = release.statement, release.published
    mechanism = MECHANISMS[published.mechanism]
    _check_published(published, mechanism)
    if statement.mechanisms:
        _check_number(published)
    shown, keeps = _recalibrated(release, mechanism)
    _check_totals(statement, drawn=release.topology.n_edges > 0, keeps=keeps)
    if altered := statement.altered_words:
        warn_of_privacy(
            f"the words of {', '.join(altered)} are not those of ptclust: somebody else wrote them "
            "into the statement"
        )
    if not statement.mechanisms:
        return
    n_values = published.noise.n_values
    sensitivity = Sensitivity(**statement.sensitivity)
    built = statement.provenance
    if built is not None and not sensitivity.covers(built.sensitivity, n_values):
        raise InputError(
            f"its sensitivity ({sensitivity}) is smaller than the one that follows from how its "
            f"graph was built ({built.sensitivity})"
        )
    if statement.requested_epsilon is not None:  # the calibration is "published"
        _check_published_scales(release, sensitivity, statement.requested_epsilon)
    if shown is None:
        warn_of_privacy(
            f"what {published.mechanism!r} spends cannot be computed from a release: the epsilon "
            "of its statement is taken on trust"
        )
        return
    expected = mechanism.uses(shown)
    if len(expected) != len(statement.mechanisms):
        raise InputError(
            f"{published.mechanism!r} is {len(expected)} mechanisms, and the statement has "
            f"{len(statement.mechanisms)}"
        )
    for i, (claimed, true) in enumerate(zip(statement.mechanisms, expected, strict=True)):
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
    if (published.whole_graph or published.tree_alone) != (mechanism.publishes == "graph"):
        given = "all edges" if published.whole_graph else "a tree"
        wanted = "all edges" if mechanism.publishes == "graph" else "a tree"
        raise InputError(
            f"{mechanism.name!r} publishes weights of {wanted}, and those of {given} are given"
        )
    if not published.whole_graph:
        return
    whole = published.topology
    ends = whole.sources, whole.targets
    if not np.array_equal(
        minimum_spanning_edges(*ends, published.distances, whole.n_nodes), published.tree.edge_ids
    ):
        raise InputError("the tree is not the minimum spanning tree of the noisy weights")


def _check_number(published: Published) -> None:
    """Check that noise was drawn for as many values as there are, of a tree alone as may be."""
    n_values, whole = published.noise.n_values, published.topology
    n_pairs = whole.n_nodes * (whole.n_nodes - 1) // 2
    if n_values > n_pairs or (not published.tree_alone and n_values != whole.n_edges):
        raise InputError(f"the noise is for {n_values} values, and {whole.n_edges} are published")


def _check_published_scales(release: Release, sensitivity: Sensitivity, epsilon: float) -> None:
    """Check that the scales are those printed for the epsilon that was requested."""
    statement, mechanism = release.statement, MECHANISMS[release.published.mechanism]
    requested = Budget.approximate(epsilon, statement.delta)
    printed = mechanism.calibrate_published(release.topology, sensitivity, requested)
    stated = [use.scale for use in statement.mechanisms]
    if stated != [use.scale for use in mechanism.uses(printed)]:
        raise InputError(f"the scales are not those printed for a requested_epsilon of {epsilon:g}")


def _recalibrated(release: Release, mechanism: Mechanism) -> tuple[Calibration | None, bool]:
    """Return the calibration that a release shows, and whether it keeps its claim by its curve."""
    statement = release.statement
    if not statement.mechanisms:
        return None, False
    sensitivity = Sensitivity(**statement.sensitivity)
    shown = mechanism.recalibrate(release.published, sensitivity, statement.mechanisms)
    if shown is None or statement.rho is None:
        return shown, False
    budget = Budget.approximate(statement.epsilon, statement.delta)
    return shown, mechanism.keeps(shown, sensitivity, budget)


def _check_totals(statement: PrivacyStatement, *, drawn: bool, keeps: bool) -> None:
    """Check that the shares are the whole, and that the statement affords what it says of rho."""
    if drawn and not statement.mechanisms:
        raise InputError("weights are published, and the statement has no mechanism that did it")
    unit, total = (
        ("epsilon", statement.epsilon) if statement.rho is None else ("rho", statement.rho)
    )
    spent = sum(use.share for use in statement.mechanisms)
    if statement.mechanisms and spent < total * (1 - ROUNDING):
        raise InputError(
            f"the mechanisms spend {unit} {spent:.10g} of {total:.10g}: some are missing"
        )
    if not keeps:
        _check_afforded(statement, total, "it states")


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
