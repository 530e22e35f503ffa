"""The page of a release in a real browser, opened from disk."""

from __future__ import annotations

import numpy as np
import pytest

from ptclust import Release, Sensitivity, Series
from ptclust.report import write_report
from ptclust.series.page import write_series_report
from tests.report.releases import HOSTILE, planted, with_labels, with_levels
from tests.series.months import month

NAMES = [f"station {i}" for i in range(10)]


@pytest.fixture(scope="module")
def small() -> Release:
    return planted([5, 3, 2], names=NAMES)


@pytest.fixture
def opened(browser, tmp_path):
    def open_page(release, **options):
        write_report(release, tmp_path / "report.html", overwrite=True, **options)
        browser.open(tmp_path / "report.html")
        return browser

    yield open_page
    assert browser.console() == [], "the console has no error"


def numbers(browser) -> list[str]:
    return [row.text for row in browser.all("#table tbody tr th") if row.is_displayed()]


def chosen(browser) -> list[str]:
    return [row.get_attribute("data-cluster") for row in browser.all("#table tr.on")]


def test_it_opens_without_the_network(opened, small):
    browser = opened(small)
    assert [each.partition(":")[0] for each in browser.requests()] == ["file"]
    assert browser.one("#guarantee").text.startswith("Whatever else somebody knows")
    assert browser.one("#controls").is_displayed()
    browser.screenshot("small")


def test_rows_sort_both_ways(opened, small):
    browser = opened(small)
    assert numbers(browser) == ["0", "1", "2"]
    button = browser.one("th[data-key=size] button")
    button.click()
    assert numbers(browser) == ["2", "1", "0"]
    assert browser.one("th[data-key=size]").get_attribute("aria-sort") == "ascending"
    browser.one("th[data-key=label] button").click()
    assert numbers(browser) == ["0", "1", "2"]
    browser.one("th[data-key=within] button").click()
    within = [
        float(row.find_elements("css selector", "td")[1].text)
        for row in browser.all("#table tbody tr")
    ]
    assert within == sorted(within)


def test_rows_are_searched_by_member(opened, small):
    browser = opened(small)
    browser.type("#search", "STATION 9")
    (row,) = [row for row in browser.all("#table tbody tr") if row.is_displayed()]
    assert "station 9" in row.text
    browser.one("#clear").click()
    assert len(numbers(browser)) == 3


def test_a_cluster_is_highlighted_by_mouse_and_keyboard(opened, small):
    browser = opened(small)
    browser.run(
        "document.querySelector('#picture [data-cluster=\"1\"]').dispatchEvent(CLICK)".replace(
            "CLICK", "new MouseEvent('click', {bubbles: true})"
        )
    )
    assert chosen(browser) == ["1"]
    assert "cluster 1, 3 nodes" in browser.one("#status").text
    assert len(browser.all("#picture .cluster.on")) == 1
    browser.screenshot("highlighted")
    group = browser.one('#picture [data-cluster="2"]')
    browser.driver.execute_script("arguments[0].focus()", group)
    group.send_keys("\ue007")  # enter
    assert chosen(browser) == ["2"]
    browser.one('#table tr[data-cluster="2"] th button').click()
    assert chosen(browser) == []


def test_everything_that_reacts_is_reached_by_tab(opened):
    browser = opened(with_levels())
    seen = set()
    for _ in range(40):
        browser.driver.switch_to.active_element.send_keys("\ue004")
        active = browser.driver.switch_to.active_element
        seen.add(
            active.get_attribute("id") or active.get_attribute("data-cluster") or active.tag_name
        )
    assert {"level", "find", "search", "clear", "0", "3", "button", "summary", "release"} <= seen


def test_a_node_is_found(opened, small):
    browser = opened(small, coordinates=np.arange(20.0).reshape(10, 2))
    browser.type("#find", "station")
    assert len(browser.all("#found button")) == 10
    browser.type("#find", "station 7")
    place = small.names.tolist().index("station 7")
    label = small.labels[place]
    assert browser.one("#status").text.startswith(f"station 7: cluster {label}")
    assert chosen(browser) == [str(label)]
    assert browser.one("#ring").get_attribute("visibility") == "visible"
    assert browser.one("i.hit").text == "station 7"
    browser.type("#find", "nowhere")
    assert browser.one("#status").text == "No node found"


def test_names_are_beside_their_nodes_where_they_fit(opened, small):
    browser = opened(small)
    shown = [each.text for each in browser.all("#names text")]
    assert sorted(shown) == sorted(NAMES)
    browser.one('#table tr[data-cluster="1"] th button').click()
    shown = [each.text for each in browser.all("#names text")]
    assert shown == [str(name) for name in small.names[small.labels == 1]]
    crowded = planted([40, 40], names=[f"a station with a long name {i:02}" for i in range(80)])
    browser = opened(crowded)
    boxes = [each.rect for each in browser.all("#names text")]
    assert 4 < len(boxes) < 80
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart_x = abs(one["x"] - other["x"]) >= min(one["width"], other["width"])
            assert apart_x or abs(one["y"] - other["y"]) > 8


def test_the_name_under_the_pointer_is_shown(opened, small):
    from selenium.webdriver import ActionChains

    browser = opened(small, coordinates=np.arange(20.0).reshape(10, 2))
    marks = browser.one("#picture").rect
    ActionChains(browser.driver).move_to_element_with_offset(
        browser.one("#picture"), 0, 0
    ).perform()
    assert browser.one("#hover").text == ""
    left, top = browser.run("JSON.parse(document.getElementById('data').textContent).places")[:2]
    scale = marks["width"] / 1000
    height = browser.run("document.getElementById('picture').viewBox.baseVal.height")
    moved = round((left - 500) * scale), round((top - height / 2) * scale)
    ActionChains(browser.driver).move_to_element_with_offset(
        browser.one("#picture"), *moved
    ).perform()
    assert browser.one("#hover").text == "station 0 (cluster 0)"


def test_a_level_is_chosen(opened):
    browser = opened(with_levels())
    assert len(numbers(browser)) == 4
    before = browser.one("#shapes path").get_attribute("d")
    select = browser.one("#level")
    select.find_elements("css selector", "option")[0].click()
    assert len(numbers(browser)) == 2
    assert len(browser.all("#shapes .cluster")) == 2
    browser.screenshot("coarse")
    assert browser.one("#table tbody td").text == "40"
    select.find_elements("css selector", "option")[2].click()
    assert len(numbers(browser)) == 80
    select.find_elements("css selector", "option")[1].click()
    assert browser.one("#shapes path").get_attribute("d") == before, "as Python drew it"
    browser.type("#find", "node 055")
    label = chosen(browser)
    select.find_elements("css selector", "option")[0].click()
    assert browser.one("#status").text.startswith("node 055: cluster")
    assert chosen(browser) != label or label == ["1"]


def test_evidence_is_that_of_the_level_of_the_release(opened):
    def evidence():
        return [each.text for each in browser.all("#table tbody td:nth-child(5)")]

    browser = opened(with_levels())
    known = ["both", "weights", "topology", "none"]
    assert evidence() == known
    options = browser.one("#level").find_elements("css selector", "option")
    options[0].click()
    assert evidence() == ["-", "-"]
    options[1].click()
    assert evidence() == known


def test_a_cluster_is_zoomed_in_on(opened, small):
    browser = opened(small, coordinates=np.arange(20.0).reshape(10, 2))
    assert not browser.one("#zoom").is_enabled()
    browser.one('#table tr[data-cluster="2"] th button').click()
    before = browser.one("#picture .on path").rect
    browser.one("#zoom").click()
    after = browser.one("#picture .on path").rect
    assert after["width"] > 3 * before["width"]
    browser.screenshot("zoomed")
    whole = browser.run("document.querySelector('#shapes path').getAttribute('d')")
    browser.one("#clear").click()
    assert browser.run("document.querySelector('#shapes path').getAttribute('d')") != whole


def test_the_release_is_downloaded(opened, small):
    browser = opened(small)
    browser.one("#release").click()
    file = browser.folder / f"release-{small.statement.id[:8]}.json"
    browser.until(file.exists)
    assert Release.load(file).statement == small.statement
    browser.one("#labels").click()
    table = browser.folder / f"labels-{small.statement.id[:8]}.csv"
    browser.until(table.exists)
    assert table.read_text().splitlines()[0] == "node,cluster"


def test_hostile_names_do_nothing(opened):
    browser = opened(planted([6, 4], names=list(HOSTILE)))
    assert browser.driver.title == "Clusters published with differential privacy"
    shown = [each.get_property("textContent") for each in browser.all("#table i")]
    assert HOSTILE[0] in shown
    browser.type("#find", "<script>")
    assert browser.one("#found button").text == HOSTILE[0]
    browser.one("#found button").click()
    browser.one("th[data-key=size] button").click()
    assert browser.driver.title == "Clusters published with differential privacy"
    assert browser.run("document.querySelectorAll('script').length") == 2
    browser.screenshot("hostile")


def test_ten_thousand_nodes(opened):
    release = planted([100] * 100, names=[f"station {i:05}" for i in range(10_000)])
    places = np.random.default_rng(0).normal(size=(10_000, 2)) + 5 * np.stack(
        [release.labels % 10, release.labels // 10], axis=1
    )
    browser = opened(release, coordinates=places)
    assert len(numbers(browser)) == 100
    browser.type("#find", "station 07777")
    assert len(chosen(browser)) == 1
    name, box = browser.one("i.hit").rect, browser.one("#rows").rect
    assert box["y"] <= name["y"] < box["y"] + box["height"], "it is brought into view"
    browser.screenshot("ten-thousand-map")
    browser = opened(release)
    assert "Aggregated" in browser.one("figcaption").text
    browser.screenshot("ten-thousand")


def boxes(browser, selector):
    """Return left, top, right and bottom of all parts of the picture that a selector finds."""
    return browser.run(
        f"[...document.querySelectorAll('{selector}')].map((e) => {{ const b = e.getBBox(); "
        "return [b.x, b.y, b.x + b.width, b.y + b.height]; })"
    )


def test_no_mark_is_hidden_by_a_number(opened):
    """Ten clusters in a crowd: numbers are beside marks, and in any case below them."""
    release = planted([12] * 10)
    random = np.random.default_rng(3)
    places = random.normal(size=(120, 2)) * 0.5 + random.normal(size=(10, 2))[release.labels] * 3
    browser = opened(release, coordinates=places)
    data = browser.run("JSON.parse(document.getElementById('data').textContent)")
    marks = np.array(data["places"]).reshape(-1, 2)
    for left, top, right, bottom in boxes(browser, "#tags text"):
        inside = (marks > [left, top]).all(axis=1) & (marks < [right, bottom]).all(axis=1)
        assert not inside.any()
    assert len(boxes(browser, "#tags text")) == 10
    order = browser.run("[...document.getElementById('picture').children].map((each) => each.id)")
    assert order.index("tags") < order.index("shapes")
    browser.screenshot("crowd")


def test_the_scale_bar_follows_the_zoom(opened):
    release = planted([5, 3, 2])
    places = np.stack([np.linspace(0, 1, 10), np.zeros(10)], axis=1)
    browser = opened(release, coordinates=places, degrees=True)
    assert browser.one("#bar text").text == "10 km"
    browser.run(
        "document.querySelector('#picture [data-cluster=\"2\"]').dispatchEvent("
        "new MouseEvent('click', {bubbles: true}))"
    )
    browser.one("#zoom").click()
    assert browser.one("#bar text").text == "2 km"
    browser.screenshot("zoomed-map")
    browser.one("#clear").click()
    assert browser.one("#bar text").text == "10 km"


def test_a_node_of_a_cluster_without_a_row_is_found(opened):
    release = planted([1_000, 1_000], names=[f"station {i:04}" for i in range(2_000)])
    browser = opened(with_labels(release, np.arange(2_000) // 2))
    assert browser.one("#table tbody tr:last-child th").text == "others"
    label = release.names.tolist().index("station 1999") // 2
    browser.type("#find", "station 1999")
    assert browser.one("#status").text == f"station 1999: cluster {label}"
    assert chosen(browser) == ["rest"]
    assert browser.one("i.hit").text == "station 1999"
    assert len(browser.all("#extra path")) == 1
    browser.one("#clear").click()
    assert browser.all("#extra path") == []


def test_a_narrow_screen_does_not_scroll_sideways(opened):
    browser = opened(with_levels())
    browser.tell(
        "Emulation.setDeviceMetricsOverride",
        width=360,
        height=740,
        deviceScaleFactor=1,
        mobile=True,
    )
    assert browser.run("document.documentElement.scrollWidth") <= 360
    browser.screenshot("narrow")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(opened, scheme):
    browser = opened(with_levels())
    browser.tell(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    colours = browser.run(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    ink, paper = (sum(map(int, each[4:-1].split(","))) for each in colours)
    assert (ink > 600 and paper < 100) if scheme == "dark" else (ink < 100 and paper > 700)
    browser.screenshot(scheme)


def test_paper(opened):
    browser = opened(with_levels())
    browser.tell("Emulation.setEmulatedMedia", media="print", features=[])
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert not browser.one("#controls").is_displayed()
    assert all(each.get_property("open") for each in browser.all("details"))
    browser.screenshot("print")
    pages = browser.tell("Page.printToPDF")["data"]
    assert len(pages) > 10_000
    browser.tell("Emulation.setEmulatedMedia", media="", features=[])


def test_without_scripts_the_essentials_are_there(browser, small, tmp_path):
    browser.tell("Emulation.setScriptExecutionDisabled", value=True)
    write_report(small, tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    assert not browser.one("#controls").is_displayed()
    assert len(browser.all("#table i")) == 10
    assert browser.one("#guarantee").is_displayed()
    assert len(browser.all("#shapes path")) == 3
    browser.one("#release").click()
    browser.until((browser.folder / f"release-{small.statement.id[:8]}.json").exists)


def test_slider_of_a_series_shows_one_period_at_a_time(browser, tmp_path):
    series = Series(tmp_path / "year", epsilon=3, delta=1e-6, releases=3)
    for number in range(3):
        series.publish(month(number), f"m{number}", sensitivity=Sensitivity(l1=1))
    write_series_report(series, tmp_path / "year.html")
    browser.open(tmp_path / "year.html")

    def shown() -> list[str]:
        found = browser.all(".month")
        return [each.get_attribute("data-period") for each in found if each.is_displayed()]

    assert browser.one("#slider").is_displayed()
    assert (browser.one("#shown").text, shown()) == ("m2", ["m2"])
    browser.one("#slider").send_keys("\ue012")  # to the left
    assert (browser.one("#shown").text, shown()) == ("m1", ["m1"])
    browser.screenshot("series")
    assert browser.console() == [], "the console has no error"
