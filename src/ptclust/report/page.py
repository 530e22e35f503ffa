"""A release as one page of HTML that needs nothing else: no network, no other file.

It reads the release, and coordinates if the reader of the release knows some; both are public. What
comes from there is data: Jinja escapes it in text and attributes, and what the script reads as JSON
holds numbers only, names being read from the page itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from ptclust.report.picture import (
    ALONE,
    MOST_TAGS,
    OTHERS,
    SHARED_LOOKS,
    WIDTH,
    Look,
    Picture,
    looks,
)

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
    if names is not None and len(names) != release.n_nodes:
        raise InputError(f"{len(names)} names were given for {release.n_nodes} nodes")
    content = _Page(release, coordinates, names, title, degrees, dict(publisher or {})).content
    made = page("release", **content)
    for left_out in ("download", "labels_file", "data"):  # the page says so
        if len(made.encode()) > LARGEST:
            made = page("release", **(content := {**content, left_out: None}))
    return made


def write_report(
    release: Release, path: str | os.PathLike[str], *, overwrite: bool = False, **options: Any
) -> None:
    """Write a `report_page`, with its options, to a file.

    FileError if the file exists and ``overwrite`` is not set.
    """
    write_page(report_page(release, **options), path, overwrite=overwrite)


@dataclass(frozen=True)
class _Page:
    """What the template shows of a release."""

    release: Release
    coordinates: Any
    names: Sequence[str] | None
    title: str | None
    degrees: bool
    publisher: dict[str, str]

    @property
    def content(self) -> dict[str, Any]:
        from markupsafe import Markup

        release, statement = self.release, self.release.statement
        rest = self.summary.clusters[_MOST_ROWS:]  # which have no row of their own
        return {
            "release": release,
            "summary": self.summary,
            "title": self.title or "Clusters published with differential privacy",
            "headline": sentence(statement, plain=True),
            "publisher": self.publisher,
            "bar": self._scale_bar,
            "entries": {name: list(texts) for name, texts in entries(statement).items()},
            "elsewhere_nodes": self._elsewhere_nodes,
            "clusters": [
                self._cluster(i) for i in range(min(len(self.summary.clusters), _MOST_ROWS))
            ],
            "rest": {
                "count": len(rest),
                "size": sum(each.size for each in rest),
                "members": self._names(_MOST_ROWS),
            },
            "unclustered": self._names(_MOST_ROWS + 1),
            "n_unlisted": max(0, release.n_nodes - _MOST_NAMES),
            "width": WIDTH,
            "picture": self.picture,
            "groups": self.picture.draw(
                release.labels, None if release.certainty is None else release.certainty.nodes
            ),
            "bars": self._bars(),
            "level": None if release.clustering is None else release.clustering.level,
            "data": Markup(_json(self._data())),  # noqa: S704 - numbers, and < is escaped
            "download": _data_link("application/json", encode(release).decode("ascii")),
            "labels_file": self._labels_file(),
            "size": len(encode(release)),
        }

    @cached_property
    def summary(self) -> Summary:
        return self.release.summary

    @cached_property
    def picture(self) -> Picture:
        places: Floats | None = None
        if self.coordinates is not None:
            places = as_places(self.coordinates, self.release.names)
        return Picture.of(self.release, places)

    @property
    def _per_pixel(self) -> float:
        """How far apart two pixels of a map are: in kilometres if coordinates are degrees."""
        return (_KILOMETRES if self.degrees else 1.0) / self.picture.scale

    @cached_property
    def _scale_bar(self) -> dict[str, Any] | None:
        """The bar of a map: a round length of at most a sixth of its width."""
        if not self.picture.on_map or self.picture.scale == 1.0:  # all nodes at one place
            return None
        longest = self._per_pixel * WIDTH / 6
        power = 10.0 ** np.floor(np.log10(longest))
        length = max(part * power for part in (1, 2, 5) if part * power <= longest)
        unit = " km" if self.degrees else ""
        return {"pixels": round(length / self._per_pixel, 1), "text": f"{length:,g}{unit}"}

    @cached_property
    def _row(self) -> Ints:
        """The row of the table that every node is in."""
        last = int(self.release.labels.max(initial=-1)) + 1  # of unclustered nodes
        rank = np.full(last + 1, _MOST_ROWS + 1)
        for i, cluster in enumerate(self.summary.clusters):
            rank[cluster.label] = min(i, _MOST_ROWS)
        return rank[self.release.labels]

    @cached_property
    def _listed(self) -> Ints:
        """The nodes whose names are on the page, in the order in which they are there."""
        return np.argsort(self._row, kind="stable")[:_MOST_NAMES]

    def _names(self, row: int) -> list[str]:
        first, last = np.searchsorted(self._row[self._listed], [row, row + 1])
        called = self.release.names if self.names is None else self.names
        return [
            shortened(called[node], _LONGEST_NAME) for node in self._listed[first:last].tolist()
        ]

    @property
    def _elsewhere_nodes(self) -> list[tuple[str, int, int]]:
        """Nodes that may equally well belong elsewhere, with where."""
        called: dict[Any, Any] = {}
        if self.names is not None:
            called = dict(zip(self.release.names.tolist(), self.names, strict=True))
        return [
            (shortened(called.get(name, name), _LONGEST_NAME), cluster, other)
            for name, cluster, other in self.summary.elsewhere[:_MOST_ROWS]
        ]

    def _cluster(self, row: int) -> dict[str, Any]:
        cluster = self.summary.clusters[row]
        colour, shape = self._looks.get(cluster.label, ALONE if cluster.size == 1 else OTHERS)
        return {
            **vars(cluster),
            "size": cluster.size,
            "members": self._names(row),
            "colour": colour,
            "shape": shape,
        }

    @cached_property
    def _looks(self) -> dict[int, Look]:
        return looks(self.release.labels)

    def _data(self) -> dict[str, Any]:
        """Return what the script needs, in numbers: nodes are in the order of the names."""
        order, picture = self._listed, self.picture
        chosen = self.release.clustering
        levels = list(self.release.levels)[: max(1, _MOST_NUMBERS // max(len(order), 1))]
        partitions = [level.labels for level in levels]
        if chosen is None or chosen.level is None or chosen.level >= len(levels):
            partitions.append(self.release.labels)
            current = len(partitions) - 1
        else:
            current = chosen.level
            partitions[current] = self.release.labels
        return {
            "places": [] if picture.aggregated else _short(picture.places[order].ravel()),
            "shapes": picture.shapes,
            "aggregated": picture.aggregated,
            "halo": picture.halo,
            "tag_above": picture.tag_above,
            "most_tags": MOST_TAGS,
            "per_pixel": None if self._scale_bar is None else self._per_pixel,
            "level": current,
            "levels": [self._level(labels) for labels in partitions],
        }

    def _level(self, labels: Ints) -> dict[str, Any]:
        groups = self.picture.draw(labels) if self.picture.aggregated else []
        clusters = Summary(self.release, labels).clusters
        return {
            "labels": labels[self._listed].tolist(),
            "looks": {"own": looks(labels), **SHARED_LOOKS},
            "clusters": [
                [each.label, each.size, each.within, each.across] for each in clusters[:_MOST_ROWS]
            ],
            "rest": [len(clusters[_MOST_ROWS:]), sum(each.size for each in clusters[_MOST_ROWS:])],
            "discs": [
                [each["label"], each["colour"], each["path"], each["x"], each["y"]]
                for each in groups
            ],
        }

    def _bars(self) -> dict[str, Any] | None:
        """Return histograms of the released weights within clusters and across: places and heights.

        Where the weights spread far beyond the noise, as counts do, the scale is that of the
        inverse hyperbolic sine: straight about zero, logarithmic further away.
        """
        labels, topology = self.release.labels, self.release.topology
        a, b = labels[topology.sources], labels[topology.targets]
        weights, both = self.release.noisy_weights, (a >= 0) & (b >= 0)
        noise = self.release.weight_noise.standard_deviation
        with np.errstate(over="ignore"):
            width = float(np.ptp(weights)) if len(weights) else 0.0
        if not (0 < width < np.inf and noise > 0):
            return None
        parts = np.histogram(weights, 10)[0]
        heavy = width > _FAR * noise or parts.max() > _HEAVY * len(weights)
        compressed = bool(heavy and _FAR * noise > float(np.abs(weights).min()))
        along = np.arcsinh(weights / noise) if compressed else weights
        low, high = float(along.min()), float(along.max())
        counts = [
            np.histogram(along[both & part], _BINS, (low, high))[0] for part in (a == b, a != b)
        ]
        most = max(int(each.max()) for each in counts) or 1
        seen = np.concatenate(counts)
        tall = most > _TALL * float(np.median(seen[seen > 0])) if seen.any() else False
        heights = [np.log1p(each) / np.log1p(most) if tall else each / most for each in counts]
        bars = [
            [
                (i * WIDTH / _BINS, max(round(height * (_BARS_HIGH - 10), 1), 2))
                for i, height in enumerate(each.tolist())
                if height
            ]
            for each in heights
        ]
        bar = float(np.arcsinh(1.0)) if compressed else noise
        marked = [0.0]
        if compressed:
            powers = 10.0 ** np.arange(
                np.ceil(np.log10(noise)) + 1, np.log10(np.abs(weights).max())
            )
            marked += [*powers.tolist(), *(-powers).tolist()]
        at = np.arcsinh(np.array(marked) / noise) if compressed else np.array(marked)
        ticks = zip(((at - low) / (high - low) * WIDTH).round(1).tolist(), marked, strict=True)
        return {
            "within": bars[0],
            "across": bars[1],
            "step": WIDTH / _BINS,
            "low": float(weights.min()),
            "high": float(weights.max()),
            "ticks": [(x, value) for x, value in ticks if 90 < x < WIDTH - 130],
            "compressed": compressed,
            "tall": tall,
            "high_px": _BARS_HIGH,
            "noise": round(float(np.clip(bar / (high - low), 0.002, 2.0)) * WIDTH, 1),
        }

    def _labels_file(self) -> str | None:
        """Return the table of labels, if names that are not the same do not become so in CSV."""
        release = self.release
        try:
            text = labels_text(release.names, release.labels, release.further_columns)
        except FileError:
            return None
        return _data_link("text/csv", text)


def _short(numbers: Floats) -> list[float | int]:
    """Return numbers for JSON, whole ones without a point."""
    return [int(each) if each.is_integer() else each for each in numbers.tolist()]


def _json(data: Any) -> str:
    """Return JSON that ends no script element, whatever it holds."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data_link(kind: str, text: str) -> str:
    """Return a link that holds a file."""
    return f"data:{kind};charset=utf-8," + quote(text, safe="!$()*+,;=:@/?[]{}")
