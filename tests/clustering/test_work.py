"""A search finds the cuts that sweeps do, with less work if cuts are unbalanced."""

from __future__ import annotations

import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptclust.clustering import dbmstclu
from ptclust.clustering.dbmstclu import _kernel as kernel
from ptclust.clustering.dbmstclu import _search_kernel as search_tree
from ptclust.graph import Topology
from ptclust.trees import Tree
from tests.clustering import paper
from tests.clustering.test_dbmstclu import as_paper, trees

MODULE = sys.modules["ptclust.clustering.dbmstclu"]

#: The oracle: no component is ever large enough to be searched.
SWEEP = kernel.Policy(search_size=1 << 60)
#: Every component is searched from its first cut on, and no search is given up.
SEARCH = kernel.Policy(search_size=2, peels=0, small_part=1.0, sweep_size=2, budget=1e6)
#: Both in turns: searches are soon given up and soon taken up again.
MIXED = kernel.Policy(search_size=8, peels=2, small_part=0.3, sweep_size=5, budget=4.0)


def star(n, random):
    return np.zeros(n - 1, int)


def path(n, random):
    return np.arange(n - 1)


def broom(n, random):
    return np.minimum(np.arange(n - 1), n // 2)


def caterpillar(n, random):
    return np.where(np.arange(1, n) <= n // 2, np.arange(n - 1), np.arange(1, n) - n // 2)


def attachment(n, random):
    return (random.random(n - 1) * np.arange(1, n)).astype(int)


def double_hub(n, random):
    return np.minimum(random.integers(0, 2, n - 1), np.arange(n - 1))


def chain_of_hubs(n, random):
    n_hubs = max(2, int(n**0.5))
    hub = random.integers(0, n_hubs, n - 1)
    return np.where(np.arange(1, n) < n_hubs, np.arange(n - 1), np.minimum(hub, np.arange(n - 1)))


def balanced(n, random):
    return np.arange(n - 1) // 2


def local(n, random):
    return np.maximum(np.arange(n - 1) - random.integers(0, 4, n - 1), 0)


SHAPES = [star, path, broom, caterpillar, attachment, double_hub, chain_of_hubs, balanced, local]
WEIGHTS = {
    "equal": lambda n, random: np.ones(n),
    "small integers": lambda n, random: random.integers(1, random.integers(2, 11), n) + 1.0,
    "decimals": lambda n, random: random.integers(1, 10, n) / 10,
    "thirds": lambda n, random: random.integers(1, 7, n) / 3,
    "geometric": lambda n, random: random.uniform(0.2, 0.99) ** (random.permutation(n) % 300),
    "sorted geometric": lambda n, random: (
        0.97 ** np.minimum(np.arange(n), 5000)[:: random.choice([-1, 1])]
    ),
    "ascending": lambda n, random: np.linspace(0.1, 1.0, n),
    "descending": lambda n, random: np.linspace(1.0, 0.1, n),
    "sorted": lambda n, random: np.sort(random.uniform(0.1, 1.0, n)) ** random.uniform(0.2, 5),
    "valley": lambda n, random: np.abs(np.arange(n) - n * random.random()) + 1,
    "hill": lambda n, random: n + 1 - np.abs(np.arange(n) - n * random.random()),
    "continuous": lambda n, random: random.uniform(0.1, 1.0, n),
    "two levels": lambda n, random: np.where(
        random.random(n) < 0.1, 1.0, random.choice([0.1, 0.9])
    ),
    "two noisy levels": lambda n, random: (
        np.where(random.random(n) < 0.1, 1.0, 0.1) + random.uniform(0, 0.01, n)
    ),
}


def tree_of(shape, weights, n, random, keep_order=False):
    parents = shape(n, random)
    name = random.permutation(n)
    order = np.arange(n - 1) if keep_order else random.permutation(n - 1)
    children = np.arange(1, n)[order]
    topology = Topology(name[children], name[parents[order]], n_nodes=n)
    return Tree(topology, WEIGHTS[weights](n - 1, random))


def forest_of(parts):
    first = np.cumsum([0] + [t.n_nodes for t in parts])
    return Tree(
        Topology(
            np.concatenate([t.sources + i for t, i in zip(parts, first)]),
            np.concatenate([t.targets + i for t, i in zip(parts, first)]),
            n_nodes=int(first[-1]),
        ),
        np.concatenate([t.weights for t in parts]),
    )


@pytest.fixture
def run(monkeypatch):
    """Cluster by a policy; return the result and the work it took."""

    def run(tree, policy):
        used = []

        def search_trees(n_nodes):
            used.append(make(n_nodes))
            return used[-1]

        monkeypatch.setattr(MODULE, "_POLICY", policy)
        monkeypatch.setattr(MODULE, "_search_trees", search_trees)
        return dbmstclu(tree), int(used[0].counts[1])

    make = MODULE._search_trees
    return run


def assert_same(a, b):
    assert a.cuts.edge_ids.tolist() == b.cuts.edge_ids.tolist()
    assert a.cuts.dbcvi.tolist() == b.cuts.dbcvi.tolist()
    assert a.labels.tolist() == b.labels.tolist()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_searching_makes_the_cuts_of_sweeping(shape, weights, run):
    random = np.random.default_rng(len(shape.__name__) * 100 + len(weights))
    for i in range(24):
        n = int(random.integers(2, 300 if i % 3 == 0 else 40))
        tree = tree_of(shape, weights, n, random, keep_order=i % 2 == 0)
        swept, _ = run(tree, SWEEP)
        assert_same(run(tree, SEARCH)[0], swept)
        assert_same(run(tree, MIXED)[0], swept)


@pytest.mark.parametrize("shape", SHAPES)
def test_large_trees(shape, run):
    random = np.random.default_rng(len(shape.__name__))
    for weights in WEIGHTS:
        tree = tree_of(shape, weights, 2_000, random)
        swept, _ = run(tree, SWEEP)
        assert_same(run(tree, kernel.Policy())[0], swept)
        assert_same(run(tree, SEARCH)[0], swept)


@settings(max_examples=1000)
@given(trees(max_nodes=20), st.sampled_from(["as they are", "ascending", "descending"]))
def test_searching_equals_the_paper_line_by_line(tree, order):
    """Also where weights are sorted along a tree that may be deep."""
    if order != "as they are":
        weights = np.sort(tree.weights)[:: 1 if order == "ascending" else -1]
        depth = np.argsort(np.argsort(np.maximum(tree.sources, tree.targets), kind="stable"))
        tree = Tree(tree.topology, weights[depth])
    cuts, _, labels = paper.dbmstclu(tree.n_nodes, as_paper(tree))
    with mock.patch.object(MODULE, "_POLICY", SEARCH):
        found = dbmstclu(tree)
    assert found.cuts.edge_ids.tolist() == cuts
    assert found.labels.tolist() == labels


def test_forests(run):
    random = np.random.default_rng(0)
    for _ in range(60):
        parts = [
            tree_of(random.choice(SHAPES), random.choice(list(WEIGHTS)), int(n), random)
            for n in random.integers(1, 60, random.integers(1, 6))
        ]
        forest = forest_of(parts)
        swept, _ = run(forest, SWEEP)
        assert_same(run(forest, SEARCH)[0], swept)
        assert_same(run(forest, MIXED)[0], swept)


@pytest.mark.parametrize("weights", ["equal", "small integers", "geometric"])
@pytest.mark.parametrize(
    "shape", [star, attachment, double_hub, path, broom, caterpillar, balanced]
)
def test_work_is_not_quadratic(shape, weights, run):
    tree = tree_of(shape, weights, 20_000, np.random.default_rng(1))
    _, work = run(tree, kernel.Policy())
    assert work < 1_500 * tree.n_nodes  # sweeping takes up to 10,000 times n_nodes


@pytest.mark.parametrize("weights", ["ascending", "descending", "sorted", "valley", "hill"])
@pytest.mark.parametrize("shape", [path, broom, caterpillar, chain_of_hubs])
def test_nor_is_it_on_deep_trees_with_sorted_weights(shape, weights, run):
    tree = tree_of(shape, weights, 20_000, np.random.default_rng(1), keep_order=True)
    _, work = run(tree, kernel.Policy())
    assert work < 1_500 * tree.n_nodes


def test_a_search_tree_is_split_as_its_leaves_are():
    random = np.random.default_rng(2)
    for _ in range(200):
        n = int(random.integers(2, 60))
        members = np.sort(random.choice(100, n, replace=False))
        trees = MODULE._search_trees(100)
        for p in members:
            search_tree.set_leaf(p, p + 1, 200 - p, float(random.integers(1, 4)), float(p), trees)
            search_tree.set_below(p, 1, np.inf, 0.0, 0.0, 100, trees)
        tree = search_tree.build(members, np.empty(100, int), trees)
        begin, end = np.sort(random.choice(np.append(members, 100), 2, replace=False))
        inside = (members >= begin) & (members < end)
        if inside.all():
            continue
        for part, leaves in zip(
            search_tree.split(tree, begin, end, trees), (members[~inside], members[inside])
        ):
            assert trees.whole[part, search_tree.COUNT] == len(leaves)
            assert trees.whole[part, search_tree.EDGE] == 200 - leaves[0]
            assert trees.real[part, search_tree.CUT] == leaves[0]
            assert (
                trees.real[part, search_tree.WEIGHT] == trees.real[leaves, search_tree.WEIGHT].max()
            )
            found = np.empty(len(leaves), int)
            search_tree.dissolve(part, found, trees)
            assert found.tolist() == leaves.tolist()
        assert trees.counts[0] == 100  # no branch is lost
        assert sorted(trees.free) == list(range(100, 200))
