"""Releases of the same people again and again: one budget, lasting numbers, what changed."""

from ptclust.planning.series import SeriesBudget, SeriesPlan, plan_series
from ptclust.series.series import Series

__all__ = ["Series", "SeriesBudget", "SeriesPlan", "plan_series"]
