"""Packages that take long to import: imported by the first test that uses one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["lazy"]


class lazy:  # noqa: N801 - reads like an import
    """Stand for a module: ``nx = lazy("networkx")``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what pytest and doctest ask of everything in a module
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
