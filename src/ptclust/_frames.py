"""Optional packages, and tables in the frames of two of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ptclust.errors import MissingDependencyError, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def package(name: str, purpose: str) -> Any:
    """Return an optional package; if it is not installed, say what needs it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingDependencyError(name, purpose) from None


def data_frame(columns: dict[str, NDArray[Any]], backend: str) -> Any:
    """Return a polars or pandas frame. Names that are not all strings stay the objects they are."""
    if backend == "pandas":
        return package("pandas", "to_dataframe(backend='pandas')").DataFrame(columns)
    if backend != "polars":
        raise UsageError(f"backend must be 'polars' or 'pandas', not {backend!r}")
    import polars as pl

    def series(name: str, values: NDArray[Any]) -> pl.Series:
        if values.dtype != object:
            return pl.Series(name, values)
        listed = values.tolist()
        plain = all(isinstance(value, str) for value in listed)
        return pl.Series(name, listed, dtype=pl.String if plain else pl.Object)

    return pl.DataFrame([series(name, values) for name, values in columns.items()])
