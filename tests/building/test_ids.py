"""One person is one unit, in however many ways they are written, and so is a node one node."""

from __future__ import annotations

import csv
import math
import sqlite3
import unicodedata
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum

import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ptclust import graph_from_flows, graph_from_profiles, graph_from_visits
from ptclust.building import Query, read_list
from ptclust.errors import FileError, InputError, UsageError
from ptclust.graph.readers.ids import normal_texts
from tests.lazy import lazy

duckdb = lazy("duckdb")

KEY = (1, 2, 3)
NODES = ["a", "b", "é"]
UNSEEN = ["\0", "\x1b", "\x7f", "\u200b", "\u200d", "\u2060", "\ufeff", "\xad", "\ufe0f", "\u2800"]
BLANKS = ["", "", " ", "\t", "\r", "\n", "\xa0", "\u3000", "\x85", *UNSEEN]


@st.composite
def spelled(draw, name):
    """A name in one of the ways in which it may be written."""
    letters = list(unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), name))
    for unseen in draw(st.lists(st.sampled_from(UNSEEN), max_size=2)):
        letters.insert(draw(st.integers(0, len(letters))), unseen)
    blanks = (draw(st.sampled_from(BLANKS)) for _ in range(4))
    return "".join([next(blanks), next(blanks), *letters, next(blanks), next(blanks)])


plain = st.sampled_from(NODES)
nodes = st.one_of(plain, plain, plain, plain.flatmap(spelled))
others = st.sampled_from(["x", "y", None])


@st.composite
def rows_of(draw, *columns):
    """Rows of some persons, and of one more, who is written in few ways, each of them often."""
    ways = st.sampled_from(draw(st.lists(spelled("Zoé 7"), min_size=2, max_size=3)))
    rest = st.lists(st.tuples(others, *columns), max_size=6)
    theirs = st.lists(st.tuples(ways, *columns), min_size=6, max_size=20)
    return draw(rest), draw(theirs)


def as_csv(frame, folder):
    path = folder / "records.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NOTNULL if hasattr(csv, "QUOTE_NOTNULL") else 1)
        writer.writerows([frame.columns, *frame.rows()])
    return path


def as_file(write, suffix):
    def hold(frame, folder):
        getattr(frame, write)(folder / f"records{suffix}")
        return folder / f"records{suffix}"

    return hold


def in_database(kind):
    def hold(frame, folder):
        file = folder / f"records.{kind}"
        file.unlink(missing_ok=True)
        connect = sqlite3.connect if kind == "sqlite" else duckdb.connect
        with closing(connect(str(file))) as connection:
            columns = ", ".join(f"{name} text" for name in frame.columns)
            connection.execute(f"create table records ({columns})")
            marks = ", ".join("?" * frame.width)
            insert = f"insert into records values ({marks})"
            if len(frame):
                connection.executemany(insert, frame.rows())
            connection.commit()
        return Query(f"{kind}:{file}", "select * from records")

    return hold


def in_pandas(dtype):
    def hold(frame, _):
        found = pd.DataFrame(frame.to_dict(as_series=False))
        texts = [name for name, type_ in frame.schema.items() if type_ == pl.String]
        objects = found.astype(dict.fromkeys(texts, object))  # of no rows it would be of numbers
        return objects.astype(dict.fromkeys(texts, dtype))

    return hold


def as_categories(frame):
    return frame.with_columns(pl.col(pl.String).cast(pl.Categorical))


HOLDERS = {
    "polars": lambda frame, _: frame,
    "lazy": lambda frame, _: frame.lazy(),
    "categories": lambda frame, _: as_categories(frame),
    "pandas": in_pandas("str"),
    "pandas objects": in_pandas(object),
    "pandas categories": in_pandas("category"),
    "csv": as_csv,
    "parquet": as_file("write_parquet", ".parquet"),
    "parquet categories": lambda frame, folder: as_file("write_parquet", ".parquet")(
        as_categories(frame), folder
    ),
    "arrow": as_file("write_ipc", ".arrow"),
}
SOURCES = HOLDERS | {kind: in_database(kind) for kind in ("sqlite", "duckdb")}


def check_moved(build, hold, columns, rows, folder):
    """All rows of one person move the weights by no more than is stated."""

    def graph(table):
        schema = dict(columns)
        return build(hold(pl.DataFrame(table, schema=schema, orient="row"), folder))

    before, after = graph(rows[0]), graph(rows[0] + rows[1])
    change = abs(after.weights - before.weights)
    stated = after.sensitivity.to_dict()
    moved = {"l1": change.sum(), "l2": math.sqrt((change**2).sum()), "linf": change.max()}
    assert all(moved[norm] <= bound * (1 + 1e-12) for norm, bound in stated.items())


quick = settings(
    max_examples=40,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
WAYS = [
    *(
        "é7",
        "e\u03017",
        " é7",
        "é7 ",
        "é7\0",
        "é7\r",
        "\té7\n",
        "\ufeffé7",
        "é\u200b7",
        "e\xad\u03017",
    ),
    *("\x1bé7", "\xa0é7\u3000", "\x85é7\x1f", "\u2800é7\u2060", "é7\ufe0f"),
]


@pytest.mark.parametrize("holder", SOURCES)
def test_all_ways_to_write_a_name_are_one(holder, tmp_path):
    columns = {"person": WAYS, "origin": WAYS, "destination": ["b"] * len(WAYS)}
    table = SOURCES[holder](pl.DataFrame(columns), tmp_path)
    nodes = ["b", "é7"]
    assert graph_from_flows(table, nodes=nodes).weights.tolist() == [len(WAYS)]
    bounds = {"person": "person", "max_pairs": 1, "max_per_pair": 1}
    assert graph_from_flows(table, nodes=nodes, **bounds).weights.tolist() == [1]


@pytest.mark.parametrize("holder", SOURCES)
@quick
@given(rows=rows_of(nodes, nodes))
def test_flows(holder, tmp_path_factory, rows):
    def build(table):
        bounds = {"person": "person", "max_pairs": 1, "max_per_pair": 2}
        return graph_from_flows(table, nodes=NODES, **bounds, _key=KEY)

    columns = dict.fromkeys(("person", "origin", "destination"), pl.String)
    check_moved(build, SOURCES[holder], columns, rows, tmp_path_factory.mktemp("flows"))


@pytest.mark.parametrize("holder", SOURCES)
@quick
@given(rows=rows_of(nodes))
def test_visits(holder, tmp_path_factory, rows):
    def build(table):
        return graph_from_visits(table, items=NODES, max_items=2, _key=KEY)

    columns = dict.fromkeys(("person", "item"), pl.String)
    check_moved(build, SOURCES[holder], columns, rows, tmp_path_factory.mktemp("visits"))


values = st.floats(-1, 2, width=32)


@pytest.mark.parametrize("holder", HOLDERS)
@quick
@given(rows=rows_of(values, values, values), names=st.tuples(*map(spelled, NODES)))
def test_profiles(holder, tmp_path_factory, rows, names):
    def build(table):
        bounds = {"low": 0, "high": 1, "n_persons": 2}
        return graph_from_profiles(table, nodes=NODES, person="person", **bounds)

    columns = {"person": pl.String, **dict.fromkeys(names, pl.Float64)}
    check_moved(build, HOLDERS[holder], columns, rows, tmp_path_factory.mktemp("profiles"))


class Colour(str, Enum):  # noqa: UP042 - a StrEnum prints as its value
    SEVEN = "7"


MOMENT = datetime(2026, 1, 1, 12, tzinfo=UTC)
OBJECTS = {
    "numbers": [7, 7.0, "7"],
    "truth": [1, True, 1.0],
    "decimals": [Decimal("7"), Decimal("7.0"), Decimal("7.00")],
    "times": [pd.Timestamp(MOMENT), pd.Timestamp(MOMENT.astimezone(timezone(timedelta(hours=2))))],
    "bytes": [b"7", "7"],
    "complex numbers": [complex(0, 0.0), complex(0, -0.0)],
}


@pytest.mark.parametrize("role", ["person", "origin"])
@pytest.mark.parametrize("objects", OBJECTS)
def test_objects_of_pandas_that_are_no_texts_are_refused(objects, role):
    values = pd.Series(OBJECTS[objects], dtype=object)
    columns = {"person": "x", "origin": "a", "destination": "b"}
    table = pd.DataFrame({name: [value] * len(values) for name, value in columns.items()})
    bounds = {"person": "person", "max_pairs": 1, "max_per_pair": 1}
    assert graph_from_flows(table, nodes=NODES, **bounds).weights.tolist() == [1, 0, 0]
    table[role] = values
    with pytest.raises(InputError, match=rf"column '{role}' .* objects than texts.*astype"):
        graph_from_flows(table, nodes=NODES, **bounds)


def test_texts_of_other_classes_are_what_they_are_equal_to():
    persons = pd.Series([Colour.SEVEN, "7", None, math.nan], dtype=object)
    table = pd.DataFrame({"person": persons, "origin": "a", "destination": "b"})
    graph = graph_from_flows(table, nodes=NODES, person="person", max_pairs=1, max_per_pair=1)
    assert graph.weights.tolist() == [1, 0, 0]


def test_a_person_whose_name_is_blank_is_missing():
    table = pl.DataFrame({"person": ["", " ", "\u200b"], "item": ["a", "b", "a"]})
    assert graph_from_visits(table, items=NODES, max_items=2).weights.tolist() == [0, 0, 0]


def test_a_public_list_is_read_as_the_records_are(tmp_path):
    for suffix in (".txt", ".csv"):
        path = tmp_path / f"nodes{suffix}"
        path.write_text("node\n" * (suffix == ".csv") + "a\u200b\n b\ne\u0301\n", encoding="utf-8")
        assert read_list(path) == NODES
    records = pl.DataFrame({"origin": ["a"], "destination": ["e\u0301 "]})
    for nodes in (["a", "é"], ["a ", "e\u0301"]):
        graph = graph_from_flows(records, nodes=nodes)
        assert (graph.names.tolist(), graph.weights.tolist()) == (["a", "é"], [1])
    with pytest.raises(UsageError, match="'a' is twice"):
        graph_from_flows(records, nodes=["a", "a\u200b"])


def test_the_provenance_says_how_ids_are_compared():
    graph = graph_from_flows(pl.DataFrame({"origin": ["a"], "destination": ["b"]}), nodes=NODES)
    assert "Unicode form NFC" in graph.provenance.details["ids"]


@given(st.text())
def test_what_is_normal_stays_as_it_is(text):
    once = normal_texts(pl.Series([text]))
    assert normal_texts(once).to_list() == once.to_list()
    categories = normal_texts(pl.Series([text, None], dtype=pl.Categorical))
    assert categories.to_list() == [once.item(), None]


@pytest.mark.parametrize("dtype", [pl.Int128, getattr(pl, "UInt128", pl.Int128)])
@pytest.mark.parametrize("value", [1, 2**100])
def test_integers_of_128_bits_are_refused_by_their_type(dtype, value):
    persons = pl.DataFrame({"person": pl.Series([value], dtype=dtype), "item": ["a"]})
    with pytest.raises(InputError, match=r"of type U?Int128; persons .*: cast it, integers to 64"):
        graph_from_visits(persons, items=NODES, max_items=2)
    items = pl.DataFrame({"person": ["x"], "item": pl.Series([value], dtype=dtype)})
    with pytest.raises(InputError, match=r"of type U?Int128"):
        graph_from_visits(items, items=[1, 2], max_items=2)


class TestSmallFilesOfMuch:
    """Files of some kilobytes whose texts would be gigabytes."""

    @pytest.fixture
    def bomb(self):
        names = {"person": "x" * 20_000, "origin": "a", "destination": "b"}
        once = pl.DataFrame(names).cast(pl.Categorical)
        return pl.DataFrame([column.new_from_index(0, 100_000) for column in once])

    @pytest.mark.parametrize("write", ["write_parquet", "write_ipc", "of texts"])
    def test_are_refused(self, bomb, tmp_path, write):
        path = tmp_path / ("records.arrow" if write == "write_ipc" else "records.parquet")
        if write == "of texts":  # of which the file has each once, too
            once = pl.Series([bomb["person"][0]])
            bomb = bomb.with_columns(person=once.new_from_index(0, len(bomb)))
            bomb.write_parquet(path)
        else:
            getattr(bomb, write)(path, compression="zstd")
        assert path.stat().st_size < 100_000
        bounds = {"person": "person", "max_pairs": 1, "max_per_pair": 1}
        with pytest.raises(FileError, match="expands to over 100 times its size"):
            graph_from_flows(path, nodes=NODES, **bounds)
        with pytest.raises(FileError, match="expands to over 100 times its size"):
            read_list(path, "person")
        assert graph_from_flows(path, nodes=NODES).weights.tolist() == [100_000, 0, 0]

    def test_compressed_text(self, tmp_path):
        import gzip

        path = tmp_path / "records.csv"
        path.write_bytes(gzip.compress(b"origin,destination\n" + b"a,b\n" * 1000))
        with pytest.raises(FileError, match="is compressed"):
            graph_from_flows(path, nodes=NODES)
