"""The certificate of recovery: never wrong, and as sharp as claimed."""

from __future__ import annotations

import doctest
import math
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from ptclust._components import number_by_first_appearance
from ptclust.clustering import dbmstclu
from ptclust.errors import GraphError, UsageError, WeightError
from ptclust.graph import Topology
from ptclust.theory import (
    certify_interval,
    certify_recovery,
    noise_allowance,
    probability_of_no_larger_noise,
    recovered,
)
from ptclust.theory.recovery import MARGIN
from ptclust.trees import Tree
from tests.clustering import paper
from tests.theory.planted_trees import case, interval_weights, path
from tests.theory.test_theorems import COUNTEREXAMPLES, as_paper, satellites


def finds(tree, labels):
    """Whether DBMSTClu returns exactly this partition."""
    wanted = np.array(labels)
    number_by_first_appearance(wanted, 0, len(wanted), np.empty(len(wanted), np.int64))
    return np.array_equal(dbmstclu(tree).labels, wanted)


@pytest.mark.parametrize("n_cases", [3_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_thousands_of_trees(n_cases):
    outcomes = []
    for seed in range(n_cases):
        tree, labels = case(np.random.default_rng([20, seed]))
        outcomes.append((certify_recovery(tree, labels), finds(tree, labels)))
    never_certifies_a_failure(outcomes)
    hardly_misses_a_success(outcomes)
    decides_two_clusters_exactly(outcomes)
    stability_is_necessary(outcomes)
    for name in ("order", "stability", "progress"):
        cannot_drop(name, outcomes)


def never_certifies_a_failure(outcomes):
    assert all(found for certificate, found in outcomes if certificate.holds)
    certified = sum(certificate.holds for certificate, _ in outcomes)
    assert certified > 0.5 * len(outcomes)
    assert sum(not found for _, found in outcomes) > 0.25 * len(outcomes)


def hardly_misses_a_success(outcomes):
    found = [certificate for certificate, found in outcomes if found]
    assert sum(certificate.holds for certificate in found) > 0.95 * len(found)


def decides_two_clusters_exactly(outcomes):
    of_two = [
        (certificate, found)
        for certificate, found in outcomes
        if certificate.n_clusters == 2 and len(certificate.conditions) == 3
    ]
    assert len({found for _, found in of_two}) == 2
    for certificate, found in of_two:
        if abs(certificate.conditions[-1].margin) > MARGIN:
            assert certificate.holds == found


def stability_is_necessary(outcomes):
    for certificate, found in outcomes:
        for condition in certificate.failed:
            if condition.name == "stability" and condition.margin < -MARGIN:
                assert not found


def cannot_drop(name, outcomes):
    """There are trees on which it alone fails, and DBMSTClu too."""
    alone = Counter(
        found
        for certificate, found in outcomes
        if [condition.name for condition in certificate.failed] == [name]
    )
    assert alone[False] > 50


def test_preference_cannot_be_dropped():
    tree, labels = satellites()
    certificate = certify_recovery(tree, labels)
    assert [condition.name for condition in certificate.failed] == ["preference"]
    assert not finds(tree, labels)


@pytest.mark.parametrize("n_star", range(5, 50))
def test_preference_is_sharp_for_satellites(n_star):
    """The margin is exactly by how much the right cut beats the wrong one, and decides."""
    inner = [(0, v, 0.1) for v in range(2, n_star)] + [(0, 1, 0.25)]
    edges = [*inner, (1, n_star, 0.9), (1, n_star + 3, 0.9)]
    edges += [(n_star + i, n_star + i + j, 0.1) for i in (0, 3) for j in (1, 2)]
    a, b, w = zip(*edges)
    tree = Tree(Topology(a, b), w)
    labels = np.repeat([0, 1, 2], [n_star, 3, 3])
    failed = [condition.name for condition in certify_recovery(tree, labels).failed]
    assert failed == ([] if finds(tree, labels) else ["preference"])


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_counterexamples_are_not_certified(name):
    tree, labels, _ = COUNTEREXAMPLES[name]
    assert not certify_recovery(tree, labels).holds


def small_cases(count):
    found, seed = 0, 0
    while found < count:
        tree, labels = case(np.random.default_rng([7, seed]))
        seed += 1
        certificate = certify_recovery(tree, labels)
        if (
            tree.n_nodes <= 26
            and 3 <= certificate.n_clusters <= 6
            and len(certificate.conditions) == 5
        ):
            found += 1
            yield tree, labels, certificate


def margins(certificate):
    return {condition.name: condition.margin for condition in certificate.conditions}


def test_stability_equals_its_definition():
    for tree, labels, certificate in small_cases(40):
        edges, n = as_paper(tree), tree.n_nodes
        across = {i for i, (a, b, _) in enumerate(edges) if labels[a] != labels[b]}
        end = paper.dbcvi(n, edges, across)
        worst = {
            e: n * (end - paper.dbcvi(n, edges, {*across, e}))
            for e in range(len(edges))
            if e not in across
        }
        condition = certificate.conditions[2]
        if worst:
            assert condition.margin == pytest.approx(float(min(worst.values())), abs=1e-9)
            edge = int(np.searchsorted(tree.edge_ids, condition.edge))
            assert float(worst[edge]) == pytest.approx(condition.margin, abs=1e-9)
            assert labels[edges[edge][0]] == condition.cluster


def test_preference_and_progress_in_every_state():
    """In all states with only right cuts made, the two conditions promise no more than is so."""
    seen = Counter()
    for tree, labels, certificate in small_cases(120):
        margin = margins(certificate)
        least = math.inf
        for part, right, wrong, now in states(tree, labels):
            if len({labels[v] for v in part}) > 2:
                seen["preference"] += margin["preference"] > MARGIN
                assert max(right) - max(wrong, default=-math.inf) >= margin["preference"] - 1e-9
            if now is not None:
                seen["progress"] += margin["progress"] > MARGIN
                assert margin["progress"] <= MARGIN or max(right) - now >= -1e-9
                least = min(least, max(right) - now if now > 0 else math.inf)
        assert least >= margin["progress"] - 1e-9
        if margin["progress"] < MARGIN:
            seen["no progress"] += 1
            assert least == pytest.approx(margin["progress"], abs=1e-9)
    assert min(seen["preference"], seen["progress"]) > 300
    assert seen["no progress"] > 3


def states(tree, labels):
    """Yield each part with several clusters, what N * DBCVI its cuts leave, and has now.

    For every set of right cuts. The whole tree counts as -1 before the first cut, so there is no
    question of progress: None.
    """
    edges, n = as_paper(tree), tree.n_nodes
    edges = [(a, b, float(w)) for a, b, w in edges]
    across = [i for i, (a, b, _) in enumerate(edges) if labels[a] != labels[b]]
    for count in range(len(across)):
        for made in combinations(across, count):
            for part in paper.pieces(n, edges, set(made)):
                if len({labels[v] for v in part}) < 2:
                    continue
                values = {True: [], False: []}
                for e, (a, b, _) in enumerate(edges):
                    if a in part and b in part and e not in made:
                        cut = {*made, e}
                        of_part = list(pieces_of(part, edges, cut))
                        total = sum(len(p) * paper.v_c(p, edges, cut) for p in of_part)
                        values[labels[a] != labels[b]].append(total)
                now = len(part) * paper.v_c(part, edges, set(made)) if made else None
                yield part, values[True], values[False], now


def pieces_of(part, edges, cut):
    unseen = set(part)
    while unseen:
        piece, todo = set(), [min(unseen)]
        while todo:
            v = todo.pop()
            piece.add(v)
            for i, (a, b, _) in enumerate(edges):
                if i not in cut and v in (a, b):
                    todo.extend({a, b} - piece)
        unseen -= piece
        yield piece


def interval_case(random):
    """Numbers for ``certify_interval`` near its edge, where a counterexample might be."""
    n_clusters = int(random.integers(2, 6))
    smallest = int(random.integers(3, 8))
    sizes = random.integers(smallest, smallest + 5, size=n_clusters)
    c, d = 1.0, 1 + random.choice([0, 0.05, 0.2, 0.5]) * random.random()
    b = random.uniform(0.05, 0.7)
    a = min(b, b**2 / (1 - 1 / sizes.min()) * random.uniform(0.95, 1.5))
    shape = {
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "n_nodes": int(sizes.sum()),
        "n_clusters": n_clusters,
    }
    return sizes, (a, b, c, d), shape


def tree_within(random, sizes, a, b, c, d):
    first = np.cumsum(sizes) - sizes
    labels = np.repeat(np.arange(len(sizes)), sizes)
    local = np.arange(len(labels)) - first[labels]
    inner = np.flatnonzero(local > 0)
    k = np.arange(1, len(sizes))
    towards = random.integers(0, k)
    sources = np.concatenate([inner, first[k] + random.integers(0, sizes[k])])
    parents = first[labels[inner]] + random.integers(0, local[inner])
    targets = np.concatenate([parents, first[towards] + random.integers(0, sizes[towards])])
    within, across = (
        interval_weights(random, len(inner), a, b),
        interval_weights(random, len(k), c, d),
    )
    return Tree(Topology(sources, targets), np.concatenate([within, across])), labels


def test_interval_implies_tree_implies_recovery():
    random = np.random.default_rng(11)
    certified = 0
    for _ in range(1500):
        sizes, ends, shape = interval_case(random)
        interval = certify_interval(*ends, **shape)
        tree, labels = tree_within(random, sizes, *ends)
        certificate = certify_recovery(tree, labels)
        if certificate.conditions[-1].name == interval.conditions[-1].name and interval.holds:
            for general, one in zip(interval.conditions, certificate.conditions):
                assert one.margin >= general.margin - 1e-9, general.name
        if interval.holds:
            certified += 1
            assert certificate.holds
            assert finds(tree, labels)
    assert certified > 400


@pytest.mark.parametrize("size", [3, 4, 10, 100])
def test_the_interval_form_of_stability_is_tight(size):
    """b^2 / a < c (1 - 1 / s): beyond, a star with one heavier edge is cut once more."""
    b, c = 0.3, 0.9
    edge = b**2 / (c * (1 - 1 / size))
    for factor, holds in ((1.001, True), (0.999, False)):
        a = edge * factor
        weights = [*[a] * (size - 2), b, *[a] * (size - 2), b, c]
        sources = [0] * (size - 1) + [size] * (size - 1) + [1]
        targets = [*range(1, size), *range(size + 1, 2 * size), size + 1]
        tree, labels = Tree(Topology(sources, targets), weights), np.repeat([0, 1], size)
        shape = {"smallest": size, "largest": size, "n_nodes": 2 * size, "n_clusters": 2}
        assert certify_interval(a, b, c, c, **shape).holds is holds
        assert certify_recovery(tree, labels).holds is holds
        assert recovered(tree, labels).holds is holds


def test_the_interval_form_of_preference_sees_satellites():
    shape = {"smallest": 3, "largest": 50, "n_nodes": 56, "n_clusters": 3}
    margin = margins(certify_interval(0.1, 0.25, 0.9, 0.9, **shape))["preference"]
    # as for the tree, but for the satellites' V_C: the interval knows no better than 1 - 0.25 / 0.9
    of_tree = margins(certify_recovery(*satellites()))["preference"]
    assert margin == pytest.approx(of_tree - 3 * (0.25 - 0.1) / 0.9)


SHAPE = {"smallest": 50, "largest": 50, "n_nodes": 100, "n_clusters": 2}


@pytest.mark.parametrize("shift", [0.0, 0.05])
def test_noise_allowance_is_the_edge(shift):
    t = noise_allowance(0.1, 0.2, 0.9, 1.0, **SHAPE, shift=shift)

    def holds(t):
        ends = 0.1 - t + shift, 0.2 + t + shift, 0.9 - t + shift, 1.0 + t + shift
        return certify_interval(*ends, **SHAPE).holds

    assert holds(t)
    assert not holds(t * 1.0001)
    random = np.random.default_rng(3)
    tree, labels = tree_within(random, np.array([50, 50]), 0.1, 0.2, 0.9, 1.0)
    for _ in range(20):
        noise = random.choice([-t, t, 0], size=99) + shift
        assert finds(Tree(tree.topology, tree.weights + noise), labels)


def test_no_allowance_without_a_certificate():
    assert noise_allowance(0.1, 0.3, 0.9, 1.0, **SHAPE) == 0.0


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_probability_of_no_larger_noise(noise):
    random = np.random.default_rng(5)
    draw = random.laplace if noise == "laplace" else random.normal
    share = np.mean((np.abs(draw(0, 0.5, size=(20_000, 6))) <= 0.9).all(axis=1))
    p = probability_of_no_larger_noise(0.9, 6, scale=0.5, noise=noise)
    assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / 20_000)
    assert probability_of_no_larger_noise(0.0, 3, scale=1.0, noise=noise) == 0.0
    assert probability_of_no_larger_noise(0.0, 0, scale=1.0, noise=noise) == 1.0
    few = probability_of_no_larger_noise(30.0, 10**6, scale=1.0, noise=noise)
    assert 1 - few == pytest.approx(1e6 * math.exp(-30) if noise == "laplace" else 0, abs=1e-12)


def test_descriptions():
    tree = path(0.1, 0.1, 0.9, 0.2, 0.1)
    labels = [0, 0, 0, 7, 7, 7]
    certificate = certify_recovery(tree, labels)
    assert certificate.describe().startswith("Recovery of 2 clusters in 6 nodes is certified.\n")
    failed = certify_recovery(path(0.1, 0.2, 0.5, 0.1, 0.1), labels)
    assert "stability FAILS" in failed.describe()
    assert "(margin -0.2, edge 1, cluster 0)" in failed.describe()
    assert "DBMSTClu does not return these clusters" in failed.describe()
    pieces = certify_recovery(tree, [0, 0, 7, 7, 0, 0])
    assert [condition.name for condition in pieces.failed] == ["partition"]
    order = certify_recovery(path(0.1, 0.1, 0.9, 0.9, 0.1), labels)
    assert [condition.name for condition in order.failed] == ["order"]
    assert "may return these clusters all the same" in order.describe()
    assert not certify_recovery(tree, [3] * 6).holds


def test_singletons_and_unclustered_nodes():
    everything = certify_recovery(path(0.5, 0.5, 0.5), [0, 1, 2, 3])
    assert everything.holds
    assert finds(path(0.5, 0.5, 0.5), [0, 1, 2, 3])
    tree = path(0.1, 0.1, 0.1, 0.1, 0.9)
    assert certify_recovery(tree, [0, 0, 0, 0, 0, -1]).holds
    assert finds(tree, [0, 0, 0, 0, 0, 1])
    pair = certify_recovery(path(0.1, 0.9, 0.1, 0.1), [0, 0, 1, 1, 1])
    assert pair.failed[0].name == "stability"


def test_errors():
    with pytest.raises(GraphError, match="not a forest of 2 components; certify each component"):
        certify_recovery(Tree(Topology([0, 2], [1, 3]), [0.1, 0.2]), [0, 0, 1, 1])
    with pytest.raises(WeightError, match="needs positive weights"):
        certify_recovery(path(0.0, 0.2), [0, 0, 1])
    with pytest.raises(UsageError, match="2 labels were given for 3 nodes"):
        certify_recovery(path(0.1, 0.2), [0, 0])
    with pytest.raises(UsageError, match="cannot make up 100 nodes"):
        certify_interval(0.1, 0.2, 0.9, 1, smallest=3, largest=4, n_nodes=100, n_clusters=2)
    with pytest.raises(UsageError, match="must be positive and finite"):
        certify_interval(0.3, 0.2, 0.9, 1, **SHAPE)
    with pytest.raises(UsageError, match="smallest <= largest, not 5 and 4"):
        certify_interval(0.1, 0.2, 0.9, 1, smallest=5, largest=4, n_nodes=9, n_clusters=2)
    with pytest.raises(UsageError, match="gaussian, laplace, cube, not 'uniform'"):
        probability_of_no_larger_noise(1, 1, scale=1, noise="uniform")
    with pytest.raises(UsageError, match="scale above 0, not 1, 1 and 0"):
        probability_of_no_larger_noise(1, 1, scale=0)


def test_the_page_of_the_proof_runs():
    page = Path(__file__).parents[2] / "docs" / "proofs" / "recovery.md"
    assert doctest.testfile(str(page), module_relative=False, encoding="utf-8") == (0, 4)
