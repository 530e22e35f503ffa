from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
import pytest

from experiments import __main__ as commands
from experiments import figures
from experiments.figures import EPSILONS, Figure, make_figure, recoloured, run_figures
from experiments.panels import Panel, draw_panels
from ptclust.datasets import PAPER
from ptclust.errors import FileError, UsageError


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def report(directory):
    return run_figures(directory, repetitions=5, densities=(1, 400), command="the command")


@pytest.mark.parametrize("family", PAPER)
def test_dbmstclu_recovers_the_shapes_and_ptclust_gets_worse(report, family):
    figure = report.figures[family]
    assert figure.plain.score == {"ari": 1.0, "n_clusters": 2, "n_singletons": 0}
    assert tuple(figure.runs) == EPSILONS == (1.0, 0.7, 0.5)
    for epsilon in EPSILONS:
        ari = [run.score["ari"] for run in figure.runs[epsilon]]
        assert figure.median(epsilon).score["ari"] == np.median(ari)
        assert figure.best(epsilon).score["ari"] == max(ari)
        assert figure.means[epsilon].ari.mean == pytest.approx(np.mean(ari))


@pytest.mark.parametrize("family", PAPER)
def test_agreement_falls_with_epsilon(family):
    figure = make_figure(family, cross_edges=2, repetitions=60, seed=1)
    first, _, last = (figure.means[epsilon].ari for epsilon in EPSILONS)
    assert first.mean > last.mean + 0.1


def test_the_true_epsilon_is_that_of_the_statement(report):
    # epsilon / 4 for the tree and (n - 1) epsilon / 2 for the weights.
    for figure in report.figures.values():
        for epsilon, runs in figure.runs.items():
            true = epsilon / 4 + 99 * epsilon / 2
            for run in runs:
                assert run.score["true_epsilon"] == pytest.approx(true, rel=1e-4)


def test_files(report, directory):
    for family in PAPER:
        for name in (family, f"{family}-best"):
            picture = directory / f"{name}.png"
            assert picture.read_bytes().startswith(b"\x89PNG")
            drawing = (directory / f"{name}.svg").read_text()
            assert "<svg" in drawing
            assert "<image" in drawing  # the many edges of the graph
            for file in (picture, directory / f"{name}.svg"):
                assert file.stat().st_size < 400_000
    assert (directory / "README.md").read_text() == report.to_markdown() + "\n"
    assert (directory / "cross-edges.csv").read_text() == report.to_csv() + "\n"
    document = json.loads((directory / "figures.json").read_text())
    assert [panel["epsilon"] for panel in document["panels"]] == [*EPSILONS, *EPSILONS]
    assert len(document["cross_edges"]) == 2 * 2 * 3


def test_the_report_says_what_is_shown(report):
    text = report.to_markdown()
    assert "Made by `the command`." in text
    for family in PAPER:
        assert f"![{family}, median runs]({family}.png)" in text
        assert report.to_csv().count(f"\n{family},") == 2 * len(EPSILONS)
    for spent in ("49.75", "34.83", "24.88"):
        assert f"epsilon = {spent}" in text
    assert "With 400 cross edges or more" in text
    assert max(map(len, (line for line in text.splitlines() if line[:1] != "|"))) <= 100


def test_panels_show_the_original_weights(tmp_path, monkeypatch):
    drawn = {}

    def catch(points, panels, *, path, title):
        drawn.update(points=points, panels=panels, title=title)

    monkeypatch.setattr(figures, "draw_panels", catch)
    figure = make_figure("moons", cross_edges=3, repetitions=1, seed=2)
    figure.draw(tmp_path / "figure.png", figure.median, "the median")
    graph = figure.planted.graph
    weights = {
        frozenset(edge): weight
        for *edge, weight in zip(
            graph.sources.tolist(), graph.targets.tolist(), graph.weights.tolist(), strict=True
        )
    }
    whole, plain, *private = drawn["panels"]
    assert whole.labels is None
    assert len(whole.sources) == graph.n_edges
    assert len(private) == 3
    for panel in (plain, *private):
        assert len(panel.sources) == 99
        edges = zip(panel.sources.tolist(), panel.targets.tolist(), strict=True)
        assert panel.weights.tolist() == [weights[frozenset(edge)] for edge in edges]
    assert "truly 49.8" in private[0].title
    assert "ARI 1.00" in plain.title
    assert f"{graph.n_edges} edges, 3 across" in whole.title
    assert "Figure 2" in drawn["title"]


def test_clusters_keep_their_colours():
    truth = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    assert recoloured(truth, truth).tolist() == truth.tolist()
    assert recoloured(1 - truth, truth).tolist() == truth.tolist()
    split = np.array([3, 1, 1, 1, 0, 0, 0, 2])
    assert recoloured(split, truth).tolist() == [3, 0, 0, 0, 1, 1, 1, 2]
    assert recoloured(np.zeros(8, np.int64), truth).tolist() == [0] * 8
    alone = recoloured(np.arange(8), truth)
    assert sorted(alone) == list(range(8))


def test_the_same_seed_draws_the_same(tmp_path):
    kept = []
    for name in ("first", "again"):
        figure = make_figure("circles", cross_edges=2, repetitions=2, seed=0)
        figure.draw(tmp_path / f"{name}.svg", figure.best, "the best")
        kept.append((tmp_path / f"{name}.svg").read_bytes())
    assert kept[0] == kept[1]


def test_a_picture_of_another_kind_is_refused(tmp_path):
    ends = np.array([0]), np.array([1])
    panel = Panel("one edge", *ends, np.array([0.5]))
    with pytest.raises(UsageError, match="png"):
        draw_panels(np.eye(2), [panel], path=tmp_path / "figure.bmp", title="")


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="cannot be made"):
        run_figures(tmp_path / "file" / "below")


def test_the_command(run_experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(Figure, "draw", lambda *_: None)  # test_files has the pictures
    defaults: Any = run_figures.__kwdefaults__
    monkeypatch.setattr(run_figures, "__kwdefaults__", {**defaults, "densities": (1,)})
    arguments = ["--cross-edges", "7", "--repetitions", "1", "--seed", "3", "-o", str(tmp_path)]
    code, out, err = run_experiment("figures", *arguments, "--json")
    assert code == 0, err
    document = json.loads(out)
    options = "--cross-edges 7 --repetitions 1 --seed 3"
    assert document["command"] == f'make figures ARGS="{options}"'
    assert {panel["cross_edges"] for panel in document["panels"]} == {7}
    assert all(panel["dbmstclu"]["ari"] == 1 for panel in document["panels"])
    assert "Figure 1: circles" in (tmp_path / "README.md").read_text()


def test_the_command_has_the_defaults_of_the_function():
    command, function = inspect.signature(commands.figures), inspect.signature(run_figures)
    for name in ("cross_edges", "repetitions", "seed"):
        assert command.parameters[name].default == function.parameters[name].default
