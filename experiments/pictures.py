"""The pictures of README and documentation: bike stations on a map, and the report of a release."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ptclust import PTClust, graph_from_flows
from ptclust.datasets import bike_rides
from ptclust.demo import city_places
from ptclust.drawing.plots import draw_map
from ptclust.report import flattened, write_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptclust import Release
    from ptclust.datasets import BikeRides

_SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", "--window-size=1100,1500")  # fmt: skip


def run_pictures(directory: Path, progress: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Publish clusters of bike stations, draw them, and return the files; the noise is new."""
    progress("Publishing clusters of bike stations")
    bikes = bike_rides()
    graph = graph_from_flows(bikes.rides, nodes=bikes.nodes)
    release = PTClust(epsilon=1, privacy_unit="one ride").fit(graph).release_
    directory.mkdir(parents=True, exist_ok=True)
    progress("Drawing the map")
    longitudes, latitudes = bikes.points.T
    written = [directory / "bikes-map.png"]
    count = f"{release.n_clusters} clusters"
    title = f"Bike stations by published clusters: {count}, epsilon = 1 for one ride"
    draw_map(
        longitudes,
        latitudes,
        release.labels,
        path=written[0],
        title=title,
        places=city_places(bikes),
    )
    progress("Taking a picture of the report")
    if _screenshot(release, bikes, directory / "report.png"):
        written.append(directory / "report.png")
    return written


def _screenshot(release: Release, bikes: BikeRides, path: Path) -> bool:
    """Take a picture of the report in a browser, if there is one."""
    binary, helper = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or helper is None:
        return False
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    with TemporaryDirectory() as folder:
        for switch in (*_SWITCHES, f"--user-data-dir={folder}/profile"):
            options.add_argument(switch)
        page = Path(folder) / "report.html"
        names = bikes.stations["station"].to_list()
        places = flattened(bikes.points)
        title = "Bike stations that belong together"
        write_report(release, page, coordinates=places, names=names, title=title)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(helper))
        try:
            driver.get(page.as_uri())
            driver.save_screenshot(str(path))
        finally:
            driver.quit()
    return True
