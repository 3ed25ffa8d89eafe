"""The page of two runs laid over each other, in a real browser: clean, offline, all of it drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver

from lab.cli.main import main
from tests import measured_run as measured
from tests.browser.conftest import complaints, requests

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of two made-up runs of two settings each."""
    folder = tmp_path_factory.mktemp("beside")
    runs = []
    for name, goodput in (("real", 46e6), ("a-twin-with-a-long-name", 36e6)):
        points = [
            (
                of := measured.point(1, "virtual", rate="50mbit", rtt="20ms", duration="8s", rmem=rmem),
                measured.tables(of, goodput, digest=f"{name}{rmem}", measured_rate_bps=goodput * 1.05),
            )
            for rmem in ("default", "256KiB")
        ]
        runs.append(measured.store(folder / name, points))
    file = folder / "page.html"
    assert main(["compare", *(str(run.path) for run in runs), "--html", str(file)]) == 0
    return file


@pytest.fixture
def opened(browser: WebDriver, laid: Path) -> WebDriver:
    """Return the browser with the page open."""
    requests(browser), complaints(browser)
    browser.get(laid.as_uri())
    return browser


def test_nothing_is_asked_for_but_the_page(opened: WebDriver, laid: Path) -> None:
    assert [url for url in requests(opened) if not url.startswith(("data:", "blob:"))] == [laid.as_uri()]


def test_console_is_silent(opened: WebDriver) -> None:
    assert complaints(opened) == []


def test_every_pair_is_drawn_in_three_panels(opened: WebDriver) -> None:
    plots = opened.find_elements(By.CSS_SELECTOR, ".plot")
    assert len(plots) == 2
    for plot in plots:
        assert len(plot.find_elements(By.CSS_SELECTOR, ".subplot")) == 3
        assert len(plot.find_elements(By.CSS_SELECTOR, ".scatterlayer path.js-line")) >= 8


def test_legends_and_titles_lie_apart(opened: WebDriver) -> None:
    """No legend reaches into a panel, nor a title of an axis into the next."""
    overlaps = opened.execute_script(
        """
        const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1
          || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
        const found = [];
        const counts = [];
        for (const plot of document.querySelectorAll(".plot")) {
          const boxes = (css) => [...plot.querySelectorAll(css)].map((one) => one.getBoundingClientRect());
          const legends = boxes(".infolayer > [class^=legend]");
          const panels = boxes(".bglayer > rect");
          const titles = boxes(".ytitle, .y2title, .y3title");
          counts.push([legends.length, panels.length, titles.length]);
          for (const set of [legends, titles]) {
            set.forEach((a, i) => set.forEach((b, j) => { if (i < j && !apart(a, b)) found.push([a, b]); }));
          }
          for (const legend of legends) for (const panel of panels) {
            if (!apart(legend, panel)) found.push([legend, panel]);
          }
        }
        return { found, counts };
        """
    )
    assert overlaps == {"found": [], "counts": [[3, 3, 3]] * 2}


@pytest.mark.parametrize("width", [390, 1000, 1400])
def test_nothing_sticks_out_sideways(opened: WebDriver, width: int) -> None:
    opened.execute_cdp_cmd(  # type: ignore[attr-defined]
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 700},
    )
    try:
        opened.refresh()
        assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})  # type: ignore[attr-defined]
