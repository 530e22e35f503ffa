"""Base64 of long arrays: twelve bits are two letters, looked up in a table."""

from __future__ import annotations

import base64
import string
from collections.abc import Iterator
from itertools import product

import numpy as np

from ptclust._kernel import kernel
from ptclust._types import Array

_LETTERS = (string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/").encode()
# Two letters for every twelve bits.
_PAIRS = np.frombuffer(
    bytes(letter for pair in product(_LETTERS, _LETTERS) for letter in pair), np.uint16
)
#: Bytes that are encoded at once. Of fewer the standard library does it: kernels take time to load.
_PIECE = 3 * 2**18


@kernel
def write_pairs(data: Array, pairs: Array, text: Array) -> None:
    """Write the letters of every three bytes, two at a time."""
    for i in range(len(text) // 2):
        first, second, third = data[3 * i], data[3 * i + 1], data[3 * i + 2]
        text[2 * i] = pairs[np.uint32(first) << 4 | second >> 4]
        text[2 * i + 1] = pairs[(np.uint32(second) & 15) << 8 | third]


def encoded(data: memoryview) -> Iterator[bytes | memoryview]:
    """Yield the base64 text of these bytes in pieces, so that it need never be in memory.

    >>> list(encoded(memoryview(b"spanning tree")))
    [b'c3Bhbm5pbmcgdHJlZQ==']
    """
    end = len(data) - len(data) % _PIECE
    for start in range(0, end, _PIECE):
        text = np.empty(_PIECE // 3 * 2, np.uint16)
        write_pairs(np.frombuffer(data[start : start + _PIECE], np.uint8), _PAIRS, text)
        yield text.view(np.uint8).data
    yield base64.b64encode(data[end:])
