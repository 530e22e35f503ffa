from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ptclust


@pytest.mark.parametrize("name", ptclust.__all__)
def test_every_public_name_is_there(name):
    assert getattr(ptclust, name) is not None
    assert name in dir(ptclust)


def test_documented_names_need_no_other_import():
    """A name such as ptclust.report.write_report works after ``import ptclust`` alone."""
    root, found = Path(__file__).parents[1], set()
    for page in [root / "README.md", *(root / "docs").rglob("*.md")]:
        text = re.sub(r"^::: .*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        text = re.sub(r"^ *ptclust\.errors\.\w+: .*$", "", text, flags=re.MULTILINE)
        names = re.findall(r"(?<![\w./@-])ptclust((?:\.[A-Za-z_]\w*)+)\b(?!/)", text)
        found |= {name for name in names if name != ".py"}
    assert len(found) > 20
    code = "import ptclust, sys\nfrom operator import attrgetter\n"
    code += f"for name in {sorted(found)}: attrgetter(name[1:])(ptclust)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_names_of_the_api_page_are_in_the_package_or_a_public_module():
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    modules = [ptclust, *(getattr(ptclust, name) for name in ptclust._SUBMODULES)]
    for path in re.findall(r"^::: ptclust\.([\w.]+)$", page, re.MULTILINE):
        name = path.rpartition(".")[2]
        assert path in ptclust._SUBMODULES or any(hasattr(each, name) for each in modules), path


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = ptclust.nothing_of_the_kind


def test_importing_the_package_or_the_command_line_imports_nothing_heavy():
    heavy = ("numpy", "numba", "scipy", "sklearn", "polars", "matplotlib", "networkx")
    code = f"import sys, ptclust, ptclust.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_pictures_are_drawn_without_the_packages_that_see_private_weights(tmp_path):
    code = f"""
import sys
from pathlib import Path
from types import SimpleNamespace
import numpy as np
from ptclust.drawing.plots import draw_tree
tree = SimpleNamespace(n_nodes=3, sources=np.array([0, 1]), targets=np.array([1, 2]))
draw_tree(tree, [0, 0, -1], path=Path({str(tmp_path / "tree.svg")!r}))
print([name for name in sys.modules if name.startswith(("ptclust.graph", "ptclust.trees"))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
