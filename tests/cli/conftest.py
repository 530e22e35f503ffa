"""Files in the directory of a test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ptclust import Budget, Ledger, PTClust, Sensitivity
from tests.cli.outputs import path_graph
from tests.cli.tables import EDGES


@pytest.fixture
def trips(run):
    """Counts of trips in both directions, one row a direction, in the current directory."""
    rows = [
        f"{a},{b},{900 + a + b if a // 6 == b // 6 else 1 + a}\n"
        for a in range(12)
        for b in range(12)
        if a != b
    ]
    Path("trips.csv").write_text("source,target,weight\n" + "".join(rows))


@pytest.fixture
def edges():
    """A graph of two clusters whose weights lie far apart, in the current directory."""
    random = np.random.default_rng(0)
    a, b = np.triu_indices(40, 1)
    within = a // 20 == b // 20
    weights = np.where(within, random.uniform(0.1, 0.3, len(a)), random.uniform(0.9, 1, len(a)))
    pl.DataFrame({"source": a, "target": b, "distance": weights}).write_parquet("edges.parquet")
    pl.DataFrame({"source": a, "target": b}).write_csv("topology.csv")
    return weights


@pytest.fixture
def unspent(run, tmp_path):
    """A ledger in the current directory; call to see that nothing was charged nor written."""
    ledger = Ledger.create("l")
    ledger.add_dataset("survey", Budget.approximate(9, 1e-5))
    before = ledger.path.read_bytes()

    def check() -> None:
        assert ledger.path.read_bytes() == before
        assert not (tmp_path / "release.json").exists()

    return check


@pytest.fixture
def here(run, tmp_path):
    """A graph, a ledger and a release in the current directory, and what lies in it."""
    (tmp_path / "edges.csv").write_text(EDGES)
    Ledger.create(tmp_path / "l").add_dataset("survey", Budget.pure(3))
    made = PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-5)).fit(path_graph(list("abcdef")))
    made.release_.save(tmp_path / "old.json")
    return lambda: {path.name: path.read_bytes() for path in tmp_path.iterdir()}
