"""A series as one page of HTML that needs nothing else: flows, a map with a slider, the budget."""

from __future__ import annotations

import os
from collections import Counter
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._markup import counted, page, write_page
from ptclust._types import Ints
from ptclust.drawing.layout import as_places
from ptclust.drawing.style import COLOURS, UNCLUSTERED
from ptclust.errors import InputError
from ptclust.planning.series import RULES
from ptclust.release import Release
from ptclust.report.picture import WIDTH, Picture

if TYPE_CHECKING:
    from ptclust.release.changes import Changes
    from ptclust.series.series import Series

_HIGH, _GAP, _BOX = 420, 6, 16  # of the flows: height, space between clusters, width of a cluster
_MOST_PERIODS = 14  # whose names fit above the flows
_ABSENT = -2  # the label of a node that a release does not have


def write_series_report(
    series: Series,
    path: str | os.PathLike[str],
    *,
    coordinates: Any = None,
    overwrite: bool = False,
) -> None:
    """Write `series_page` to a file; FileError if it exists and ``overwrite`` is not set."""
    write_page(series_page(series, coordinates=coordinates), path, overwrite=overwrite)


def series_page(series: Series, *, coordinates: Any = None) -> str:
    """Return a series as one self-contained page of HTML; it reads the releases and the ledger."""
    releases = series.releases
    if not releases:
        raise InputError(f"there is no release in {series.folder}")
    changes, last = series.changes, next(reversed(releases.values()))
    picture = Picture.of(last, None if coordinates is None else as_places(coordinates, last.names))
    return page(
        "series",
        title=f"{series.name}: {counted(len(releases), 'release')} with differential privacy",
        budget=_budget(series),
        sentence=series.terms.sentence(series.name, len(releases)),
        unit=last.statement.privacy_unit,
        flows=_flows(list(releases.items()), changes),
        maps={
            period: picture.draw(np.maximum(_aligned(release, last), -1))
            for period, release in releases.items()
        },
        width=WIDTH,
        high=picture.height,
        changes=changes,
    )


def _budget(series: Series) -> dict[str, Any]:
    """Return what was used and what is left, as parts of a bar of width 100."""
    terms, total = series.terms, series.account.total.amount
    history = series.ledger.history(series.name)
    used = [float(100 * charge.amount.amount / total) for charge in history]
    starts = list(accumulate(used, initial=0.0))
    titles = [charge.description.partition(";")[0] for charge in history]
    return {
        "total": terms.budget.total,
        "rule": RULES[terms.rule],
        "count": terms.budget.n_releases,
        "made": len(history),
        "left": max(0.0, 100.0 - starts[-1]),
        "parts": list(zip(starts, used, titles, strict=False)),
    }


def _aligned(release: Release, other: Release) -> Ints:
    """Return the labels of a release for the nodes of another one."""
    label_of = dict(zip(release.names.tolist(), release.labels.tolist(), strict=True))
    return np.array([label_of.get(name, _ABSENT) for name in other.names.tolist()], dtype=np.int64)


def _rank(label: int) -> tuple[bool, int]:
    """Return the place of a cluster in a column: unclustered nodes are at the bottom."""
    return label < 0, label


def _flows(listed: list[tuple[str, Release]], changes: dict[str, Changes]) -> dict[str, Any]:
    """Return a column for every release, a box for each of its clusters, and bands between them."""
    counts = [Counter(release.labels.tolist()) for _, release in listed]
    unit = (_HIGH - _GAP * max(map(len, counts))) / max(release.n_nodes for _, release in listed)
    step = (WIDTH - 60 - _BOX) / max(len(listed) - 1, 1)
    columns: list[dict[str, Any]] = []
    for number, (period, _) in enumerate(listed):
        y, boxes = 20.0, {}
        for label in sorted(counts[number], key=_rank):
            size = counts[number][label]
            name = "unclustered" if label < 0 else f"cluster {label}"
            boxes[label] = {
                "y": y,
                "high": size * unit,
                "colour": _colour(label),
                "tag": str(label) if label >= 0 and size * unit >= 10 else "",
                "title": f"{period}: {name}, {counted(size, 'node')}",
            }
            y += size * unit + _GAP
        named = number % -(-len(listed) // _MOST_PERIODS) == 0
        columns.append({"x": 30 + number * step, "period": period if named else "", "boxes": boxes})
    bands = []
    for ((_, before), (period, now)), sides in zip(
        pairwise(listed), pairwise(columns), strict=True
    ):
        pairs = Counter(zip(_aligned(before, now).tolist(), now.labels.tolist(), strict=True))
        bands += _bands(pairs, changes[period], *sides, unit)
    return {"columns": columns, "bands": bands, "box": _BOX, "high": _HIGH + 40}


def _colour(label: int) -> str:
    return UNCLUSTERED if label < 0 else COLOURS[label % len(COLOURS)]


def _bands(
    pairs: Counter[tuple[int, int]],
    found: Changes,
    before: dict[str, Any],
    now: dict[str, Any],
    unit: float,
) -> list[dict[str, str]]:
    """Return what goes from every cluster of one column to those of the next."""
    moved = found.before[found.moved].tolist(), found.now[found.moved].tolist()
    beyond = Counter(zip(*moved, strict=True))
    tops = [{label: box["y"] for label, box in each["boxes"].items()} for each in (before, now)]
    left, right = before["x"] + _BOX, now["x"]
    middle, bands = (left + right) / 2, []
    for (old, new), count in sorted(pairs.items(), key=lambda pair: (*map(_rank, pair[0]),)):
        if old == _ABSENT:
            continue
        y, z, high = tops[0][old], tops[1][new], count * unit
        tops[0][old], tops[1][new] = y + high, z + high
        words = "stay" if old == new else f"{beyond[old, new]:,} of them beyond noise"
        bands.append(
            {
                "path": (
                    f"M{left:.1f} {y:.1f}C{middle:.1f} {y:.1f} {middle:.1f} {z:.1f} "
                    f"{right:.1f} {z:.1f}v{high:.1f}C{middle:.1f} {z + high:.1f} "
                    f"{middle:.1f} {y + high:.1f} {left:.1f} {y + high:.1f}z"
                ),
                "colour": _colour(new),
                "kind": "stay" if old == new else "move" if beyond[old, new] else "noise",
                "title": f"{counted(count, 'node')} from {old} to {new}: {words}",
            }
        )
    return bands
