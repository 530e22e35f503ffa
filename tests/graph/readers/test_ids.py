"""Ids of nodes to numbers: nobody can choose ids that collide."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ptclust.graph import read_graph
from ptclust.graph.readers import ids
from ptclust.graph.readers.ids import number_integers


def colliding(n: int) -> np.ndarray:
    """Ids that the finalizer of splitmix64 sends to multiples of 2**32."""
    keys = np.arange(1, n + 1, dtype=np.uint64) << np.uint64(32)

    def unshifted(values: np.ndarray, by: int) -> np.ndarray:
        result = values
        for _ in range(64 // by + 1):
            result = values ^ (result >> np.uint64(by))
        return result

    keys = unshifted(keys, 31) * np.uint64(pow(0x94D049BB133111EB, -1, 2**64))
    keys = unshifted(keys, 27) * np.uint64(pow(0xBF58476D1CE4E5B9, -1, 2**64))
    return unshifted(keys, 30)


class TestIds:
    def test_crafted_integers_are_numbered(self, tmp_path):
        crafted = colliding(200_000)
        sources, targets = crafted[0::2], crafted[1::2]
        frame = pl.DataFrame({"source": sources, "target": targets, "cost": np.ones(100_000)})
        frame.write_parquet(tmp_path / "e.parquet")
        graph = read_graph(tmp_path / "e.parquet")
        assert set(graph.names.tolist()) == set(crafted.tolist())

    def test_numbers_do_not_depend_on_the_key(self, monkeypatch):
        rng = np.random.default_rng(1)
        ends = rng.integers(-500, 500, (2, 2000)) * 10**6  # far apart: else they are not hashed
        texts = [pl.Series([f"n{end}" for end in side]) for side in ends]
        first = ids.number_integers(*ends), ids.number_strings(*texts)
        for key in (0, 1, 2**64 - 1):
            monkeypatch.setattr("secrets.randbits", lambda bits, key=key: key)
            again = ids.number_integers(*ends), ids.number_strings(*texts)
            for one, other in zip(first, again):
                assert all(np.array_equal(a, b) for a, b in zip(one, other))

    @pytest.mark.parametrize("tries", [1, 2, 1000])
    def test_colliding_hashes_do_not_confuse_nodes(self, monkeypatch, tries):
        true_hashes, calls = ids._hashes, iter(range(10**9))

        def poor(strings: pl.Series, seed: int) -> np.ndarray:
            hashes: np.ndarray = true_hashes(strings, seed)
            return hashes % np.uint64(2) if next(calls) < tries else hashes

        monkeypatch.setattr(ids, "_hashes", poor)
        found = ids.number_strings(pl.Series(["b", "a"]), pl.Series(["a", "c"]))
        assert found.names.tolist() == ["b", "a", "c"]
        assert (found.sources.tolist(), found.targets.tolist()) == ([0, 1], [1, 2])

    def test_hashes_of_strings_have_a_random_seed(self, monkeypatch):
        seeds: set[int] = set()
        true_hashes = ids._hashes

        def seen(strings: pl.Series, seed: int) -> np.ndarray:
            seeds.add(seed)
            return true_hashes(strings, seed)

        monkeypatch.setattr(ids, "_hashes", seen)
        for _ in range(2):
            ids.number_strings(pl.Series(["b"]), pl.Series(["a"]))
        assert len(seeds) == 2


@pytest.mark.parametrize(
    ("dtype", "low"),
    [(np.int8, -128), (np.uint8, 5), (np.int32, 0), (np.int64, -(2**63)), (np.uint64, 2**63)],
)
@pytest.mark.parametrize("gap", [1, 3])
def test_integers_with_few_gaps_are_numbered_in_their_order(dtype, low, gap):
    ends = np.random.default_rng(0).integers(0, 240 // gap, size=(2, 200)).tolist()
    a, b = (np.array([low + gap * place for place in side], dtype=dtype) for side in ends)
    found = number_integers(a, b)
    assert found.names.tolist() == sorted({*a.tolist(), *b.tolist()})
    assert found.names[found.sources].tolist() == a.tolist()
    assert found.names[found.targets].tolist() == b.tolist()
