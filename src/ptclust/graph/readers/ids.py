"""Node ids of any kind to node numbers.

Integers are numbered in their own order; other ids by first appearance, all sources before all
targets. Numbers are sorted, and texts have hashes with a random seed that are sorted: nobody can
write a file of ids that collide.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np
import polars as pl

from ptclust._types import Array
from ptclust.graph.topology import as_objects, index_dtype, plain_name

_ATTEMPTS = 3
_UNSEEN = r"[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\x{2800}--\s]"
_MAY_CHANGE = r"[^ -~]|^ | $"  # a text without is as it is to be
_MOST_SPAN = 2  # of integer ids, per edge, to count them in an array instead of sorting them


class Numbered(NamedTuple):
    """The endpoints as node numbers, and the names of the nodes."""

    sources: Array
    targets: Array
    names: Array

    @classmethod
    def of(cls, codes: Array, names: Array) -> Numbered:
        """Return the codes of all sources and then all targets as the two ends of every edge."""
        sources, targets = codes.reshape(2, -1)
        return cls(sources, targets, names)


def normal_texts(ids: pl.Series) -> pl.Series:
    r"""Return texts as ids are compared: those that look the same are one id.

    Characters that cannot be seen are left out, letters are composed (Unicode's form NFC), and
    blanks around a text do not count.

    >>> import polars as pl
    >>> normal_texts(pl.Series(["7", " 7", "7\0", "\u200b7\r", "e\u0301", None])).to_list()
    ['7', '7', '7', '7', 'é', None]

    Notes
    -----
    *Privacy.* Two persons who become one are bounded together, which breaks no bound; one person
    who is taken for two would break it.
    """
    texts = ids.cast(pl.String)
    rows = texts.str.contains(_MAY_CHANGE).fill_null(value=False).arg_true()
    if not len(rows):
        return texts
    seen = texts.gather(rows).str.replace_all(_UNSEEN, "")
    return texts.clone().scatter(rows, seen.str.normalize("NFC").str.strip_chars())


def number_integers(sources: Array, targets: Array) -> Numbered:
    """Give numbers to integer ids; both arrays are of one integer type."""
    wide = np.uint64 if sources.dtype == np.uint64 else np.int64
    both = np.concatenate([sources, targets]).astype(wide, copy=False)
    if len(both) and int(both.max()) - int(both.min()) <= _MOST_SPAN * len(sources):
        places = both - both.min()
        is_used = np.zeros(int(places.max()) + 1, dtype=bool)
        is_used[places] = True
        number = np.cumsum(is_used, dtype=index_dtype(len(is_used))) - 1
        return Numbered.of(number[places], np.flatnonzero(is_used).astype(wide) + both.min())
    names, codes = np.unique(both, return_inverse=True)
    return Numbered.of(codes.astype(index_dtype(len(names))), names)


def number_strings(sources: pl.Series, targets: pl.Series) -> Numbered:
    """Give numbers to ids that are strings; names are an object array of str."""
    codes, names = _number_strings(sources, targets)
    return Numbered.of(codes, as_objects(names))


def number_texts(sources: pl.Series, targets: pl.Series) -> Numbered:
    """Give numbers to ids from a text file, compared as `normal_texts` says.

    Names are integers if all ids are, as Python writes them.

    >>> import polars as pl
    >>> number_texts(pl.Series(["2", "10"]), pl.Series([" 10", "3"])).names.tolist()
    [2, 10, 3]
    >>> number_texts(pl.Series(["7", "10"]), pl.Series(["10", "007"])).names.tolist()
    ['7', '10', '007']
    """
    codes, names = _number_strings(sources, targets)
    normal = normal_texts(names)
    if not normal.equals(names):
        again, names = _number_strings(normal, normal[:0])
        codes = again[codes]
    integers = names.cast(pl.Int64, strict=False)
    if integers.null_count() == 0 and integers.cast(pl.String).equals(names):
        return Numbered.of(codes, integers.to_numpy())
    return Numbered.of(codes, as_objects(names))


def number_hashables(sources: Iterable[Hashable], targets: Iterable[Hashable]) -> Numbered:
    """Give numbers to ids of any hashable kind, one by one."""
    numbers: dict[Hashable, int] = {}
    ids = map(plain_name, chain(sources, targets))
    codes = np.array([numbers.setdefault(name, len(numbers)) for name in ids], dtype=np.int64)
    return Numbered.of(codes, as_objects(numbers))


def _number_strings(sources: pl.Series, targets: pl.Series) -> tuple[Array, pl.Series]:
    """Tell strings apart by their 64-bit hashes; if two collide, start again with another seed.

    Sorting hashes is faster than what polars has for strings, which may also be made to collide.
    """
    both = pl.concat([sources, targets])
    dtype = index_dtype(len(both))
    for _ in range(_ATTEMPTS):
        distinct, ranks = np.unique(_hashes(both, secrets.randbits(64)), return_inverse=True)
        firsts = np.empty(len(distinct), dtype=np.int64)
        firsts[ranks[::-1]] = np.arange(len(both))[::-1]  # written last where it appears first
        order = np.argsort(firsts)
        number = np.empty(len(order), dtype=dtype)
        number[order] = np.arange(len(order))
        codes, names = number[ranks], both.gather(firsts[order])
        if names.gather(codes).equals(both):
            return codes, names
    names = both.unique(maintain_order=True)
    numbers = {name: code for code, name in enumerate(names.to_list())}
    return np.array([numbers[name] for name in both.to_list()], dtype=dtype), names


def _hashes(strings: pl.Series, seed: int) -> Array:
    return strings.hash(seed).to_numpy()
