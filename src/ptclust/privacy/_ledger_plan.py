"""Paying for a release: what it costs in the currency of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptclust.errors import UsageError
from ptclust.privacy.ledger import Account, Ledger

if TYPE_CHECKING:
    import os

    from ptclust.privacy.budget import Budget
    from ptclust.privacy.calibration import Calibration, Candidate
    from ptclust.privacy.plan import Plan
    from ptclust.privacy.sensitivity import Sensitivity


def check_ledger(
    ledger: Ledger | str | os.PathLike[str] | None,
    dataset: str | None,
    random_state: int | None = None,
) -> Ledger | None:
    """Return the ledger after verifying it; refuse what cannot be charged in any case."""
    if (ledger is None) != (dataset is None):
        raise UsageError(
            "a ledger and the name of one of its datasets belong together: give both ledger and dataset, or neither"
        )
    if ledger is None:
        return None
    if random_state is not None:
        raise UsageError(
            "with random_state a release can be made again and is not private, so no budget covers it: leave out "
            "random_state, or the ledger"
        )
    return Ledger.open(ledger)


def charge_plan(ledger: Ledger, dataset: str | None, plan: Plan, statement_id: str) -> Account:
    """Charge what a plan truly spends; when this returns, the charge is on the disk."""
    return charge_candidate(
        ledger, dataset, plan.chosen, plan.calibration, plan.sensitivity, statement_id
    )


def charge_candidate(
    ledger: Ledger,
    dataset: str | None,
    chosen: Candidate,
    calibration: Calibration,
    sensitivity: Sensitivity,
    statement_id: str,
    what: str = "",
) -> Account:
    """Charge what a candidate truly spends; when this returns, the charge is on the disk.

    ``what`` begins the description, where it is not a whole release.
    """
    bounds = sensitivity.to_dict().items()
    declared = ", ".join(f"{norm} <= {bound:g}" for norm, bound in bounds if bound is not None)
    return ledger.charge(
        dataset or "",
        chosen.spent,
        zcdp=_zcdp_of(chosen.spent),
        statement_id=statement_id,
        description=f"{what}{chosen.method}, {calibration} calibration: {chosen.spent}; {declared}",
    )


def account_after(ledger: Ledger, dataset: str | None, plan: Plan) -> Account:
    """Return the account of a dataset as it would be after this plan; charges nothing."""
    return ledger.preview(dataset or "", plan.chosen.spent, zcdp=_zcdp_of(plan.chosen.spent))


def _zcdp_of(spent: Budget) -> Budget | None:
    """Return the rho by which a release keeps its (epsilon, delta); a pure one has no need of it."""
    return spent.to_zcdp() if spent.kind == "approximate" else None
