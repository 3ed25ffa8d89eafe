"""A chromium without a window. Where there is none the tests fail: nothing else opens the page."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webdriver import WebDriver

from lab.report import page
from tests import made_up_run as made_up

ARGUMENTS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    """Return chromium, with its console and its requests recorded."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        pytest.fail(f"{' and '.join(missing)} not found: apt-get install chromium chromium-driver")
    options = Options()
    options.binary_location = str(programs["chromium"])
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # chromium refuses to run as root with it
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(programs["chromedriver"])))
    driver.set_window_size(1400, 1000)
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a made-up run of eight points, one of them failed."""
    return page.write(made_up.small(tmp_path_factory.mktemp("run") / "run"))


def requests(browser: WebDriver) -> list[str]:
    """Return the addresses that were asked for since the last call."""
    messages: list[dict[str, Any]] = [
        json.loads(entry["message"])["message"] for entry in browser.get_log("performance")
    ]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


def complaints(browser: WebDriver) -> list[str]:
    """Return what the console said since the last call."""
    return [entry["message"] for entry in browser.get_log("browser")]


@pytest.fixture
def opened(browser: WebDriver, report: Path) -> WebDriver:
    """Return the browser with the page open and its figures drawn."""
    requests(browser), complaints(browser)
    browser.get(report.as_uri())
    return browser
