"""docs/paper.md: every statement of the paper has a row, and what a row names exists."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| statement")
]
STATEMENTS = [
    *(f"Definition 2.{i}" for i in range(1, 7)),
    *(f"Definition 3.{i}" for i in range(1, 13)),
    *(f"Theorem {i}" for i in range(1, 16)),
    *(f"Algorithm {i}" for i in range(1, 4)),
    "Proposition 3.1",
    "Lemma 1",
    "Corollary 3.1",
]


def resolve(name):
    """Return what a dotted name means: an attribute where there is one, else a module."""
    first, *parts = name.split(".")
    found = import_module(first)
    for part in parts:
        if not hasattr(found, part):
            import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_statement_of_the_paper_has_one_row(statement):
    found = [row for row in ROWS if re.match(rf"{re.escape(statement)}(?![0-9.])", row[0])]
    assert len(found) == 1


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_functions_and_tests_that_a_row_names_exist(row):
    statement, function, test, _ = row
    assert statement
    assert callable(resolve(function.strip("`")))
    assert (ROOT / test.strip("`")).is_file()
    text = (ROOT / test.strip("`")).read_text(encoding="utf-8")
    assert "def test_" in text


def test_names_in_remarks_exist():
    names = re.findall(r"`((?:ptclust|experiments)\.[\w.]+)`", PAGE)
    assert len(names) > len(ROWS)
    for name in names:
        resolve(name)


def test_links_lead_somewhere():
    for page in [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_a_name_that_is_not_there_is_noticed():
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        resolve("ptclust.theory.theorem_z")
