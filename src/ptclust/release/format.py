"""The file format of a release: JSON with arrays as base64, compact and quick for a million nodes.

``schema/release-3.json`` describes it. Arrays are little-endian bytes. The digest is taken of
everything else as canonical JSON. It tells a damaged or carelessly edited file from a whole one; it
is not a signature, since anyone who changes a file can compute it anew.

Nothing in a file is executed, and nothing is allocated on the word of a file: a declared length
must agree with the bytes that are there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ptclust._markup import quoted, shortened
from ptclust._types import Array
from ptclust.clustering.certainty import Certainty
from ptclust.clustering.clusterer import Clustering, Cuts, Evidence, Level
from ptclust.errors import FileError, InputError, UsageError
from ptclust.graph._bounds import check_declared
from ptclust.graph.topology import Topology, check_kind
from ptclust.mechanisms import MECHANISMS
from ptclust.privacy import _checks as check
from ptclust.privacy.noise import Noise
from ptclust.privacy.statement import PrivacyStatement
from ptclust.published import Published
from ptclust.release.claims import check_claim
from ptclust.release.comparison import Follows
from ptclust.release.release import Release
from ptclust.trees.tree import Tree

FORMAT, VERSION = "ptclust-release", 3
_OTHER_FIELDS = 4096  # bytes that are enough for all but statement, nodes and arrays
_LONGEST_MESSAGE = 500
_PIECE = 3 * 2**18  # bytes of an array that are encoded at once, a multiple of 3
_PLACE = re.compile(rb'"data": ?"(\d+)"')


# Writing


def encode(release: Release) -> bytes:
    """Return the file of a release: one section a line, the statement spread out for people."""
    return b"".join(_lines(_document(release)))


def write(release: Release, path: Path) -> None:
    """Write the file of a release."""
    with path.open("r+b") as file:  # which may hold space for it: see `space_for`
        file.writelines(_lines(_document(release)))
        file.truncate()


def digest(release: Release) -> str:
    """Return the digest that the file of a release has."""
    return str(_document(release)["digest"])


def largest_size(topology: Topology, statement: PrivacyStatement, *, whole: bool) -> int:
    """Return how many bytes the file of a release may have that is not clustered yet.

    *Privacy.* From public numbers: ``whole`` says whether the weights of all edges are released.
    """
    number = 4 if max(topology.n_nodes, topology.n_edges) < 2**31 else 8
    arrays = (3 * number + 8) * topology.n_tree_edges + (2 * number + 8) * topology.n_edges * whole
    texts = {"nodes": _nodes(topology.names), "statement": statement.to_dict()}
    return sum(map(len, _lines(texts))) + 4 * arrays // 3 + _OTHER_FIELDS


def _document(release: Release) -> dict[str, Any]:
    """Return all of a release, arrays as they are in memory."""
    published, tree, found = release.published, release.tree, release.clustering
    ends = {"sources": tree.sources, "targets": tree.targets}
    graph = clustering = None
    if published.whole_graph:
        graph = {name: getattr(release.topology, name) for name in ends}
        graph["noisy_weights"] = release.noisy_weights
    if found is not None:
        clustering = {name: getattr(found, name) for name in _CLUSTERING}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "statement": release.statement.to_dict(),
        "nodes": _nodes(release.names),
        "kind": release.kind,
        "mechanism": published.mechanism,
        "noise": release.weight_noise.to_dict(),
        "tree": ends | {"edge_ids": tree.edge_ids, "noisy_weights": tree.weights},
        "graph": graph,
        "clustering": clustering,
        "follows": release.follows,
    }
    return document | {"digest": _digest(document)}


def _nodes(names: Array) -> dict[str, Any]:
    count = len(names)
    if names.dtype.kind in "iu" and np.array_equal(names, np.arange(count)):
        return {"count": count, "names": None, "names_written_as_text": False}
    given = [int(name) if isinstance(name, np.integer) else name for name in names.tolist()]
    as_text = any(isinstance(name, bool) or not isinstance(name, (int, str)) for name in given)
    listed = [str(name) if as_text or isinstance(name, str) else name for name in given]
    if as_text and len(set(listed)) < count:
        raise FileError("two node names are the same when written as text; rename the nodes")
    _check_letters(listed)
    return {"count": count, "names": listed, "names_written_as_text": as_text}


def _check_letters(names: list[Any]) -> None:
    """Refuse names that no file in UTF-8 can hold."""
    try:
        "".join(name for name in names if type(name) is str).encode()
    except UnicodeEncodeError:
        raise FileError("a node name holds a lone surrogate, half of a letter: rename it") from None


def _lines(document: dict[str, Any]) -> Iterator[bytes]:
    """Yield the file in parts."""
    before = "{"
    for key, value in document.items():
        yield f"{before}\n{json.dumps(key)}: ".encode("ascii")
        yield from _json(value, indent=2 if key == "statement" else None)
        before = ","
    yield b"\n}\n"


def _json(value: Any, **how: Any) -> Iterator[bytes]:
    """Yield JSON in parts, the data of arrays as base64."""
    arrays: list[memoryview] = []

    def plain(part: Any) -> Any:
        """Return arrays, whole numbers in the fewest bytes, and objects of arrays; nothing else."""
        if isinstance(part, Cuts):
            return part.edge_ids
        if isinstance(part, (Certainty, Evidence, Follows, Level)):
            return vars(part)
        if not isinstance(part, np.ndarray):
            raise TypeError(f"a {type(part).__name__} has no place in a release")
        dtype = "float64"
        if part.dtype.kind != "f":
            dtype = "int32" if int(part.max(initial=0)) < 2**31 else "int64"
        stored = part.astype(np.dtype(dtype).newbyteorder("<"), copy=False)
        arrays.append(np.ascontiguousarray(stored).view(np.uint8).data)
        return {"dtype": dtype, "length": len(part), "data": str(len(arrays) - 1)}

    text = json.dumps(value, default=plain, allow_nan=False, **how).encode("ascii")
    return _with_data(text, arrays) if arrays else iter([text])


def _with_data(text: bytes, arrays: list[memoryview]) -> Iterator[bytes]:
    """Yield JSON, in parts, with arrays as base64 at the places of their numbers.

    A quote within a text has a backslash before it: none is taken for a place.
    """
    end = 0
    for place in _PLACE.finditer(text):
        yield text[end : place.start(1)]
        data = arrays[int(place[1])]
        for start in range(0, len(data), _PIECE):  # so that its text need never be in memory
            yield base64.b64encode(data[start : start + _PIECE])
        end = place.end(1)
    yield text[end:]


def _digest(document: dict[str, Any]) -> str:
    """Return the digest of everything else in a document, as canonical JSON."""
    content = {key: value for key, value in document.items() if key != "digest"}
    taken = hashlib.sha256()
    for part in _json(content, sort_keys=True, separators=(",", ":")):
        taken.update(part)
    return "sha256:" + taken.hexdigest()


# Reading: every part of a file has a form, a function of where it is and what is there


class BrokenError(Exception):
    """Why a file is not a release, without the file's name; InputError says what is invalid."""


def decode(path: Path) -> Release:
    """Return the release in a file, or raise FileError with what is wrong."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileError(f"there is no file {path}") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        with np.errstate(all="ignore"):  # an overflow is not a valid weight, and is refused
            release = _release(_parsed(content))
            check_claim(release)
            return release
    except BrokenError as error:
        raise FileError(f"{path} {error}") from None
    except (InputError, UsageError) as error:
        said = shortened(error, _LONGEST_MESSAGE)  # it may quote what is in the file
        raise FileError(f"{path} is not a valid release: {said}") from None
    except RecursionError:
        raise FileError(f"{path} is not a release: its JSON is nested too deeply") from None
    except MemoryError:
        raise FileError(f"{path} needs more memory than there is") from None


def _parsed(content: bytes) -> dict[str, Any]:
    """Return the document in a file after checking that it is one of ours, and whole."""
    try:
        numbers: dict[str, Any] = {"parse_constant": _finite_float, "parse_float": _finite_float}
        document = json.loads(content, object_pairs_hook=_no_repeats, **numbers)
    except ValueError:
        why = "it does not hold JSON of finite numbers, or was cut short"
        raise BrokenError(f"is not a release: {why}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BrokenError(f"is not a release: its JSON is not of the format {FORMAT!r}")
    version = document.get("version")
    if type(version) is int and version > VERSION:
        known = f"this ptclust reads version {VERSION}; install a newer ptclust"
        raise BrokenError(f"is a release of version {version}, and {known}")
    if type(version) is not int or version != VERSION:
        raise InputError(f"version must be {VERSION}")
    _check_fields("the file", document, _FILE)
    if document["digest"] != _digest(document):
        raise BrokenError(
            "is damaged or was changed after it was written: its content does not match its "
            "digest; get the file again from where it was published"
        )
    return document


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a field is given twice")
    return dict(pairs)


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number


def _release(document: dict[str, Any]) -> Release:
    """Build the release; the parts themselves check how they fit together."""
    part = {name: form(name, document[name]) for name, form in _FILE.items()}
    check_kind(part["kind"])
    count, names = part["nodes"]["count"], _names(**part["nodes"])
    found, tree, graph = part["clustering"], part["tree"], part["graph"]
    if found is None:  # labels or edges support the number of nodes: arrays are made of it
        check_declared(count, len(tree["sources"]), "it")
    elif len(found.labels) != count:
        raise InputError(f"nodes.count is {count}, and there are {len(found.labels)} labels")

    def topology(edges: dict[str, Any]) -> Topology:
        return Topology(edges["sources"], edges["targets"], n_nodes=count, names=names)

    whole = () if graph is None else (topology(graph), graph["noisy_weights"])
    drawn = Tree(topology(tree), tree["noisy_weights"], tree["edge_ids"], kind=part["kind"])
    mechanism = MECHANISMS[part["mechanism"]].name
    published = Published(mechanism, part["noise"], drawn, *whole)
    return Release(
        published=published,
        statement=part["statement"],
        clustering=found,
        follows=part["follows"],
    )


def _names(*, count: int, names: Any, names_written_as_text: Any) -> Array | None:
    if type(names_written_as_text) is not bool:
        raise InputError("nodes.names_written_as_text must be a boolean")
    if names is None:
        return None
    if not isinstance(names, list) or not {type(name) for name in names} <= {int, str}:
        raise InputError("nodes.names must be a list of texts and whole numbers")
    if len(names) != count:
        raise InputError(f"{len(names)} names for {count} nodes")
    _check_letters(names)
    if names and all(type(name) is int and abs(name) < 2**63 for name in names):
        return np.array(names, dtype=np.int64)
    return np.fromiter(names, dtype=object, count=count)


def _check_fields(where: str, value: object, names: Iterable[str]) -> dict[str, Any]:
    """Return an object with exactly these fields."""
    if not isinstance(value, dict):
        raise InputError(f"{where} must be an object")
    if missing := [name for name in names if name not in value]:
        raise InputError(f"{where} lacks the field {missing[0]!r}")
    if unknown := [name for name in value if name not in names]:
        raise InputError(f"{where} has an unknown field {quoted(unknown[0])}")
    return value


_Form = Callable[[str, Any], Any]


def _object(made: Callable[..., Any], forms: dict[str, _Form]) -> _Form:
    """Return the form of an object with these fields, of which something is made."""

    def read(where: str, value: Any) -> Any:
        given = _check_fields(where, value, forms)
        return made(**{name: form(f"{where}.{name}", given[name]) for name, form in forms.items()})

    return read


def _optional(form: _Form) -> _Form:
    return lambda where, value: None if value is None else form(where, value)


def _any(_: str, value: Any) -> Any:
    """Return what whatever is made of it checks."""
    return value


def _count(where: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise InputError(f"{where} is {value!r} and must be a whole number")
    return value


def _levels(where: str, value: Any) -> tuple[Level, ...]:
    if not isinstance(value, list):
        raise InputError(f"{where} must be a list")
    form = _object(Level, {"labels": _integers, "support": check.number})
    return tuple(form(f"{where}[{number}]", each) for number, each in enumerate(value))


def _array(where: str, value: Any, *dtypes: str) -> Array:
    array = _check_fields(where, value, ("dtype", "length", "data"))
    dtype, length, data = array["dtype"], array["length"], array["data"]
    if dtype not in dtypes:
        raise InputError(f"dtype of {where} must be {' or '.join(dtypes)}")
    if type(length) is not int or length < 0 or not isinstance(data, str):
        raise InputError(f"length or data of {where} is of the wrong type")
    stored = np.dtype(dtype).newbyteorder("<")
    other_length = InputError(f"{where} does not hold the {length} numbers it declares")
    if len(data) != 4 * -(-length * stored.itemsize // 3):
        raise other_length
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError:
        raise InputError(f"data of {where} is not base64") from None
    if len(content) != length * stored.itemsize:
        raise other_length
    return np.frombuffer(content, stored).astype(dtype, copy=sys.byteorder != "little")


def _integers(where: str, value: Any) -> Array:
    return _array(where, value, "int32", "int64")


def _floats(where: str, value: Any) -> Array:
    return _array(where, value, "float64")


_EDGES: dict[str, _Form] = {"sources": _integers, "targets": _integers, "noisy_weights": _floats}
_NOISE = ("distribution", "scale", "granularity", "n_values")
_CERTAINTY: dict[str, _Form] = {"nodes": _floats, "clusters": _floats, "elsewhere": _integers}
_CLUSTERING: dict[str, _Form] = {
    "labels": _integers,
    "cuts": _optional(lambda where, value: Cuts(_integers(where, value))),
    "dbcvi": check.number,
    "shift": check.number,
    "scale": check.number,
    "min_cluster_size": _any,
    "clusterer": _any,
    "levels": _levels,
    "topology_labels": _optional(_integers),
    "evidence": _optional(_object(Evidence, {"partition": check.text, "clusters": check.texts})),
    "certainty": _optional(_object(Certainty, _CERTAINTY)),
}
_FILE: dict[str, _Form] = {
    "format": _any,
    "version": _any,
    "statement": lambda _, value: PrivacyStatement.from_dict(value),
    "nodes": _object(dict, {"count": _count, "names": _any, "names_written_as_text": _any}),
    "kind": _any,
    "mechanism": _any,
    "noise": lambda where, value: Noise.from_dict(_check_fields(where, value, _NOISE)),
    "tree": _object(dict, _EDGES | {"edge_ids": _integers}),
    "graph": _optional(_object(dict, _EDGES)),
    "clustering": _optional(_object(Clustering, _CLUSTERING)),
    "follows": _optional(lambda _, value: Follows.from_dict(value)),
    "digest": _any,
}
