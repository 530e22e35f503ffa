"""Plans and predictions, from public numbers and simulated weights only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptclust._lazy import lazy
from ptclust.planning.plan import Plan, PlanRequest, make_plan, plan

if TYPE_CHECKING:
    from ptclust.planning.prediction import Point, Prediction, predict

__all__ = ["Plan", "PlanRequest", "Point", "Prediction", "make_plan", "plan", "predict"]

__getattr__ = lazy(__name__, prediction=("Point", "Prediction", "predict"))
