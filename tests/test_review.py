"""docs/review.md lists files that are there, with about the lines of code they have."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_LINES = 6_000
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(source: str) -> int:
    """Count lines that are not blank and not only a comment or a docstring."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                documented.update(range(first.lineno, (first.end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def counted(name: str) -> int:
    path = ROOT / "src/ptclust" / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    assert files, name
    return sum(lines_of_code(file.read_text()) for file in files)


def test_lines_of_code():
    assert lines_of_code('"""Says."""\n\n# why\nx = (\n    1,\n)\n') == 3


def test_the_list_is_as_long_as_it_says():
    rows = re.findall(r"^\| \d.*\|(.*)\| (\d+) \|$", (ROOT / "docs/review.md").read_text(), re.M)
    assert len(rows) == 8
    total = 0
    for files, stated in rows:
        lines = sum(map(counted, re.findall(r"`([^`]+)`", files)))
        assert abs(lines - int(stated)) <= 0.05 * int(stated), (files, lines, stated)
        total += lines
    assert total <= MOST_LINES
