r"""A file for a document with long arrays: its JSON, and then the arrays as they are in memory.

::

    16 bytes   b"ptclust release\0"
     8 bytes   how long the JSON is, little-endian
    the JSON   in ASCII, with spaces at its end up to a multiple of 8 bytes
    arrays     one after the other, little-endian, each with zeros up to a multiple of 8 bytes

An array is ``{"dtype": ..., "length": n, "at": place}`` in the JSON, its place counted in bytes
from the first array, and they follow each other in the order of the JSON. So every byte of a file
has one meaning, and a declared length must agree with the bytes that are there. Nothing is copied
to be read, and nothing in a file is executed.
"""

from __future__ import annotations

from typing import Any

from ptclust.errors import InputError

MAGIC = b"ptclust release\0"
SUFFIX = ".ptc"
SIZES = {"int32": 4, "int64": 8, "float64": 8}

_STEP = 8
_HEAD = len(MAGIC) + _STEP
_PLACED = {"dtype", "length", "at"}


def without_arrays(document: Any, arrays: list[bytes | memoryview]) -> Any:
    """Return the document with places for arrays, and append what is to be there, zeros included.

    An array in a document is ``{"dtype": ..., "length": n, "data": memoryview}``.
    """
    if isinstance(document, dict):
        if isinstance(data := document.get("data"), memoryview):
            at = sum(map(len, arrays))
            arrays += [data, bytes(-len(data) % _STEP)]
            return {"dtype": document["dtype"], "length": document["length"], "at": at}
        return {key: without_arrays(value, arrays) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [without_arrays(value, arrays) for value in document]
    return document


def pack(text: bytes, arrays: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """Return the parts of the file that holds this JSON and these arrays."""
    text += b" " * (-len(text) % _STEP)
    return [MAGIC, len(text).to_bytes(_STEP, "little"), text, *arrays]


def unpack(content: bytes) -> tuple[bytes, memoryview]:
    """Return JSON and arrays of a file that begins as such files do; ValueError if it is cut."""
    length = int.from_bytes(content[len(MAGIC) : _HEAD], "little")
    end = _HEAD + length
    if len(content) < _HEAD or len(content) < end or length % _STEP:
        raise ValueError("the file was cut short")
    return content[_HEAD:end], memoryview(content)[end:]


def with_arrays(document: Any, arrays: memoryview) -> Any:
    """Return the document with its arrays, which are looked at where they are.

    InputError if the arrays are not, one after the other, what the document declares.
    """
    found, end = _with_arrays(document, arrays, 0)
    if end != len(arrays):
        raise InputError(f"{len(arrays) - end} bytes at the end of the file belong to no array")
    return found


def _with_arrays(document: Any, arrays: memoryview, at: int) -> tuple[Any, int]:
    if isinstance(document, dict):
        if document.keys() == _PLACED:
            return _array_at(document, arrays, at)
        items: dict[str, Any] = {}
        for key, value in document.items():
            items[key], at = _with_arrays(value, arrays, at)
        return items, at
    if isinstance(document, list):
        values = []
        for value in document:
            one, at = _with_arrays(value, arrays, at)
            values.append(one)
        return values, at
    return document, at


def _array_at(declared: dict[str, Any], arrays: memoryview, at: int) -> tuple[Any, int]:
    dtype, length = declared["dtype"], declared["length"]
    if not isinstance(dtype, str) or dtype not in SIZES:
        raise InputError(f"dtype of an array must be {', '.join(SIZES)}")
    if type(length) is not int or length < 0 or type(declared["at"]) is not int:
        raise InputError("length or place of an array is of the wrong type")
    size = length * SIZES[dtype]
    end = at + size + -size % _STEP
    if declared["at"] != at or end > len(arrays) or any(arrays[at + size : end]):
        raise InputError(
            f"the array at {declared['at']} does not hold the {length} numbers it declares"
        )
    return {"dtype": dtype, "length": length, "data": arrays[at : at + size]}, end
