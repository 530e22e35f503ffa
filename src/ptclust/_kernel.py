"""The one way this package compiles a numba kernel.

A kernel takes and returns plain numpy arrays and scalars. It is cached on disk, so only the first call on a machine
pays for compilation, and it releases the GIL, so a progress display keeps moving while it works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")


def kernel(function: _F) -> _F:
    """Compile ``function`` with numba in nopython mode, cached on disk and without the GIL."""
    return cast("_F", numba.njit(cache=True, nogil=True)(function))


def inlined(function: _F) -> _F:
    """Compile a small helper that a kernel calls in its innermost loop."""
    return cast("_F", numba.njit(cache=True, nogil=True, inline="always")(function))
