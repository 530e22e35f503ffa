"""How a release is written: arrays in pieces, and a size that is known before."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from ptclust import Graph, Sensitivity
from ptclust.pipeline import ReleaseRequest, prepare
from ptclust.planning.plan import PlanRequest
from ptclust.release.format import _PIECE, _with_data


@pytest.mark.parametrize("length", [0, 1, 2, 3, _PIECE - 1, _PIECE, _PIECE + 1, 2 * _PIECE + 2])
def test_base64_in_pieces_is_that_of_the_standard_library(length):
    data = np.random.default_rng(0).integers(256, size=length, dtype=np.uint8).data
    pieces = list(_with_data(b'{"data": "0"}', [data]))
    assert b"".join(pieces) == b'{"data": "' + base64.b64encode(data) + b'"}'
    assert len(pieces) == 2 + -(-length // _PIECE)


@pytest.mark.parametrize("mechanism", ["kruskal", "laplace"])
@pytest.mark.parametrize("names", [None, 'é="\x1b'])
def test_the_largest_size_of_a_file_is_known_before_it_is_drawn(mechanism, names, tmp_path):
    """And it is not much larger than the file."""
    n, sizes = 3000, []
    named = None if names is None else [f"{names}{i}" for i in range(n)]
    graph = Graph(range(n - 1), range(1, n), np.full(n - 1, 0.5), names=named)
    plan = PlanRequest(epsilon=1, sensitivity=Sensitivity(linf=1e-3), mechanism=mechanism)

    def keep(release):
        release.save(tmp_path / "release.json")
        sizes.append((tmp_path / "release.json").stat().st_size)

    prepared = prepare(graph, ReleaseRequest.of(plan, privacy_unit="one"))
    sizes.append(prepared.largest_size)
    keep(prepared.draw())
    assert sizes[0] / 1.3 < sizes[1] <= sizes[0]
