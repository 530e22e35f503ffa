"""Node ids of any kind to node numbers, in the order of first appearance.

"First" reads row by row, the source before the target. A row is one edge. Integers that leave few
gaps are numbered in their own order, which needs no hashing.

Hashes are keyed with random words, so that nobody can write a file of ids that collide. The numbers
do not depend on them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Iterable
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
_MOST_SPAN = 2  # of integer ids, per edge, to count them in an array instead of a hash table


class Numbered(NamedTuple):
    """The endpoints as node numbers, and the names of the nodes."""

    sources: Array
    targets: Array
    names: Array


def as_texts(
    ids: pl.Series, change: Callable[[pl.Series], pl.Series] = lambda texts: texts
) -> pl.Series:
    """Return texts, changed, in place of categories; rows of one category share one text."""
    import polars as pl

    if ids.dtype == pl.String:
        return change(ids)
    once = ids.drop_nulls().unique()
    texts = change(once.cast(pl.String))
    codes, of_once = ids.to_physical(), once.to_physical()
    return codes.replace_strict(of_once, texts, default=None, return_dtype=pl.String)


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
    return as_texts(ids, _normal)


def _normal(texts: pl.Series) -> pl.Series:
    rows = texts.str.contains(_MAY_CHANGE).fill_null(value=False).arg_true()
    if not len(rows):
        return texts
    seen = texts.gather(rows).str.replace_all(_UNSEEN, "")
    return texts.clone().scatter(rows, seen.str.normalize("NFC").str.strip_chars())


def number_integers(sources: Array, targets: Array) -> Numbered:
    """Give numbers to integer ids; both arrays are of one integer type."""
    if len(sources):
        low = min(int(sources.min()), int(targets.min()))
        high = max(int(sources.max()), int(targets.max()))
        if high - low <= _MOST_SPAN * len(sources):
            return _number_dense(sources, targets, low, high)
    wide = np.uint64 if sources.dtype == np.uint64 else np.int64
    keys = _interleaved(sources.astype(wide, copy=False), targets.astype(wide, copy=False))
    codes, firsts = _first_appearances(keys.view(np.uint64))
    return Numbered(codes[0::2].copy(), codes[1::2].copy(), keys[firsts])


def _number_dense(sources: Array, targets: Array, low: int, high: int) -> Numbered:
    """Give numbers to ids from ``low`` to ``high`` in their order."""
    wide = np.uint64 if sources.dtype == np.uint64 else np.int64
    places = [ends if low == 0 else ends.astype(wide) - wide(low) for ends in (sources, targets)]
    number = np.zeros(high - low + 1, index_dtype(high - low + 1))
    for place in places:
        number[place] = 1
    names = np.flatnonzero(number).astype(wide) + wide(low)
    if len(names) == len(number):  # no gaps: every id is in its place
        return Numbered(places[0], places[1], names)
    np.cumsum(number, out=number)
    number -= 1
    return Numbered(number[places[0]], number[places[1]], names)


def number_strings(sources: pl.Series, targets: pl.Series) -> Numbered:
    """Give numbers to ids that are strings; names are an object array of str."""
    a, b, names = _number_strings(sources, targets)
    return Numbered(a, b, as_objects(names))


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

    a, b, names = _number_strings(sources, targets)
    normal = normal_texts(names)
    if not normal.equals(names):
        again, _, names = _number_strings(normal, normal)
        a, b = again[a], again[b]
    integers = names.cast(pl.Int64, strict=False)
    if integers.null_count() == 0 and integers.cast(pl.String).equals(names):
        return Numbered(a, b, integers.to_numpy())
    return Numbered(a, b, as_objects(names))


def number_hashables(sources: Iterable[Hashable], targets: Iterable[Hashable]) -> Numbered:
    """Give numbers to ids of any hashable kind, one by one."""
    numbers: dict[Hashable, int] = {}
    codes = [
        numbers.setdefault(plain_name(name), len(numbers))
        for pair in zip(sources, targets, strict=True)
        for name in pair
    ]
    both = np.array(codes, dtype=np.int64)
    return Numbered(both[0::2].copy(), both[1::2].copy(), as_objects(numbers))


def _number_strings(sources: pl.Series, targets: pl.Series) -> tuple[Array, Array, pl.Series]:
    """Tell strings apart by their 64-bit hashes; if two collide, start again with another seed.

    Several times faster than a polars Categorical, which numbers one string at a time.
    """
    import polars as pl

    for _ in range(_ATTEMPTS):
        seed = secrets.randbits(64)
        keys = _interleaved(_hashes(sources, seed), _hashes(targets, seed))
        codes, firsts = _first_appearances(keys)
        a, b = codes[0::2].copy(), codes[1::2].copy()
        names = _picked(sources, targets, firsts)
        if names.gather(a).equals(sources) and names.gather(b).equals(targets):
            return a, b, names
    found = number_hashables(sources.to_list(), targets.to_list())
    return found.sources, found.targets, pl.Series(found.names.tolist(), dtype=pl.String)


def _hashes(strings: pl.Series, seed: int) -> _Keys:
    return strings.hash(seed).to_numpy()


def _picked(sources: pl.Series, targets: pl.Series, positions: Ints) -> pl.Series:
    """Return the strings at these positions of the interleaved columns."""
    import polars as pl

    of_source, of_target = positions[positions % 2 == 0], positions[positions % 2 == 1]
    picked = pl.concat([sources.gather(of_source // 2), targets.gather(of_target // 2)])
    return picked.gather(np.argsort(np.concatenate([of_source, of_target])))


def _first_appearances(keys: _Keys) -> tuple[Array, Ints]:
    """Return the number of every key, and the position at which each number first appears."""
    dtype = index_dtype(len(keys))
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


def _interleaved(sources: Array, targets: Array) -> Array:
    return np.stack([sources, targets], axis=1).ravel()


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
