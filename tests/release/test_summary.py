"""What a release shows of itself: text, HTML, JSON, and ``ptclust show``."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

from ptclust import Graph, PTClust, Sensitivity, plan
from ptclust.clustering import Clustering, Level
from ptclust.planning import predict
from ptclust.release import Release

HOSTILE = [
    "<script>alert(1)</script>",
    'a" onload="x',
    "b\x1b[2J",
    "&amp;",
    "</td>",
    "é…",
    "g",
    "h",
]


def fitted(names=None, **options) -> Release:
    truth = np.repeat([0, 1], 4)
    a, b = np.triu_indices(8, 1)
    weights = np.where(truth[a] == truth[b], 0.1, 0.9)
    graph = Graph(a, b, weights, names=names)
    given = {"epsilon": 1, "sensitivity": Sensitivity(linf=1e-6), "privacy_unit": "one person"}
    given["mechanism"] = "gaussian" if options.get("delta") else "laplace"
    release = PTClust(**(given | options)).fit(graph).release_
    found = Clustering(truth, dbcvi=0.5, shift=1.0, scale=4.0, clusterer="communities")
    return replace(release, clustering=found)


@pytest.fixture(scope="module")
def release() -> Release:
    return fitted("abcdefgh")


def test_clusters_with_members_and_mean_weights(release):
    first, second = release.summary.clusters
    assert first.members.tolist() == list("abcd")
    assert (first.size, second.size) == (4, 4)
    assert first.within == pytest.approx(0.1, abs=0.01)
    assert second.across == pytest.approx(0.9, abs=0.01)


def test_separation_is_large_beside_the_noise_or_not(release):
    found = release.summary.separation
    assert found.gap == pytest.approx(0.8, abs=0.01)
    assert (found.n_within, found.n_across) == (12, 16)
    assert found.verdict.startswith("More than noise")
    noisy = replace(found, gap=found.at_epsilon.visible_gap / 2)
    assert noisy.verdict.startswith("Possibly noise")


def test_similarities_are_separated_the_other_way_round():
    a, b = np.triu_indices(6, 1)
    close = np.where(a // 3 == b // 3, 9.0, 1.0)
    graph = Graph(a, b, close, kind="similarity")
    model = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-6), privacy_unit="one")
    halves = Clustering(np.arange(6) // 3, dbcvi=0.0, shift=10.0, scale=20.0)
    found = replace(model.fit(graph).release_, clustering=halves).summary.separation
    assert found.gap == pytest.approx(8, abs=0.1)


@pytest.mark.parametrize(
    ("mechanism", "delta", "split", "calibration"),
    [
        ("laplace", 0, None, "sound"),
        ("cube", 0, None, "sound"),
        ("gaussian", 1e-6, None, "sound"),
        ("kruskal", 1e-6, None, "sound"),
        ("kruskal", 0, 0.9, "sound"),
        ("pamst", 0, None, "published"),
    ],
)
@pytest.mark.filterwarnings("ignore:the paper's printed scales")
def test_other_epsilons_have_the_noise_that_a_plan_gives_them(mechanism, delta, split, calibration):
    given = {"delta": delta, "sensitivity": Sensitivity(linf=1e-3), "calibration": calibration}
    given |= {"mechanism": mechanism, "clip": (0, 2), "split": split}
    release = fitted(**given).recluster("dbmstclu")
    separation = release.summary.separation
    assert [each.epsilon / release.statement.epsilon for each in separation.visibilities] == [
        0.25, 0.5, 1, 2, 4
    ]  # fmt: skip
    assert separation.at_epsilon.noise == release.weight_noise.standard_deviation
    for multiple, each in zip((0.25, 0.5, 1, 2, 4), separation.visibilities, strict=True):
        planned = plan(release.topology, epsilon=multiple, clusterer="dbmstclu", **given).chosen
        assert each.noise == pytest.approx(planned.weights.standard_deviation, rel=0.02)
        assert each.visible_gap == pytest.approx(planned.visible_gap, rel=0.02)


def test_epsilons_that_no_calibration_affords_are_left_out(release):
    large = replace(release, statement=replace(release.statement, epsilon=1e308))
    found = [each.epsilon for each in large.summary.separation.visibilities]
    assert found == [0.25e308, 0.5e308, 1e308]


def test_text_begins_with_the_guarantee_and_has_all(release):
    text = str(release)
    assert " ".join(text.split()).startswith(release.statement.sentence)
    assert "2 clusters of 8 nodes" in text
    assert "a, b, c, d" in text
    assert "standard deviation" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_what_the_topology_gives_alone_is_said(release):
    assert release.summary.topology_agreement is None
    found = replace(release.clustering, topology_labels=release.labels)
    public = replace(release, clustering=found)
    assert public.summary.topology_agreement == 1.0
    assert "agree with these to 1.00" in " ".join(str(public).split())
    apart = replace(found, topology_labels=np.arange(8))
    assert replace(release, clustering=apart).summary.topology_agreement == 0.0


def test_levels_are_listed_and_the_chosen_one_named(release):
    levels = tuple(Level(labels, 1.5) for labels in (release.labels, np.arange(8)))
    made = replace(release, clustering=replace(release.clustering, levels=levels))
    assert "Level 0, chosen: 2 clusters, support 1.5 nats" in str(made)
    assert "Level 1: 8 clusters" in str(made)
    assert [each["n_clusters"] for each in made.summary.to_dict()["levels"]] == [2, 8]


def test_many_clusters_are_counted(release):
    a = np.arange(49)
    graph = Graph(a, a + 1, np.full(49, 0.5))
    model = PTClust(epsilon=1, sensitivity=Sensitivity(l1=1e-6), privacy_unit="one")
    found = Clustering(np.arange(50), dbcvi=0.0, shift=1.0, scale=4.0)
    many = replace(model.fit(graph).release_, clustering=found)
    assert "and 30 more clusters, each of at most 1 node" in str(many)
    assert "and 40 more clusters" in many._repr_html_()


def test_no_clusters_yet(release):
    bare = Release(published=release.published, statement=release.statement)
    assert "No clusters yet of 8 nodes" in str(bare)
    assert "within" not in str(bare)
    assert "no released edges" in bare.summary.separation.verdict
    assert "No clusters" in bare._repr_html_()


def test_names_are_text_in_html_and_move_no_cursor():
    release = fitted(HOSTILE)
    graph = Graph([0, 1], [1, 2], [0.1, 0.2], names=HOSTILE[:3])
    for html in (release._repr_html_(), graph._repr_html_()):
        assert "<script" not in html
        assert 'onload="' not in html
        assert "\x1b" not in html
        assert "&lt;script&gt;" in html
    assert "\x1b" not in str(release) + str(graph)


def test_objects_show_themselves(release):
    given = {"sensitivity": Sensitivity(linf=1e-3), "delta": 1e-6, "clip": (0, 1)}
    made = plan(release.topology, epsilon=1, **given)
    predicted = predict(release.topology, epsilons=[1.0], repetitions=1, **given)
    for thing, words in (
        (made, "visible gap"),
        (predicted, "nothing is spent"),
        (release.statement, "Not protected"),
        (release, "epsilon = 1"),
        (release.compare(release), "one release, clustered twice"),
    ):
        assert words in thing._repr_html_()
        assert str(thing) == thing.to_text()
    graph = Graph([0], [1], [0.123456789])
    assert "private" in graph._repr_html_()
    assert "12345" not in graph._repr_html_() + str(graph)
    assert "2: 0, 1" in str(graph)


@pytest.fixture
def saved(release, tmp_path):
    release.save(tmp_path / "release.json")
    return tmp_path / "release.json"


def test_show(run, saved, release):
    code, out, _ = run("show", saved)
    assert code == 0
    assert out == f"{release}\n{release.statement}"


def test_names_are_not_taken_for_options(run, tmp_path):
    names = ["'", "clusterer='levels'", *"cdefgh"]
    release = fitted(names)
    one = replace(release.clustering, labels=np.zeros(8, int))
    replace(release, clustering=one).save(tmp_path / "one.json")
    out = run("show", tmp_path / "one.json")[1]
    assert "clusterer='levels'" in out
    assert "recluster this release by --clusterer" in out


def test_show_json_has_clusters_and_statement(run, saved, release):
    shown = json.loads(run("show", saved, "--json")[1])
    assert [each["members"] for each in shown["clusters"]] == [list("abcd"), list("efgh")]
    assert shown["statement"]["id"] == release.statement.id
    assert shown["separation"]["gap"] == pytest.approx(0.8, abs=0.01)


def test_show_labels_are_those_of_to_csv(run, saved):
    rows = list(csv.reader(io.StringIO(run("show", saved, "--labels")[1])))
    assert rows == [
        ["node", "cluster"],
        *([name, str(i // 4)] for i, name in enumerate("abcdefgh")),
    ]


def test_show_registry_is_yaml(run, saved, release):
    entry = yaml.safe_load(run("show", saved, "--registry")[1])
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == 1.0


def test_show_compare(run, saved):
    code, out, _ = run("show", saved, "--compare", saved)
    assert code == 0
    assert "one release, clustered twice" in out
    assert json.loads(run("show", saved, "--compare", saved, "--json")[1])["agreement"] == 1.0


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--json", "--labels"], "one of"), (["--labels", "--registry"], "one of")],
)
def test_show_does_one_thing(run, saved, options, words):
    code, _, err = run("show", saved, *options)
    assert code == 2
    assert words in err


def test_show_of_no_release(run, tmp_path):
    (tmp_path / "x.json").write_text("{}")
    code, _, err = run("show", "x.json")
    assert code == 3
    assert "is not a release" in err
