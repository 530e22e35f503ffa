"""Cluster numbers that persist from one release to the next; post-processing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._types import Ints
from ptclust.errors import InputError
from ptclust.privacy import _checks as check

if TYPE_CHECKING:
    from ptclust.release.release import Release

_FIELDS = ("digest", "numbers", "used")
_MOST_NUMBERS = 2**26  # arrays of as many are made on the word of a file
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Follows:
    """The release that came before, and the numbers that clusters have from it.

    Cluster i of the clustering has the number ``numbers[i]``. Numbers below ``used`` were given to
    some cluster of this release or of one before, and are not given to a new cluster.
    """

    digest: str  # of the file of the earlier release
    numbers: tuple[int, ...]
    used: int

    def __post_init__(self) -> None:
        if not isinstance(self.digest, str) or not _DIGEST.fullmatch(self.digest):
            raise InputError(f"follows.digest is no SHA-256 of a release: {self.digest!r}")
        numbers = list(self.numbers) if isinstance(self.numbers, (tuple, list)) else [None]
        if not all(type(each) is int for each in (*numbers, self.used)):
            raise InputError("follows.numbers and follows.used must be whole numbers")
        if len(set(numbers)) < len(numbers) or min(numbers, default=0) < 0:
            raise InputError("follows.numbers must be different, and 0 or more")
        if not max(numbers, default=-1) < self.used <= _MOST_NUMBERS:
            raise InputError(f"follows.used must be above all numbers, to {_MOST_NUMBERS:,}")
        object.__setattr__(self, "numbers", tuple(numbers))

    def rename(self, labels: Ints) -> Ints:
        """Return labels of the clustering under the numbers of their clusters."""
        return np.array([*self.numbers, -1], dtype=np.int64)[labels]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain objects, ready for JSON."""
        return {"digest": self.digest, "numbers": list(self.numbers), "used": self.used}

    @classmethod
    def from_dict(cls, content: object) -> Follows:
        """Read what `to_dict` wrote; InputError if a field is missing, unknown or wrong."""
        return cls(**check.exactly("follows", content, _FIELDS))


def follow(release: Release, earlier: Release) -> Follows:
    """Return the numbers of the clusters of ``release`` after those of ``earlier``.

    Clusters are matched one to one so that matched clusters share as many nodes as possible. A
    cluster keeps the number of the earlier one if that has most of its nodes in it; else its number
    is new.
    """
    from ptclust.release.comparison import Comparison
    from ptclust.release.format import digest

    kept = {
        match.label: match.earlier
        for match in Comparison(release, earlier).matches
        if match.label is not None and match.earlier is not None
        if 2 * match.shared > match.earlier_size
    }
    used = numbers_used(earlier)
    numbers = []
    for label in range(release.n_clusters):
        if (number := kept.get(label)) is None:
            number, used = used, used + 1
        numbers.append(number)
    return Follows(digest(earlier), tuple(numbers), used)


def numbers_used(release: Release) -> int:
    """Return the number from which on no cluster of a release, or before it, has been numbered."""
    if release.follows is not None:
        return release.follows.used
    return int(release.labels.max(initial=-1)) + 1
