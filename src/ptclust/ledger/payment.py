"""Paying for a release: charged before anything is drawn, confirmed when it was handed over.

There is one rule for the command line, the estimator and ``private_spanning_tree``. A charge that fails
stops the release. After the charge nothing that was drawn is withheld: if the note that it was handed
over cannot be written, that is a warning, and the charge stands.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptclust.errors import PrivacyWarning, PtclustError, UsageError
from ptclust.ledger.ledger import Account, Ledger

if TYPE_CHECKING:
    import os

    from ptclust.privacy.budget import Budget

__all__ = ["Payment"]


@dataclass(frozen=True)
class Payment:
    """Who pays for releases: a dataset of a ledger, or nobody.

    Examples
    --------
    >>> Payment.by(None, None).charge(None, statement_id="", description="")
    """

    ledger: Ledger | None
    dataset: str

    @classmethod
    def by(
        cls,
        ledger: Ledger | str | os.PathLike[str] | None,
        dataset: str | None,
        random_state: int | None = None,
    ) -> Payment:
        """Return the payment after verifying the ledger; refuse what cannot be charged in any case."""
        if (ledger is None) != (dataset is None):
            raise UsageError(
                "a ledger and the name of one of its datasets belong together: give both ledger and "
                "dataset, or neither"
            )
        if ledger is not None and random_state is not None:
            raise UsageError(
                "with random_state a release can be made again and is not private, so no budget covers "
                "it: leave out random_state, or the ledger"
            )
        return cls(None if ledger is None else Ledger.open(ledger), dataset or "")

    def charge(self, spent: Budget, *, statement_id: str, description: str) -> None:
        """Charge what a release truly spends; when this returns, the charge is on the disk."""
        if self.ledger is not None:
            self.ledger.charge(
                self.dataset,
                spent,
                zcdp=_zcdp_of(spent),
                statement_id=statement_id,
                description=description,
            )

    def confirm(self, statement_id: str) -> None:
        """Note that a release was handed over; it is charged whether the note succeeds or not."""
        if self.ledger is None:
            return
        try:
            self.ledger.confirm(statement_id)
        except PtclustError as error:
            warnings.warn(
                "the release was charged and is handed over, but the note of that failed: "
                + str(error),
                PrivacyWarning,
                stacklevel=3,
            )

    def preview(self, spent: Budget) -> Account | None:
        """Return the account as it would be after a release; charges nothing."""
        if self.ledger is None:
            return None
        return self.ledger.preview(self.dataset, spent, zcdp=_zcdp_of(spent))

    @property
    def account(self) -> Account | None:
        """The account as it is now."""
        if self.ledger is None:
            return None
        return next(each for each in self.ledger.status() if each.dataset == self.dataset)


def _zcdp_of(spent: Budget) -> Budget | None:
    """Return the rho by which a release keeps its (epsilon, delta); a pure one has no need of it."""
    return spent.to_zcdp() if spent.kind == "approximate" else None
