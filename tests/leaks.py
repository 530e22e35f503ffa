"""Private weights with digits of their own, and detectors that find them anywhere."""

from __future__ import annotations

import gc
import struct
import traceback
import types
from typing import Any

import numpy as np
import polars as pl

from ptclust import (
    Graph,
    Sensitivity,
    Tree,
)

#: Digits that nobody writes by chance.
WEIGHTS = np.array([
    0.123456789, 0.987654321, 0.271828182845, 0.314159265358, 0.577215664901, 0.161803398874,
    0.141421356237, 0.173205080756, 0.693147180559, 0.915965594177, 0.685452001065, 0.834626841674,
])  # fmt: skip

SOURCES = [0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4]

TARGETS = [1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 6]

#: Noise of about the size of the weights.
NOISY: dict[str, Any] = {"epsilon": 1.0, "sensitivity": Sensitivity(linf=0.01)}

OPTIONS: dict[str, dict[str, Any]] = {
    "kruskal": {"mechanism": "kruskal"},
    "pamst": {"mechanism": "pamst", "delta": 1e-6},
    "laplace": {"mechanism": "laplace", "clip": (0.05, 2.0)},
    "gaussian": {"mechanism": "gaussian", "delta": 1e-6, "clip": (0.0, 1.0)},
    "published": {"mechanism": "pamst", "calibration": "published", "min_cluster_size": 2},
    "reproducible": {"random_state": 11},
}


def private_graph(weights: np.ndarray = WEIGHTS) -> Graph:
    return Graph(SOURCES, TARGETS, weights, names="abcdefgh")


def digits(weight: float, count: int) -> str:
    return f"{weight:.15f}".removeprefix("0.")[:count]


def leaks(text: str, count: int = 5) -> list[str]:
    """The weights whose first digits are in a text; noisy ones share five by chance, not nine."""
    return [digits(weight, count) for weight in WEIGHTS.tolist() if digits(weight, count) in text]


def leaks_of_bytes(content: bytes) -> list[float]:
    """The weights that are in these bytes as doubles."""
    return [
        w for w in WEIGHTS.tolist() if any(struct.pack(form, w) in content for form in ["<d", ">d"])
    ]


def is_leaked(array: np.ndarray) -> bool:
    return bool(np.isin(WEIGHTS, array).any())


def private_parts(root: Any) -> list[str]:
    """All that is private and reachable from an object by the garbage collector's references."""
    stops = (types.ModuleType, type, types.BuiltinFunctionType, types.CodeType, types.FrameType)
    found, seen, todo = [], {id(root)}, [root]
    keep = []  # so that ids stay unique
    while todo:
        thing = todo.pop()
        keep.append(thing)
        if isinstance(thing, Graph) or (isinstance(thing, Tree) and thing.private):
            found.append(repr(thing))
        if isinstance(thing, np.ndarray) and thing.dtype.kind == "f" and is_leaked(thing):
            found.append(f"array of shape {thing.shape}")
        if isinstance(thing, float) and thing in WEIGHTS:
            found.append("float")
        if isinstance(thing, (bytes, bytearray)) and leaks_of_bytes(bytes(thing)):
            found.append("bytes")
        if isinstance(thing, str) and leaks(thing, 9):
            found.append("text")
        parts = list(gc.get_referents(thing))
        if isinstance(thing, np.ndarray):
            parts = [thing.base, *(thing.ravel().tolist() if thing.dtype == object else [])]
        if isinstance(thing, pl.DataFrame):
            parts = thing.get_columns()
        if isinstance(thing, pl.Series):
            parts = thing.to_list()
        if isinstance(thing, types.FunctionType):
            parts = [thing.__defaults__, thing.__kwdefaults__, thing.__closure__]
        for part in parts:
            if id(part) not in seen and not isinstance(part, stops):
                seen.add(id(part))
                todo.append(part)
    return found


def everything_said(error: BaseException | None) -> str:
    """All texts that a log or a terminal may show of an exception and of those it came from."""
    said: list[str] = []
    seen: set[int] = set()
    todo = [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        said += [
            str(one),
            repr(one),
            repr(one.args),
            repr(vars(one)),
            repr(getattr(one, "__notes__", "")),
        ]
        said += traceback.format_exception(one)
        todo += [one.__cause__, one.__context__]  # also one that "from None" hides
    return "\n".join(said)


def table(weights: Any) -> dict[str, Any]:
    return {"source": SOURCES, "target": TARGETS, "weight": weights}
