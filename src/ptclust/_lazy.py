"""Lazy imports: public names when first used, optional packages when needed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ptclust.errors import MissingDependencyError


def lazy(package: str, *submodules: str, **names_of: tuple[str, ...]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package: submodules, and the public names of its modules."""
    module_of = {name: module for module, names in names_of.items() for name in names}

    def get(name: str) -> Any:
        if name in submodules:
            return import_module(f"{package}.{name}")
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get


def package(name: str, purpose: str, extra: str | None = None) -> Any:
    """Return an optional package; if it is not installed, say what needs it.

    ``extra`` is the extra of ptclust that brings it, if that is not called as the package is.
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingDependencyError(name, purpose, extra) from None
