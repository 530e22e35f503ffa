"""Where nodes are: a public table that the user adds to the picture of a release."""

from __future__ import annotations

import csv
import math
import os
from pathlib import Path

import numpy as np

from ptclust._markup import quoted, quoted_list
from ptclust._types import Array, Floats
from ptclust.errors import FileError, InputError


def read_coordinates(
    path: str | os.PathLike[str],
    names: Array,
    *,
    node: str = "node",
    x: str = "x",
    y: str = "y",
    degrees: bool = False,
) -> Floats:
    r"""Read where every node is from a CSV file with a header; return a row for every name.

    Parameters
    ----------
    path : path
        Rows of other nodes are skipped.
    names : array
        The names of the nodes.
    node, x, y : str
        The columns.
    degrees : bool, default False
        Whether x is the longitude and y the latitude; see `flattened`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder) / "stations.csv"
    ...     _ = table.write_text("node,x,y\nb,3,4\na,1,2\n")
    ...     read_coordinates(table, np.array(["a", "b"])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    file = Path(path)
    place_of: dict[str, tuple[float, float]] = {}
    for where, row in _rows(file, (node, x, y)):
        try:
            place = float(row[x]), float(row[y])
        except ValueError:
            place = (math.nan, math.nan)
        if not all(map(math.isfinite, place)):
            raise InputError(f"{where}: {quoted(x)} and {quoted(y)} must be numbers")
        if place_of.setdefault(row[node], place) != place:
            raise InputError(f"{where}: node {quoted(row[node])} is at a second place; give it one")
    called = list(map(str, names.tolist()))
    if lacking := [name for name in called if name not in place_of]:
        many = f", as {len(lacking):,} of {len(names):,} nodes do" * (len(lacking) > 1)
        raise InputError(f"{file} has no place for node {quoted(lacking[0])}{many}; complete it")
    places = np.array([place_of[name] for name in called], dtype=np.float64).reshape(-1, 2)
    return flattened(places) if degrees else places


def flattened(degrees: Floats) -> Floats:
    """Return longitudes and latitudes on a plane: degrees of longitude as long as they are there.

    >>> flattened(np.array([[10.0, 60.0]])).round(6).tolist()
    [[5.0, 60.0]]
    """
    latitude = float(degrees[:, 1].mean()) if len(degrees) else 0.0
    return degrees * [math.cos(math.radians(latitude)), 1.0]


def read_names(
    path: str | os.PathLike[str], names: Array, *, node: str = "node", name: str = "name"
) -> list[str]:
    """Read what to call every node from a CSV file; a node that is not in it keeps its name."""
    shown = {row[node]: row[name] for _, row in _rows(Path(path), (node, name)) if row[name]}
    return [shown.get(each, each) for each in map(str, names.tolist())]


def _rows(file: Path, columns: tuple[str, ...]) -> list[tuple[str, dict[str, str]]]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream, restval="", strict=True)
            there = reader.fieldnames or []
            if lacking := [column for column in columns if column not in there]:
                listed = f"its columns are: {quoted_list(there)}"
                raise InputError(f"{file} has no column {quoted(lacking[0])}; {listed}")
            return [(f"line {reader.line_num} of {file}", row) for row in reader]
    except OSError as error:
        raise FileError(f"{file} cannot be read: {error.strerror or error}") from None
    except (csv.Error, UnicodeDecodeError):
        raise FileError(f"{file} is not a CSV file in UTF-8 of nodes and places") from None
