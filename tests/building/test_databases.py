"""Records of PostgreSQL, DuckDB and SQLite: the same graph as from a file, and no secret said."""

from __future__ import annotations

import random
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from experiments.postgres import binaries, running_server
from ptclust import graph_from_flows, graph_from_visits, read_graph
from ptclust.building import Query, check_records
from ptclust.errors import InputError, MissingDependencyError, UsageError
from tests.lazy import lazy

duckdb = lazy("duckdb")

KEY = (1, 2, 3)
PLACES = [f"place {i}" for i in range(12)]
_random = random.Random(5)
VISITS = pl.DataFrame(
    [
        (_random.choice([None, *range(60)]), _random.choice([None, "elsewhere", "é", *PLACES]))
        for _ in range(3000)
    ],
    schema={"person": pl.Int64, "place": pl.String},
    orient="row",
).with_columns(note=pl.lit("not requested"))
SELECT = "select * from visits"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed here: make database")
    file = tmp_path_factory.mktemp("visits") / "visits.csv"
    VISITS.write_csv(file, include_header=False)
    with running_server() as server:
        server.run(
            "create table visits (person bigint, place text, note text)",
            rf"\copy visits from '{file}' csv",
        )
        yield server


@pytest.fixture(params=["postgresql", "duckdb", "sqlite"])
def query(request, tmp_path):
    file = tmp_path / f"visits.{request.param}"
    if request.param == "postgresql":
        return Query(request.getfixturevalue("server").address, SELECT)
    if request.param == "duckdb":
        with duckdb.connect(str(file)) as connection:
            connection.execute("create table visits (person bigint, place text, note text)")
            connection.executemany("insert into visits values (?, ?, ?)", VISITS.rows())
    else:
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("create table visits (person, place, note)")
            connection.executemany("insert into visits values (?, ?, ?)", VISITS.rows())
    return Query(f"{request.param}:{file}", f"{SELECT};\n")


def test_the_graph_is_that_of_the_table(query):
    options = {"item": "place", "items": PLACES, "_key": KEY}
    for cap in (3, 12):
        here, there = (
            graph_from_visits(table, max_items=cap, **options) for table in (VISITS, query)
        )
        assert there.names.tolist() == here.names.tolist()
        assert there.provenance == here.provenance
        if query.typed or cap == 12:  # texts of persons have another hash: other places are kept
            assert there.weights.tolist() == here.weights.tolist()
        assert 0 < there.weights.sum() <= here.weights.sum() or cap == 3


def test_single_records_and_a_query_that_computes(query):
    joined = (
        "select a.place as origin, b.place as destination from visits a join visits b "
        "on a.person = b.person where a.person < 9"
    )
    few = VISITS.filter(pl.col("person") < 9)
    rows = few.join(few, on="person").select(origin="place", destination="place_right")
    found = graph_from_flows(Query(query.address, joined), nodes=PLACES)
    assert found.weights.tolist() == graph_from_flows(rows, nodes=PLACES).weights.tolist()


def test_records_are_checked_there(query):
    here, there = (check_records(t, item="place", items=PLACES) for t in (VISITS, query))
    assert str(there) == str(here)


def test_rows_come_in_batches_of_the_columns_that_matter(query, monkeypatch):
    monkeypatch.setattr("ptclust.building.databases._BATCH", 500)
    seen, texts = [], []
    frames, select = Query._frames, Query._select

    def written(self, columns):
        texts.append(columns)
        return select(self, columns)

    monkeypatch.setattr(Query, "_select", written)

    def noted(self, *arguments):
        for frame in frames(self, *arguments):
            seen.append(frame)
            yield frame

    monkeypatch.setattr(Query, "_frames", noted)
    graph_from_visits(query, item="place", items=PLACES, max_items=2)
    # Every row once. Who is missing, polars asked to drop; of texts, which may be blank, later.
    assert sum(map(len, seen)) == (VISITS["person"].count() if query.typed else len(VISITS))
    assert {name for frame in seen for name in frame.columns} == {"person", "place"}
    assert texts[0] == "*"  # with limit 0
    assert sorted(texts[1].split(", ")) == ['"person"', '"place"']
    if query.kind == "sqlite":
        assert 400 < max(map(len, seen)) <= 500


def test_a_large_table_is_never_whole(server):
    """A batch is of 16 MB: of three million rows, none has half of them."""
    rows = "select i % 1000 as person, i % 7 as place from generate_series(1, 3000000) t(i)"
    sizes = [len(frame) for frame in Query(server.address, rows)._frames(None, None, None, None)]
    assert sum(sizes) == 3_000_000
    assert max(sizes) < 1_500_000


@pytest.mark.parametrize("columns", [None, ["place"]])
def test_what_polars_asks_of_a_source(query, columns):
    predicate = pl.col("place") == PLACES[0]
    whole = pl.concat(query._frames(columns, predicate, None, None))
    wanted = VISITS.filter(predicate).select(columns or VISITS.columns)
    assert (
        whole.cast(pl.String).sort(whole.columns).equals(wanted.cast(pl.String).sort(whole.columns))
    )
    assert sum(map(len, query._frames(columns, None, 10, None))) == 10


def test_it_can_only_read(query):
    for text in ("delete from visits", "drop table visits", f"{SELECT}; drop table visits"):
        with pytest.raises(InputError, match="is not understood there"):
            graph_from_visits(Query(query.address, text), items=PLACES, max_items=2)
    assert Query(query.address, "select count(*) as n from visits").scan().collect().item() in (
        len(VISITS),
        str(len(VISITS)),
    )


def test_a_query_that_fails_says_why_without_rows(query, server):
    with pytest.raises(InputError, match=r"is not understood there: .*vists") as caught:
        graph_from_visits(Query(query.address, "select * from vists"), items=PLACES, max_items=2)
    assert server.password not in str(caught.value)
    if query.kind == "postgresql":  # of a row, when rows are read
        secret = "select person, (place || ' is secret')::int as place from visits"
        with pytest.raises(InputError, match="cannot be read to its end") as caught:
            graph_from_visits(Query(query.address, secret), item="place", items=[1, 2], max_items=2)
        assert "secret" not in str(caught.value)
        assert caught.value.__context__ is None


def test_numbers_that_are_equal_there_are_one_person(server, tmp_path):
    file = tmp_path / "visits.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("create table visits (person, place)")
        rows = [(person, place) for person in (7, 7.0, "7", b"7") for place in PLACES[:2]]
        connection.executemany("insert into visits values (?, ?)", rows)
    numeric = (
        "select person, place from (values (7::numeric), (7.0), (7.00)) persons(person), "
        "(values ('place 0'), ('place 1')) places(place)"
    )
    for query in (Query(f"sqlite:{file}", SELECT), Query(server.address, numeric)):
        graph = graph_from_visits(query, item="place", items=PLACES[:2], max_items=2)
        assert graph.weights.tolist() == [1]


class TestPasswords:
    def test_no_message_has_it(self, server, run):
        Path("places.txt").write_text("\n".join(PLACES))
        wrong = server.address.replace(server.password, "hunter2")
        build = ("build", "visits", wrong, "--query", SELECT, "--items", "places.txt")
        code, _, err = run(*build, "--max-items", "2", "-o", "graph.parquet")
        assert code == 2
        assert f"postgresql://127.0.0.1:{server.port}/postgres cannot be opened" in err
        assert "PGPASSWORD or ~/.pgpass" in err
        assert "hunter2" not in err

    def test_no_file_has_it(self, server, run, monkeypatch):
        Path("places.txt").write_text("\n".join(PLACES))
        build = ("build", "visits", server.address, "--query", SELECT, "--items", "places.txt")
        code, out, err = run(*build, "--max-items", "2", "-o", "graph.parquet", "--json")
        assert code == 0
        assert run("cluster", "graph.parquet", "--epsilon", "1", "-o", "release.json")[0] == 0
        for text in (out, err, Path("release.json").read_text()):
            assert server.password not in text
            assert "127.0.0.1" not in text
        assert server.password.encode() not in Path("graph.parquet").read_bytes()
        monkeypatch.setenv("PGPASSWORD", server.password.replace("%20", " "))
        build = (*build[:2], server.address_without_password, *build[3:])
        assert run(*build, "--max-items", "12", "-o", "again.parquet")[0] == 0
        assert read_graph("again.parquet").weights.sum() > 0

    @pytest.mark.parametrize(
        "address",
        [
            "postgresql://ada:hunter2@h/db",
            "postgres+psycopg://ada:hunter2@h/db",
            "POSTGRESQL://ada:x@hunter2@h/db",
            "mysql://ada:hunter2@h/db?password=hunter2",
        ],
    )
    def test_no_address_in_place_of_a_file_is_repeated_with_it(self, address, run):
        Path("places.txt").write_text("a\nb\n")
        options = ("--epsilon", "1", "--linf", "1", "--privacy-unit", "one visit")
        visits = ("build", "visits", address, "--items", "places.txt", "--max-items", "2")
        for arguments in (
            (*visits, "-o", "graph.parquet"),
            (*visits, "--query", "select 1"),
            (*visits, "--check"),
            ("cluster", address, *options, "-o", "release.json"),
            ("show", address),
        ):
            code, out, err = run(*arguments)
            assert code in (2, 3)
            assert "hunter2" not in out + err
        with pytest.raises(InputError if address.startswith("mysql") else UsageError) as caught:
            graph_from_visits(address, items=["a", "b"], max_items=2)
        assert "hunter2" not in str(caught.value)

    @pytest.mark.parametrize(
        ("address", "shown"),
        [
            ("postgresql://ada:s3@h:5/db?sslmode=require&password=s3", "postgresql://h:5/db"),
            ("postgres://ada:s3@h/db", "postgresql://h/db"),
            ("postgresql://ada:s3@[h/db", "postgresql://[h/db"),
            ("postgresql://ada:x@y:s3@h/db", "postgresql://h/db"),
            ("postgresql:ada:s3@h/db", "postgresql://..."),
            ("duckdb:visits.db", "duckdb:visits.db"),
            ("sqlite:///visits.db", "sqlite:/visits.db"),
        ],
    )
    def test_addresses_in_words(self, address, shown):
        query = Query(address, SELECT)
        assert str(query) == shown
        assert repr(query) == f"Query({shown!r})"
        assert "s3" not in str(query)
        if "//ada:" in address:
            assert "s3" not in query._without(f"cannot use {address}")


class TestCommand:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("visits.csv", "--query", SELECT), "this is not the address of a database"),
            (("sqlite:visits.db",), "there is no query to the database"),
            (("sqlite:none.db", "--query", SELECT), "there is no file none.db"),
            (("duckdb:bad.db", "--query", SELECT), "duckdb:bad.db cannot be opened"),
            (
                ("sqlite:none.db", "--query", SELECT, "--separator", ";"),
                "--separator is for text tables, not for sqlite:none.db",
            ),
            (
                ("sqlite:none.db", "--query", SELECT, "--engine", "spark"),
                "a database is read by this machine: leave --engine spark out",
            ),
        ],
    )
    def test_what_does_not_fit(self, run, arguments, message):
        Path("places.txt").write_text("a\nb\n")
        Path("bad.db").write_bytes(b"nothing of the kind" * 1000)
        options = ("--items", "places.txt", "--max-items", "2", "-o", "graph.parquet")
        code, _, err = run("build", "visits", *arguments, *options)
        assert code == 2
        assert message in err

    def test_a_missing_extra(self, monkeypatch, tmp_path):
        (tmp_path / "visits.db").touch()
        for package, address, extra in (
            ("duckdb", f"duckdb:{tmp_path}/visits.db", "duckdb"),
            ("adbc_driver_postgresql.dbapi", "postgresql://h/db", "postgresql"),
        ):
            monkeypatch.setitem(sys.modules, package, None)
            with pytest.raises(MissingDependencyError) as caught:
                graph_from_visits(Query(address, SELECT), items=PLACES, max_items=2)
            assert f"pip install 'ptclust[{extra}]' brings it" in str(caught.value)

    def test_no_query_is_empty(self):
        with pytest.raises(UsageError, match="there is no query"):
            Query("sqlite:visits.db", " ;\n")
