"""The account of what was spent on each dataset, and the rule by which releases are paid for."""

from __future__ import annotations

from ptclust.ledger.amounts import Account, Amount
from ptclust.ledger.ledger import Charge, Ledger, Payment

__all__ = ["Account", "Amount", "Charge", "Ledger", "Payment"]
