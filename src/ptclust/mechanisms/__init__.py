"""The mechanisms: the only package that publishes anything of private weights.

One registry, which plan, statement, audit and command line read.
"""

from __future__ import annotations

from ptclust.mechanisms.kruskal import Kruskal
from ptclust.mechanisms.mechanism import MECHANISMS, Calibration, Mechanism
from ptclust.mechanisms.pamst import Pamst
from ptclust.mechanisms.perturbation import Perturbation
from ptclust.privacy.noise import DISTRIBUTIONS

__all__ = ["MECHANISMS", "Calibration", "Kruskal", "Mechanism", "Pamst", "Perturbation"]

for _mechanism in (Kruskal(), Pamst(), *map(Perturbation, DISTRIBUTIONS)):
    MECHANISMS.register(_mechanism)
