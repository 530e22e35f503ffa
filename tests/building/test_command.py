"""``ptclust build``: three commands from a table of events to labels."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from ptclust import Release, graph_from_flows, graph_from_visits, read_graph
from ptclust.cli import build

PAGE = Path(__file__).parents[2] / "docs" / "building.md"

TOWNS = [(a, b) for town in ("abcdef", "uvwxyz") for a in town for b in town if a < b]
RIDES = pl.DataFrame(
    [(who, a, b) for who in range(40) for a, b in TOWNS] + [(0, "a", "x"), (1, "a", "elsewhere")],
    schema=["who", "origin", "destination"],
    orient="row",
)
VISITS = pl.DataFrame(
    [(who, place) for who in range(60) for place in ("abc", "xyz")[who % 2]],
    schema=["person", "place"],
    orient="row",
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    RIDES.write_parquet("rides.parquet")
    RIDES.rename({"who": "Person"}).write_csv("persons.csv")
    VISITS.write_csv("visits.csv")
    Path("stations.csv").write_text(
        "terminal,city\n" + "".join(f"{n},Town\n" for n in "abcdefuvwxyz")
    )
    Path("places.txt").write_text("\n".join("abcdefuvwxyz"))
    Path("roads.csv").write_text("source,target\na,b\nb,c\nc,x\n")
    return tmp_path


FLOWS = ("build", "flows", "rides.parquet", "--nodes", "stations.csv", "-o", "graph.parquet")


def test_three_commands_from_events_to_labels(run, here):
    code, out, err = run(*FLOWS)
    assert (code, out) == (0, "")
    assert "12 nodes and 66 pairs of them (all pairs of a public list of nodes)" in err
    assert "Protected: one record." in err
    assert "l1 <= 1, l2 <= 1, linf <= 1" in err
    assert "Next: ptclust plan graph.parquet --epsilon 1" in err
    code, out, _ = run("plan", "graph.parquet", "--epsilon", "1")
    assert code == 0
    assert "in total over all edges (l1)" in out
    assert out.startswith("Built from records. Protected: one record.\n")
    document = json.loads(run("plan", "graph.parquet", "--epsilon", "1", "--json")[1])
    assert document["provenance"]["unit"] == "one record"
    code, _, err = run(
        "cluster", "graph.parquet", "--epsilon", "5", "-o", "release.json", "--labels", "labels.csv"
    )
    assert code == 0
    assert "built from records, with the sensitivity" in err
    labels = dict(zip(*pl.read_csv("labels.csv", columns=[0, 1]).get_columns(), strict=True))
    assert {labels[node] for node in "abcdef"} == {0}
    assert {labels[node] for node in "uvwxyz"} == {1}
    statement = Release.load("release.json").statement
    assert statement.privacy_unit == "one record"
    assert statement.provenance == read_graph("graph.parquet").provenance


def test_persons(run, here):
    bounds = ("--max-pairs", "5", "--max-per-pair", "2", "--person", "who")
    code, _, err = run(*FLOWS, *bounds, "--neighbours", "replace", "--called", "trip")
    assert code == 0
    assert "Protected: one person, at most 5 pairs with at most 2 trips each." in err
    assert "l1 <= 20, l2 <= 6.32456, linf <= 2 (neighbours: tables with one unit in place" in err
    statement = read_graph("graph.parquet").provenance
    assert (statement.neighbours, statement.sensitivity.l1) == ("replace", 20)


def test_a_column_of_persons_is_not_overlooked(run, here):
    flows = ("build", "flows", "persons.csv", "--nodes", "places.txt", "-o", "graph.parquet")
    code, _, err = run(*flows)
    assert code == 2
    assert "both bounds are needed, as --max-pairs 5 and --max-per-pair 2" in err
    assert "--unit record" in err
    assert not Path("graph.parquet").exists()
    assert run(*flows, "--unit", "record")[0] == 0
    assert read_graph("graph.parquet").unit == "one record"
    bounds = ("--max-pairs", "1", "--max-per-pair", "1", "--overwrite", "graph.parquet")
    assert run(*flows, *bounds)[0] == 0
    assert read_graph("graph.parquet").unit.startswith("one person")


def test_visits(run, here):
    visits = ("build", "visits", "visits.csv", "--items", "places.txt", "-o", "graph.parquet")
    code, out, err = run(*visits, "--max-items", "3", "--json")
    assert code == 0
    assert "Protected: one person, at most 3 items." in err
    document = json.loads(out)
    assert (document["n_nodes"], document["n_edges"], document["kind"]) == (12, 66, "similarity")
    assert document["provenance"]["details"]["max_items"] == 3
    assert read_graph("graph.parquet").weights.max() == 30


def test_a_public_list_of_pairs_needs_no_further_word(run, here):
    code, _, err = run(
        "build", "flows", "rides.parquet", "--edges", "roads.csv", "-o", "graph.parquet"
    )
    assert code == 0
    assert "4 nodes and 3 pairs of them (a public list of pairs)" in err
    for command in (["plan"], ["cluster", "-o", "release.json"], ["cluster", "--dry-run"]):
        assert run(*command, "graph.parquet", "--epsilon", "1")[0] == 0


@pytest.mark.parametrize(
    "command", [["plan"], ["cluster", "-o", "r.json"], ["cluster", "--dry-run"]]
)
def test_a_smaller_sensitivity_is_refused_and_a_larger_one_is_not(command, run, here):
    run(*FLOWS)
    code, _, err = run(*command, "graph.parquet", "--epsilon", "1", "--l1", "0.5")
    assert code == 2
    assert "is smaller than the one that follows from how the graph was built" in err
    assert not Path("r.json").exists()
    assert run(*command, "graph.parquet", "--epsilon", "1", "--l1", "2")[0] == 0


def test_a_changed_file_is_refused(run, here):
    run(*FLOWS)
    words = {"ptclust": pl.read_parquet_metadata("graph.parquet")["ptclust"]}
    table = pl.read_parquet("graph.parquet").with_columns(pl.col("weight") * 3)
    table.write_parquet("graph.parquet", metadata=words)
    code, _, err = run("cluster", "graph.parquet", "--epsilon", "1", "-o", "release.json")
    assert code == 3
    assert "was changed after ptclust wrote it" in err
    assert "give --kind and the sensitivity yourself" in err
    assert not Path("release.json").exists()


def test_standard_input_is_read_once(run, here, monkeypatch):
    run(*FLOWS)

    content = io.BytesIO(Path("graph.parquet").read_bytes())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content))
    options = ("--format", "parquet", "--epsilon", "1", "-o", "release.json")
    assert run("cluster", "-", *options)[0] == 0
    assert Release.load("release.json").statement.privacy_unit == "one record"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("rides.parquet",), 2, "give either --nodes, a public list"),
        (("rides.parquet", "--nodes", "stations.csv", "--edges", "roads.csv"), 2, "not both"),
        (("rides.parquet", "--edges", "rides.parquet"), 2, "is the table of the records"),
        (("rides.parquet", "--nodes", "./rides.parquet"), 2, "is the table of the records"),
        (("rides.parquet", "--nodes", "visits.csv"), 3, "its columns are: 'person', 'place'"),
        (("rides.parquet", "--nodes", "no.csv"), 3, "does not exist"),
        (("no.parquet", "--nodes", "places.txt"), 3, "does not exist"),
        (("rides.xlsx", "--nodes", "places.txt"), 3, "are read from files called .parquet"),
        (("rides.parquet", "--nodes", "places.txt", "--node-column", "x"), 2, "no column 'x'"),
        (("rides.parquet", "--nodes", "places.txt", "--origin", "x"), 3, "no column 'x'"),
        (("visits.csv", "--nodes", "places.txt", "--unit", "record"), 3, "right one, --origin"),
        (("rides.parquet", "--nodes", "places.txt", "--unit", "person"), 3, "--person"),
        (("rides.parquet", "--nodes", "places.txt", "--max-pairs", "1"), 3, "--person"),
        (("rides.parquet", "--nodes", "places.txt", "--overwrite", "x"), 2, "names no output"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_options(words, code, said, run, here):
    got, out, err = run("build", "flows", *words, "-o", "graph.parquet")
    assert said in err
    assert (got, out) == (code, "")
    assert not Path("graph.parquet").exists()


SCORES = pl.DataFrame({"x": [0.0, 1.0], "y": [1.0, 1.0], "z": [0.5, 0.0], "person": ["p", "q"]})


def test_profiles(run, here):
    SCORES.write_csv("scores.csv")
    Path("tests.txt").write_text("x\ny\nz\n")
    profiles = ("build", "profiles", "scores.csv", "--nodes", "tests.txt", "-o", "graph.parquet")
    code, _, err = run(*profiles, "--low", "0", "--high", "1")
    assert code == 2
    assert "with --neighbours replace it may be left out" in err
    bounds = ("--low", "0", "--high", "1", "--n-persons", "2", "--person", "person")
    code, _, err = run(*profiles, *bounds)
    assert code == 0
    assert "Protected: one person, one value between 0 and 1 a node." in err
    graph = read_graph("graph.parquet")
    assert graph.kind == "distance"
    assert graph.weights.tolist() == [0.5, 0.75, 0.75]
    assert run("cluster", "graph.parquet", "--epsilon", "1", "-o", "release.json")[0] == 0


def test_the_trade_off_of_caps_is_that_of_the_builders():
    """What help and page say of noise follows from the sensitivities."""
    flows, visits = RIDES.clear(), VISITS.clear().cast(pl.String)
    nodes = [f"node {i}" for i in range(20)]
    shown, page = build._CAPS + build._ITEM_CAPS, " ".join(PAGE.read_text().split())
    said: dict[Any, tuple[Any, Any]] = {}
    for pairs, records in ((1, 1), (2, 1), (5, 2), (10, 2), (20, 5)):
        caps = {"person": "who", "max_pairs": pairs, "max_per_pair": records}
        found = graph_from_flows(flows, nodes=nodes, **caps).sensitivity
        said[pairs, records] = found.l1, found.l2
        assert f"{pairs} x {records}: {found.l1:g} and {found.l2:.2g}" in shown
    for items in (2, 3, 5, 10, 20):
        found = graph_from_visits(visits, items=nodes, max_items=items).sensitivity
        said[items] = found.l1, found.l2
        assert f"{items}: {found.l1:g} and {found.l2:.2g}" in shown
    for sentence, which in (
        ("5 x 2 pairs x records mean l1 = {:g} and l2 = {:.2g}, ", (5, 2)),
        ("20 x 5 mean {:g} and {:.2g};", (20, 5)),
        ("5 items mean {:g} and {:.2g},", 5),
        ("20 items {:g} and {:.2g}", 20),
    ):
        assert sentence.format(*said[which]) in page


def test_outputs_do_not_destroy_inputs(run, here):
    code, _, err = run(*FLOWS[:-1], "rides.parquet")
    assert code == 2
    assert "are one file" in err
    assert run(*FLOWS)[0] == 0
    code, _, err = run(*FLOWS)
    assert code == 3
    assert "exists already" in err


def test_nothing_that_is_said_depends_on_the_records(run, here):
    first = run(*FLOWS, "--json")
    RIDES.head(1).write_parquet("rides.parquet")
    assert run(*FLOWS, "--json", "--overwrite", "graph.parquet") == first


def test_a_cap_above_what_there_is_counts_as_that(run, here):
    code, _, err = run(
        "build", "visits", "visits.csv", "--items", "places.txt", "--max-items", "100000",
        "-o", "graph.parquet",
    )  # fmt: skip
    assert code == 0
    assert "--max-items 100,000 is more than there can be, and counts as 12.\n" in err
    assert "Protected: one person, at most 12 items." in err
    assert "l1 <= 66, l2 <= 8.12404, linf <= 1" in err
    flows = (*FLOWS[:3], "--edges", "roads.csv", "--person", "who", "--max-per-pair", "2")
    code, _, err = run(*flows, "--max-pairs", "4", "-o", "roads.parquet")
    assert code == 0
    assert "--max-pairs 4 is more than there can be, and counts as 3.\n" in err
    assert "l1 <= 6, l2 <= 3.4641" in err
    code, _, err = run(*flows, "--max-pairs", "3", "-o", "all.parquet")
    assert code == 0
    assert "more than there is" not in err


def test_a_person_changes_no_more_pairs_than_are_listed():
    roads = [("a", "b"), ("b", "c"), ("c", "x")]
    built = graph_from_visits(VISITS.cast(pl.String), item="place", edges=roads, max_items=4)
    assert built.sensitivity.to_dict() == {"l1": 3.0, "l2": pytest.approx(3**0.5), "linf": 1.0}
    assert built.unit == "one person, at most 4 items"


def test_one_node_is_none_to_cluster(run, here):
    Path("one.txt").write_text("a\n")
    code, _, err = run(*FLOWS[:3], "--nodes", "one.txt", "-o", "graph.parquet")
    assert code == 2
    assert "the list of nodes has only 'a', and clusters are of two nodes or more" in err


VISITS_COMMAND = (
    "`ptclust build visits visits.csv --person person --item place --items items.txt "
    "--max-items 4 -o graph.parquet`"
)


class TestWrongDoor:
    @pytest.mark.parametrize("command", ["cluster", "plan", "dbmstclu"])
    def test_visits_are_for_build(self, run, here, command):
        budget = () if command == "dbmstclu" else ("--epsilon", "1")
        code, out, err = run(command, "visits.csv", *budget)
        assert (code, out, err.count("\n")) == (3, "", 1)
        assert "visits.csv is a table of records, not of edges: build a graph of it" in err
        assert VISITS_COMMAND in err
        assert "name its columns: --source, --target, --weight" in err

    def test_the_command_does_what_it_says(self, run, here):
        Path("items.txt").write_text("a\nb\nx\n")
        assert run(*VISITS_COMMAND.strip("`").split()[1:])[0] == 0

    @pytest.mark.parametrize(
        ("header", "command"),
        [
            ("day,origin,destination", "flows t.csv --origin origin --destination destination "
             "--nodes nodes.txt -o graph.parquet"),
            ("customer,from,to", "flows t.csv --person customer --origin from --destination to "
             "--nodes nodes.txt --max-pairs 5 --max-per-pair 1 -o graph.parquet"),
            ("Patient,clinic", "visits t.csv --person Patient --item clinic --items items.txt "
             "--max-items 4 -o graph.parquet"),
            ("patient,the clinic,day", "visits t.csv --person patient --item COLUMN --items "
             "items.txt --max-items 4 -o graph.parquet"),
        ],
    )  # fmt: skip
    def test_the_command_is_for_the_columns_there_are(self, run, here, header, command):
        Path("t.csv").write_text(f"{header}\n1,2,3\n")
        code, _, err = run("cluster", "t.csv", "--epsilon", "1", "-o", "release.json")
        assert code == 3
        assert f"`ptclust build {command}`" in err
        pl.DataFrame({name: [1] for name in header.split(",")}).write_parquet("t.parquet")
        code, _, err = run("cluster", "t.parquet", "--epsilon", "1", "-o", "release.json")
        assert code == 3
        assert f"`ptclust build {command.replace('t.csv', 't.parquet')}`" in err

    def test_edges_are_edges(self, run, here):
        """Also with a column called user, if the columns of edges are named."""
        Path("t.csv").write_text("user,from,to,count\n7,1,2,3\n")
        named = ("--source", "from", "--target", "to", "--weight", "count", "--kind", "similarity")
        assert run("dbmstclu", "t.csv")[0] == 3
        assert run("dbmstclu", "t.csv", *named)[0] == 0
        Path("ends.csv").write_text("from,to\n1,2\n")  # to plan, no weights are needed
        assert run("plan", "ends.csv", "--epsilon", "1", "--l1", "1")[0] == 0

    def test_a_release_is_for_show_and_recluster(self, run, here):
        name = "release.json"
        assert run(*FLOWS)[0] == 0
        assert run("cluster", "graph.parquet", "--epsilon", "1", "-o", name)[0] == 0
        code, _, err = run("cluster", name, "--epsilon", "1", "-o", "again.json")
        assert code == 3
        assert f"{name} is a release, which is published already, not a graph" in err
        assert f"`ptclust show {name}` says what is in it" in err
        assert f"`ptclust recluster {name} -o FILE` clusters it anew; neither spends" in err
        assert run("recluster", name, "-o", "again.json")[0] == 0
