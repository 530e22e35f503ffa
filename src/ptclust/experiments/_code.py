"""Which code made a result: so that an interrupted run is not finished by another program."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

__all__ = ["code_digest"]

_ROOT = Path(__file__).parent.parent
_MEASURED = ("privacy", "trees", "release", "clustering", "pipeline.py", "_statistics.py")
_MEASURING = ("planted.py", "points.py", "real.py", "controls.py", "methods.py", "scores.py")


def code_digest() -> str:
    """Return a digest of all code that a result of the utility benchmark depends on, its comments left out."""
    found = hashlib.blake2b(digest_size=6)
    places = [_ROOT / name for name in _MEASURED] + [Path(__file__).parent / n for n in _MEASURING]
    for place in places:
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
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
