"""Node ids of any kind to node numbers.

Integers that leave few gaps are numbered in their own order, which needs no hashing; other ids by
first appearance, all sources before all targets.

Hashes are keyed with random words, so that nobody can write a file of ids that collide. The numbers
do not depend on them.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptclust._kernel import inlined, kernel
from ptclust._types import Array, Ints
from ptclust.graph.topology import as_objects, index_dtype, plain_name

if TYPE_CHECKING:
    import polars as pl

_Keys = NDArray[np.uint64]
_ATTEMPTS = 3
_UNSEEN = r"[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\x{2800}--\s]"
_MAY_CHANGE = r"[^ -~]|^ | $"  # a text without is as it is to be
_FEW_KEYS = 1 << 16
_MOST_SPAN = 2  # of integer ids, per edge, to count them in an array instead of a hash table


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
    import polars as pl

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
    codes, firsts = _first_appearances(both.view(np.uint64))
    return Numbered.of(codes, both[firsts])


def number_strings(sources: pl.Series, targets: pl.Series) -> Numbered:
    """Give numbers to ids that are strings; names are an object array of str."""
    codes, names = _number_strings(sources, targets)
    return Numbered.of(codes, as_objects(names))


def number_texts(sources: pl.Series, targets: pl.Series) -> Numbered:
    """Give numbers to ids from a text file, where a type has to be guessed.

    Ids are compared as `normal_texts` says. Names are integers if all ids are, as Python writes
    them.

    >>> import polars as pl
    >>> number_texts(pl.Series(["2", "10"]), pl.Series([" 10", "3"])).names.tolist()
    [2, 10, 3]
    >>> number_texts(pl.Series(["7", "10"]), pl.Series(["10", "007"])).names.tolist()
    ['7', '10', '007']
    """
    import polars as pl

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

    Several times faster than a polars Categorical, which numbers one string at a time.
    """
    import polars as pl

    both = pl.concat([sources, targets])
    for _ in range(_ATTEMPTS):
        codes, firsts = _first_appearances(_hashes(both, secrets.randbits(64)))
        names = both.gather(firsts)
        if names.gather(codes).equals(both):
            return codes, names
    names = both.unique(maintain_order=True)
    number = {name: code for code, name in enumerate(names.to_list())}
    return np.array([number[name] for name in both.to_list()]), names


def _hashes(strings: pl.Series, seed: int) -> _Keys:
    return strings.hash(seed).to_numpy()


def _first_appearances(keys: _Keys) -> tuple[Array, Ints]:
    """Return the number of every key, and the position at which each number first appears."""
    dtype = index_dtype(len(keys))
    if len(keys) <= _FEW_KEYS:  # no kernel need be compiled for a sort
        _, firsts, ranks = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        number = np.empty(len(order), dtype=dtype)
        number[order] = np.arange(len(order))
        return number[ranks], firsts[order]
    codes = np.empty(len(keys), dtype=dtype)
    secret = _secret()
    size = 1 << 16
    while True:
        firsts = np.empty(size // 2, dtype=np.int64)
        slot_key = np.empty(size, dtype=np.uint64)
        slot_code = np.full(size, -1, dtype=dtype)
        n_distinct = _number_keys(keys, secret, codes, firsts, slot_key, slot_code)
        if n_distinct >= 0:
            return codes, firsts[:n_distinct].copy()
        size *= 8


def _secret() -> _Keys:
    return np.array([secrets.randbits(64), secrets.randbits(64) | 1], dtype=np.uint64)


@inlined
def _scattered(key: np.uint64, secret: _Keys) -> np.uint64:
    """Return the key with its bits mixed by two secret words, of which the second is odd.

    A random multiple makes collisions unlikely whatever the keys are (Dietzfelbinger et al. 1997);
    the finalizer of splitmix64 makes the low bits depend on all others.
    """
    key = (key ^ secret[0]) * secret[1]
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@kernel
def _number_keys(
    keys: _Keys, secret: _Keys, codes: Array, firsts: Ints, slot_key: _Keys, slot_code: Array
) -> int:
    """Write the number of every key into ``codes``, and where each first appears into ``firsts``.

    A hash table: its slots are a power of two in number, ``slot_code`` filled with -1 on entry.
    Returns how many distinct keys there are, or -1 if there are more than ``firsts`` can hold.
    """
    mask = np.uint64(len(slot_key) - 1)
    count = 0
    for i in range(len(keys)):
        key = keys[i]
        slot = _scattered(key, secret) & mask
        while slot_code[slot] >= 0 and slot_key[slot] != key:
            slot = (slot + np.uint64(1)) & mask
        if slot_code[slot] < 0:
            if count == len(firsts):
                return -1
            slot_key[slot] = key
            slot_code[slot] = count
            firsts[count] = i
            count += 1
        codes[i] = slot_code[slot]
    return count
