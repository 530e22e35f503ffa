"""The site builds without a warning, notebooks and commands in the documentation run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("docs/**/*.md"))


def shell_of(page: Path) -> list[str]:
    """Return the commands of a page, one a line; lines that end with a backslash go on."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    joined = "".join(blocks).replace("\\\n", " ")
    return [line.partition("  #")[0].strip() for line in joined.splitlines() if line.strip()]


@pytest.mark.long
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="the group docs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    home = (tmp_path / "index.html").read_text()
    assert not re.findall(r'(?:src|<link[^>]*href)="https?:', home), "nothing comes from elsewhere"
    executed = (tmp_path / "notebooks" / "release.html").read_text()
    assert "data:image/png;base64" in executed
    assert "<math" in (tmp_path / "proofs" / "private-trees.html").read_text()


@pytest.mark.long
@pytest.mark.parametrize("page", ["docs/start.md", "README.md"])
def test_commands_run(tmp_path, page):
    """Of README, in the directory of the demo, and without make."""
    folder, environment = tmp_path, dict(os.environ)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    commands = shell_of(ROOT / page)
    if page == "README.md":
        assert commands[0] == "make demo"
        commands[:2] = ["ptclust demo --output build/demo", "cd build/demo"]
        (tmp_path / "build" / "demo").mkdir(parents=True)
    assert len(commands) > 4
    for command in commands:
        if command.startswith("cd "):
            folder = folder / command[3:]
            continue
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert (folder / "report.html").stat().st_size < 1_000_000


def test_tables_of_readers_become_graphs(run):
    """Those of the table in README, by its commands."""
    rows = re.findall(r"\| `([a-z,]+)` \| `ptclust (.*?)` \|", (ROOT / "README.md").read_text())
    assert len(rows) == 3
    for i, (columns, command) in enumerate(rows):
        words = command.replace("graph.parquet", f"graph-{i}.parquet").split()
        (records,) = [word for word in words if word.endswith(".csv")]
        (nodes,) = [word for word in words if word.endswith(".txt")]
        width = columns.count(",") + 1
        Path(records).write_text(f"{columns}\n" + ",".join("pab"[-width:]) + "\n")
        Path(nodes).write_text("a\nb\nc\n")
        code, _, err = run(*words)
        assert code == 0, err
        assert run("plan", f"graph-{i}.parquet", "--epsilon", 1)[0] == 0


def test_options_in_the_documentation_exist():
    from ptclust.cli import app
    from ptclust.cli._terminal import options_of

    known = {each for pair in options_of(app).values() for each in pair} | {"--help", "--version"}
    for page in [*PAGES, ROOT / "README.md"]:
        for line in shell_of(page):
            if line.startswith("ptclust "):
                found = re.findall(r"(?<=\s)--[a-z][a-z0-9-]*", line)
                assert set(found) <= known, f"{page.name}: {line}"


def test_links_to_the_repository_lead_somewhere():
    """README is shown by a package index, too: its links are whole addresses."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", readme):
        found = re.fullmatch(
            r"https://(?:github\.com/ptclust/ptclust/blob|raw\.githubusercontent\.com/ptclust/ptclust)"
            r"/main/([^#]+)",
            target,
        )
        assert found, f"{target} does not work on a package index"
        assert (ROOT / found[1]).is_file(), target


def test_pages_have_one_title_and_are_found():
    shown = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1, page.name
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name in shown or f"/{name.partition('/')[0]}/" in shown, f"{name} is nowhere"
