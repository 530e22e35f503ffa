"""Room of the experiments: synthetic data with a known truth, and what is measured on them."""

from ptclust.experiments.points import circles, moons

__all__ = ["circles", "moons"]
