"""What is spent and on what: sensitivity, budget, randomness and noise. No private weight lives in this room."""

from __future__ import annotations

from ptclust.privacy.budget import Budget
from ptclust.privacy.noise import (
    Noise,
    add_noise,
    gaussian_noise,
    laplace_noise,
    published_laplace_noise,
)
from ptclust.privacy.randomness import RandomStream
from ptclust.privacy.sensitivity import Sensitivity

__all__ = [
    "Budget",
    "Noise",
    "RandomStream",
    "Sensitivity",
    "add_noise",
    "gaussian_noise",
    "laplace_noise",
    "published_laplace_noise",
]
