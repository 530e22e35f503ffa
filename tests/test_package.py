from __future__ import annotations

import subprocess
import sys

import pytest

import ptclust


@pytest.mark.parametrize("name", ptclust.__all__)
def test_every_public_name_is_there(name):
    assert getattr(ptclust, name) is not None
    assert name in dir(ptclust)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = ptclust.nothing_of_the_kind


def test_importing_the_package_or_the_command_line_imports_nothing_heavy():
    heavy = ("numpy", "numba", "scipy", "sklearn", "polars", "matplotlib", "networkx")
    code = f"import sys, ptclust, ptclust.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
