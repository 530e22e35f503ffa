"""What is published: noisy values, clusters and the statement; the file format and its exports."""

from ptclust.published import Published
from ptclust.release.comparison import Comparison
from ptclust.release.release import Release
from ptclust.release.schema import release_schema
from ptclust.release.summary import Summary

__all__ = ["Comparison", "Published", "Release", "Summary", "release_schema"]
