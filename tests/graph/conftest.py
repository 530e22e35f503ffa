"""Files to read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest


@pytest.fixture
def write(tmp_path):
    """Write rows of text as a table of any format, or a text as it is."""

    def write(name: str, content: Any) -> Path:
        path: Path = tmp_path / name
        if name.endswith(".parquet") and isinstance(content, list):
            head, *rows = content
            frame = pl.DataFrame([list(row) for row in rows], schema=list(head), orient="row")
            numbers = frame.with_columns(pl.col(head[i]).cast(pl.Float64) for i in _numeric(rows))
            numbers.write_parquet(path)
            return path
        if isinstance(content, list):
            separator = "," if name.endswith(".csv") else "\t"
            content = "".join(separator.join(row) + "\n" for row in content)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def _numeric(rows: list[tuple[str, ...]]) -> list[int]:
    return [i for i in range(len(rows[0])) if "." in rows[0][i]]
