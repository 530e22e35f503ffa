"""The published schema of the release file."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def release_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the files that ``Release.save`` writes.

    The schema describes the shape of a file. ``Release.load`` also checks what a schema cannot say:
    that arrays are as long as they claim, that the tree is one, that labels and guarantee are
    consistent, and the digest.

    Examples
    --------
    >>> release_schema()["properties"]["format"]
    {'const': 'ptclust-release'}
    """
    file = resources.files(__name__) / "release-3.json"
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema
