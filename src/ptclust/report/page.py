"""A release as one page of HTML that needs nothing else: no network, no other file.

It reads the release, and coordinates if the reader of the release knows some; both are public. What
comes from there is data: Jinja escapes it in text and attributes, and what the script reads as JSON
holds numbers only, names being read from the page itself.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from ptclust._markup import page, shortened, write_page
from ptclust._types import Floats, Ints
from ptclust.drawing.layout import as_places
from ptclust.errors import FileError, InputError
from ptclust.graph.labels import labels_text
from ptclust.privacy.statement import entries, sentence
from ptclust.release import Release
from ptclust.release.format import encode
from ptclust.release.summary import Summary
from ptclust.report.picture import ALONE, MOST_TAGS, OTHERS, SHARED_LOOKS, WIDTH, Picture, looks

LARGEST = 1_000_000  # bytes of a page
_MOST_NAMES = 10_000
_MOST_ROWS = 500  # of clusters in the table; the smallest share one more
_LONGEST_NAME = 60
_MOST_NUMBERS = 100_000  # of labels of other levels
_BINS, _BARS_HIGH = 40, 120
_FAR = 200.0  # deviations of the noise, from which on the scale of weights is compressed
_HEAVY = 0.8  # of the weights in a tenth of their range: as well
_TALL = 10  # times the middle one is the highest bar, from which on heights are compressed
_KILOMETRES = 111.2  # in a degree of latitude


def report_page(
    release: Release,
    *,
    coordinates: Any = None,
    names: Sequence[str] | None = None,
    title: str | None = None,
    degrees: bool = False,
    publisher: Mapping[str, str] | None = None,
) -> str:
    """Return a release as one self-contained page of HTML, of less than a megabyte.

    Parameters
    ----------
    release : Release
    coordinates : array of shape (n_nodes, 2), or mapping of names to pairs, optional
        Where the nodes are, such as stations on a map: public knowledge that you add.
    names : sequence of str, optional
        What the page calls every node, in node order; by default the names of the release.
    title : str, optional
    degrees : bool
        Whether coordinates are degrees, longitudes shrunk as `flattened` does: for the scale bar.
    publisher : mapping of str to str, optional
        Who publishes, such as ``{"controller": "City", "period": "May 2026", "contact": "..."}``:
        it is written as it is, with a line for a signature.

    Notes
    -----
    *Privacy.* Post-processing: nothing but the release, coordinates and names is read.
    """
    from markupsafe import Markup

    if names is not None and len(names) != release.n_nodes:
        raise InputError(f"{len(names)} names were given for {release.n_nodes} nodes")
    places = None if coordinates is None else as_places(coordinates, release.names)
    summary, picture, file = release.summary, Picture.of(release, places), encode(release)
    shown, rest = summary.clusters[:_MOST_ROWS], summary.clusters[_MOST_ROWS:]
    called = dict(
        zip(release.names.tolist(), release.names if names is None else names, strict=True)
    )
    rows = _rows(release)
    listed = np.argsort(rows, kind="stable")[:_MOST_NAMES]  # in the order of the page
    members: dict[int, list[str]] = defaultdict(list)
    for row, name in zip(rows[listed].tolist(), release.names[listed].tolist(), strict=True):
        members[row].append(shortened(called[name], _LONGEST_NAME))
    own = looks(release.labels)
    per_pixel = (_KILOMETRES if degrees else 1.0) / picture.scale
    bar = None
    if picture.on_map and picture.scale != 1.0:  # which it is if all nodes are at one place
        bar = _scale_bar(per_pixel, " km" if degrees else "")
    data = _data(release, picture, listed, per_pixel if bar else None)
    content = {
        "release": release,
        "summary": summary,
        "title": title or "Clusters published with differential privacy",
        "headline": sentence(release.statement, plain=True),
        "publisher": dict(publisher or {}),
        "bar": bar,
        "entries": {name: list(texts) for name, texts in entries(release.statement).items()},
        "elsewhere_nodes": [
            (shortened(called[name], _LONGEST_NAME), *clusters)
            for name, *clusters in summary.elsewhere[:_MOST_ROWS]
        ],
        "clusters": [
            {
                **vars(each),
                "size": each.size,
                "members": members[row],
                "look": own.get(each.label, ALONE if each.size == 1 else OTHERS),
            }
            for row, each in enumerate(shown)
        ],
        "rest": {
            "count": len(rest),
            "size": sum(each.size for each in rest),
            "members": members[_MOST_ROWS],
        },
        "unclustered": members[_MOST_ROWS + 1],
        "n_unlisted": max(0, release.n_nodes - _MOST_NAMES),
        "width": WIDTH,
        "picture": picture,
        "groups": picture.draw(
            release.labels, None if release.certainty is None else release.certainty.nodes
        ),
        "bars": _bars(release),
        "level": None if release.clustering is None else release.clustering.level,
        "data": Markup(_json(data)),  # noqa: S704 - numbers, and < is escaped
        "download": _data_link("application/json", file.decode("ascii")),
        "labels_file": _labels_file(release),
        "size": len(file),
    }
    made = page("release", **content)
    for left_out in ("download", "labels_file", "data"):  # the page says so
        if len(made.encode()) > LARGEST:
            made = page("release", **(content := {**content, left_out: None}))
    return made


def write_report(
    release: Release, path: str | os.PathLike[str], *, overwrite: bool = False, **options: Any
) -> None:
    """Write a `report_page`, with its options; FileError if the file exists, as in ``save``."""
    write_page(report_page(release, **options), path, overwrite=overwrite)


def _rows(release: Release) -> Ints:
    """Return the row of the table that every node is in: two more are of the rest, and of none."""
    last = int(release.labels.max(initial=-1)) + 1  # of unclustered nodes
    row_of = np.full(last + 1, _MOST_ROWS + 1)
    for i, cluster in enumerate(release.summary.clusters):
        row_of[cluster.label] = min(i, _MOST_ROWS)
    return row_of[release.labels]


def _scale_bar(per_pixel: float, unit: str) -> dict[str, Any]:
    """Return the bar of a map: a round length of at most a sixth of its width."""
    longest = per_pixel * WIDTH / 6
    power = 10.0 ** np.floor(np.log10(longest))
    length = max(part * power for part in (1, 2, 5) if part * power <= longest)
    return {"pixels": round(length / per_pixel, 1), "text": f"{length:,g}{unit}"}


def _data(
    release: Release, picture: Picture, listed: Ints, per_pixel: float | None
) -> dict[str, Any]:
    """Return what the script needs, in numbers: nodes are in the order of the names."""
    levels = release.levels[: max(1, _MOST_NUMBERS // max(len(listed), 1))]
    partitions = [level.labels for level in levels]
    current = None if release.clustering is None else release.clustering.level
    if current is None or current >= len(levels):
        current = len(levels)
    partitions[current : current + 1] = [release.labels]
    places = [] if picture.aggregated else picture.places[listed].ravel().tolist()
    return {
        "places": [int(each) if each.is_integer() else each for each in places],
        "shapes": picture.shapes,
        "aggregated": picture.aggregated,
        "halo": picture.halo,
        "tag_above": picture.tag_above,
        "most_tags": MOST_TAGS,
        "per_pixel": per_pixel,
        "level": current,
        "levels": [_level(release, picture, labels, listed) for labels in partitions],
    }


def _level(release: Release, picture: Picture, labels: Ints, listed: Ints) -> dict[str, Any]:
    clusters = Summary(release, labels).clusters
    shown, rest = clusters[:_MOST_ROWS], clusters[_MOST_ROWS:]
    groups = picture.draw(labels) if picture.aggregated else []
    return {
        "labels": labels[listed].tolist(),
        "looks": {"own": looks(labels), **SHARED_LOOKS},
        "clusters": [[each.label, each.size, each.within, each.across] for each in shown],
        "rest": [len(rest), sum(each.size for each in rest)],
        "discs": [
            [each[name] for name in ("label", "colour", "path", "x", "y")] for each in groups
        ],
    }


def _bars(release: Release) -> dict[str, Any] | None:
    """Return histograms of the released weights within clusters and across: places and heights.

    Where the weights spread far beyond the noise, as counts do, the scale is that of the inverse
    hyperbolic sine: straight about zero, logarithmic further away.
    """
    labels, topology, weights = release.labels, release.topology, release.noisy_weights
    noise = release.weight_noise.standard_deviation
    with np.errstate(over="ignore"):
        width = float(np.ptp(weights)) if len(weights) else 0.0
    if not (0 < width < np.inf and noise > 0):
        return None
    heavy = width > _FAR * noise or np.histogram(weights, 10)[0].max() > _HEAVY * len(weights)
    compressed = bool(heavy and _FAR * noise > float(np.abs(weights).min()))

    def along(values: Any) -> Floats:
        return np.arcsinh(np.asarray(values) / noise) if compressed else np.asarray(values)

    low, high = along([weights.min(), weights.max()]).tolist()
    a, b = labels[topology.sources], labels[topology.targets]
    parts = ((a == b) & (a >= 0), (a != b) & (a >= 0) & (b >= 0))
    bins = _BINS, (low, high)
    counts = np.array([np.histogram(along(weights[part]), *bins)[0] for part in parts])
    most = int(counts.max()) or 1
    tall = bool(counts.any() and most > _TALL * np.median(counts[counts > 0]))
    share = np.log1p(counts) / np.log1p(most) if tall else counts / most
    heights = np.maximum((share * (_BARS_HIGH - 10)).round(1), 2).tolist()
    step = WIDTH / _BINS
    within, across = (
        [(i * step, high_px) for i, high_px in enumerate(row) if seen[i]]
        for row, seen in zip(heights, counts, strict=True)
    )
    marked = np.zeros(1)
    if compressed:
        powers = 10.0 ** np.arange(np.ceil(np.log10(noise)) + 1, np.log10(np.abs(weights).max()))
        marked = np.concatenate([marked, powers, -powers])
    ticks = ((along(marked) - low) / (high - low) * WIDTH).round(1).tolist()
    deviation = float(np.clip(along(noise) / (high - low), 0.002, 2.0))
    return {
        "within": within,
        "across": across,
        "step": step,
        "low": float(weights.min()),
        "high": float(weights.max()),
        "ticks": [
            (x, value)
            for x, value in zip(ticks, marked.tolist(), strict=True)
            if 90 < x < WIDTH - 130
        ],
        "compressed": compressed,
        "tall": tall,
        "high_px": _BARS_HIGH,
        "noise": round(deviation * WIDTH, 1),
    }


def _labels_file(release: Release) -> str | None:
    """Return the table of labels, if names that are not the same do not become so in CSV."""
    try:
        text = labels_text(release.names, release.labels, release.further_columns)
    except FileError:
        return None
    return _data_link("text/csv", text)


def _json(data: Any) -> str:
    """Return JSON that ends no script element, whatever it holds."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data_link(kind: str, text: str) -> str:
    """Return a link that holds a file."""
    return f"data:{kind};charset=utf-8," + quote(text, safe="!$()*+,;=:@/?[]{}")
