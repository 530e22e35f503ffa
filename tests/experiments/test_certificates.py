from __future__ import annotations

import json

import numpy as np
import pytest

from experiments import certificates
from experiments.certificates import CertificatesReport, random_tree, run_certificates
from ptclust.errors import FileError
from ptclust.theory import has_partitioning_topology


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(certificates, "_N_CLUSTERS", {100: (None,)})
    monkeypatch.setattr(certificates, "_SIZES", ((3, 5),))
    monkeypatch.setattr(certificates, "_COUNTS", (3, 30))


def test_shares_and_report(few, tmp_path):
    shares = run_certificates(quick=True)
    assert all(share.certified <= share.recovered <= share.trees for share in shares)
    by_case = {(share.case, share.density): share for share in shares}
    assert by_case["moons", "default"].certified == by_case["moons", "default"].trees
    assert by_case["multiscale", "default"].reason in {"order", "preference"}
    report = CertificatesReport(shares, "make certificates")
    report.save(tmp_path / "made")
    assert json.loads((tmp_path / "made" / "certificates.json").read_text())["shares"]
    text = (tmp_path / "made" / "certificates.md").read_text()
    assert "Made by `make certificates`" in text
    assert "| minimum spanning trees, other families | " in text
    assert "100.0%" in text
    rows = (tmp_path / "made" / "certificates.csv").read_text().splitlines()
    assert len(rows) == len(shares) + 1
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="cannot be made"):
        report.save(tmp_path / "file")


def test_command(run_experiment, few, tmp_path):
    code, out, err = run_experiment("certificates", "--quick", "--json", "--output", tmp_path)
    assert code == 0, err
    assert {share["part"] for share in json.loads(out)["shares"]} == {"planted", "trees"}


def test_random_trees_have_their_clusters_in_one_piece():
    random = np.random.default_rng(0)
    for _ in range(20):
        tree, truth = random_tree((3, 5), 6, random)
        assert has_partitioning_topology(tree, truth)
        assert np.bincount(truth).min() >= 3
        assert np.bincount(truth).max() <= 5
        within = truth[tree.sources] == truth[tree.targets]
        assert tree.weights[within].max() <= 0.3 < 0.9 <= tree.weights[~within].min()
