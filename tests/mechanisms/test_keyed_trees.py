"""Trees as a function of a key: their laws, and that nothing but key and weights decides them."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from ptclust.errors import UsageError
from ptclust.mechanisms import _clock_kernel as kernel
from ptclust.mechanisms import keyed
from ptclust.mechanisms._urn_kernel import GRID
from ptclust.mechanisms.keyed import (
    Clocks,
    EdgeWords,
    Pruning,
    ShortestPaths,
    bounding_edges,
    edge_numbers,
    key_state,
    kruskal_edges,
    pamst_edges,
)
from ptclust.mechanisms.laws import GRAPHS, TreeLaw

ALPHA = 1e-6
DRAW = {"kruskal": kruskal_edges, "pamst": pamst_edges}


def key_of(number: int) -> bytes:
    return number.to_bytes(8, "little") * 4


def clocks_of(
    sources, targets, weights, n_nodes: int, exponent: float = 1.0, key: bytes = bytes(32)
) -> Clocks:
    numbers = edge_numbers(sources, targets, n_nodes)
    return Clocks.of(np.asarray(weights, dtype=np.float64), numbers, exponent, key)


def random_graph(seed: int, n_nodes: int, n_edges: int, spread: float = 3.0):
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(n_nodes * (n_nodes - 1) // 2, n_edges, replace=False))
    sources, targets = (ends[chosen].astype(np.int32) for ends in np.triu_indices(n_nodes, 1))
    return sources, targets, random.random(n_edges) * spread


def p_value(draw, law: TreeLaw, energies, n_draws: int, exponent: float = 1.0) -> float:
    """Return how likely draws that differ as much from the law are."""
    sources, targets = np.array(law.graph.edges, dtype=np.int32).T
    counts: Counter[tuple[int, ...]] = Counter()
    for i in range(n_draws):
        clocks = clocks_of(sources, targets, energies, law.graph.n_nodes, exponent, key_of(i))
        counts[tuple(draw(sources, targets, clocks, law.graph.n_nodes).tolist())] += 1
    assert set(counts) <= set(law.trees)
    expected = n_draws * np.exp(law.log_probabilities(np.asarray(energies)))
    found = np.array([counts[tree] for tree in law.trees])
    rare = expected < 10
    found, expected = (np.append(each[~rare], each[rare].sum()) for each in (found, expected))
    keep = expected > 0
    statistic = ((found[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    return float(chi2.sf(statistic, keep.sum() - 1))


@pytest.mark.parametrize("name", ["K3", "K4", "triangle with a tail"])
@pytest.mark.parametrize("mechanism", ["kruskal", "pamst"])
def test_the_trees_have_the_law_of_their_mechanism(mechanism, name):
    graph = GRAPHS[name]
    energies = np.linspace(-1.0, 1.5, len(graph.edges)) ** 3
    roots = (None,) if mechanism == "kruskal" else tuple(range(graph.n_nodes))
    law = TreeLaw(mechanism, graph, roots)
    assert p_value(DRAW[mechanism], law, energies, 6000) > ALPHA


@pytest.mark.parametrize("mechanism", ["kruskal", "pamst"])
def test_another_exponent_and_the_other_order_are_noticed(mechanism):
    energies, graph = np.array([0.0, 1.5, -1.5, 0.5, 2.0, -0.5]), GRAPHS["K4"]
    roots = (None,) if mechanism == "kruskal" else tuple(range(4))
    law, other = TreeLaw("", graph, roots), {"kruskal": pamst_edges, "pamst": kruskal_edges}
    assert p_value(DRAW[mechanism], law, energies, 6000, 1.2) < ALPHA
    assert p_value(other[mechanism], law, energies, 6000) < ALPHA


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["kruskal", "pamst"])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_the_law_on_five_nodes(mechanism, spread):
    graph = GRAPHS["K5"]
    energies = np.random.default_rng(3).random(10) * spread
    roots = (None,) if mechanism == "kruskal" else tuple(range(5))
    assert p_value(DRAW[mechanism], TreeLaw("", graph, roots), energies, 60_000) > ALPHA


def test_logarithms_are_those_of_exponentials():
    numbers = np.arange(20_000, dtype=np.uint64)
    clocks = Clocks(numbers, np.zeros(20_000, dtype=np.int64), key_of(5))
    assert kstest(np.exp2(clocks.logs / 2.0**GRID), "expon").pvalue > ALPHA
    for place in range(50):
        low, high = (float(b) * 2.0**GRID for b in clocks._log_bounds(place, 40))
        assert low - 2 <= clocks.logs[place] <= high + 2
        words = np.empty(2, dtype=np.uint64)
        EdgeWords(key_state(key_of(5)), place, 1 << 63).fill(words)
        u = (int(words[0]) << 64 | int(words[1])) / 2.0**128
        assert clocks.logs[place] == pytest.approx(math.log2(-math.log(u)) * 2.0**GRID, abs=2)


@pytest.mark.parametrize("first", [0, 5, 2**16 - 1, 2**64 - 1, 2**64 - 7, 2**16, 2**63, 2**63 - 1])
def test_words_near_the_ends_are_told_or_left_to_exact_arithmetic(first, monkeypatch):
    second = 0x0123456789ABCDEF
    words = np.array([[first, second, *[7] * 6]], dtype=np.uint64)
    logs, far = np.full(1, 77), np.empty(1, dtype=np.bool_)
    kernel.log_clocks(words, np.array([5]), logs, far)
    assert far[0] == (min(first, 2**64 - 1 - first) < 2**16)

    def fill(self, found):
        found[0] = (first, second, 7)[min(self.at, 2)]
        self.at += 1

    monkeypatch.setattr(EdgeWords, "fill", fill)
    monkeypatch.setattr(EdgeWords, "at", 0, raising=False)
    exact = Clocks(np.zeros(1, dtype=np.uint64), np.array([5]), bytes(32))
    low, high = exact._log_bounds(0, 40)
    assert high - low < Fraction(1, 10**9)
    u = Fraction((first << 64) + second, 2**128)
    distance = -math.log1p(-float(1 - u)) if u > 0.5 else -math.log(u)
    assert float(low) == pytest.approx(math.log2(distance) + 5 / 2**GRID, rel=1e-12)
    if not far[0]:
        assert abs(float(low * 2**GRID) - logs[0]) <= 2


def naive_tree(sources, targets, clocks: Clocks, n_nodes: int, root: int) -> list[int]:
    """Return the edges of shortest paths by Bellman and Ford, in exact arithmetic alone."""
    path: dict[int, list[int]] = {root: []}
    changed = True
    while changed:
        changed = False
        for edge in range(len(sources)):
            for u, v in ((sources[edge], targets[edge]), (targets[edge], sources[edge])):
                if int(u) in path:
                    new, old = {*path[int(u)], edge}, set(path.get(int(v), ()))
                    if int(v) not in path or (new != old and edge not in old and clocks.compare(
                        sorted(new - old), sorted(old - new)) < 0):  # fmt: skip
                        path[int(v)] = [*path[int(u)], edge]
                        changed = True
    return sorted({way[-1] for way in path.values() if way})


@pytest.mark.parametrize("spread", [0.0, 2.0, 60.0, 3000.0, 1e6])
def test_trees_are_those_of_exact_arithmetic(spread, monkeypatch):
    """Also where floats would lose short clocks beside long ones, and where floats know nothing."""
    sources, targets, weights = random_graph(int(spread) % 97, 14, 40, spread)
    clocks = clocks_of(sources, targets, weights, 14, key=key_of(int(spread)))
    root = int(keyed._roots(sources, targets, 14, clocks.key)[0])
    naive = naive_tree(sources, targets, clocks, 14, root)
    assert pamst_edges(sources, targets, clocks, 14).tolist() == naive
    forest = kruskal_edges(sources, targets, clocks, 14).tolist()
    monkeypatch.setattr(kernel, "MARGIN", 0.9)
    monkeypatch.setattr(kernel, "NEAR", 1 << 60)
    asked = []
    monkeypatch.setattr(Clocks, "compare", counting(Clocks.compare, asked))
    assert pamst_edges(sources, targets, clocks, 14).tolist() == naive
    n_asked = len(asked)
    assert n_asked > 5 or spread > 100
    again = clocks.part(np.arange(40))
    assert kruskal_edges(sources, targets, again, 14).tolist() == forest
    assert len(asked) > n_asked
    # Few at a time, as they come: each group is put in order within its own steps.
    monkeypatch.setattr(kernel, "NEAR", int(np.sort(np.diff(np.sort(clocks.logs)))[8]))
    assert kruskal_edges(sources, targets, again, 14).tolist() == forest


def counting(function, calls: list):
    def counted(*given):
        calls.append(given)
        return function(*given)

    return counted


def test_near_clocks_are_put_in_order(monkeypatch):
    sources, targets, weights = random_graph(2, 60, 900)
    clocks = clocks_of(sources, targets, weights, 60)
    right = np.argsort(clocks.logs)
    wrong = clocks.logs + np.random.default_rng(0).integers(-(1 << 30), 1 << 30, 900)
    assert np.argsort(wrong).tolist() != right.tolist()
    monkeypatch.setattr(kernel, "NEAR", 1 << 32)
    clocks.__dict__["logs"] = wrong
    assert np.argsort(clocks.ranks()).tolist() == right.tolist()


def test_a_guess_in_floats_is_made_right(monkeypatch):
    """Whatever tree it begins with; here it is that of other clocks."""
    sources, targets, weights = random_graph(5, 200, 1500, 50.0)
    clocks = clocks_of(sources, targets, weights, 200)
    right = pamst_edges(sources, targets, clocks, 200).tolist()
    guess = ShortestPaths._guess

    def other(self):
        clocks, self._clocks = self._clocks, clocks_of(sources, targets, -weights, 200)
        found = guess(self)
        self._clocks = clocks
        return found

    monkeypatch.setattr(ShortestPaths, "_guess", other)
    assert ShortestPaths(sources, targets, clocks, 200).edges.tolist() == right


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mechanism", ["kruskal", "pamst"])
def test_neither_order_nor_ends_nor_parts_matter(mechanism, seed):
    n, spread = 300, [0.0, 5.0, 500.0, 1e5][seed]
    sources, targets, weights = random_graph(seed, n, 3000, spread)
    draw, random = DRAW[mechanism], np.random.default_rng(seed)
    clocks = clocks_of(sources, targets, weights, n)
    tree = draw(sources, targets, clocks, n)
    assert len(tree) == n - 1
    order, swapped = random.permutation(3000), random.random(3000) < 0.5
    ends = np.where(swapped, targets, sources)[order], np.where(swapped, sources, targets)[order]
    assert np.sort(order[draw(*ends, clocks_of(*ends, weights[order], n), n)]).tolist() == (
        tree.tolist()
    )
    part = random.integers(0, 5, 3000)
    reduce = bounding_edges if mechanism == "pamst" else kruskal_edges
    kept = np.concatenate([some[reduce(sources[some], targets[some], clocks.part(some), n)]
                           for some in (np.flatnonzero(part == i) for i in range(5))])  # fmt: skip
    kept = np.sort(kept)
    if mechanism == "pamst":
        few = Pruning.of(sources[kept], targets[kept], clocks.part(kept), n)
        verdicts = few.verdicts(sources, targets, clocks)
        assert set(tree.tolist()) <= {*np.flatnonzero(verdicts != kernel.DROPPED), *kept}
        kept = np.union1d(kept, np.flatnonzero(verdicts != kernel.DROPPED))
        assert len(kept) < 3000 or spread == 0.0
    some = draw(sources[kept], targets[kept], clocks.part(kept), n)
    assert kept[some].tolist() == tree.tolist()


def test_components_have_a_tree_each_and_nodes_may_be_alone():
    sources, targets = np.array([1, 2, 1, 5], np.int32), np.array([2, 3, 3, 6], np.int32)
    clocks = clocks_of(sources, targets, np.zeros(4), 8)
    for draw in DRAW.values():
        tree = draw(sources, targets, clocks, 8).tolist()
        assert tree[-1] == 3
        assert len(tree) == 3
        nothing = clocks_of(sources[:0], targets[:0], [], 3)
        assert draw(sources[:0], targets[:0], nothing, 3).tolist() == []


def test_roots_are_uniform():
    sources, targets = np.array([0, 1, 3], np.int32), np.array([1, 2, 4], np.int32)
    roots = [keyed._roots(sources, targets, 5, key_of(i)) for i in range(3000)]
    first, second = np.bincount([r[0] for r in roots]), np.bincount([r[1] for r in roots])[3:]
    for found in (first, second):
        expected = 3000 / len(found)
        assert chi2.sf(((found - expected) ** 2 / expected).sum(), len(found) - 1) > ALPHA


def test_keys_are_checked_and_clocks_not_shown():
    clocks = clocks_of(np.array([0]), np.array([1]), [0.25], 2, key=b"short")
    with pytest.raises(UsageError, match="32 bytes"):
        clocks.logs  # noqa: B018
    clocks = clocks_of(np.array([0]), np.array([1]), [0.25], 2)
    assert repr(clocks) == "Clocks(<private>, of 1 edges)"
    few = Pruning.of(np.array([0]), np.array([1]), clocks, 2)
    assert str(clocks.logs[0])[:5] not in repr(few)
