"""Blocks of patches: found at several scales, none where weights know of none, counted by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ptclust._statistics import agreement
from ptclust.clustering.communities._blocks import (
    Blocks,
    evidences,
    gains_of_halves,
    gains_of_merging,
)
from ptclust.clustering.communities._judge import BINS, CUTS, Judge

N_PATCHES, SIZE = 90, 8
N_ALONG, N_ACROSS = 2000, 8000


def patches(scales, *, noise, seed=0):
    """Return edges, distances, the patch of every node and the cluster of every patch.

    As geometry makes them, clusters are rows of patches, each joined to the next. Edges across join
    random nodes. Weights are those of planted graphs of several scales.
    """
    random = np.random.default_rng(seed)
    patch = np.repeat(np.arange(N_PATCHES), SIZE)
    of_patch = np.arange(N_PATCHES) * len(scales) // N_PATCHES
    truth = of_patch[patch]
    a, b = np.triu_indices(len(patch), 1)
    inner = np.flatnonzero(patch[a] == patch[b])
    along = np.flatnonzero((truth[a] == truth[b]) & (patch[b] - patch[a] == 1))
    across = np.flatnonzero(truth[a] != truth[b])
    kept = [inner, random.choice(along, N_ALONG, replace=False)]
    if len(scales) > 1:
        kept.append(random.choice(across, N_ACROSS, replace=False))
    a, b = (ends[np.concatenate(kept)] for ends in (a, b))
    scale = np.maximum(scales[truth[a]], scales[truth[b]])
    weights = np.where(truth[a] == truth[b], 0.2, 0.95) * scale
    weights = weights + random.normal(0, noise, len(weights))
    return SimpleNamespace(sources=a, targets=b), weights, patch, of_patch


def blocks_of(edges, weights, patch):
    """Return the blocks of distances."""
    return Blocks(edges, patch, np.searchsorted(np.quantile(-weights, CUTS), -weights))


class TestSearch:
    def test_clusters_of_several_scales_are_found(self):
        """Edges across the two light clusters are about as light as those within the heavy one."""
        scales = np.array([1.0, 0.3, 1 / 6])
        edges, weights, patch, truth = patches(scales, noise=0.4)
        assert agreement(truth, blocks_of(edges, weights, patch).search()) > 0.95

    @pytest.mark.parametrize("seed", range(5))
    def test_geometry_is_not_divided(self, seed):
        edges, weights, patch, _ = patches(np.ones(1), noise=0.4, seed=seed)
        assert blocks_of(edges, weights, patch).search().max() == 0

    @pytest.mark.parametrize("seed", range(5))
    def test_clusters_that_weights_do_not_know_are_not_divided(self, seed):
        edges, weights, patch, _ = patches(np.ones(3), noise=0.4, seed=seed)
        weights = np.random.default_rng(seed).normal(0, 1, len(weights))
        assert blocks_of(edges, weights, patch).search().max() == 0

    def test_many_clusters_need_no_levels_of_their_own(self):
        edges, weights, patch, truth = patches(np.ones(15), noise=0.3)
        found = blocks_of(edges, weights, patch).search()
        assert found.max() == 14
        assert agreement(truth, found) > 0.95

    def test_patches_without_edges(self):
        edges, weights, patch, truth = patches(np.ones(3), noise=0.2)
        patch = np.append(patch, N_PATCHES)  # a node that nothing is joined to
        found = blocks_of(edges, weights, patch).search()
        assert len(found) == N_PATCHES + 1
        assert agreement(truth, found[:-1]) == 1.0

    def test_equal_weights(self):
        edges, weights, patch, _ = patches(np.ones(3), noise=0.2)
        assert blocks_of(edges, np.zeros(len(weights)), patch).search().max() == 0


class TestTables:
    @pytest.fixture
    def known(self):
        """Return edges with bins, and a partition of the patches in six."""
        edges, weights, patch, truth = patches(np.array([1.0, 0.5, 0.2]), noise=0.3)
        bins = np.searchsorted(np.quantile(-weights, CUTS), -weights)
        labels = 2 * truth + np.random.default_rng(0).integers(2, size=len(truth))
        return edges, weights, patch, bins, labels

    def table(self, edges, patch, bins, labels):
        """Count edges one by one."""
        n = int(labels.max()) + 1
        table = np.zeros((n, n, BINS))
        for a, b, each in zip(
            labels[patch[edges.sources]], labels[patch[edges.targets]], bins, strict=True
        ):
            table[a, b, each] += 1
            if a != b:
                table[b, a, each] += 1
        return table

    def test_edges_are_counted(self, known):
        edges, _, patch, bins, labels = known
        found = Blocks(edges, patch, bins).table(np.eye(6)[labels])
        np.testing.assert_allclose(found, self.table(edges, patch, bins, labels))

    def test_what_a_cluster_gains_by_its_division(self, known):
        edges, _, patch, bins, halves = known
        gains = gains_of_halves(self.table(edges, patch, bins, halves))
        whole = np.logaddexp.reduce(evidences(self.table(edges, patch, bins, halves // 2)))
        for cluster in range(3):
            labels = np.where(halves // 2 == cluster, 3 + halves % 2, halves // 2)
            labels = np.unique(labels, return_inverse=True)[1]
            divided = np.logaddexp.reduce(evidences(self.table(edges, patch, bins, labels)))
            assert gains[cluster] == pytest.approx(divided - whole)

    def test_likelihoods_are_those_of_the_judge(self, known):
        """The judge asks the same of edges that it holds back."""
        edges, weights, patch, bins, labels = known
        some = SimpleNamespace(**vars(edges), similarity=-weights)
        held = np.arange(len(weights))
        judge = Judge(some, -weights, np.zeros(len(weights)))
        judge._tables = judge._tables[:1]  # the same is expected of all
        a, b = (labels[patch[ends]] for ends in (edges.sources, edges.targets))
        told = judge.blocks_tell(a, b, held)
        found, one = (
            evidences(self.table(edges, patch, bins, each)) for each in (labels, 0 * labels)
        )
        np.testing.assert_allclose(found - one[0], told, rtol=1e-3)  # an edge at a cut

    def test_what_two_clusters_gain_as_one(self, known):
        edges, _, patch, bins, labels = known
        table = self.table(edges, patch, bins, labels)
        gains = gains_of_merging(table)
        apart = np.logaddexp.reduce(evidences(table))
        for one, other in zip(*np.triu_indices(6, 1), strict=True):
            merged = np.unique(np.where(labels == other, one, labels), return_inverse=True)[1]
            value = np.logaddexp.reduce(evidences(self.table(edges, patch, bins, merged)))
            assert gains[one, other] == gains[other, one] == pytest.approx(value - apart)
