"""The noise on published weights, as public numbers: what was added, never to what."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ptclust.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

Distribution = Literal["laplace", "gaussian"]


@dataclass(frozen=True)
class Noise:
    """Independent noise for ``n_values`` numbers, on the lattice of multiples of 2^granularity.

    Its scale is b of the Laplace, sigma of the Gaussian distribution. The calibration depends on
    how many values get noise together.

    Examples
    --------
    >>> Noise("gaussian", scale=2.0, granularity=-40, n_values=3).standard_deviation
    2.0
    """

    distribution: Distribution
    scale: float
    granularity: int
    n_values: int

    def __post_init__(self) -> None:
        if self.distribution not in get_args(Distribution):
            raise UsageError(f"noise must be 'laplace' or 'gaussian', not {self.distribution!r}")
        if self.n_values < 0:
            raise UsageError(f"the number of values must be 0 or more, but is {self.n_values!r}")
        if self.n_values > 0 and not 0 < self.scale < math.inf:
            raise UsageError(
                f"the scale of the noise must be positive and finite, but is {self.scale!r}: "
                "rescale the weights with their sensitivity, or choose another budget"
            )

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise on one value."""
        return math.sqrt(2.0) * self.scale if self.distribution == "laplace" else self.scale

    def log_ratio(
        self, noisy: FloatArray, weights: FloatArray, neighbour: FloatArray
    ) -> FloatArray:
        """Return the log-ratio of the densities of each noisy value under two inputs."""
        if self.distribution == "laplace":
            return (np.abs(noisy - neighbour) - np.abs(noisy - weights)) / self.scale
        return ((noisy - neighbour) ** 2 - (noisy - weights) ** 2) / (2.0 * self.scale**2)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Noise:
        """Read what ``to_dict`` wrote; UsageError if a field is of the wrong type."""
        for name, kinds in (("scale", (int, float)), ("granularity", (int,)), ("n_values", (int,))):
            if type(fields[name]) not in kinds:
                raise UsageError(f"{name} of the noise must be a number, not {fields[name]!r}")
        return cls(**{**fields, "scale": float(fields["scale"])})


NO_NOISE = Noise("laplace", scale=0.0, granularity=0, n_values=0)
"""Where nothing was released with noise."""
