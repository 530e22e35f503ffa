"""Clusters on a map: what is written on it, and coordinates that are none."""

from __future__ import annotations

import numpy as np
import pytest

from ptclust.drawing.plots import draw_map
from ptclust.errors import UsageError

LONGITUDES, LATITUDES = [-122.4, -122.3, -121.9], [37.8, 37.5, 37.3]


def texts(path, labels, **options):
    count = len(labels)
    places = np.linspace(0, 9, count) if count != 3 else LONGITUDES
    draw_map(places, np.resize(LATITUDES, count), labels, path=path, **options)
    svg = path.read_text()
    return [line.strip()[5:-4] for line in svg.splitlines() if line.strip().startswith("<!-- ")]


def test_clusters_are_in_the_legend_and_names_on_the_map(tmp_path):
    city = {"San Jose": (-121.9, 37.3)}
    found = texts(tmp_path / "map.svg", [0, 0, -1], title="Stations", places=city)
    for text in ("Stations", "cluster 0: 2 nodes", "1 node unclustered", "San Jose"):
        assert text in found


def test_many_clusters_share_a_line_and_none_a_look(tmp_path):
    found = texts(tmp_path / "map.svg", np.repeat(range(30), 2).tolist())
    assert [text for text in found if text.startswith("cluster")][-1] == "cluster 13: 2 nodes"
    assert "and 16 more clusters" in found


def test_a_map_of_nothing(tmp_path):
    draw_map([], [], [], path=tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("longitudes", "latitudes", "message"),
    [
        ([1.0, 2.0], LATITUDES, "2 longitudes for 3 labels; give one per node"),
        (LONGITUDES, LATITUDES[:2], "2 latitudes for 3 labels"),
        ([1e6, 0, 0], LATITUDES, "a longitude is a number of degrees up to 360, not 1e\\+06"),
        (LATITUDES, LONGITUDES, "a latitude is a number of degrees up to 90, not -122.4"),
        (LONGITUDES, [np.nan, 0, 0], "a latitude is a number of degrees up to 90, not nan"),
    ],
)
def test_what_is_no_coordinate_is_said(tmp_path, longitudes, latitudes, message):
    with pytest.raises(UsageError, match=message):
        draw_map(longitudes, latitudes, [0, 0, 1], path=tmp_path / "map.png")


def test_the_same_map_is_the_same_file(tmp_path):
    for name in ("a.svg", "b.svg"):
        draw_map(LONGITUDES, LATITUDES, [0, 1, 1], path=tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
