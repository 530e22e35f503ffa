"""Spark: the same work on many machines."""
