"""The file format of a release: JSON with arrays as base64, compact and quick for a million nodes.

::

    {"format": "ptclust-release", "version": 3,
     "statement":  {...},
     "nodes":      {"count": n, "names": null | [...], "names_written_as_text": bool},
     "kind":       "distance" | "similarity",
     "mechanism":  name, "noise": {"distribution", "scale", "granularity", "n_values"},
     "tree":       {"sources": A, "targets": A, "edge_ids": A, "noisy_weights": A},
     "graph":      null | {"sources": A, "targets": A, "noisy_weights": A},
     "clustering": null | {"labels": A, "cuts": null | A, "dbcvi": x, "shift": x, "scale": x,
                           "min_cluster_size": k, "clusterer": name,
                           "levels": [{"labels": A, "support": x}, ...],
                           "topology_labels": null | A,
                           "evidence": null | {"partition": word, "clusters": [word, ...]},
                           "certainty": null | {"nodes": A, "clusters": A, "elsewhere": A}},
     "follows":    null | {"digest": "sha256:...", "numbers": [k, ...], "used": k},
     "digest":     "sha256:..."}

with arrays A = ``{"dtype": "int32" | "int64" | "float64", "length": n, "data": base64}`` of
little-endian bytes. The digest is taken of everything else as canonical JSON. It tells a damaged or
carelessly edited file from a whole one; it is not a signature, since anyone who changes a file can
compute it anew.

Nothing in a file is executed, and nothing is allocated on the word of a file: a declared length
must agree with the bytes that are there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
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
from ptclust.privacy.noise import Noise
from ptclust.privacy.statement import PrivacyStatement
from ptclust.published import Published
from ptclust.release.claims import check_claim
from ptclust.release.continuity import Follows
from ptclust.release.release import Release
from ptclust.trees.tree import Tree

FORMAT = "ptclust-release"
_OTHER_FIELDS = 4096  # bytes that are enough for all but statement, nodes and arrays
_LONGEST_MESSAGE = 500
_PIECE = 3 * 2**18  # bytes of an array that are encoded at once, a multiple of 3
VERSION = 3

_NUMBERS = ("dbcvi", "shift", "scale", "min_cluster_size", "clusterer")
_FIELDS: dict[str, tuple[str, ...]] = {
    "nodes": ("count", "names", "names_written_as_text"),
    "noise": ("distribution", "scale", "granularity", "n_values"),
    "tree": ("sources", "targets", "edge_ids", "noisy_weights"),
    "graph": ("sources", "targets", "noisy_weights"),
    "clustering": (
        "labels",
        "cuts",
        *_NUMBERS,
        "levels",
        "topology_labels",
        "evidence",
        "certainty",
    ),
}
_MAY_BE_NULL = ("graph", "clustering")
_INTEGERS, _FLOATS = ("int32", "int64"), ("float64",)
_SECTIONS = ("format", "version", "statement", "kind", "mechanism", *_FIELDS, "follows", "digest")
_LEVEL = ("labels", "support")
_EVIDENCE = ("partition", "clusters")
_CERTAINTY = ("nodes", "clusters", "elsewhere")
_PLACE = re.compile(rb'"data": ?"(\d+)"')


class BrokenError(Exception):
    """Why a file is not a release, without the file's name; InputError says what is invalid."""


def encode(release: Release) -> bytes:
    """Return the file of a release: one section a line, the statement spread out for people."""
    return b"".join(_encoded(release))


def write(release: Release, path: Path) -> None:
    """Write the file of a release."""
    with path.open("r+b") as file:  # which may hold space for it: see `space_for`
        file.writelines(_encoded(release))
        file.truncate()


def _encoded(release: Release) -> Iterator[bytes]:
    """Return the parts of the file of a release."""
    arrays: list[memoryview] = []
    document = _without_data(_document(release), arrays)
    document["digest"] = _hash(_with_data(_canonical(document), arrays))
    return _with_data(_lines(document), arrays)


def digest(release: Release) -> str:
    """Return the digest that the file of a release has."""
    arrays: list[memoryview] = []
    return _hash(_with_data(_canonical(_without_data(_document(release), arrays)), arrays))


def largest_size(topology: Topology, statement: PrivacyStatement, *, whole: bool) -> int:
    """Return how many bytes the file of a release may have that is not clustered yet.

    *Privacy.* From public numbers: ``whole`` says whether the weights of all edges are released.
    """
    number = 4 if max(topology.n_nodes, topology.n_edges) < 2**31 else 8
    arrays = (3 * number + 8) * topology.n_tree_edges + (2 * number + 8) * topology.n_edges * whole
    texts = {"nodes": _encode_nodes(topology.names), "statement": statement.to_dict()}
    return len(_lines(texts)) + 4 * arrays // 3 + _OTHER_FIELDS


def _document(release: Release) -> dict[str, Any]:
    """Return all of a release, arrays as they are in memory."""
    published, tree, whole = release.published, release.tree, release.topology
    return {
        "format": FORMAT,
        "version": VERSION,
        "statement": release.statement.to_dict(),
        "nodes": _encode_nodes(release.names),
        "kind": release.kind,
        "mechanism": published.mechanism,
        "noise": release.weight_noise.to_dict(),
        "tree": _encode_edges(tree, tree.weights, edge_ids=tree.edge_ids),
        "graph": _encode_edges(whole, release.noisy_weights) if published.whole_graph else None,
        "clustering": _encode_clustering(release.clustering),
        "follows": None if release.follows is None else release.follows.to_dict(),
    }


def _without_data(document: Any, arrays: list[memoryview]) -> Any:
    """Return the document with numbers instead of its arrays, and append these."""
    if isinstance(document, dict):
        return {key: _without_data(value, arrays) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [_without_data(value, arrays) for value in document]
    if not isinstance(document, memoryview):
        return document
    arrays.append(document)
    return str(len(arrays) - 1)


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


def _lines(document: dict[str, Any]) -> bytes:
    lines = [
        f"{json.dumps(key)}: {json.dumps(value, indent=2 if key == 'statement' else None)}"
        for key, value in document.items()
    ]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")


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
    _check_fields("the file", document, _SECTIONS)
    if document["digest"] != _digest(document):
        raise BrokenError(
            "is damaged or was changed after it was written: its content does not match its "
            "digest; get the file again from where it was published"
        )
    return document


def _release(document: dict[str, Any]) -> Release:
    """Build the release; the parts themselves check how they fit together."""
    for section, wanted in _FIELDS.items():
        if document[section] is not None or section not in _MAY_BE_NULL:
            _check_fields(section, document[section], wanted)
    statement = PrivacyStatement.from_dict(document["statement"])
    found = _clustering(document)
    count, names = _count(document, found), _names(document["nodes"])

    def edges(section: str) -> tuple[Topology, Array]:
        part = document[section]
        sources = _array(part, section, "sources", _INTEGERS)
        targets = _array(part, section, "targets", _INTEGERS)
        weights = _array(part, section, "noisy_weights", _FLOATS)
        return Topology(sources, targets, n_nodes=count, names=names), weights

    whole = () if document["graph"] is None else edges("graph")
    kind = document["kind"]
    check_kind(kind)
    edge_ids = _array(document["tree"], "tree", "edge_ids", _INTEGERS)
    tree = Tree(*edges("tree"), edge_ids, kind=kind)
    mechanism = MECHANISMS[document["mechanism"]].name
    published = Published(mechanism, Noise.from_dict(document["noise"]), tree, *whole)
    follows = document["follows"]
    return Release(
        published=published,
        statement=statement,
        clustering=found,
        follows=None if follows is None else Follows.from_dict(follows),
    )


def _count(document: dict[str, Any], found: Clustering | None) -> int:
    """Return the number of nodes, once labels or edges support it: arrays are made of it."""
    count = document["nodes"]["count"]
    if type(count) is not int or count < 0:
        raise InputError(f"nodes.count is {count!r} and must be a whole number")
    if found is None:
        check_declared(count, len(_array(document["tree"], "tree", "sources", _INTEGERS)), "it")
    elif len(found.labels) != count:
        raise InputError(f"nodes.count is {count}, and there are {len(found.labels)} labels")
    return count


def _clustering(document: dict[str, Any]) -> Clustering | None:
    part = document["clustering"]
    if part is None:
        return None
    for name in ("dbcvi", "shift", "scale"):
        if type(part[name]) not in (int, float):
            raise InputError(f"clustering.{name} must be a number")

    def whole_numbers(name: str) -> Array | None:
        return None if part[name] is None else _array(part, "clustering", name, _INTEGERS)

    cuts = whole_numbers("cuts")
    return Clustering(
        labels=_array(part, "clustering", "labels", _INTEGERS),
        cuts=None if cuts is None else Cuts(cuts),
        levels=_levels(part["levels"]),
        topology_labels=whole_numbers("topology_labels"),
        evidence=_evidence(part["evidence"]),
        certainty=_certainty(part["certainty"]),
        **{name: part[name] for name in _NUMBERS},
    )


def _levels(given: object) -> tuple[Level, ...]:
    if not isinstance(given, list):
        raise InputError("clustering.levels must be a list")
    levels = []
    for number, each in enumerate(given):
        where = f"clustering.levels[{number}]"
        level = _check_fields(where, each, _LEVEL)
        if type(level["support"]) not in (int, float):
            raise InputError(f"{where}.support must be a number")
        levels.append(Level(_array(level, where, "labels", _INTEGERS), level["support"]))
    return tuple(levels)


def _evidence(given: object) -> Evidence | None:
    if given is None:
        return None
    where = "clustering.evidence"
    found = _check_fields(where, given, _EVIDENCE)
    clusters = found["clusters"]
    if not isinstance(clusters, list) or {str} != {type(found["partition"]), *map(type, clusters)}:
        raise InputError(f"{where} must hold a word, and a list of words")
    return Evidence(found["partition"], tuple(clusters))


def _certainty(given: object) -> Certainty | None:
    if given is None:
        return None
    where = "clustering.certainty"
    found = _check_fields(where, given, _CERTAINTY)
    kinds = (_FLOATS, _FLOATS, _INTEGERS)
    return Certainty(
        *(_array(found, where, name, kind) for name, kind in zip(_CERTAINTY, kinds, strict=True))
    )


def _encode_clustering(found: Clustering | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "labels": _stored(found.labels),
        "cuts": None if found.cuts is None else _stored(found.cuts.edge_ids),
        **{name: getattr(found, name) for name in _NUMBERS},
        "levels": [
            {"labels": _stored(level.labels), "support": level.support} for level in found.levels
        ],
        "topology_labels": (
            None if found.topology_labels is None else _stored(found.topology_labels)
        ),
        "evidence": None if found.evidence is None else vars(found.evidence),
        "certainty": None
        if found.certainty is None
        else {name: _stored(getattr(found.certainty, name)) for name in _CERTAINTY},
    }


def _encode_nodes(names: Array) -> dict[str, Any]:
    count = len(names)
    if names.dtype.kind in "iu" and np.array_equal(names, np.arange(count)):
        return {"count": count, "names": None, "names_written_as_text": False}
    plain = [_plain_name(name) for name in names.tolist()]
    as_text = any(name is None for name in plain)
    if as_text:
        plain = [str(name) for name in names.tolist()]
        if len(set(plain)) < count:
            raise FileError("two node names are the same when written as text; rename the nodes")
    _check_letters(plain)
    return {"count": count, "names": plain, "names_written_as_text": as_text}


def _check_letters(names: list[Any]) -> None:
    """Refuse names that no file in UTF-8 can hold."""
    try:
        "".join(name for name in names if type(name) is str).encode()
    except UnicodeEncodeError:
        raise FileError("a node name holds a lone surrogate, half of a letter: rename it") from None


def _plain_name(name: object) -> int | str | None:
    """Return a name that JSON can hold as it is, or None."""
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        return int(name)
    return str(name) if isinstance(name, str) else None


def _names(nodes: dict[str, Any]) -> Array | None:
    names, count = nodes["names"], nodes["count"]
    if type(nodes["names_written_as_text"]) is not bool:
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


def _encode_edges(edges: Topology | Tree, noisy_weights: Array, **more: Array) -> dict[str, Any]:
    ends = {"sources": edges.sources, "targets": edges.targets}
    parts = {**ends, **more, "noisy_weights": noisy_weights}
    return {name: _stored(part) for name, part in parts.items()}


def _canonical(document: dict[str, Any]) -> bytes:
    """Return what the digest of a document is taken of."""
    content = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def _digest(document: dict[str, Any]) -> str:
    return _hash([_canonical(document)])


def _hash(parts: Iterable[bytes]) -> str:
    taken = hashlib.sha256()
    for part in parts:
        taken.update(part)
    return "sha256:" + taken.hexdigest()


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a field is given twice")
    return dict(pairs)


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number


def encode_array(array: Array) -> dict[str, Any]:
    """Return an array of floats, or of whole numbers in the fewest bytes, as JSON holds it."""
    stored = _stored(array)
    return {**stored, "data": base64.b64encode(stored["data"]).decode("ascii")}


def _stored(array: Array) -> dict[str, Any]:
    dtype = "float64"
    if array.dtype.kind != "f":
        dtype = "int32" if int(array.max(initial=0)) < 2**31 else "int64"
    stored = array.astype(np.dtype(dtype).newbyteorder("<"), copy=False)
    return {"dtype": dtype, "length": len(stored), "data": _bytes(stored)}


def _bytes(array: Array) -> memoryview:
    """Return the bytes of an array where they are."""
    return np.ascontiguousarray(array).view(np.uint8).data


def _array(part: dict[str, Any], section: str, name: str, dtypes: tuple[str, ...]) -> Array:
    where = f"{section}.{name}"
    array = _check_fields(where, part[name], ("dtype", "length", "data"))
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
    except (binascii.Error, ValueError):
        raise InputError(f"data of {where} is not base64") from None
    if len(content) != length * stored.itemsize:
        raise other_length
    return np.frombuffer(content, stored).astype(dtype, copy=sys.byteorder != "little")


def _check_fields(where: str, value: object, names: tuple[str, ...]) -> dict[str, Any]:
    """Return an object with exactly these fields."""
    if not isinstance(value, dict):
        raise InputError(f"{where} must be an object")
    if missing := [name for name in names if name not in value]:
        raise InputError(f"{where} lacks the field {missing[0]!r}")
    if unknown := [name for name in value if name not in names]:
        raise InputError(f"{where} has an unknown field {quoted(unknown[0])}")
    return value
