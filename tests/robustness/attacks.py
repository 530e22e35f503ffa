"""Files made to do harm: bombs, wrong sizes, pickles, entities. All are refused cheaply."""

from __future__ import annotations

import gzip
import io
import json
import pickle
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
        "tsv": lambda: _tables(b"\t"),
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
    if kind == "csv.gz":
        return {
            "edges": bomb(600 << 20),
            "zeros": bomb(600 << 20, b"\x00"),
            "blank lines": bomb(600 << 20, b"\n"),
            "a bomb in a bomb": gzip.compress(bomb(600 << 20)),
        }
    if kind == "parquet":
        return {"a run of equal rows": _equal_rows(30_000_000)}
    if kind == "npz":
        file = io.BytesIO()
        zeros = np.zeros(40_000_000)
        np.savez_compressed(file, sources=[0], targets=[1], weights=zeros)
        return {"zeros": file.getvalue()}
    units = {"graphml": b"<graphml>", "mtx": b"%%MatrixMarket matrix coordinate real general\n"}
    return {"lines": bomb(600 << 20, units[kind])} if kind in units else {}


def bomb(size: int, unit: bytes = b"a,b,1\n") -> bytes:
    """Return a gzip file of about ``size`` bytes of text, made without holding them."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = unit * ((1 << 20) // len(unit))
    parts = [packer.compress(block) for _ in range(size // len(block))]
    return b"".join([*parts, packer.flush()])


def _tables(separator: bytes) -> dict[str, bytes]:
    row = separator.join((b"a", b"b", _MARKER)) + b"\n"
    return {
        "an open quote": b'"' + row * 20_000,
        "a very long line": row[:-1] * 20_000,
        "a very long id": b"a" * 3_000_000 + row,
        "very many columns": separator.join([b"x"] * 50_000) + b"\n" + row,
        "NUL bytes": b"\x00" * 1_000_000 + row,
        "blank lines": b"\n" * 300_000,
        "a stray byte": row + b"\xff" + row,
        "a zlib stream": zlib.compress(row * 1000),
        "UTF-16": row.decode().encode("utf-16"),
    }


def _gzips() -> dict[str, bytes]:
    whole = gzip.compress(b"a,b," + _MARKER + b"\n", mtime=0)
    return {
        "cut short": whole[:-9],
        "a wrong checksum": whole[:-8] + b"\x00" * 8,
        "rubbish after the end": whole + b"rubbish",
        "nothing inside": gzip.compress(b""),
        "the magic alone": b"\x1f\x8b",
    }


def _varint(number: int) -> bytes:
    """Return a number as Thrift's compact protocol writes it."""
    number, parts = number << 1, []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


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
    }


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
        "a number of a million digits": whole.replace(
            b'"version": 1', b'"version": ' + b"1" * 10**6
        ),
        "a field twice": whole.replace(b'"version": 1', b'"version": 1, "version": 1'),
        "NaN": whole.replace(b'"dbcvi": ', b'"dbcvi": NaN, "x": '),
        "Infinity": whole.replace(b'"dbcvi": ', b'"dbcvi": 1e999, "x": '),
        "a wrong digest": whole.replace(b"sha256:", b"sha256:0"),
        "no digest": changed(lambda d: None).replace(b'"digest"', b'"digset"'),
        "half of it": whole[: len(whole) // 2],
        "a pickle": pickle.dumps(_Malice()),
    }
