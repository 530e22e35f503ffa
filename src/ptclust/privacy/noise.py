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

__all__ = ["NO_NOISE", "Distribution", "Noise"]

Distribution = Literal["laplace", "gaussian"]


@dataclass(frozen=True)
class Noise:
    """Independent noise for ``n_values`` numbers.

    Parameters
    ----------
    distribution : {"laplace", "gaussian"}
        On the lattice of multiples of 2^granularity.
    scale : float
        b of the Laplace, sigma of the Gaussian distribution.
    granularity : int
        Exponent k of the lattice 2^k.
    n_values : int
        How many values get noise together; the calibration depends on it.

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
        if not 0 <= self.scale < math.inf or (self.n_values > 0 and self.scale == 0):
            raise UsageError(
                f"the scale of the noise must be positive and finite, but is {self.scale!r}: rescale "
                "the weights with their sensitivity, or choose another budget"
            )

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise on one value."""
        return math.sqrt(2.0) * self.scale if self.distribution == "laplace" else self.scale

    def log_ratio(
        self,
        noisy: NDArray[np.float64],
        weights: NDArray[np.float64],
        neighbour: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the log-ratio of the densities of noisy values under two inputs, value by value."""
        if self.distribution == "laplace":
            return (np.abs(noisy - neighbour) - np.abs(noisy - weights)) / self.scale
        return ((noisy - neighbour) ** 2 - (noisy - weights) ** 2) / (2.0 * self.scale**2)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Noise:
        """Return the noise that ``to_dict`` described; UsageError if a field is of the wrong type."""
        for name, kinds in (("scale", (int, float)), ("granularity", (int,)), ("n_values", (int,))):
            if type(fields[name]) not in kinds:
                raise UsageError(f"{name} of the noise must be a number, not {fields[name]!r}")
        try:
            scale = float(fields["scale"])
        except OverflowError:
            scale = math.inf
        return cls(**{**fields, "scale": scale})


NO_NOISE = Noise("laplace", scale=0.0, granularity=0, n_values=0)
"""Where nothing was released with noise."""
