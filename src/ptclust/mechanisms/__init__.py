"""The mechanisms: the only package that publishes anything of private weights.

One file per mechanism, and one registry, which plan, statement, audit and command line read.
"""

from __future__ import annotations

from ptclust.mechanisms.cube import Cube
from ptclust.mechanisms.gaussian import Gaussian
from ptclust.mechanisms.kruskal import Kruskal
from ptclust.mechanisms.laplace import Laplace
from ptclust.mechanisms.mechanism import MECHANISMS, Calibration, Mechanism
from ptclust.mechanisms.pamst import Pamst

__all__ = [
    "MECHANISMS",
    "Calibration",
    "Cube",
    "Gaussian",
    "Kruskal",
    "Laplace",
    "Mechanism",
    "Pamst",
]

for _mechanism in (Kruskal(), Pamst(), Gaussian(), Laplace(), Cube()):
    MECHANISMS.register(_mechanism)
