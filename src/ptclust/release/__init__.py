"""Room of the releases: what leaves the house, with the statement of its guarantee."""

from ptclust.release.release import Release
from ptclust.release.schema import release_schema

__all__ = ["Release", "release_schema"]
