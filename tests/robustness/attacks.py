"""Files made to do harm: bombs, wrong sizes, pickles, entities. All are refused cheaply."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import struct
import zipfile
import zlib
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from ptclust.release.format import _digest
from tests.robustness.corpus import MARKERS, seeds

_MARKER = MARKERS[0].encode()
_HUGE = 1_000_000_000_000


@cache
def attacks(kind: str) -> dict[str, bytes]:
    """Return the harmful files of a format by name."""
    makers = {
        "csv": lambda: _tables(b","),
        "csv without header": lambda: _tables(b",", header=False),
        "tsv": lambda: _tables(b"\t"),
        "txt": lambda: _tables(b"\t"),
        "txt by blanks": lambda: _tables(b" "),
        "standard input": lambda: _tables(b";") | _gzips(),
        "csv.gz": _gzips,
        "parquet": _parquets,
        "graphml": _graphmls,
        "mtx": _matrices,
        "npz": _archives,
        "release": _releases,
    }
    return makers[kind]()


@cache
def bombs(kind: str) -> dict[str, bytes]:
    """Return small files that expand to large ones; they take seconds to make."""
    large, small = 600 << 20, 7 << 20  # beyond the bound for any text, and just below it
    head = b"source,target,weight\n"
    if kind == "csv.gz":
        return {
            "edges": bomb(large, head=head),
            "zeros": bomb(large, b"\x00", head),
            "blank lines": bomb(large, b"\n"),
            "a bomb in a bomb": gzip.compress(bomb(large, head=head)),
            "equal edges": bomb(small, head=head),
            "blank lines after an edge": bomb(small, b"\n", head + b"a,b,1\n"),
            "blanks": bomb(small, b" \n", head + b"a,b,1\n"),
        }
    if kind == "txt by blanks":
        blanks = head.replace(b",", b" ")
        return {"blanks": bomb(small, b" ", blanks), "edges": bomb(small, b"a b 1\n", blanks)}
    if kind == "standard input":
        return {"edges": bomb(large, b"a;b;1\n", head.replace(b",", b";"))}
    if kind == "parquet":
        return {
            "a run of equal rows": _equal_rows(30_000_000),
            "as many equal rows as may be": _equal_rows(4_500_000),
            "long equal strings": _equal_strings(10_000, 100_000),
            "long equal categories": _equal_categories(1 << 20, 5 << 12),  # 5 2^32 letters
            "long strings in pages of their own": _long_strings(200, 1 << 20),
            "long letters in strings": _long_strings(15, 1 << 20, "\U0001f600"),
        }
    if kind == "npz":
        files = []
        for n in (40_000_000, 5_000_000):
            file, zeros = io.BytesIO(), np.zeros(n, np.int64)
            np.savez_compressed(file, sources=zeros, targets=zeros + 1, weights=zeros)
            files.append(file.getvalue())
        return {"zeros": files[0], "as many zeros as may be": files[1]}
    node, edge = b'<node id="1234567"/>', b'<edge source="a" target="b"/>'
    ends = b'<graphml><graph><node id="a"/><node id="b"/>'
    matrix = b"%%MatrixMarket matrix coordinate real general\n"
    makers = {
        "graphml": lambda: {
            "elements": bomb(large, b"<graphml>"),
            "edges": bomb(small, edge, ends, b"</graph></graphml>"),
            "nodes": gzip.compress(
                b"<graphml><graph>"
                + b"".join(node.replace(b"1234567", b"%d" % i) for i in range(300_000))
                + b"</graph></graphml>"
            ),
        },
        "mtx": lambda: {
            "banners": bomb(large, matrix),
            "entries": bomb(small, b"1 2 3\n", matrix + b"3 3 %d\n" % (7 * ((1 << 20) // 6))),
        },
    }
    return makers[kind]() if kind in makers else {}


def bomb(size: int, unit: bytes = b"a,b,1\n", head: bytes = b"", tail: bytes = b"") -> bytes:
    """Return a gzip file of about ``size`` bytes of text, made without holding them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = unit * ((1 << 20) // len(unit))
    parts = [packer.compress(head), *(packer.compress(block) for _ in range(size // len(block)))]
    return b"".join([*parts, packer.compress(tail), packer.flush()])


def _tables(separator: bytes, *, header: bool = True) -> dict[str, bytes]:
    row = separator.join((b"a", b"b", _MARKER)) + b"\n"
    head = separator.join((b"source", b"target", b"cost")) + b"\n" if header else b""
    return {
        "an open quote": head + b'"' + row * 20_000,
        "a very long line": head + row[:-1] * 20_000,
        "a very long header": b"a" * 3_000_000 + row,
        "very many columns": separator.join([b"x"] * 1_000_000) + b"\n" + row,
        "NUL bytes": b"\x00" * 1_000_000 + row,
        "blank lines": b"\n" * 300_000,
        "blank lines inside": head + row + b"\n" * 300_000 + row,
        "a stray byte": head + row + b"\xff" + row,
        "a zlib stream": zlib.compress(row * 1000),
        "UTF-16": (head + row).decode().encode("utf-16"),
    }


def _gzips() -> dict[str, bytes]:
    whole = gzip.compress(b"source,target,weight\na,b," + _MARKER + b"\n", mtime=0)
    return {
        "cut short": whole[:-9],
        "a wrong checksum": whole[:-8] + b"\x00" * 8,
        "rubbish after the end": whole + b"rubbish",
        "nothing inside": gzip.compress(b""),
        "the magic alone": b"\x1f\x8b",
    }


def _varint(number: int) -> bytes:
    """Return a number as Thrift's compact protocol writes it."""
    return _length(number << 1 ^ number >> 63)


def _thrift(value: Any) -> tuple[int, bytes]:
    """Return a value in Thrift's compact protocol, and its type; a dict is a struct."""
    if isinstance(value, int):
        return 5, _varint(value)
    if isinstance(value, bytes):
        return 8, _length(len(value)) + value
    if isinstance(value, list):
        parts = [_thrift(element) for element in value]
        kind = parts[0][0] if parts else 12
        return 9, bytes([0xF0 | kind]) + _length(len(parts)) + b"".join(part for _, part in parts)
    fields = ((number, *_thrift(field)) for number, field in sorted(value.items()))
    return 12, b"".join(bytes([kind]) + _varint(n) + part for n, kind, part in fields) + b"\x00"


def _length(number: int) -> bytes:
    """Return a number that is never negative, as Thrift writes it."""
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _page(body: bytes, n_values: int, encoding: int = 0, size: int | None = None) -> bytes:
    """Return a page of data that says it has a size, decompressed."""
    own = {1: n_values, 2: encoding, 3: 3, 4: 3}
    return _thrift({1: 0, 2: len(body) if size is None else size, 3: len(body), 5: own})[1] + body


def parquet(columns: dict[bytes, bytes], n_rows: int, **changes: Any) -> bytes:
    """Return a Parquet file of columns of strings, but for a weight, each given by its pages.

    ``changes`` are the ``codec``, the number of row ``groups``, all with the same pages, and the
    ``schema``.
    """
    content, chunks = b"PAR1", []
    types = {name: 5 if name == b"weight" else 6 for name in columns}
    for name, pages in columns.items():
        about = {1: types[name], 2: [0], 3: [name], 4: changes.get("codec", 0), 5: n_rows}
        place = {6: len(pages), 7: changes.get("stored", len(pages)), 9: len(content)}
        chunks.append({2: len(content), 3: about | place})
        content += pages
    texts = {6: {6: 0}, 5: {}}
    leaves = [{1: kind, 3: 0, 4: name} | texts[kind] for name, kind in types.items()]
    schema = changes.get("schema", [{4: b"schema", 5: len(leaves)}, *leaves])
    groups = [{1: chunks, 2: len(content), 3: n_rows}] * changes.get("groups", 1)
    footer = {1: 1, 2: schema, 3: n_rows * len(groups), 4: groups}
    return _with_footer(content, _thrift(footer)[1])


def _with_footer(content: bytes, footer: bytes) -> bytes:
    return content + footer + struct.pack("<i", len(footer)) + b"PAR1"


def growing_strings(n: int, step: int) -> bytes:
    """Return a Parquet file of strings that each repeat the last one and add to it."""

    def deltas(first: int, delta: int) -> bytes:
        blocks = -(-(n - 1) // 128)
        head = _length(128) + _length(4) + _length(n) + _varint(first)
        return head + (_varint(delta) + b"\x00" * 4) * blocks

    texts = {name: deltas(0, step) + deltas(step, 0) + name[:1] * (n * step) for name in _ENDS[:2]}
    pages = {name: _page(gzip.compress(text), n, 7, len(text)) for name, text in texts.items()}
    weights = {b"weight": _page(gzip.compress(bytes(8 * n)), n, size=8 * n)}
    return parquet(pages | weights, n, codec=2)


def _text(value: bytes) -> bytes:
    return struct.pack("<i", len(value)) + value


_ENDS = (b"source", b"target", b"weight")


def _crafted_parquets() -> dict[str, bytes]:
    plain = {name: _page(_text(name), 1) for name in _ENDS[:2]} | {b"weight": _page(bytes(8), 1)}
    zeros = _text(bytes(50 << 20))
    packed = {name: _page(gzip.compress(zeros), 1, size=len(zeros)) for name in _ENDS}
    deep = [{4: b"schema", 5: 1}, *[{3: 0, 4: b"source", 5: 1}] * 3000, {1: 6, 3: 0, 4: b"source"}]
    wide = {b"%d" % i: b"" for i in range(20_000)} | plain
    return {
        "a string that grows": growing_strings(20_000, 10),
        "pages of zeros": parquet(packed, 1, codec=2),
        "pages that say they are large": parquet(
            {name: _page(b"x", 1, size=2**31 - 1) for name in _ENDS}, 1, codec=2
        ),
        "pages that say they are small": parquet(
            {name: _page(gzip.compress(zeros), 1, size=9) for name in _ENDS}, 1, codec=2
        ),
        "pages of negative size": parquet({n: _page(b"x", 1, size=-5) for n in _ENDS}, 1, codec=2),
        "pages of 10^9 values": parquet({n: _page(b"x", 10**9) for n in _ENDS}, 10**9),
        "pages outside of the file": parquet(plain, 1, stored=10**9),
        "a million groups": parquet(plain, 1000, groups=10_000),
        "columns in columns": parquet({b"source": plain[b"source"]}, 1, schema=deep),
        "very many columns": parquet(wide, 1),
        "a deep footer": _with_footer(b"PAR1", b"\x1c" * 1_000_000),
        "a footer of many lists": _with_footer(b"PAR1", b"\x19\xf9" + b"\xff" * 8 + b"\x01"),
    }


def _equal_strings(n: int, length: int) -> bytes:
    file = io.BytesIO()
    columns = {name: pl.repeat(name[:1] * length, n, eager=True) for name in ("source", "target")}
    pl.DataFrame(columns | {"weight": pl.repeat(1.0, n, eager=True)}).write_parquet(file)
    return file.getvalue()


def _equal_categories(n: int, length: int) -> bytes:
    file = io.BytesIO()
    once = pl.DataFrame({name: name[:1] * length for name in ("source", "target")})
    ends = [column.new_from_index(0, n) for column in once.cast(pl.Categorical)]
    pl.DataFrame(ends).with_columns(weight=1.0).write_parquet(file)
    return file.getvalue()


def _long_strings(n: int, length: int, letter: str = "a") -> bytes:
    file = io.BytesIO()
    sources = [f"{i}{letter}{'a' * length}" for i in range(n)]
    targets = [f"{i}{letter}{'b' * length}" for i in range(n)]
    frame = pl.DataFrame({"source": sources, "target": targets, "weight": range(n)})
    frame.write_parquet(file, compression="zstd")
    return file.getvalue()


def _equal_rows(n_rows: int) -> bytes:
    file = io.BytesIO()
    zeros = pl.repeat(0, n_rows, eager=True)
    columns = {"source": zeros, "target": zeros + 1, "weight": zeros.cast(pl.Float64)}
    pl.DataFrame(columns).write_parquet(file, row_group_size=n_rows)
    return file.getvalue()


def _parquets() -> dict[str, bytes]:
    def declaring(n_rows: int, content: bytes) -> bytes:
        start = len(content) - 8 - struct.unpack("<i", content[-8:-4])[0]
        footer = content[start:-8].replace(_varint(70_001), _varint(n_rows))
        return content[:start] + footer + struct.pack("<i", len(footer)) + b"PAR1"

    small = _equal_rows(70_001)
    return {
        "10^12 rows": declaring(_HUGE, small),
        "2^62 rows": declaring(2**62, small),
        "10^9 rows": declaring(10**9, small),
        "more rows than pages": declaring(5_000_000, small),
        "a footer longer than the file": small[:-8] + struct.pack("<i", 2**31 - 1) + b"PAR1",
        "a footer of negative length": small[:-8] + struct.pack("<i", -5) + b"PAR1",
        "the magic alone": b"PAR1",
        "the magic twice": b"PAR1PAR1",
        "no footer": b"PAR1" + struct.pack("<i", 0) + b"PAR1",
        "encrypted": small[:-4] + b"PARE",
    } | _crafted_parquets()


def _graphmls() -> dict[str, bytes]:
    entities = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    laughs = f'<!DOCTYPE x [<!ENTITY l0 "ha">{entities}]><graphml><graph id="&l9;"/></graphml>'
    outside = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/hostname">]><graphml><graph>&f;</graph></graphml>'
    nodes = b'<graphml><graph><node id="%b"/></graph></graphml>'
    return {
        "a billion laughs": laughs.encode(),
        "an entity from outside": outside.encode(),
        "a DTD from outside": b'<!DOCTYPE x SYSTEM "http://localhost:1/x.dtd"><graphml><graph/></graphml>',
        "parameter entities": b'<!DOCTYPE x [<!ENTITY % p "x"> %p;]><graphml><graph/></graphml>',
        "an unknown entity": nodes % b"&xxe;",
        "very deep": b"<graphml><graph>" + b"<a>" * 500_000,
        "very many attributes": b"<graphml "
        + b"".join(b'a%d="" ' % i for i in range(50_000))
        + b">",
        "an unknown encoding": b'<?xml version="1.0" encoding="utf-7"?>' + nodes % b"1",
        "a wrong encoding": b'<?xml version="1.0" encoding="utf-16"?>' + nodes % b"1",
        "an edge of long numbers": b'<graphml><graph><node id="%b"/>' % (b"9" * 10_000)
        + b'<edge source="1" target="2"/></graph></graphml>',
        "two graphs": b"<graphml><graph/><graph/></graphml>",
        "a weight that is long": seeds("graphml")[2].replace(_MARKER, b"9" * 1_000_000 + b"x"),
    }


def _matrices() -> dict[str, bytes]:
    head = b"%%MatrixMarket matrix coordinate real general\n"
    return {
        "10^12 entries": head + b"6 6 1000000000000\n1 2 " + _MARKER + b"\n",
        "10^12 rows": head + b"1000000000000 1000000000000 1\n1 2 " + _MARKER + b"\n",
        "10^9 rows": head + b"1000000000 1000000000 1\n1 2 " + _MARKER + b"\n",
        "rows of 5000 digits": head + b"9" * 5000 + b" 9 1\n1 2 0.5\n",
        "negative size": head + b"-6 -6 1\n1 2 0.5\n",
        "an entry outside": head + b"6 6 1\n9223372036854775807 2 " + _MARKER + b"\n",
        "an entry of many digits": head + b"6 6 1\n" + b"9" * 5000 + b" 2 " + _MARKER + b"\n",
        "no end of comments": head + b"% x\n" * 300_000,
        "one long line": head + b"6 6 1\n" + b"1 2 0.5 " * 300_000,
        "dense": b"%%MatrixMarket matrix array real general\n1000000 1000000\n",
    }


class _Malice:
    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("import sys; sys.exit('pickled code ran')",)


def _archives() -> dict[str, bytes]:
    header = np.lib.format.magic(1, 0)

    def member(shape: str, dtype: str = "'<i8'", body: bytes = b"") -> bytes:
        text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        return header + struct.pack("<H", len(text)) + text + body

    def archive(how: int = zipfile.ZIP_DEFLATED, **members: bytes) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", how) as new:
            for name, content in members.items():
                new.writestr(f"{name}.npy", content)
        return file.getvalue()

    def matrix(**changes: Any) -> bytes:
        parts: dict[str, Any] = {
            "format": b"csr", "shape": [3, 3], "data": [0.5, 0.5], "indices": [1, 0],
            "indptr": [0, 1, 2, 2],
        }  # fmt: skip
        file = io.BytesIO()
        np.savez(file, **{name: np.array(part) for name, part in (parts | changes).items()})
        return file.getvalue()

    end = member("(1,)", body=struct.pack("<q", 1))
    weight = member("(1,)", "'<f8'", struct.pack("<d", 0.123456789))
    pickled = member("(1,)", "'|O'", pickle.dumps([_Malice()]))
    ends = {"sources": end, "targets": member("(1,)", body=struct.pack("<q", 0)), "weights": weight}
    whole = archive(zipfile.ZIP_STORED, **ends)
    return {
        "a shape of 10^12": archive(**(ends | {"sources": member("(1000000000000,)")})),
        "a shape of 10^9": archive(**(ends | {"weights": member("(1000000000,)", "'<f8'")})),
        "a text of 10^9 letters": archive(**ends, names=member("(2,)", "'<U1000000000'")),
        "10^12 nodes": archive(**ends, n_nodes=member("()", body=struct.pack("<q", _HUGE))),
        "10^9 nodes": archive(**ends, n_nodes=member("()", body=struct.pack("<q", 10**9))),
        "node 10^12": archive(
            **(ends | {"sources": member("(1,)", body=struct.pack("<q", _HUGE))})
        ),
        "a pickle": archive(**(ends | {"weights": pickled})),
        "a pickle as it is": pickle.dumps(_Malice()),
        "a pickle in a matrix": archive(format=pickled, data=weight),
        "a wrong checksum": whole.replace(struct.pack("<d", 0.123456789), b"12345678", 1),
        "a deep header": archive(**(ends | {"sources": member("(" * 3000)})),
        "pointers outside": matrix(indptr=[0, 10**9, 2, 2]),
        "pointers that fall": matrix(indptr=[0, 5, 1, 2]),
        "negative pointers": matrix(indptr=[0, -5, 1, 2]),
        "indices outside": matrix(indices=[7, 10**12]),
        "negative indices": matrix(indices=[-1, -9]),
        "a matrix of 10^12 rows": matrix(
            format=b"coo", shape=[_HUGE, _HUGE], row=[0, 1], col=[1, 0]
        ),
        "a matrix of pointers": matrix(indptr=[[0, 1], [2, 2]]),
        "a matrix of texts": matrix(data=["a", "b"]),
    }


def _releases() -> dict[str, bytes]:
    def changed(how: Any) -> bytes:
        document = json.loads(seeds("release")[1])
        how(document)
        document["digest"] = _digest(document)
        return json.dumps(document).encode()

    whole = seeds("release")[0]
    array = {"dtype": "int64", "length": _HUGE, "data": ""}
    return {
        "10^12 nodes": changed(lambda d: d["nodes"].update(count=_HUGE)),
        "10^12 labels": changed(lambda d: d["clustering"].update(labels=array)),
        "10^12 labels and nodes": changed(
            lambda d: (d["nodes"].update(count=_HUGE), d["clustering"].update(labels=array))
        ),
        "10^12 nodes without labels": changed(
            lambda d: (d["nodes"].update(count=_HUGE, names=None), d.update(clustering=None))
        ),
        "10^12 weights": changed(
            lambda d: d["graph"].update(noisy_weights=array | {"dtype": "float64"})
        ),
        "an unknown mechanism": changed(lambda d: d.update(mechanism="../magic")),
        "a mechanism that is no name": changed(lambda d: d.update(mechanism={"name": "kruskal"})),
        "noise of a negative scale": changed(lambda d: d["noise"].update(scale=-1.0)),
        "noise of 2^10000": changed(lambda d: d["noise"].update(scale=2**10000)),
        "noise on half a value": changed(lambda d: d["noise"].update(n_values=0.5)),
        "an unknown distribution": changed(lambda d: d["noise"].update(distribution=["laplace"])),
        "a clusterer that is no name": changed(lambda d: d["clustering"].update(clusterer=[])),
        "an edge of node 2^31": changed(
            lambda d: d["tree"]["sources"].update(data="/////w" + d["tree"]["sources"]["data"][6:])
        ),
        "weights that overflow": changed(
            lambda d: d["clustering"].update(shift=1e308, scale=5e-324)
        ),
        "very deep": b"[" * 1_000_000,
        "very deep inside": whole.replace(b'"format"', b'"x": ' + b'{"a":' * 100_000 + b'"format"'),
        "a number of a million digits": re.sub(
            rb'("version": )\d+', rb"\g<1>" + b"1" * 10**6, whole, count=1
        ),
        "a field twice": re.sub(rb'("version": \d+)', rb"\g<1>, \g<1>", whole, count=1),
        "NaN": whole.replace(b'"dbcvi": ', b'"dbcvi": NaN, "x": '),
        "Infinity": whole.replace(b'"dbcvi": ', b'"dbcvi": 1e999, "x": '),
        "a wrong digest": whole.replace(b"sha256:", b"sha256:0"),
        "no digest": changed(lambda d: None).replace(b'"digest"', b'"digset"'),
        "half of it": whole[: len(whole) // 2],
        "a pickle": pickle.dumps(_Malice()),
    }
