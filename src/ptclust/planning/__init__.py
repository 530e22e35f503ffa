"""Plans and predictions, from public numbers and simulated weights only."""

from __future__ import annotations

from ptclust.planning.plan import Plan, PlanRequest, make_plan, plan
from ptclust.planning.prediction import Point, Prediction, predict

__all__ = ["Plan", "PlanRequest", "Point", "Prediction", "make_plan", "plan", "predict"]
