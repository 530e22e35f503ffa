"""What is published: noisy values, clusters and the statement; the file format and its exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptclust._lazy import lazy
from ptclust.published import Published
from ptclust.release.release import Release
from ptclust.release.schema import release_schema
from ptclust.release.summary import Summary

if TYPE_CHECKING:
    from ptclust.release.comparison import Comparison

__all__ = ["Comparison", "Published", "Release", "Summary", "release_schema"]

__getattr__ = lazy(__name__, comparison=("Comparison",))
