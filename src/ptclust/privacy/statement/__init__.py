"""The privacy statement: what a release guarantees, in numbers for experts and in words for others."""

from __future__ import annotations

from ptclust.privacy.statement.statement import SCHEMA_VERSION, MechanismUse, PrivacyStatement

__all__ = ["SCHEMA_VERSION", "MechanismUse", "PrivacyStatement"]
