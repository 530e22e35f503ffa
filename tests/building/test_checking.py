"""Records are checked before anything is paid for: for the curator's eyes, and written nowhere."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from ptclust import check_records, graph_from_flows, graph_from_visits
from ptclust.building.checking import CAPS
from ptclust.errors import UsageError

CLINICS = ["Cardiology", "Eye Care", "Süd", "Surgery"]
VISITS = pl.DataFrame(
    [
        (1, "Cardiology"),
        (1, "Cardiology"),  # twice
        (1, "Surgery"),
        (1, "Süd"),
        (2, "SURGERY"),
        (2, "Surgery"),
        (3, " eye  care"),
        (3, "Sud"),
        (3, "Surgerry"),
        (3, "Spa"),
        (3, "Spa"),
        (4, None),
        (4, "  "),
        (None, "Surgery"),
    ],
    schema=["patient_id", "clinic"],
    orient="row",
)
TRIPS = pl.DataFrame(
    [(1, "a", "b")] * 5
    + [(1, "a", "c"), (1, "a", "a"), (2, "b", "c"), (2, "b", "x"), (2, None, "b")],
    schema=["who", "origin", "destination"],
    orient="row",
)
COMMAND = ("build", "visits", "visits.csv", "--item", "clinic", "--items", "clinics.txt")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    VISITS.write_csv("visits.csv")
    TRIPS.write_parquet("trips.parquet")
    Path("clinics.txt").write_text("\n".join(CLINICS), encoding="utf-8")
    Path("nodes.txt").write_text("a\nb\nc\n")
    return tmp_path


@pytest.mark.parametrize("table", [VISITS, VISITS.lazy(), VISITS.to_pandas()])
def test_visits(table):
    found = check_records(table, items=CLINICS, item="clinic")
    assert found.counts == {
        "records": 14,
        "without an item": 2,
        "without a person": 1,
        "with a person, on listed items": 5,
        "of them, each item of a person once": 4,
        "persons": 4,
        "persons who count": 2,
    }
    nearest = {name: (number, near) for name, number, near in found.unlisted}
    assert nearest == {
        "Spa": (2, None),
        "SURGERY": (1, "Surgery"),
        " eye  care": (1, "Eye Care"),
        "Sud": (1, "Süd"),
        "Surgerry": (1, "Surgery"),
    }
    assert found.contributions["max_items"].tolist() == [1, 3]


def test_flows():
    found = check_records(TRIPS, nodes=["a", "b", "c"], person="who")
    assert found.counts["between two listed nodes"] == 7
    assert found.counts["without an origin"] == 1
    assert found.contributions["max_pairs"].tolist() == [1, 2]
    assert found.contributions["max_per_pair"].tolist() == [1, 1, 5]
    of_records = check_records(TRIPS, edges=[("a", "b")])
    assert of_records.counts["between two listed nodes"] == 5
    assert "persons" not in of_records.counts
    assert of_records.contributions == {}


@pytest.mark.parametrize("cap", CAPS)
def test_what_is_kept_is_what_builders_keep(cap):
    trips = check_records(TRIPS, nodes=["a", "b", "c"], person="who").contributions
    caps = {"person": "who", "max_pairs": 99, "max_per_pair": cap}
    built = graph_from_flows(TRIPS, nodes=["a", "b", "c"], **caps)
    assert built.weights.sum() == trips["max_per_pair"].clip(max=cap).sum()
    if cap > 1:
        visits = check_records(VISITS, items=CLINICS, item="clinic").contributions["max_items"]
        kept = visits.clip(max=cap)
        built = graph_from_visits(VISITS, items=CLINICS, item="clinic", max_items=cap)
        assert built.weights.sum() == (kept * (kept - 1) // 2).sum()


def test_the_command_says_it_and_writes_nothing(run, here):
    before = sorted(here.iterdir())
    code, out, err = run(*COMMAND, "--check")
    assert (code, out) == (0, "")
    assert err.startswith("PRIVATE: do not publish.")
    assert "  14 records\n" in err
    assert "Names that are not on the list: 5." in err
    assert ["'Sud'", "1", "'Süd'"] in [line.split() for line in err.splitlines()]
    assert "  max_items  have more   kept\n          1          1   50 %\n" in err
    assert sorted(here.iterdir()) == before


def test_flows_on_the_command_line(run, here):
    flows = ("build", "flows", "trips.parquet", "--nodes", "nodes.txt", "--check")
    assert "7 between two listed nodes" in run(*flows)[2]
    err = run(*flows, "--person", "who")[2]
    assert "  max_pairs  have more" in err
    assert "  max_per_pair  have more" in err


def test_build_is_silent_and_points_to_it(run, here):
    code, out, err = run(*COMMAND, "--max-items", "2", "-o", "graph.parquet")
    assert (code, out) == (0, "")
    assert "the same command with --check shows it to you" in err
    upper = VISITS.with_columns(pl.col("clinic").str.to_uppercase())
    upper.write_csv("visits.csv")
    assert run(*COMMAND, "--max-items", "2", "-o", "empty.parquet")[2] == err.replace(
        "graph.parquet", "empty.parquet"
    )


@pytest.mark.parametrize("option", [("-o", "graph.parquet"), ("--json",)])
def test_it_goes_to_no_file(run, here, option):
    code, _, err = run(*COMMAND, "--check", *option)
    assert code == 2
    assert "--check writes nothing: leave --output and --json out" in err


def test_without_it_an_output_is_needed(run, here):
    code, _, err = run(*COMMAND, "--max-items", "2")
    assert code == 2
    assert "name the file to write the graph to: --output graph.parquet" in err


def test_profiles_have_none(run, here):
    code, _, err = run("build", "profiles", "visits.csv", "--low", "0", "--high", "1", "--check")
    assert code == 2
    assert "--check is for visits and flows" in err


def test_only_print_shows_it():
    found = check_records(VISITS, items=CLINICS, item="clinic")
    assert repr(found) == "RecordsCheck(<private>)"
    assert "14 records" in str(found)


def test_integers_need_no_nearest():
    frame = pd.DataFrame({"person": [1, 1], "item": [7, 99]})
    found = check_records(frame, items=[7, 8])
    assert found.unlisted == [(99, 1, None)]


def test_records_of_spark_are_not_read(monkeypatch):
    monkeypatch.setattr("ptclust.building.checking.is_frame", lambda _: True)
    with pytest.raises(UsageError, match="records are checked on this machine"):
        check_records(VISITS, items=CLINICS, item="clinic")
