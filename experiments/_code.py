"""Which code made a result: so that an interrupted run is not finished by another program."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

import ptclust

__all__ = ["code_digest"]

_UNMEASURED = {"audit", "cli", "demo.py", "report", "theory"}
"""Parts of the package on which no result depends."""
_MEASURING = (
    "controls.py",
    "heterogeneous.py",
    "methods.py",
    "planted.py",
    "real.py",
    "rivals.py",
)


@cache
def code_digest() -> str:
    """Return a digest of the code, without comments, that results of the benchmark depend on."""
    found = hashlib.blake2b(digest_size=6)
    package = Path(ptclust.__file__).parent
    paths = [
        path
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).parts[0] not in _UNMEASURED
    ]
    for path in [*paths, *(Path(__file__).with_name(name) for name in _MEASURING)]:
        found.update(_meaning(path.read_text(encoding="utf-8")).encode())
    return found.hexdigest()


def _meaning(source: str) -> str:
    """Return the code without its layout, comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                part
                for part in body
                if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
            ]
    return ast.dump(tree)
