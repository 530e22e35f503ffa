"""Small valid files of every format, to be spoiled; no weight's digits occur by chance."""

from __future__ import annotations

import gzip
import io
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import coo_array, csr_array, save_npz

from ptclust import Budget, Graph, PTClust, Sensitivity
from ptclust.graph.metadata import KEY, Metadata
from ptclust.privacy import Provenance, Spending
from ptclust.release.format import encode
from tests.lazy import lazy

nx = lazy("networkx")

SOURCES = [0, 1, 2, 3, 4, 5, 0, 1]
TARGETS = [1, 2, 3, 4, 5, 0, 2, 3]
NAMES = ["ada", "bob", "cyd", "dan", "eve", "fay"]
#: The private weights; messages must not hold their digits.
MARKERS = (
    "0.123456789", "0.987654321", "0.271828182", "0.314159265",
    "0.577215664", "0.161803398", "0.141421356", "0.173205080",
)  # fmt: skip
WEIGHTS = [float(marker) for marker in MARKERS]


class Reading(NamedTuple):
    """How files are read: the ending that tells the format, the options of read_graph."""

    ending: str
    options: dict[str, Any] = {"kind": "distance"}
    from_input: bool = False  # from standard input rather than from a file


#: What is fuzzed.
KINDS = {
    "csv": Reading(".csv"),
    "csv.gz": Reading(".csv.gz"),
    "csv without header": Reading(".csv", {"kind": "similarity", "header": False}),
    "tsv": Reading(".tsv", {}),
    "txt": Reading(".txt"),
    "txt by blanks": Reading(".txt", {"kind": "distance", "separator": "space"}),
    "standard input": Reading(".csv", {"kind": "distance", "separator": ";"}, from_input=True),
    "parquet": Reading(".parquet"),
    "graphml": Reading(".graphml"),
    "mtx": Reading(".mtx"),
    "npz": Reading(".npz"),
    "release": Reading(".json"),
}


@cache
def seeds(kind: str) -> tuple[bytes, ...]:
    """Return the valid files of a kind."""
    makers = {
        "csv": lambda: _tables(",") + _tables(";")[:1],
        "csv.gz": lambda: tuple(gzip.compress(text, mtime=0) for text in _tables(",")),
        "csv without header": lambda: tuple(text.partition(b"\n")[2] for text in _tables(",")[:3]),
        "tsv": lambda: tuple(text.replace(b"weight", b"Cost") for text in _tables("\t")),
        "txt": lambda: _tables("\t")[:2] + _tables(";")[1:] + _tables(" ")[:1],
        "txt by blanks": lambda: _tables(" ") + _tables("  \t")[1:2],
        "standard input": lambda: _tables(";") + tuple(map(gzip.compress, _tables(";")[:1])),
        "parquet": _parquets,
        "graphml": _graphmls,
        "mtx": _matrices,
        "npz": _archives,
        "release": _releases,
    }
    return makers[kind]()


def _tables(separator: str) -> tuple[bytes, ...]:
    named = [
        (NAMES[a], NAMES[b], weight) for a, b, weight in zip(SOURCES, TARGETS, MARKERS, strict=True)
    ]
    numbered = [(str(a), str(b), weight) for a, b, weight in zip(SOURCES, TARGETS, MARKERS)]
    quoted = [(f'"{a}, {a}"', f'"{b}"', weight) for a, b, weight in named]
    head, shuffled = ("source", "target", "weight"), ("weight", "note", "target", "source")
    rows: list[Any] = [
        [head, *named],
        [("from", "to", "weight"), *numbered],
        [head, *quoted],
        [shuffled, *((w, "x", b, a) for a, b, w in named)],
    ]
    return tuple("\n".join(separator.join(row) for row in table).encode() + b"\n" for table in rows)


def _parquets() -> tuple[bytes, ...]:
    def written(frame: pl.DataFrame, **options: object) -> bytes:
        file = io.BytesIO()
        frame.write_parquet(file, **options)
        return file.getvalue()

    numbers = pl.DataFrame({"source": SOURCES, "target": TARGETS, "weight": WEIGHTS})
    names = numbers.with_columns(
        source=pl.Series([NAMES[a] for a in SOURCES]), target=pl.Series([NAMES[b] for b in TARGETS])
    )
    return (
        written(numbers),
        written(names),
        written(numbers, compression="uncompressed", statistics=False),
        written(names, compression="uncompressed", row_group_size=3),
        written(names.with_columns(pl.col("source").cast(pl.Categorical)), compression="snappy"),
        written(numbers, compression="gzip", data_page_size=16),
        written(names, metadata=_words(names), compression="uncompressed"),
    )


def _words(frame: pl.DataFrame) -> dict[str, str]:
    """Return what ptclust writes beside the edges of a graph."""
    graph = Graph.from_dataframe(frame, kind="distance")
    built = {"sensitivity": Sensitivity(l1=1.0), "unit": "one record", "details": {"built_by": "x"}}
    spent = Spending(purpose="max_pairs", budget=Budget.pure("1/10"), noise="Laplace", scale=10.0)
    graph.provenance = Provenance(**built, spent=(spent,))
    return {KEY: Metadata.of(graph).encode()}


def _graphmls() -> tuple[bytes, ...]:
    graph = nx.Graph()
    graph.add_nodes_from(NAMES)
    for a, b, weight in zip(SOURCES, TARGETS, WEIGHTS):
        graph.add_edge(NAMES[a], NAMES[b], weight=weight, note="x")
    plain = "\n".join(nx.generate_graphml(graph)).encode()
    numbered = "\n".join(nx.generate_graphml(nx.convert_node_labels_to_integers(graph))).encode()
    bare = b"".join(
        b'<edge source="%d" target="%d"><data key="w">%b</data></edge>' % (a, b, weight.encode())
        for a, b, weight in zip(SOURCES, TARGETS, MARKERS)
    )
    nodes = b"".join(b'<node id="%d"/>' % node for node in range(6))
    key = b'<key id="w" for="edge" attr.name="trips"><default>0.123456789</default></key>'
    small = b"<graphml>" + key + b"<graph>" + nodes + bare + b"</graph></graphml>"
    return plain, numbered, small, gzip.compress(small, mtime=0)


def _matrices() -> tuple[bytes, ...]:
    entries = [(b + 1, a + 1, w) if a < b else (a + 1, b + 1, w)
               for a, b, w in zip(SOURCES, TARGETS, MARKERS)]  # fmt: skip
    lines = "\n".join(f"{row} {column} {weight}" for row, column, weight in entries)
    mirrored = "\n".join(f"{column} {row} {weight}" for row, column, weight in entries)
    return (
        f"%%MatrixMarket matrix coordinate real symmetric\n% a comment\n6 6 8\n{lines}\n".encode(),
        f"%%MatrixMarket matrix coordinate real general\n6 6 16\n{lines}\n{mirrored}\n".encode(),
        gzip.compress(
            f"%%MatrixMarket matrix coordinate real general\n9 9 8\n{lines}\n".encode(), mtime=0
        ),
    )


def _archives() -> tuple[bytes, ...]:
    matrix = coo_array((WEIGHTS, (SOURCES, TARGETS)), shape=(6, 6))
    files = [io.BytesIO() for _ in range(5)]
    ends = {
        "sources": np.array(SOURCES),
        "targets": np.array(TARGETS),
        "weights": np.array(WEIGHTS),
    }
    np.savez(files[0], **ends)
    np.savez_compressed(files[1], **ends, n_nodes=np.array(6), names=np.array(NAMES))
    save_npz(files[2], matrix, compressed=False)
    save_npz(files[3], csr_array(matrix + matrix.T))
    save_npz(files[4], csr_array(matrix).tocsc(), compressed=False)
    return tuple(file.getvalue() for file in files)


def _releases() -> tuple[bytes, ...]:
    graph = Graph(SOURCES, TARGETS, WEIGHTS, names=NAMES)
    options = {"epsilon": 1.0, "sensitivity": Sensitivity(linf=1e-6), "privacy_unit": "one edge"}
    choices = {"kruskal": {"delta": 1e-6}, "laplace": {}, "pamst": {"min_cluster_size": 2}}
    fitted = [
        PTClust(mechanism=mechanism, **options, **more).fit(graph)
        for mechanism, more in choices.items()
    ]
    seeded = PTClust(**options, random_state=1).fit(Graph(SOURCES, TARGETS, WEIGHTS))
    releases = [model.release_ for model in (*fitted, seeded)]
    unclustered = [replace(release, clustering=None) for release in releases[1:3]]
    return tuple(encode(release) for release in (*releases, *unclustered))
