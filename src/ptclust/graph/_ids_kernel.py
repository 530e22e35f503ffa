"""One pass over the ids of all endpoints: a hash table that numbers them by first appearance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._kernel import inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@inlined
def _scattered(key: np.uint64) -> np.uint64:
    """Return the key with its bits mixed (the finalizer of splitmix64), so that no pattern clusters."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@kernel
def number_keys(
    keys: NDArray[np.uint64],
    codes: NDArray[Any],
    firsts: NDArray[np.int64],
    slot_key: NDArray[np.uint64],
    slot_code: NDArray[Any],
) -> int:
    """Write into ``codes`` the number of every key, and into ``firsts`` where each number first appears.

    The slots are a power of two in number, ``slot_code`` filled with -1 on entry. Returns how many distinct
    keys there are, or -1 if there are more than ``firsts`` has room for.
    """
    mask = np.uint64(len(slot_key) - 1)
    count = 0
    for i in range(len(keys)):
        key = keys[i]
        slot = _scattered(key) & mask
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
