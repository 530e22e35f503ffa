"""What is published: noisy values, clusters and the statement; the file format and its exports."""

from __future__ import annotations

from ptclust.published import Published
from ptclust.release.release import Release
from ptclust.release.schema import release_schema

__all__ = ["Published", "Release", "release_schema"]
