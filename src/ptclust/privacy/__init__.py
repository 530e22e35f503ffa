"""Numbers about weights, never weights: sensitivity, budget, noise, randomness, statement."""

from __future__ import annotations

from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import Noise
from ptclust.privacy.provenance import Provenance, Spending
from ptclust.privacy.randomness import RandomStream
from ptclust.privacy.sensitivity import Sensitivity
from ptclust.privacy.statement import MechanismUse, PrivacyStatement

__all__ = [
    "Budget",
    "MechanismUse",
    "Noise",
    "PrivacyStatement",
    "Provenance",
    "RandomStream",
    "Sensitivity",
    "Spending",
]
