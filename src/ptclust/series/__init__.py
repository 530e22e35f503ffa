"""Repeated releases about the same people: one budget, lasting cluster numbers, changes."""

from ptclust.planning.series import SeriesBudget, SeriesPlan, plan_series
from ptclust.series.series import Series

__all__ = ["Series", "SeriesBudget", "SeriesPlan", "plan_series"]
