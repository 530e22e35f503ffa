"""A real browser, where one is installed."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1200,1600",
]


class Browser:
    """Chromium with a page of ours in it."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self.folder = driver, folder
        self.tell("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def tell(self, command: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, parameters)

    def open(self, page: Path) -> None:
        self.driver.get_log("performance")  # forget what was before
        self.driver.get_log("browser")
        self.driver.get(page.as_uri())

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def run(self, script: str) -> Any:
        return self.driver.execute_script(f"return {script}")

    def type(self, selector: str, text: str) -> None:
        field = self.one(selector)
        field.clear()
        field.send_keys(text)

    def until(self, true: Any) -> Any:
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, 60).until(lambda _: true())

    def console(self) -> list[Any]:
        return list(self.driver.get_log("browser"))

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for; the browser's own pages do not count."""
        said = (json.loads(e["message"])["message"] for e in self.driver.get_log("performance"))
        asked = (e["params"] for e in said if e["method"] == "Network.requestWillBeSent")
        here = self.driver.current_url
        return [each["request"]["url"] for each in asked if each["documentURL"] == here]

    def screenshot(self, name: str) -> None:
        """Keep a picture of the page, down to its end or to 4,000 pixels."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        size = self.tell("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 4000)}
        taken = self.tell(
            "Page.captureScreenshot", captureBeyondViewport=True, clip={**clip, "scale": 1}
        )
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    binary, helper = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or helper is None:
        pytest.skip("there is no chromium with its driver here; `make browser` installs both")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    for switch in SWITCHES:
        options.add_argument(switch)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(helper)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium, tmp_path):
    made = Browser(chromium, tmp_path)
    yield made
    made.tell("Emulation.clearDeviceMetricsOverride")
    made.tell("Emulation.setEmulatedMedia", features=[])
    made.tell("Emulation.setScriptExecutionDisabled", value=False)
