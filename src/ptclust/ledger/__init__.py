"""The account of what was spent on each dataset, and the rule by which releases are paid for."""

from __future__ import annotations

from ptclust.ledger.amounts import Amount
from ptclust.ledger.ledger import Account, Charge, Ledger
from ptclust.ledger.payment import Payment

__all__ = ["Account", "Amount", "Charge", "Ledger", "Payment"]
