"""The page of a release as text: what is in it, what is not, and how large it is."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from ptclust import Graph, PTClust, Release, Sensitivity
from ptclust.clustering import Clustering
from ptclust.errors import FileError, InputError, PrivacyWarning
from ptclust.privacy.statement import sentence
from ptclust.report import read_coordinates, read_names, report_page, write_report
from ptclust.report.picture import Picture
from tests.report.releases import HOSTILE, planted, with_labels, with_levels

#: What a page may hold; no name of a node can add to it.
TAGS = [
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "h1",
    "h2",
    "p",
    "strong",
    "dl",
    "div",
    "dt",
    "dd",
    "nav",
    "a",
    "main",
    "section",
    "label",
    "select",
    "option",
    "input",
    "button",
    "figure",
    "figcaption",
    "svg",
    "g",
    "path",
    "text",
    "circle",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "details",
    "summary",
    "i",
    "span",
    "ul",
    "li",
    "code",
    "footer",
    "script",
]


class Reader(HTMLParser):
    """The elements of a page, their attributes, and the text of each kind."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, "every element is closed where it was opened"

    def handle_data(self, data):
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)


@pytest.fixture(scope="module")
def release() -> Release:
    return planted([5, 3, 2], names=list("abcdefghij"))


@pytest.fixture(scope="module")
def page(release) -> str:
    return report_page(release)


def test_the_order_is_that_of_a_readers_questions(page, release):
    headline = sentence(release.statement, plain=True)
    places = [page.index(html.escape(headline, quote=False).replace("'", "&#39;"))]
    places += [page.index(f'<section id="{each}"') for each in
               ("clusters", "sure", "statement", "public", "caveats", "download")]  # fmt: skip
    assert places == sorted(places)


def test_all_names_and_clusters_are_there_without_a_script(page, release):
    names = Reader(page).texts["i"]
    assert sorted(names) == list("abcdefghij")
    for label in range(3):
        assert f'<tr data-cluster="{label}">' in page


def test_the_release_is_in_the_page(page, release, tmp_path):
    from urllib.parse import unquote

    links = {
        attrs["id"]: attrs for tag, attrs in Reader(page).found if tag == "a" and "id" in attrs
    }
    kind, _, content = links["release"]["href"].partition(",")
    assert kind == "data:application/json;charset=utf-8"
    (tmp_path / "release.json").write_text(unquote(content))
    again = Release.load(tmp_path / "release.json")
    assert again.statement == release.statement
    np.testing.assert_array_equal(again.labels, release.labels)
    table = unquote(links["labels"]["href"].partition(",")[2])
    release.to_csv(tmp_path / "labels.csv")
    assert table.encode() == (tmp_path / "labels.csv").read_bytes()
    assert table.splitlines()[:2] == ["node,cluster", "a,0"]


def test_the_table_in_the_page_holds_no_formulas():
    from urllib.parse import unquote

    page = report_page(planted([2, 3], ["=cmd()", "\x1b[2J", "+1", "a", "'b"]))
    table = unquote(next(a["href"] for _, a in Reader(page).found if a.get("id") == "labels"))
    assert table.endswith("node,cluster\n'\x1b[2J,0\n'b,1\n'+1,1\n'=cmd(),0\na,1\n")
    same = report_page(planted([2, 1], ["=a", "'=a", "b"]))  # which would be one in the table
    assert not [a for _, a in Reader(same).found if a.get("id") == "labels"]


def test_nothing_comes_from_elsewhere(page):
    reader = Reader(page)
    policy = next(a["content"] for t, a in reader.found if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag, attributes in reader.found:
        assert tag not in ("link", "img", "iframe", "object")
        assert "src" not in attributes
        assert "style" not in attributes, "the policy allows no style but that of the page"
        assert not any(name.startswith("on") for name in attributes)
        if "href" in attributes:
            assert attributes["href"].startswith(("#", "data:"))
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


@pytest.mark.parametrize("coordinates", [False, True])
def test_hostile_names_are_text(coordinates):
    release = planted([6, 4], names=list(HOSTILE))
    places = np.arange(20.0).reshape(10, 2) if coordinates else None
    title = "</title><script>document.title='owned'</script>"
    page = report_page(release, coordinates=places, title=title)
    reader = Reader(page)
    assert {tag for tag, _ in reader.found} <= set(TAGS)
    assert sum(tag == "script" for tag, _ in reader.found) == 2
    assert not any(name.startswith("on") for _, attrs in reader.found for name in attrs)
    assert HOSTILE[0] in reader.texts["i"]
    assert "\u202e" not in page
    assert "\x00" not in page
    json.loads(reader.texts["script"][0])  # numbers only
    assert "owned" not in reader.texts["script"][0]


def test_names_of_ten_thousand_nodes_and_the_release_fit():
    names = [f"station {i:05}" for i in range(10_000)]
    release = planted([100] * 100, names=names)
    places = np.random.default_rng(0).random((10_000, 2))
    for coordinates in (None, places):
        page = report_page(release, coordinates=coordinates)
        assert len(page.encode()) < 1_000_000
        assert len(Reader(page).texts["i"]) == 10_000
        assert ("Aggregated" in page) == (coordinates is None)
        assert 'id="labels"' in page or "left out" in page


def test_what_does_not_fit_is_left_out_and_said():
    names = [f"a place with a long name, number {i:05}" for i in range(12_000)]
    release = planted([6_000, 5_000, 1_000], names=names, tree=False)
    page = report_page(release)
    assert len(page.encode()) < 1_000_000
    assert 'id="left-out"' in page
    assert "2,000 names are not on this page" in page
    assert len(Reader(page).texts["i"]) == 10_000
    assert "and 1,000 more" in page


@pytest.mark.parametrize("size", [1, 3])
def test_many_small_clusters_share_a_row(size):
    release = planted([5_000, 5_000], names=[f"station {i:05}" for i in range(10_000)])
    made = with_labels(release, np.arange(10_000) // size)
    page = report_page(made)
    assert len(page.encode()) < 1_000_000
    assert f"{made.n_clusters - 500:,} smaller clusters" in page
    reader = Reader(page)
    assert len(reader.texts["i"]) == 10_000
    data = json.loads(reader.texts["script"][0])["levels"][0]
    assert len(data["clusters"]) == 500
    assert data["rest"] == [made.n_clusters - 500, 10_000 - 500 * size]
    in_order = [made.labels[made.names.tolist().index(each)] for each in reader.texts["i"][::997]]
    assert data["labels"][::997] == in_order, "labels are in the order of the names"


def test_unclustered_and_lonely_nodes():
    release = planted([4, 4], names=list("abcdefgh"))
    labels = np.array([0, 0, 0, 1, 2, 2, 2, 2])
    page = report_page(with_labels(release, labels))
    assert "1 node alone" in page
    found = release.recluster("dbmstclu", min_cluster_size=8)
    page = report_page(found)
    assert f"{found.n_unclustered} nodes unclustered" in page
    bare = Release(published=release.published, statement=release.statement)
    assert "No clusters yet" in report_page(bare)


def test_a_release_without_edges_or_of_one_node(tmp_path):
    from ptclust import Graph, PTClust, Sensitivity

    model = PTClust(epsilon=1, sensitivity=Sensitivity(l1=1), privacy_unit="one")
    for n_nodes in (1, 3):
        made = model.fit(Graph([], [], [], n_nodes=n_nodes)).release_
        assert "Clusters" in report_page(made)


def test_levels_can_be_chosen():
    page = report_page(with_levels())
    assert page.count("<option") == 3
    data = json.loads(Reader(page).texts["script"][0])
    assert [len(each["clusters"]) for each in data["levels"]] == [2, 4, 80]
    assert data["level"] == 1


def test_one_level_is_a_sentence(release):
    made = with_labels(release, release.labels, (release.labels,))
    page = report_page(made)
    assert "Support:" not in page
    assert "their log-likelihood is larger by 0, where 3 is odds of 20 to 1" in page


def test_not_private_is_said_first(release):
    from dataclasses import replace

    statement = replace(release.statement, randomness="reproducible")
    made = Release(published=release.published, statement=statement, clustering=release.clustering)
    page = report_page(made)
    assert page.index("NOT private") < page.index('id="guarantee"')


class TestCoordinates:
    NAMES = np.array(["a", "b"], dtype=object)

    def write(self, tmp_path, text) -> Path:
        (tmp_path / "places.csv").write_text(text)
        return tmp_path / "places.csv"

    def test_columns_are_named_and_other_nodes_skipped(self, tmp_path):
        path = self.write(tmp_path, "id,lon,lat\nz,9,9\nb,10,60\na,20,60\n")
        found = read_coordinates(path, self.NAMES, node="id", x="lon", y="lat", degrees=True)
        np.testing.assert_allclose(found, [[10, 60], [5, 60]])

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("node,x\na,1\n", "no column 'y'"),
            ("node,x,y\na,1,2\n", "no place for node 'b'"),
            ("node,x,y\na,1,2\nb,x,2\n", "line 3"),
            ("node,x,y\na,1,2\na,1,3\nb,1,2\n", "second place"),
            ("node,x,y\na,1,2\nb,1\n", "must be numbers"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path, text, words):
        with pytest.raises(InputError, match=words):
            read_coordinates(self.write(tmp_path, text), self.NAMES)

    def test_names_to_show(self, tmp_path):
        path = self.write(tmp_path, "node,name\nb,<b>Berlin\n")
        assert read_names(path, self.NAMES) == ["a", "<b>Berlin"]
        page = report_page(planted([2], names=["a", "b"]), names=["a", "<b>Berlin"])
        assert "&lt;b&gt;Berlin" in page
        with pytest.raises(InputError, match="1 names were given for 2 nodes"):
            report_page(planted([2], names=["a", "b"]), names=["a"])

    def test_no_such_file(self, tmp_path):
        with pytest.raises(FileError, match="cannot be read"):
            read_coordinates(tmp_path / "x.csv", self.NAMES)
        (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(FileError, match="not a CSV"):
            read_coordinates(tmp_path / "bytes.csv", self.NAMES)


def test_an_existing_page_is_kept(release, tmp_path):
    write_report(release, tmp_path / "report.html")
    with pytest.raises(FileError, match="exists already"):
        write_report(release, tmp_path / "report.html")
    write_report(release, tmp_path / "report.html", overwrite=True, title="Another")
    assert "<title>Another</title>" in (tmp_path / "report.html").read_text()


class TestCommands:
    @pytest.fixture
    def edges(self, tmp_path):
        Path("edges.csv").write_text("source,target,distance\na,b,0.1\nb,c,0.2\nc,d,0.9\n")
        Path("places.csv").write_text("node,x,y\na,0,0\nb,1,0\nc,1,1\nd,5,5\n")

    CLUSTER = ("cluster", "edges.csv", "--epsilon", 1, "--l1", 1e-6, "--privacy-unit", "one ride",
               "--topology", "public", "-o", "release.json")  # fmt: skip

    def test_report(self, run, edges):
        assert run(*self.CLUSTER)[0] == 0
        code, _, err = run("report", "release.json", "-o", "report.html", "--title", "Rides")
        assert code == 0
        assert "nothing was spent" in err
        assert "<title>Rides</title>" in Path("report.html").read_text()
        assert run("report", "release.json", "-o", "report.html")[0] == 3
        assert run("report", "release.json", "-o", "-")[0] == 2
        given = "--coordinates", "places.csv", "--name", "x"
        assert run("report", "release.json", "-o", "map.html", *given)[0] == 0
        assert "coordinates that were given" in Path("map.html").read_text()

    def test_cluster_with_report(self, run, edges):
        done = run(*self.CLUSTER, "--report", "report.html", "--coordinates", "places.csv")
        assert done[0] == 0
        assert "one ride" in Path("report.html").read_text()

    def test_wrong_coordinates_cost_nothing(self, run, edges):
        Path("places.csv").write_text("node,x,y\na,0,0\n")
        done = run(*self.CLUSTER, "--report", "report.html", "--coordinates", "places.csv")
        assert done[0] == 3
        assert "no place for node 'b'" in done[2]
        assert not Path("release.json").exists()
        assert run(*self.CLUSTER, "--coordinates", "places.csv")[0] == 2


def clustered(release, labels):
    """Return a release of any weights with these clusters."""
    found = Clustering(np.array(labels), dbcvi=0.0, shift=1e8, scale=1e9)
    return replace(release, clustering=found)


class TestWords:
    @pytest.mark.parametrize(
        ("unit", "who"),
        [
            ("one ride", "one ride"),
            ("one person, at most 4 items", "one person (at most 4 items)"),
            ("a patient", "a patient"),
            ("whoever signed", "one privacy unit"),
        ],
    )
    def test_the_headline_names_the_unit_and_has_no_powers(self, release, unit, who):
        made = replace(release, statement=replace(release.statement, privacy_unit=unit))
        (words,) = [line for line in report_page(made).splitlines() if 'id="guarantee"' in line]
        assert f"what {who} contributes to the edge weights changes" in words
        assert "by a factor of at most 2.72 (pure" in words
        assert "e^" not in words

    def test_tiny_deltas_and_large_epsilons(self):
        graph = Graph([0, 1], [1, 2], [0.1, 0.9])
        common = {"sensitivity": Sensitivity(l1=1.0), "privacy_unit": "one ride"}
        tiny = PTClust(epsilon=1, delta=1e-6, mechanism="gaussian", **common).fit(graph)
        said = sentence(tiny.release_.statement, plain=True)
        assert "and an additional probability of at most 1 in 1,000,000 (approximate" in said
        with pytest.warns(PrivacyWarning):
            vast = PTClust(epsilon=50, **common).fit(graph)
        assert "by any factor (pure" in sentence(vast.release_.statement, plain=True)

    def test_the_tip_names_another_level(self):
        release = with_levels()
        assert "--level 2 -o level-2.json" in report_page(release)  # level 1 was chosen
        assert "--level 1 -o level-1.json" in report_page(release.recluster(level=0))
        assert "--level 1 -o level-1.json" in report_page(release.recluster(level=2))

    def test_no_number_has_an_exponent(self):
        weights = np.array([1e4, 1.2e6, 3.4e5, 2e6, 1e5, 1e4])
        a, b = np.triu_indices(4, 1)
        graph = Graph(a, b, weights, kind="similarity")
        model = PTClust(
            epsilon=1, sensitivity=Sensitivity(l1=1e4), privacy_unit="one ride", mechanism="laplace"
        )
        made = clustered(model.fit(graph).release_, [0, 0, 1, 1])
        body = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", report_page(made))
        sure = body[body.index("How sure") : body.index("Privacy statement")]
        assert not re.search(r"\d\.?\d*e[+-]\d", sure)
        assert "14,100" in sure  # the noise

    def test_who_publishes(self, release, run):
        page = report_page(release, publisher={"controller": "City <b>", "period": "May 2026"})
        assert "<dt>controller</dt><dd>City &lt;b&gt;</dd>" in page
        assert "<dt>period</dt><dd>May 2026</dd>" in page
        assert 'class="signature"' in page
        assert 'class="signature"' not in report_page(release)
        release.save("release.json")
        options = ("--controller", "City", "--period", "May", "--contact", "ask@city.example")
        assert run("report", "release.json", "-o", "page.html", *options)[0] == 0
        found = Path("page.html").read_text()
        for words in ("City", "May", "ask@city.example"):
            assert f"<dd>{words}</dd>" in found
        Path("e.csv").write_text("source,target,distance\na,b,1\n")
        code, _, err = run("cluster", "e.csv", "--epsilon", "1", "-o", "r.json", "--period", "May")
        assert code == 2
        assert "--period is written on the page: give --report report.html, too" in err


class TestBars:
    def test_heavy_tails_are_spread_out(self):
        """Most counts are small, one is not: no bar has nearly all of them."""
        random = np.random.default_rng(1)
        a, b = np.triu_indices(60, 1)
        weights = np.floor(random.pareto(1.0, len(a)) * 3)
        graph = Graph(a, b, weights, kind="similarity")
        model = PTClust(
            epsilon=1, sensitivity=Sensitivity(l1=10), privacy_unit="x", mechanism="laplace"
        )
        made = clustered(model.fit(graph).release_, np.arange(60) // 20)
        page = report_page(made)
        assert "the scale is logarithmic away from zero" in page
        (path,) = re.findall(r'class="across" d="([^"]*)"', page)
        heights = [float(each) for each in re.findall(r"v-([\d.]+)h", path)]
        assert len(heights) > 8
        assert min(heights) >= 2
        assert np.median(heights) > 10

    def test_a_high_bar_does_not_flatten_the_others(self):
        a, b = np.triu_indices(80, 1)
        weights = 10 + np.maximum(np.linspace(-19, 1, len(a)), 0)
        graph = Graph(a, b, weights)
        model = PTClust(
            epsilon=1, sensitivity=Sensitivity(l1=1e-3), privacy_unit="x", mechanism="laplace"
        )
        page = report_page(clustered(model.fit(graph).release_, np.arange(80) // 40))
        assert "Heights are logarithmic, too." in page


class TestScaleBar:
    def test_degrees_are_kilometres(self, release):
        places = np.stack([np.linspace(0, 1, 10), np.zeros(10)], axis=1)
        page = report_page(release, coordinates=places, degrees=True)
        # 950 pixels are 111.2 km: 10 km are 85.4 pixels
        assert re.search(r'h85\.4v-6"/><text [^>]*>10 km</text>', page)
        assert re.search(r"<text [^>]*>0\.1</text>", report_page(release, coordinates=places))

    def test_none_without_places(self, release):
        assert 'id="bar"' not in report_page(release)
        assert 'id="bar"' not in report_page(release, coordinates=np.zeros((10, 2)))

    def test_the_view_is_fitted_to_the_nodes(self, release):
        places = np.random.default_rng(0).normal(size=(10, 2)) * [3, 1] + [500, -70]
        found = Picture.of(release, places)
        low, high = found.places.min(axis=0), found.places.max(axis=0)
        assert low[0] == pytest.approx(25, abs=0.2)
        assert high[0] == pytest.approx(975, abs=0.2)
        assert (low >= 24).all()
        assert high[1] <= found.height - 24
