"""How probable nodes and clusters of a release are."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptclust import Graph, PTClust, Release, Sensitivity
from ptclust.clustering.certainty import SURE, Certainty, _redrawn
from ptclust.errors import InputError, UsageError
from ptclust.report import report_page

SIZES = (20, 16, 12, 8)
TRUTH = np.repeat(np.arange(len(SIZES)), SIZES)


def blocks(inside, seed=0, across=4.0):
    """Return a complete graph of counts, larger within blocks."""
    a, b = np.triu_indices(len(TRUTH), 1)
    means = np.where(TRUTH[a] == TRUTH[b], inside, across)
    counts = np.random.default_rng(seed).poisson(means).astype(float)
    return Graph(a, b, counts, n_nodes=len(TRUTH), kind="similarity")


def released(inside=7.0, epsilon=0.5, seed=0, **options):
    options = {"sensitivity": Sensitivity(l1=1), "random_state": seed, **options}
    return PTClust(epsilon=epsilon, **options).fit(blocks(inside, seed)).release_


@pytest.fixture(scope="module")
def release():
    """Some nodes of it are sure, and others are not."""
    made = released()
    made.find_certainty()
    return made


labels_lists = st.lists(st.integers(0, 4), min_size=2, max_size=30)


class TestComparison:
    @given(labels_lists)
    def test_the_same_clusters_again_are_certain(self, given_labels):
        _, labels = np.unique(given_labels, return_inverse=True)
        found = Certainty.of(labels, [labels.max() - labels] * 3)  # numbers do not matter
        expected = 1.0 if labels.max() else 0.0  # one cluster tells nothing apart
        assert np.all(found.nodes == expected)
        assert np.all(found.clusters == expected)
        assert np.all(found.elsewhere == -1)

    @given(labels_lists, st.randoms(use_true_random=False))
    def test_probabilities_match_a_naive_computation(self, given_labels, random):
        _, labels = np.unique(given_labels, return_inverse=True)
        again = [
            np.unique([random.randrange(4) for _ in labels], return_inverse=True)[1]
            for _ in range(3)
        ]
        found = Certainty.of(labels, again)
        if labels.max() == 0:
            return
        for node in range(len(labels)):
            overlaps = []
            for other in again:
                own, there = labels == labels[node], other == other[node]
                overlaps.append(2 * (own & there).sum() / (own.sum() + there.sum()))
            assert found.nodes[node] == pytest.approx(np.mean(overlaps))
        for cluster in range(labels.max() + 1):
            own = labels == cluster
            comes = [
                any((own & (o == k)).sum() > 0.5 * (own | (o == k)).sum() for k in range(4))
                for o in again
            ]
            assert found.clusters[cluster] == pytest.approx(np.mean(comes))

    def test_unclustered_nodes_have_probability_0(self):
        shown = np.array([0, 0, 0, 1, 1, -1])
        found = Certainty.of(shown, [np.array([0, 0, 0, 1, 1, 1])])
        assert found.nodes[-1] == 0
        assert found.elsewhere[-1] == -1
        assert len(found.clusters) == 2

    def test_merged_clusters_do_not_count_as_found_again(self):
        shown = np.repeat(np.arange(4), 5)
        found = Certainty.of(shown, [np.zeros(20, int)])
        assert found.nodes.max() < 0.5
        assert not found.clusters.any()


class TestMeaning:
    def test_what_is_given_as_sure_is_right(self):
        given_probability, right = [], []
        for seed, (inside, epsilon) in enumerate(
            [(14.0, 0.5), (7.0, 0.5), (7.0, 0.3), (6.0, 0.5), (6.0, 0.3), (8.0, 0.2)]
        ):
            made = released(inside, epsilon, seed)
            if made.n_clusters < 2:
                continue
            counts = np.zeros((len(SIZES), made.n_clusters))
            np.add.at(counts, (TRUTH, made.labels), 1)
            right.append(made.labels == counts.argmax(axis=1)[TRUTH])
            given_probability.append(made.probabilities)
        all_given, all_right = np.concatenate(given_probability), np.concatenate(right)
        sure = all_given >= SURE
        assert sure.mean() > 0.1
        assert all_right[sure].mean() >= 0.85
        assert (~sure).mean() > 0.1
        # Probabilities may be too low near what can be seen at all, hardly too high.
        assert -0.05 < all_right.mean() - all_given.mean() < 0.2

    def test_more_noise_is_less_sure(self):
        strong, weak = released(14.0, 5.0), released(7.0, 0.3)
        assert strong.probabilities.mean() > 0.95
        assert weak.probabilities.mean() < strong.probabilities.mean() - 0.1

    def test_one_cluster_is_sure_of_nothing(self):
        made = released(4.0, 0.1)
        assert made.n_clusters == 1
        assert not made.probabilities.any()
        assert "there are no probabilities" in made.summary.certainty_words

    def test_clusters_of_the_topology_alone_are_not_certain_by_themselves(self):
        random = np.random.default_rng(3)
        a, b = np.triu_indices(60, 1)
        edge = random.random(len(a)) < np.where(a // 20 == b // 20, 0.3, 0.04)
        graph = Graph(a[edge], b[edge], np.ones(edge.sum()), n_nodes=60, kind="similarity")
        model = PTClust(epsilon=0.1, sensitivity=Sensitivity(l1=1), random_state=1)
        made = model.fit(graph).release_
        assert made.evidence.partition == "topology"
        assert 0.3 < made.probabilities.min() < 1

    def test_pairs(self, release):
        labels, nodes = release.labels, release.probabilities
        first, second = np.flatnonzero(labels == 0)[np.argsort(-nodes[labels == 0])[:2]].tolist()
        other = int(np.flatnonzero(labels == 1)[np.argmax(nodes[labels == 1])])
        assert release.probability_together(first, second) > 0.5
        assert release.probability_together(first, other) < 0.5
        with pytest.raises(InputError, match="no node"):
            release.probability_together(0, "nobody")

    def test_trees_have_probabilities_too(self):
        made = released(14.0, 5.0, mechanism="pamst", clusterer="dbmstclu")
        assert not made.published.whole_graph
        assert made.probabilities.shape == (len(TRUTH),)
        assert 0 <= made.probabilities.min() <= made.probabilities.max() <= 1


class TestSoundness:
    def test_a_file_without_private_weights_gives_the_same(self, release, tmp_path):
        plain = released()
        assert plain.certainty is None
        plain.save(tmp_path / "r.json")
        loaded = Release.load(tmp_path / "r.json")
        assert loaded.certainty is None
        assert np.array_equal(loaded.probabilities, release.probabilities)
        assert np.array_equal(loaded.cluster_probabilities, release.cluster_probabilities)

    def test_noise_is_fresh_and_as_large_as_the_release_has_it(self, release):
        published = release.published
        draws = [_redrawn(published, i).noisy_weights - published.noisy_weights for i in range(6)]
        deviation = np.std(draws)
        assert deviation == pytest.approx(published.noise.standard_deviation, rel=0.05)
        assert abs(np.corrcoef(draws[0], draws[1])[0, 1]) < 0.1
        own = published.noisy_weights - blocks(7.0).weights  # seeds of experiments are others
        assert abs(np.corrcoef(draws[0], own)[0, 1]) < 0.1

    def test_edges_are_left_out_every_second_time_where_pairs_lack_one(self):
        a, b = np.triu_indices(40, 1)
        edge = np.random.default_rng(0).random(len(a)) < 0.3
        graph = Graph(a[edge], b[edge], np.ones(edge.sum()), n_nodes=40, kind="similarity")
        model = PTClust(epsilon=1, sensitivity=Sensitivity(l1=1), random_state=1)
        published = model.fit(graph).release_.published
        parts = [_redrawn(published, i).topology.n_edges / graph.n_edges for i in (0, 1)]
        assert 0.8 < parts[0] < 0.97
        assert parts[1] == 1


class TestFiles:
    def test_it_is_stored(self, release, tmp_path):
        release.save(tmp_path / "r.json")
        loaded = Release.load(tmp_path / "r.json")
        for name in ("nodes", "clusters", "elsewhere"):
            stored, made = (getattr(each.certainty, name) for each in (loaded, release))
            assert np.array_equal(stored, made)
        copied = pickle.loads(pickle.dumps(release))
        assert np.array_equal(copied.certainty.nodes, release.certainty.nodes)

    @pytest.mark.parametrize(
        ("part", "value"),
        [
            ("nodes", np.full(len(TRUTH), 1.5)),
            ("nodes", np.full(len(TRUTH), np.nan)),
            ("nodes", np.zeros(3)),
            ("clusters", np.zeros(99)),
            ("elsewhere", np.full(len(TRUTH), 99)),
        ],
    )
    def test_what_does_not_fit_is_refused(self, release, part, value):
        from dataclasses import replace

        bad = replace(release.clustering, certainty=replace(release.certainty, **{part: value}))
        with pytest.raises(InputError, match="certainty"):
            replace(release, clustering=bad)

    def test_tables_have_it_once_it_is_computed(self, release, tmp_path):
        assert "probability" not in released().to_pandas()
        frame = release.labels_frame()
        assert np.allclose(frame["probability"], release.probabilities, atol=5e-4)
        release.to_csv(tmp_path / "l.csv")
        head = (tmp_path / "l.csv").read_text().splitlines()[0]
        assert head == "node,cluster,probability,evidence"
        release.to_geojson(tmp_path / "l.geojson", np.zeros((len(TRUTH), 2)))
        first = json.loads((tmp_path / "l.geojson").read_text())["features"][0]["properties"]
        assert first["probability"] == pytest.approx(release.probabilities[0], abs=5e-4)


class TestLeavingOut:
    def test_clusters_keep_their_probability_under_new_numbers(self):
        shown, kept = np.array([0, 0, 0, 1, 1, 2]), np.array([1, -1, -1, 0, 0, -1])
        found = Certainty(np.zeros(6), np.array([0.3, 0.6, 0.9]), np.array([1, 1, -1, 0, 2, 0]))
        made = found.without(shown, kept)
        assert made.clusters.tolist() == [0.6, 0.3]
        assert made.elsewhere.tolist() == [0, -1, -1, 1, -1, -1]

    def test_uncertain_nodes_are_unclustered(self, release):
        least = float(np.quantile(release.probabilities, 0.4))
        made = release.recluster(min_probability=least)
        kept = release.probabilities >= least
        assert np.array_equal(made.labels >= 0, kept)
        sizes = np.bincount(made.labels[kept])
        assert np.all(np.diff(sizes) <= 0)
        assert len(made.cluster_probabilities) == made.n_clusters
        for cluster in range(made.n_clusters):
            before = np.unique(release.labels[made.labels == cluster])
            assert len(before) == 1
            known = release.cluster_probabilities[before[0]]
            assert made.cluster_probabilities[cluster] == known
        assert any("unclustered" in line for line in made.statement.post_processing)

    def test_of_the_estimator(self):
        settings = {"epsilon": 0.5, "sensitivity": Sensitivity(l1=1), "random_state": 0}
        model = PTClust(**settings, min_probability=0.8).fit(blocks(7.0))
        assert np.all((model.labels_ < 0) == (model.probabilities_ < 0.8))
        assert PTClust(**settings).fit(blocks(7.0)).release_.certainty is None
        assert PTClust(**settings, certainty=True).fit(blocks(7.0)).release_.certainty is not None

    def test_it_can_be_saved(self, release, tmp_path):
        made = release.recluster(min_probability=0.8)
        made.save(tmp_path / "r.json")
        assert np.array_equal(Release.load(tmp_path / "r.json").labels, made.labels)

    @pytest.mark.parametrize("least", [-0.1, 1.1, "much", float("nan"), True])
    def test_it_is_a_probability(self, release, least):
        with pytest.raises(UsageError, match="min_probability must be a number from 0 to 1"):
            release.recluster(min_probability=least)


class TestWords:
    def test_the_verdict_counts(self, release):
        summary = release.summary
        sure = int((release.cluster_probabilities >= SURE).sum())
        unsure = int((release.probabilities < SURE).sum())
        assert f"{sure} of {release.n_clusters} clusters" in summary.separation.verdict
        assert f"{unsure} of {len(TRUTH)} nodes" in summary.separation.verdict
        assert "probability" in summary.to_text()
        document = summary.to_dict()
        assert document["clusters"][0]["probability"] == release.cluster_probabilities[0]

    def test_nodes_that_may_be_elsewhere_are_named(self, release):
        elsewhere = release.certainty.elsewhere
        assert (elsewhere >= 0).any()
        node = int(np.argmin(np.where(elsewhere >= 0, release.certainty.nodes, 2)))  # listed first
        line = f"{node}: in {release.labels[node]}, or {elsewhere[node]}"
        assert line in release.summary.to_text()
        page = report_page(release)
        assert f"<li>{line}</li>" in page
        assert 'class="pale"' in page

    def test_pictures_are_paler_where_nodes_are_not_sure(self, release):
        axes = release.plot()
        alphas = [each.get_alpha() for each in axes.collections if each.get_alpha() is not None]
        assert len(np.concatenate([np.atleast_1d(each) for each in alphas])) == len(TRUTH)

    def test_without_it_nothing_is_said(self):
        made = released()
        assert made.summary.certainty_words == ""
        assert "sure" not in made.summary.to_text()
        assert "pale" not in report_page(made).split("</style>")[1]
        assert made.certainty is None  # reading did not compute it


class TestCommand:
    def options(self, tmp_path):
        graph = blocks(7.0)
        rows = zip(graph.sources.tolist(), graph.targets.tolist(), graph.weights, strict=True)
        text = "source,target,weight\n" + "".join(f"{a},{b},{w}\n" for a, b, w in rows)
        (tmp_path / "edges.csv").write_text(text)
        return (
            *("cluster", "edges.csv", "--epsilon", 0.5, "--l1", 1, "--kind", "similarity"),
            *("--random-state", 0, "--labels", "l.csv"),
        )

    def test_it_is_computed_unless_left_out(self, run, tmp_path):
        options = self.options(tmp_path)
        assert run(*options, "-o", "r.json")[0] == 0
        assert (tmp_path / "l.csv").read_text().startswith("node,cluster,probability,")
        assert Release.load("r.json").certainty is not None
        code, out, _ = run("show", "r.json")
        assert code == 0
        assert "clusters are certain" in " ".join(out.split())
        code, _, _ = run(*options, "-o", "s.json", "--no-certainty", "--overwrite", "l.csv")
        assert code == 0
        assert (tmp_path / "l.csv").read_text().startswith("node,cluster,evidence")
        assert Release.load("s.json").certainty is None
        code, _, _ = run("recluster", "s.json", "-o", "t.json", "--min-probability", 0.8)
        made = Release.load("t.json")
        assert code == 0
        assert np.array_equal(made.labels < 0, made.probabilities < 0.8)

    def test_min_probability(self, run, tmp_path):
        options = self.options(tmp_path)
        assert run(*options, "-o", "r.json", "--min-probability", 0.8)[0] == 0
        made = Release.load("r.json")
        assert np.array_equal(made.labels < 0, made.probabilities < 0.8)
        assert made.n_unclustered
        code, _, err = run(*options, "-o", "s.json", "--min-probability", 2)
        assert code != 0
        assert "1" in err
