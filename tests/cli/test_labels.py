"""Labels in CSV, for spreadsheets."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from ptclust import Graph, PTClust, Release, Sensitivity, Topology
from ptclust.errors import FileError
from ptclust.graph.labels import read_labels, write_labels
from tests.cli.outputs import BUDGET, PAID, UNIT

HARMFUL = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\x1b[2J", "\u200b=1", " =1", "\uff1d1"]


FORMULAS = [*HARMFUL, "plain", "'quoted", "a=b", "5"]


ESCAPED = [f"'{name}" for name in HARMFUL] + FORMULAS[len(HARMFUL) :]


class TestFormulas:
    def nodes(self, file):
        with Path(file).open(newline="") as stream:
            return [row[0] for row in csv.reader(stream)][1:]

    def release(self, names) -> Release:
        graph = Graph(range(len(names) - 1), range(1, len(names)), names=names,
                      weights=[0.1] * (len(names) - 1))  # fmt: skip
        return PTClust(epsilon=1, sensitivity=Sensitivity(linf=1e-9)).fit(graph).release_

    def test_names_that_cannot_be_written_cost_nothing(self, run, here):
        Path("same.csv").write_text("source,target,distance\n=a,'=a,0.1\n'=a,c,0.1\n")
        arguments = ["cluster", "same.csv", *PAID, "-o", "r.json", "--labels", "r.csv"]
        before = here()
        code, _, err = run(*arguments)
        assert code == 3
        assert "the same once formulas are escaped" in err
        assert here() == before
        assert run(*arguments, "--no-escape-formulas")[0] == 0

    def test_names_of_any_type_are_escaped_but_for_numbers(self, tmp_path):
        class Name:
            def __str__(self) -> str:
                return "=cmd()"

        names = np.array([Name(), -1, -2.5, np.int64(-3), "-4"], dtype=object)
        write_labels(names, np.arange(5), tmp_path / "l.csv")
        assert self.nodes(tmp_path / "l.csv") == ["'=cmd()", "-1", "-2.5", "-3", "'-4"]

    def test_names_are_escaped_by_default_and_read_back(self, tmp_path):
        release, file = self.release(FORMULAS), tmp_path / "labels.csv"
        escaped = dict(zip(FORMULAS, ESCAPED, strict=True))
        release.to_csv(file)
        assert self.nodes(file) == [escaped[name] for name in release.names.tolist()]
        assert read_labels(file, release.topology).tolist() == release.labels.tolist()
        release.to_csv(file, escape_formulas=False, overwrite=True)
        assert self.nodes(file) == sorted(FORMULAS)

    def test_numbers_stay_numbers(self, tmp_path):
        release, file = self.release(np.array([-3, -2, 1])), tmp_path / "labels.csv"
        release.to_csv(file)
        assert self.nodes(file) == ["-3", "-2", "1"]

    def test_a_node_of_that_very_name_is_meant(self, tmp_path):
        topology = Topology([0], [1], names=["'=a", "b"])
        (tmp_path / "l.csv").write_text("node,cluster\n'=a,7\nb,8\n")
        assert read_labels(tmp_path / "l.csv", topology).tolist() == [7, 8]

    def test_names_that_would_become_one_are_refused(self, tmp_path):
        names = np.array(["'=a", "=a"], dtype=object)
        with pytest.raises(FileError, match="escape_formulas=False"):
            write_labels(names, np.arange(2), tmp_path / "l.csv")
        write_labels(names, np.arange(2), tmp_path / "l.csv", escape_formulas=False)
        assert self.nodes(tmp_path / "l.csv") == ["'=a", "=a"]

    def test_commands(self, run, here):
        Path("odd.csv").write_text('source,target,distance\n=1+1,b,0.1\nb,"-2+cmd|x",0.2\n')
        wanted = {True: ["'-2+cmd|x", "'=1+1", "b"], False: ["-2+cmd|x", "=1+1", "b"]}
        for escaped in (True, False):
            option = [] if escaped else ["--no-escape-formulas"]
            number = f"{escaped:d}"
            outputs = ["-o", f"{number}.json", "--labels", f"a{number}.csv"]
            assert run("cluster", "odd.csv", *BUDGET, *UNIT, *outputs, *option)[0] == 0
            outputs = ["-o", f"x{number}.json", "--labels", f"b{number}.csv"]
            assert run("recluster", f"{number}.json", *outputs, *option)[0] == 0
            assert run("dbmstclu", "odd.csv", "-o", f"c{number}.csv", *option)[0] == 0
            for letter in "abc":
                assert self.nodes(f"{letter}{number}.csv") == wanted[escaped]
        assert run("check", "odd.csv", "--clusters", "a1.csv")[0] == 0
