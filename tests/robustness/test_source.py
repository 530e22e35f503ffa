"""Nothing in the source runs what a file or a caller says: no eval, no pickles, no shells."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ptclust

ROOT = Path(ptclust.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "pickle.load", "pickle.loads",
    "pickle.Unpickler", "dill.load", "dill.loads", "joblib.load", "marshal.load", "marshal.loads",
    "shelve.open", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "pandas.read_pickle",
    "pd.read_pickle", "tempfile.mktemp", "scipy.io.mmread", "load_npz", "scipy.sparse.load_npz",
}  # fmt: skip
FORBIDDEN_MODULES = {
    "pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "telnetlib", "xml.etree",
    "xml.dom", "lxml", "urllib", "requests", "httpx", "http", "socket", "ftplib",
}  # fmt: skip
FORBIDDEN_SWITCHES = {"shell": True, "allow_pickle": True, "resolve_entities": True}
FORBIDDEN_HANDLERS = {"ExternalEntityRefHandler", "EntityDeclHandler"}


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_forbidden(name: str) -> bool:
    if name.startswith("urllib.parse."):  # texts alone, no network
        return False
    return any(name.startswith(f"{module}.") for module in FORBIDDEN_MODULES)


def faults(source: str) -> list[str]:
    """What is forbidden in a module, with its line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            if dotted(node.func) in FORBIDDEN_CALLS:
                found.append(f"{node.lineno}: {dotted(node.func)}")
            for keyword in node.keywords:
                forbidden = FORBIDDEN_SWITCHES.get(keyword.arg or "")
                if forbidden and not (
                    isinstance(keyword.value, ast.Constant) and not keyword.value.value
                ):
                    found.append(f"{node.lineno}: {keyword.arg}=")
        if isinstance(node, ast.Import | ast.ImportFrom):
            package = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            is_relative = isinstance(node, ast.ImportFrom) and (not node.module or node.level)
            found += [
                f"{node.lineno}: import {package}{alias.name}"
                for alias in node.names
                if not is_relative and is_forbidden(f"{package}{alias.name}.")
            ]
        if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_HANDLERS:
            found.append(f"{node.lineno}: {node.attr}")
    return found


def test_nothing_forbidden_in_the_source():
    assert len(FILES) > 50
    found = {
        str(file.relative_to(ROOT)): faults(file.read_text(encoding="utf-8")) for file in FILES
    }
    kernels = [line.split(": ")[1] for line in found.pop("_kernel.py")]
    assert kernels == ["import pickle", "pickle.loads"]  # machine code of our own, docs/security.md
    service = [line.split(": ")[1] for line in found.pop("engines/key_service.py")]
    assert service == [
        "import socket"
    ]  # how the key of noise reaches Spark's tasks, docs/security.md
    spark = [line.split(": ")[1] for line in found.pop("engines/spark.py")]
    assert spark == ["import pickle", "pickle.loads"]  # tasks that the driver sends to its workers
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')", "exec(x)", "import pickle", "from pickle import loads",
        "import numpy as np\nnp.load(f, allow_pickle=flag)", "subprocess.run(x, shell=True)",
        "os.system(x)", "f(allow_pickle=True)", "parser.ExternalEntityRefHandler = f",
        "import xml.etree.ElementTree as ET", "from xml import etree", "yaml.load(x)",
        "from urllib import request",
    ],
)  # fmt: skip
def test_the_detector(source):
    assert faults(source)


@pytest.mark.parametrize(
    "source",
    [
        "f(shell=False)",
        "from xml.parsers import expat",
        "def __reduce__(self): raise TypeError",
        "json.loads(x)",
    ],
)
def test_the_detector_lets_the_rest_pass(source):
    assert not faults(source)
