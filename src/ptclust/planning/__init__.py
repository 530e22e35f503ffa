"""Plans and predictions, from public numbers and simulated weights only."""

from __future__ import annotations

from ptclust.planning.plan import Plan, PlanRequest, make_plan, plan
from ptclust.planning.predict import predict
from ptclust.planning.result import Point, Prediction

__all__ = ["Plan", "PlanRequest", "Point", "Prediction", "make_plan", "plan", "predict"]
