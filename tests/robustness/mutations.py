"""Ways to spoil a file: bytes, tokens, the structure below a checksum, compression or digest."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import struct
import zipfile
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ptclust.release.format import _digest
from tests.robustness.corpus import KINDS, MARKERS, NAMES, SOURCES, TARGETS, WEIGHTS, seeds

if TYPE_CHECKING:
    from random import Random

NUMBERS = (
    "0", "-1", "1e999", "-1e999", "nan", "NaN", "inf", "-Infinity", "5e-324", "-0.0", "1e308",
    "2147483647", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808",
    "18446744073709551616", "1000000000000", "1" * 25, "7" * 5000, "1_000", "0x10", "1,5", "\u0663",
    "\uff11\uff12", "1e", "--1", "+3", " 4 ", "1.0", "1e12", "",
)  # fmt: skip
SNIPPETS = (
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xc3\x28", b"\xed\xa0\x80", b'"',
    b"'", b'""', b"\r", b"\r\n", b"\n\n", b"\t", b",", b";", b" ", b"%", b"#", b"<", b">", b"&",
    b"&amp;", b"&#0;", b"&x;", b"]]>", b"<!--", b"{", b"[", b"}", b"null", b"\\ud800", b"\\",
    "\u202e".encode(), "\u0301".encode(), "\U0001f600".encode(), "\u2028".encode(), b"\x1a",
    b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"(\xb5/\xfd", b"x\x9c", b"\x7f" * 40, b"A" * 3000,
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
)  # fmt: skip
SHAPES = (
    b"(1000000000000,)", b"(-1,)", b"(2, 4)", b"()", b"(9,)", b"(1e3,)", b"((((", b"('a',)",
    b"(99999999999999999999,)", b"(True,)", b"(0,)", b"(4, 2" + b", 1" * 70 + b")",
)  # fmt: skip
DTYPES = (
    b"'|O'", b"'<f4'", b"'<c16'", b"'<U99999999'", b"'|V8'", b"'<M8[s]'", b"'|b1'", b"'>i2'",
    b"'|S3'", b"[('a', '<i8')]", b"'<U0'", b"'xx'", b"7", b"'<f16'", b"'<u8'",
)  # fmt: skip
INTEGERS = (0, 1, -1, 127, 2**15, 2**31 - 1, -(2**31), 2**32, 10**12, 2**63 - 1, -(2**63))


def mutated(kind: str, rng: Random) -> bytes:
    """Return a spoiled file of this kind."""
    content = rng.choice(seeds(kind))
    deep = _DEEP.get(kind)
    if deep is not None and rng.random() < 0.5:
        content = deep(content, rng)
        if rng.random() < 0.7:
            return content
    if content[:2] == b"\x1f\x8b" and rng.random() < 0.6:
        return gzip.compress(spoiled(gzip.decompress(content), kind, rng), 1, mtime=0)
    return spoiled(content, kind, rng)


def spoiled(content: bytes, kind: str, rng: Random) -> bytes:
    """Spoil a file without regard to its structure."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        content = rng.choice(_SHALLOW)(content, kind, rng)
    return content


def _flip(content: bytes, kind: str, rng: Random) -> bytes:
    if not content:
        return b"\x00"
    at = _place(content, rng)
    return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]


def _overwrite(content: bytes, kind: str, rng: Random) -> bytes:
    at, number = _place(content, rng), rng.choice(INTEGERS)
    form = rng.choice(("<q", ">q", "<i", "<b"))
    size = 8 * struct.calcsize(form)
    number = (number + (1 << (size - 1))) % (1 << size) - (1 << (size - 1))
    written = struct.pack(form, number)
    return content[:at] + written + content[at + len(written) :]


def _insert(content: bytes, kind: str, rng: Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + rng.choice(SNIPPETS) + content[at:]


def _delete(content: bytes, kind: str, rng: Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + content[at + rng.choice((1, 1, 2, 5, 20, 200)) :]


def _truncate(content: bytes, kind: str, rng: Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _duplicate(content: bytes, kind: str, rng: Random) -> bytes:
    at = _place(content, rng)
    end = at + rng.choice((1, 8, 50, 500))
    return content[:end] + content[at:end] * rng.choice((1, 1, 3, 60)) + content[end:]


def _splice(content: bytes, kind: str, rng: Random) -> bytes:
    """Go on in the middle of another file, of the same or of another format."""
    other = rng.choice(seeds(rng.choice((kind, rng.choice(tuple(KINDS))))))
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other)) :]


def _number(content: bytes, kind: str, rng: Random) -> bytes:
    places = list(re.finditer(rb"-?\d+(\.\d+)?", content))
    if not places:
        return content
    place = rng.choice(places)
    return content[: place.start()] + rng.choice(NUMBERS).encode() + content[place.end() :]


def _words(content: bytes, kind: str, rng: Random) -> bytes:
    """Swap two tokens, or give one twice, or leave one out."""
    parts = re.split(rb"(\W+)", content)
    a, b = rng.randrange(len(parts)), rng.randrange(len(parts))
    parts[a], parts[b] = rng.choice(((parts[b], parts[a]), (parts[b], parts[b]), (b"", parts[b])))
    return b"".join(parts)


def _lines(content: bytes, kind: str, rng: Random) -> bytes:
    lines = content.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    how = rng.randrange(4)
    if how == 0:
        lines[a], lines[b] = lines[b], lines[a]
    elif how == 1:
        lines.insert(a, lines[b])
    elif how == 2:
        del lines[a]
    else:
        lines[a] *= rng.choice((0, 2, 500))
    return b"\n".join(lines)


def _recode(content: bytes, kind: str, rng: Random) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7")))


def _place(content: bytes, rng: Random) -> int:
    """Return a place in the file; half of the time near an end, where headers and footers are."""
    if not content:
        return 0
    size = len(content)
    near = rng.randrange(min(size, 64))
    return rng.choice((near, size - 1 - near, rng.randrange(size), rng.randrange(size)))


_SHALLOW = (
    _flip, _flip, _overwrite, _insert, _insert, _delete, _truncate, _duplicate, _splice, _number,
    _number, _words, _lines, _recode,
)  # fmt: skip


def _deep_archive(content: bytes, rng: Random) -> bytes:
    """Spoil the members of an npz file and write the archive anew, its checksums right."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(tuple(members))
        members[name] = rng.choice((_spoiled_header, _spoiled_array))(members[name], rng)
        if rng.random() < 0.15:
            members[rng.choice((*members, "n_nodes.npy", "names.npy", "format.npy", "x"))] = (
                members.pop(name)
            )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as new:
        for name, member in members.items():
            new.writestr(name, member)
    return file.getvalue()


def _spoiled_header(member: bytes, rng: Random) -> bytes:
    header, dot, body = member.partition(b"\n")
    how = rng.randrange(4)
    if how == 0:
        header = re.sub(rb"\([\d, ]*\)", rng.choice(SHAPES), header)
    elif how == 1:
        header = re.sub(rb"'[<|>][a-zA-Z]\d+'", rng.choice(DTYPES), header, count=1)
    elif how == 2:
        header = header.replace(b"False", rng.choice((b"True", b"None", b"10L", b"[")))
    else:
        return spoiled(member[:128], "npz", rng) + member[128:]
    return header + dot + body


def _spoiled_array(member: bytes, rng: Random) -> bytes:
    at = rng.randrange(128, max(len(member), 129)) & ~7
    number = rng.choice((*INTEGERS, 3, 5, 7))
    written = struct.pack("<q", number) if rng.random() < 0.7 else b""
    return member[:at] + written + member[at + 8 :]


def _deep_parquet(content: bytes, rng: Random) -> bytes:
    """Write a sound Parquet file of a table that is not as it should be, or spoil the footer."""
    if rng.random() < 0.5:
        start = len(content) - 8 - struct.unpack("<i", content[-8:-4])[0]
        footer = spoiled(content[start:-8], "parquet", rng)
        return content[:start] + footer + struct.pack("<i", len(footer)) + b"PAR1"
    odd: list[Any] = [
        pl.Series(NAMES + NAMES[:2]), pl.Series(SOURCES), pl.Series(TARGETS, dtype=pl.UInt64),
        pl.Series(WEIGHTS), pl.Series([None, *WEIGHTS[1:]]), pl.Series([[1]] * 8),
        pl.Series([{"a": 1}] * 8), pl.Series([b"\xff"] * 8),
        pl.Series(WEIGHTS).cast(pl.Decimal(20, 9)), pl.Series(SOURCES).cast(pl.Date),
        pl.Series(SOURCES).cast(pl.Time), pl.Series([True] * 8),
        pl.Series([float("nan"), float("inf"), *WEIGHTS[2:]]), pl.Series([None] * 8),
        pl.Series(SOURCES).cast(pl.Int8), pl.Series(SOURCES).cast(pl.Duration), pl.Series(MARKERS),
        pl.Series([2**63] * 8, dtype=pl.UInt64), pl.Series(MARKERS).cast(pl.Categorical),
        pl.Series([*NAMES, "", "\x00"]), pl.Series([2**100] * 8, dtype=pl.Int128),
        pl.Series([[1.0, 2.0]] * 8, dtype=pl.Array(pl.Float64, 2)),
    ]  # fmt: skip
    names = ["source", "target", "weight", "note"][: rng.choice((0, 1, 2, 3, 3, 3, 3, 4))]
    if rng.random() < 0.2:
        names = [name.upper() + "\u202e" for name in names]
    frame = pl.DataFrame({name: rng.choice(odd) for name in names}).head(rng.choice((0, 1, 8, 8)))
    file = io.BytesIO()
    kind = rng.choice(("zstd", "uncompressed", "lz4", "brotli"))
    try:
        frame.write_parquet(file, compression=kind)
    except pl.exceptions.ComputeError:  # older polars writes no Int128
        frame.select(pl.exclude(pl.Int128)).write_parquet(file, compression=kind)
    return file.getvalue()


def _deep_release(content: bytes, rng: Random) -> bytes:
    """Spoil the document and compute its digest anew, so that the checks behind it are reached."""
    document = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        parent, key = _any_field(document, rng)
        if isinstance(parent[key], dict) and set(parent[key]) == {"dtype", "length", "data"}:
            _spoil_array(parent[key], rng)
        elif isinstance(parent, dict) and rng.random() < 0.15:
            del parent[key]
        elif isinstance(parent, dict) and rng.random() < 0.1:
            parent[rng.choice(("count", "tree", "x", "\ud800", "__class__"))] = parent[key]
        else:
            parent[key] = rng.choice(_values(document, rng))
    try:
        document["digest"] = _digest(document)
        return json.dumps(document).encode()
    except (ValueError, RecursionError):  # NaN has no digest
        return json.dumps({**document, "digest": "sha256:" + "0" * 64}).encode()


def _values(document: dict[str, Any], rng: Random) -> list[Any]:
    deep: Any = 0
    for _ in range(200):
        deep = [deep]
    other = _any_field(document, rng)
    return [
        None, True, False, 0, 1, -1, 10**12, 2**63, 10**400, 0.5, -0.0, 5e-324, 1e308, -1e308,
        float("nan"), float("inf"), "", "x", "\x00", "\ud800", "A" * 10_000, [], {}, [None], [[]],
        {"": None}, deep, "secure", "pure", "sha256:", deepcopy(other[0][other[1]]),
    ]  # fmt: skip


def _any_field(document: dict[str, Any], rng: Random) -> tuple[Any, Any]:
    parent: Any = document
    key: Any = rng.choice(tuple(document))
    while isinstance(parent[key], (dict, list)) and parent[key] and rng.random() < 0.85:
        if isinstance(parent[key], dict) and "data" in parent[key] and rng.random() < 0.7:
            break
        parent = parent[key]
        key = rng.choice(tuple(parent)) if isinstance(parent, dict) else rng.randrange(len(parent))
    return parent, key


def _spoil_array(entry: dict[str, Any], rng: Random) -> None:
    how = rng.randrange(6)
    if how == 0:
        entry["length"] = rng.choice((0, -1, 10**12, 2**70, entry["length"] + 1, 1.0, True, "6"))
    elif how == 1:
        entry["dtype"] = rng.choice(("int32", "int64", "float64", "object", "<i8", None, [], "U9"))
    elif how == 2:
        entry["data"] = rng.choice(("", "!", "AAAA", "é" * len(entry["data"]), None, 7, "=" * 64))
    else:
        try:
            values = np.frombuffer(base64.b64decode(entry["data"]), entry["dtype"]).copy()
        except (TypeError, ValueError):  # spoiled before
            return
        if how == 3 and len(values):
            values = values[: rng.randrange(len(values))]
        elif len(values):
            odd = (0, 1, -1, 5, 2**31 - 1, -(2**31))
            if values.dtype.kind == "f":
                odd = (0.0, -0.0, 5e-324, 1e308, -1e308, np.nan, np.inf)  # type: ignore[assignment]
            values[rng.randrange(len(values))] = rng.choice(odd)
        entry["data"] = base64.b64encode(values.tobytes()).decode()
        entry["length"] = len(values)


_DEEP = {"npz": _deep_archive, "parquet": _deep_parquet, "release": _deep_release}
