"""A series as one page of HTML that needs nothing else: flows, a map with a slider, the budget."""

from __future__ import annotations

import os
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptclust._files import reserved, written_at_once
from ptclust._markup import shortened
from ptclust._types import Ints
from ptclust._version import __version__
from ptclust.drawing.layout import as_places
from ptclust.drawing.style import COLOURS, UNCLUSTERED
from ptclust.errors import InputError
from ptclust.planning.series import RULES
from ptclust.release import Release
from ptclust.report.page import content_policy
from ptclust.report.picture import WIDTH, Picture

if TYPE_CHECKING:
    from ptclust.release.changes import Changes
    from ptclust.series.series import Series

_HIGH, _GAP, _BOX = 420, 6, 16  # of the flows: height, space between clusters, width of a cluster
_MOST_NAMES = 60


def write_series_report(
    series: Series,
    path: str | os.PathLike[str],
    *,
    coordinates: Any = None,
    title: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write `series_page` to a file; FileError if it exists and ``overwrite`` is not set."""
    made, file = series_page(series, coordinates=coordinates, title=title).encode(), Path(path)
    if overwrite:
        with written_at_once(file) as temporary:
            temporary.write_bytes(made)
        return
    with (
        reserved(file, "choose another name, or say overwrite=True"),
        written_at_once(file) as temporary,
    ):
        temporary.write_bytes(made)


def series_page(series: Series, *, coordinates: Any = None, title: str | None = None) -> str:
    """Return a series as one self-contained page of HTML; it reads the releases and the ledger."""
    from jinja2 import Environment
    from markupsafe import Markup

    releases = series.releases
    if not releases:
        raise InputError(f"there is no release in {series.folder}")
    style, script = (_part(name) for name in ("series.css", "series.js"))
    changes, last = series.changes, next(reversed(releases.values()))
    places = None if coordinates is None else as_places(coordinates, last.names)
    picture = Picture.of(last, places)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(_part("series.html")).render(
        title=title or f"{series.name}: {len(releases)} releases with differential privacy",
        style=Markup(style),  # noqa: S704 - ours, not data
        script=Markup(script),  # noqa: S704
        policy=content_policy(style, script),
        version=__version__,
        budget=_budget(series, list(releases)),
        sentence=series.terms.sentence(series.name, len(releases)),
        flows=_flows(list(releases.items()), changes),
        maps=[
            {"period": period, "groups": picture.draw(_aligned(release, last))}
            for period, release in releases.items()
        ],
        width=WIDTH,
        high=picture.height,
        changes=[_listed(period, found) for period, found in changes.items()],
    )


def _part(name: str) -> str:
    return (files("ptclust.series") / "template" / name).read_text(encoding="utf-8")


def _budget(series: Series, periods: list[str]) -> dict[str, Any]:
    """Return what was used and what is left, as parts of a bar of width 100."""
    terms, account, history = series.terms, series.account, series.ledger.history(series.name)
    total = account.total.amount
    used = [float(100 * charge.amount.amount / total) for charge in history]
    starts = np.concatenate([[0.0], np.cumsum(used)]).tolist()
    return {
        "total": str(terms.budget.total),
        "rule": RULES[terms.rule],
        "count": terms.budget.n_releases,
        "made": len(periods),
        "left": max(0.0, 100.0 - starts[-1]),
        "parts": [
            {"x": start, "width": width, "title": charge.description.partition(";")[0]}
            for start, width, charge in zip(starts, used, history, strict=False)
        ],
    }


def _aligned(release: Release, last: Release) -> Ints:
    """Return the labels of a release for the nodes of the last one."""
    label_of = dict(zip(release.names.tolist(), release.labels.tolist(), strict=True))
    return np.array([label_of.get(name, -1) for name in last.names.tolist()], dtype=np.int64)


def _colour(label: int) -> str:
    return UNCLUSTERED if label < 0 else COLOURS[label % len(COLOURS)]


def _flows(listed: list[tuple[str, Release]], changes: dict[str, Changes]) -> dict[str, Any]:
    """Return boxes for clusters, a column for every release, and bands of nodes between them."""
    counts = [Counter(release.labels.tolist()) for _, release in listed]
    labels = sorted({label for each in counts for label in each})
    most = max(sum(each.values()) for each in counts)
    unit = (_HIGH - _GAP * len(labels)) / max(most, 1)
    step = (WIDTH - 60 - _BOX) / max(len(listed) - 1, 1)
    tops: list[dict[int, float]] = []
    boxes, bands = [], []
    for column, (each, (period, _)) in enumerate(zip(counts, listed, strict=True)):
        y, top = 20.0, {}
        for label in (label for label in labels if each[label]):
            top[label], high = y, each[label] * unit
            name = "unclustered" if label < 0 else f"cluster {label}"
            boxes.append(
                {
                    "x": round(30 + column * step, 1),
                    "y": round(y, 1),
                    "high": round(max(high, 1.0), 1),
                    "colour": _colour(label),
                    "tag": "" if label < 0 or high < 10 else label,
                    "title": f"{period}: {name}, {each[label]:,} nodes",
                }
            )
            y += high + _GAP
        tops.append(top)
    for column in range(1, len(listed)):
        bands += _bands(listed, changes[listed[column][0]], column, tops, unit, step)
    columns = [
        {"x": round(30 + i * step + _BOX / 2, 1), "period": shortened(period, 12)}
        for i, (period, _) in enumerate(listed)
    ]
    return {"boxes": boxes, "bands": bands, "columns": columns, "width": WIDTH, "high": _HIGH + 40}


def _bands(
    listed: list[tuple[str, Release]],
    found: Changes,
    column: int,
    tops: list[dict[int, float]],
    unit: float,
    step: float,
) -> list[dict[str, Any]]:
    """Return what goes from every cluster of one release to those of the next."""
    before, now = listed[column - 1][1], listed[column][1]
    pairs = Counter(zip(_aligned(before, now).tolist(), now.labels.tolist(), strict=True))
    beyond = Counter(
        zip(found.before[found.moved].tolist(), found.now[found.moved].tolist(), strict=True)
    )
    out, into = dict(tops[column - 1]), dict(tops[column])
    left, right = 30 + (column - 1) * step + _BOX, 30 + column * step
    middle, drawn = (left + right) / 2, []
    for (old, new), count in sorted(pairs.items()):
        if old not in out:
            continue  # of nodes that were not there before
        y, z, high = out[old], into[new], count * unit
        out[old], into[new] = y + high, z + high
        numbers = [left, y, middle, y, middle, z, right, z, z + high, middle, z + high, middle]
        numbers += [y + high, left, y + high]
        path = "M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}V{:.1f}".format(
            *numbers[:9]
        )
        path += "C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}Z".format(*numbers[9:13], *numbers[13:])
        words = "stay" if old == new else f"{beyond[old, new]:,} of them beyond noise"
        drawn.append(
            {
                "path": path,
                "colour": _colour(new),
                "kind": "stay" if old == new else "move" if beyond[old, new] else "noise",
                "title": f"{count:,} nodes from {old} to {new}: {words}",
            }
        )
    return drawn


def _listed(period: str, found: Changes) -> dict[str, Any]:
    names = [shortened(name, 60) for name in found.names[:_MOST_NAMES]]
    moves = zip(names, found.before[found.moved], found.now[found.moved], strict=False)
    return {
        "period": period,
        "sentence": found.sentence,
        "moves": [f"{name} ({old} to {new})" for name, old, new in moves],
        "more": max(0, len(found.names) - _MOST_NAMES),
    }
