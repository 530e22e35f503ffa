"""Arrays as objects of a JSON file: their type, their length, and little-endian bytes in base64."""

from __future__ import annotations

import base64
import binascii
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class BrokenError(Exception):
    """What is wrong with the file, still without its name."""


def encode_array(array: NDArray[Any]) -> dict[str, Any]:
    """Return an array of floats, or of whole numbers in the fewest bytes."""
    dtype = "float64"
    if array.dtype.kind != "f":
        dtype = "int32" if int(array.max(initial=0)) < 2**31 else "int64"
    stored = array.astype(np.dtype(dtype).newbyteorder("<"))
    data = base64.b64encode(stored.tobytes()).decode("ascii")
    return {"dtype": dtype, "length": len(stored), "data": data}


def integers(where: str, entry: object) -> NDArray[Any]:
    """Return an array of whole numbers."""
    return _decode_array(where, entry, ("int32", "int64"))


def floats(where: str, entry: object) -> NDArray[Any]:
    """Return an array of floats."""
    return _decode_array(where, entry, ("float64",))


def _decode_array(where: str, entry: object, dtypes: tuple[str, ...]) -> NDArray[Any]:
    array = check_fields(where, entry, ("dtype", "length", "data"))
    dtype, length, data = array["dtype"], array["length"], array["data"]
    if dtype not in dtypes:
        raise BrokenError(f"is not a valid release: dtype of {where} must be {' or '.join(dtypes)}")
    if type(length) is not int or length < 0 or not isinstance(data, str):
        raise BrokenError(f"is not a valid release: length or data of {where} is of the wrong type")
    stored = np.dtype(dtype).newbyteorder("<")
    if len(data) != 4 * -(-length * stored.itemsize // 3):
        raise BrokenError(
            f"is not a valid release: {where} does not hold the {length} numbers it declares"
        )
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise BrokenError(f"is not a valid release: data of {where} is not base64") from None
    if len(content) != length * stored.itemsize:
        raise BrokenError(
            f"is not a valid release: {where} does not hold the {length} numbers it declares"
        )
    return np.frombuffer(content, stored).astype(dtype, copy=sys.byteorder != "little")


def check_fields(where: str, value: object, names: tuple[str, ...]) -> dict[str, Any]:
    """Return an object with exactly these fields."""
    if not isinstance(value, dict):
        raise BrokenError(f"is not a valid release: {where} must be an object")
    for name in names:
        if name not in value:
            raise BrokenError(f"is not a valid release: {where} lacks the field {name!r}")
    for name in value:
        if name not in names:
            raise BrokenError(f"is not a valid release: {where} has an unknown field {name!r}")
    return value
