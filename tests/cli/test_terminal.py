"""What commands say: in words of the command line."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import jinja2
import pytest
from jinja2 import nodes

import ptclust
from ptclust import Release
from ptclust.cli import app, main
from ptclust.cli._terminal import in_options, options_of
from ptclust.errors import FileError, UsageError, warn_of_privacy
from tests.cli.outputs import BUDGET, COMMANDS, PAID, UNIT


class TestWords:
    @pytest.mark.parametrize(("count", "words"), [(0, "0 clusters"), (1, "1 cluster")])
    def test_one_cluster(self, run, here, monkeypatch, count, words):
        monkeypatch.setattr(Release, "n_clusters", count)
        err = run(*COMMANDS["cluster"][0], "-o", "one.json")[2]
        assert f"{words} of 6 nodes in one.json" in err
        err = run("recluster", "one.json", "-o", "again.json")[2]
        assert f"{words} of 6 nodes by " in err

    def test_what_is_not_private_spends_nothing(self, run, here):
        options = [*BUDGET, "--topology", "public", "--random-state", "1", "-o", "r.json"]
        code, _, err = run("cluster", "edges.csv", *options)
        assert code == 0, err
        assert "spends the budget" not in err

    @pytest.mark.parametrize(("kind", "said"), [("distance", False), ("similarity", True)])
    def test_a_kind_that_the_column_contradicts_is_said(self, run, here, kind, said):
        err = run(*COMMANDS["cluster"][0], "--kind", kind, "-o", "r.json")[2]
        assert ("means close), although the column is called 'distance'" in err) == said


CLUSTER = ["cluster", "edges.csv", *UNIT, "-o", "r.json"]


LINF = [*CLUSTER, "--linf", "1e-5"]


IN_SHELL = [
    ([*CLUSTER, "--epsilon", "1"], "A sensitivity needs at least one bound. Declare what"),
    (["ledger", "init", "n", "--dataset", "d", "--rho", "0"], "0.02 is about epsilon = 0.9 at"),
    (["ledger", "init", "n", "--dataset", "d", "--epsilon", "abc"], "finite number, not 'abc'. "),
    (["ledger", "status", "none"], "create one first, as by `ptclust ledger init`"),
    ([*LINF, "--epsilon", "-1/3"], "epsilon must be greater than 0, but is -1/3. "),
    ([*LINF, "--epsilon", "nan"], "epsilon must be a finite number, not nan. "),
    ([*LINF, "--epsilon", "1", "--delta", "3/2"], "in 0 <= delta < 1, but is 3/2. "),
    (
        [*LINF, "--epsilon", "1", "--clip", "1", "0"],
        "--clip 1.0 0.0 is not a pair of finite bounds",
    ),
    (
        [*LINF, "--epsilon", "1", "--calibration", "published", "--split", "0.3"],
        "leave --split out",
    ),
    ([*LINF, "--epsilon", "1", "--ledger", "l"], "give both --ledger and --dataset (one in"),
    (
        [*LINF, "--epsilon", "1", "--clusterer", "levels", "--shift", "1"],
        "--shift and --scale are for --clusterer dbmstclu",
    ),
    (
        [*LINF, "--epsilon", "1", "--mechanism", "gaussian"],
        "give a positive --delta, or --mechanism laplace",
    ),
]


@pytest.mark.parametrize(("arguments", "said"), IN_SHELL)
def test_messages_are_for_the_shell(run, here, arguments, said):
    before = here()
    code, _, err = run(*arguments)
    assert code in (2, 3)
    assert said in err
    assert not re.search(r"\w\(\)|Fraction|of type|Budget|Ledger\.", err)
    assert here() == before


@cache
def all_texts() -> dict[str, str]:
    """Return every text in the source of the package, without docstrings, and its file."""
    found: dict[str, str] = {}
    package = Path(ptclust.__file__).parent
    for file in sorted(package.rglob("*.py")):
        tree = ast.parse(file.read_text())
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        within = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
            if part is not node
        }
        for node in ast.walk(tree):
            if id(node) in alone | within:
                continue
            if isinstance(node, ast.JoinedStr):
                text = "".join(map(shown, node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            found[text] = file.relative_to(package).as_posix()
    for file in sorted(package.rglob("templates/*.txt")):
        template = jinja2.Environment(autoescape=True).parse(file.read_text())
        parts = [each.data for each in template.find_all(nodes.TemplateData)]
        parts += [each.value for each in template.find_all(nodes.Const)]
        for part in parts:
            if isinstance(part, str):
                found[part] = file.relative_to(package).as_posix()
    return found


def texts_with_arguments() -> dict[str, str]:
    """Return those in which a name stands before a sign of equality."""
    return {text: file for text, file in all_texts().items() if re.search(r"\w=", text)}


def shown(part: ast.expr) -> str:
    """Return a part of an f-string with a plain value for what is filled in."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    return "'x'" if part.conversion == ord("r") else "1"


#: Parts of texts in the source, and what the command line makes of them.
IN_OPTIONS = {
    "clusterer='x' averages over": "--clusterer x averages over",
    "name another: weight=": "name another: --weight",
    "name another column: weight=": "name another column: --weight",
    "say header=False if the first line is an edge": "say --no-header if the first line is an edge",
    "check its separator, separator=": "check its separator, --separator",
    "rename it or give format=": "rename it or give --format",
    "kind='distance' if small weights": "--kind distance if small weights",
    "kind='similarity' if large weights": "--kind similarity if large weights",
    "say topology='public'; if a pair": "say --topology public; if a pair",
    "as in privacy_unit='one patient'": "as in --privacy-unit 'one patient'",
    "say how to merge their weights: merge='min', 'max' or 'sum'": (
        "say how to merge their weights: --merge min, max or sum"
    ),
    "use mechanism='pamst' and delta=0": "use --mechanism pamst and --delta 0",
    "give clip= within": "give --clip within",
    "as assumed (clip=)": "as assumed (--clip)",
    "in a population average, linf=d; one": "in a population average, --linf d; one",
    "or say escape_formulas=False": "or say --no-escape-formulas",
    "or say overwrite=True if": "or say --overwrite if",
    "leave out random_state, or the ledger": "leave out --random-state, or the ledger",
}


#: Names before a sign of equality that are no options, and where they are printed.
NO_OPTIONS = {
    "backend": "data frames",
    "evidence": "what a release is called",
    "mode": "an address",
    "n_neighbors": "graphs of points",
    "password": "an address",
    "return_inverse": "labels in Python",
    "variant": "a statement that is made by hand",
    "zcdp": "charges by hand",
}


class TestOptions:
    def test_every_text_about_arguments_becomes_one_about_options(self):
        options, left = options_of(app), {}
        for text, file in texts_with_arguments().items():
            if file in ("release/exports.py", "cli/_terminal.py", "_markup.py"):
                continue  # XML, this translation, and HTML
            if file.startswith("report/") or re.search(r"\((n_nodes|n_common)=", text):
                continue  # HTML, and what objects are called
            for name in re.findall(r"(?<![\w.])([a-z]\w*)=(?!<private>)", in_options(text)):
                left[name] = file
        assert set(left) == set(NO_OPTIONS), left
        assert not set(left) & set(options)

    @pytest.mark.parametrize("part", IN_OPTIONS)
    def test_texts_as_they_are_printed(self, part):
        text = next(text for text in all_texts() if part in text)
        assert IN_OPTIONS[part] in in_options(text)

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("kind='similarity'", "--kind similarity"),
            ("privacy_unit='one patient'", "--privacy-unit 'one patient'"),
            ("random_state=7, epsilon=1e-3.", "--random-state 7, --epsilon 1e-3."),
            ("clip=(-1.5, 2e+3)", "--clip -1.5 2e+3"),
            ("the node 'weight=3' is not there", "the node 'weight=3' is not there"),
            ("weight=x.csv cannot be read", "weight=x.csv cannot be read"),
            ("a/weight=.csv cannot be read", "a/weight=.csv cannot be read"),
            ("random_state.csv cannot be read", "random_state.csv cannot be read"),
            ("x-random_state cannot be read", "x-random_state cannot be read"),
            ("the paper's clip='a' isn't weight=", "the paper's --clip a isn't --weight"),
            (
                "epsilon = 1, weight 3, lines=, nothing=1",
                "epsilon = 1, weight 3, lines=, nothing=1",
            ),
            ("min_cluster_size must be 1", "--min-cluster-size must be 1"),
            ("a quote's 'it\\'s clip=1' clip=1", "a quote's 'it\\'s clip=1' --clip 1"),
        ],
    )
    def test_words(self, text, wanted):
        assert in_options(text) == wanted

    def test_commands_speak_of_options(self, run, here):
        Path("twice.csv").write_text("source,target,distance\na,b,0.1\nb,a,0.2\n")
        assert "--merge min, max or sum" in run("dbmstclu", "twice.csv")[2]
        Path("lacks.csv").write_text("source,target,distance\na,b,0.1\nb,c,\n")
        assert "name another column: --weight" in run("dbmstclu", "lacks.csv")[2]
        Path("visits.csv").write_text("who,place,day\nada,park,3\n")
        assert "say so: --source, --target, --weight; its" in run("dbmstclu", "visits.csv")[2]
        Path("counts.csv").write_text("source,target,weight\na,b,3\n")
        err = run("dbmstclu", "counts.csv")[2]
        assert "give --kind distance if small weights mean close, --kind similarity if" in err
        err = run("plan", "edges.csv", *BUDGET, "--clip", "0", "1e300")[2]
        assert "give --clip within" in err
        made = [*BUDGET, *UNIT[:2], "-o", "r.json"]
        assert "say --topology public" in run("cluster", "edges.csv", *made)[2]
        err = run("cluster", "edges.csv", "--epsilon", "1", *UNIT, "-o", "r.json")[2]
        assert "--linf d" in err
        err = run("cluster", "edges.csv", *PAID, "-o", "r.json", "--random-state", "1")[2]
        assert "leave out --random-state" in err
        assert not re.search(r"\w=", err)

    def test_warnings_are_one_line(self, run, here, monkeypatch, capsys):
        options = ["--mechanism", "pamst", "--calibration", "published", "-o", "r.json"]
        code, _, err = run("cluster", "edges.csv", *BUDGET, *UNIT, *options)
        assert code == 0
        (line,) = [line for line in err.splitlines() if line.startswith("ptclust: warning: ")]
        assert "they truly spend epsilon" in line

        def warn(*_args: object, **_options: object) -> None:
            warn_of_privacy("several\n  lines; say clip=(0, 1)")
            raise FileError("no")

        monkeypatch.setattr("ptclust.inputs.read_graph", warn)
        code, _, err = run("dbmstclu", "edges.csv")
        assert err == "ptclust: warning: several lines; say --clip 0 1\nptclust: no\n"

    def test_another_command_line_has_its_own_options(self, monkeypatch, capsys):
        import typer

        other = typer.Typer()

        @other.command()
        def fail(far_away: int = 1) -> None:
            raise UsageError("give far_away=2, not clip=1")

        monkeypatch.setattr(sys, "argv", ["other"])
        with pytest.raises(SystemExit):
            main(other, "other")
        assert capsys.readouterr().err == "other: give --far-away 2, not clip=1\n"
