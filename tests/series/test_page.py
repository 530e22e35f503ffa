"""The page of a series, and the command that writes it."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ptclust.cli import app
from ptclust.errors import BudgetError, InputError
from ptclust.series import Series
from tests.series.months import month

OPTIONS = (
    "--kind similarity --releases 2 --epsilon 3 --delta 1e-6 --l1 1 --mechanism gaussian "
    "--privacy-unit person"
)


def write(path: Path, number: int, move: tuple[int, ...] = ()) -> None:
    graph = month(number, move=move)
    with path.open("w", newline="") as file:
        rows = zip(graph.sources, graph.targets, graph.weights, strict=True)
        csv.writer(file).writerows([("source", "target", "weight"), *rows])


def test_command_publishes_reports_and_refuses(tmp_path: Path) -> None:
    run, folder = CliRunner(), tmp_path / "<year>"
    for number in (1, 2, 3):
        write(tmp_path / f"m{number}.csv", number, (0,) if number == 2 else ())
    asked = [*OPTIONS.split(), "--folder", str(folder)]
    first = run.invoke(app, ["series", str(tmp_path / "m1.csv"), *asked])
    assert first.exit_code == 0, first.output
    page, whole = tmp_path / "year.html", tmp_path / "whole.json"
    more = ["--report", str(page), "--whole", str(whole)]
    second = run.invoke(app, ["series", str(tmp_path / "m2.csv"), *asked, *more])
    assert second.exit_code == 0, second.output
    assert "1 node moved beyond noise" in second.output
    assert "0 releases left" in second.output
    third = run.invoke(app, ["series", str(tmp_path / "m3.csv"), *asked])
    assert isinstance(third.exception, BudgetError)
    assert third.exception.exit_code == 4
    text = page.read_text()
    assert "&lt;year&gt;" in text
    assert "<year>" not in text
    assert not re.search(r"(src|href)=|https?://", text)
    assert text.count('class="month"') == 2
    assert 'class="move"' in text
    assert "Privacy unit: person" in text
    assert text.count("<script>") == 1, "which shows the slider"
    assert "2 of 2 releases made; 100 %" in " ".join(text.split())
    assert whole.exists()


def test_plan_of_a_series(tmp_path: Path) -> None:
    write(tmp_path / "m1.csv", 1)
    asked = ["--releases", "12", "--epsilon", "3", "--delta", "1e-6", "--l1", "1"]
    found = CliRunner().invoke(app, ["plan", str(tmp_path / "m1.csv"), *asked])
    assert found.exit_code == 0, found.output
    assert "12 releases by gaussian, together epsilon = 3" in found.output


def test_no_page_without_releases(tmp_path: Path) -> None:
    from ptclust.series.page import series_page

    with pytest.raises(InputError, match="no release"):
        series_page(Series(tmp_path, epsilon=1, releases=2))
