"""The page in a real browser: it opens clean and offline, shows the chosen point, sorts its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import Select

from lab.model.limits import LIMITS
from lab.report import limits, page
from tests import made_up_run as made_up
from tests.browser.conftest import complaints, requests

pytestmark = pytest.mark.browser


def series(browser: WebDriver) -> dict[str, Any]:
    """Return what the plot over time shows."""
    return dict(
        browser.execute_script(
            """const plot = document.getElementById("series");
            return {
              names: plot.data.map((trace) => trace.name),
              values: plot.calcdata.map((points) => points.slice(0, 20).map((point) => point.y)),
              panels: document.querySelectorAll("#series .subplot").length,
            };"""
        )
    )


def column(browser: WebDriver, head: str) -> list[str]:
    """Return the texts of a column of the table of points, top to bottom."""
    heads = [cell.text.split("\n")[0] for cell in browser.find_elements(By.CSS_SELECTOR, "#points thead th")]
    path = f"#points tbody tr > :nth-child({heads.index(head) + 1})"
    return [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, path)]


def press(browser: WebDriver, head: str) -> None:
    """Click a head of the table of points."""
    for button in browser.find_elements(By.CSS_SELECTOR, "#points thead button"):
        if button.text.split("\n")[0] == head:
            browser.execute_script("arguments[0].click()", button)
            return
    raise AssertionError(f"no head {head}")


class TestOpening:
    def test_nothing_is_asked_for_but_the_page(self, opened: WebDriver, report: Path) -> None:
        assert [url for url in requests(opened) if not url.startswith(("data:", "blob:"))] == [
            report.as_uri()
        ]

    def test_console_is_silent(self, opened: WebDriver) -> None:
        assert complaints(opened) == []

    def test_every_figure_is_drawn(self, opened: WebDriver) -> None:
        for plot in opened.find_elements(By.CSS_SELECTOR, ".plot"):
            assert plot.find_elements(By.CSS_SELECTOR, ".trace, .barlayer path, .scatterlayer path")
            assert plot.size["height"] > 300
        assert series(opened)["panels"] == 6

    def test_fonts_and_words_of_plotly_are_inside(self, opened: WebDriver) -> None:
        assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0

    @pytest.mark.parametrize("width", [390, 1000, 1400])
    def test_nothing_sticks_out_sideways(self, opened: WebDriver, width: int) -> None:
        emulate(opened, width)
        try:
            opened.refresh()
            wide = opened.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width
        finally:
            opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})  # type: ignore[attr-defined]

    def test_no_button_uploads_the_chart(self, opened: WebDriver) -> None:
        buttons = opened.find_elements(By.CSS_SELECTOR, ".modebar-btn")
        titles = {button.get_attribute("data-title") for button in buttons}
        assert len(titles) == 4
        assert not [title for title in titles if "hare" in str(title) or "loud" in str(title)]

    def test_policy_stops_a_request(self, opened: WebDriver) -> None:
        opened.execute_async_script(
            """const [done] = arguments;
            const picture = new Image();
            picture.onload = picture.onerror = () => done();
            picture.src = "http://127.0.0.1:9/x.png";"""
        )
        assert any("Content Security Policy" in text for text in complaints(opened))

    def test_hostile_text_stays_text(self, browser: WebDriver, tmp_path: Path) -> None:
        evil = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
        one = made_up.point()
        its = made_up.done(one, note=evil, limit_predicted=evil)
        folder = made_up.store(tmp_path / "run", [(one, its)], question=f"Q {evil}", figures=[])
        browser.get(page.write(folder).as_uri())
        assert browser.title.startswith("Q <script>")
        assert evil in browser.find_element(By.TAG_NAME, "h1").text
        assert not browser.find_elements(By.TAG_NAME, "img")


class TestChoosing:
    def test_another_point_changes_the_plot_and_all_that_goes_with_it(self, opened: WebDriver) -> None:
        choice = Select(opened.find_element(By.ID, "choice"))
        before, drawn = series(opened), opened.find_element(By.ID, "drawing").text
        assert "512KiB" not in drawn
        choice.select_by_index(4)
        name = choice.first_selected_option.get_attribute("value")
        after = series(opened)
        assert after["values"] != before["values"]
        assert "rmem 512KiB" in opened.find_element(By.ID, "drawing").text
        assert {code.text for code in opened.find_elements(By.CSS_SELECTOR, "p code.chosen")} == {name}
        marked = opened.find_elements(By.CSS_SELECTOR, "#points tr.chosen th")
        assert [row.text for row in marked] == [name]
        assert complaints(opened) == []

    def test_click_in_the_table_chooses(self, opened: WebDriver) -> None:
        button = opened.find_elements(By.CSS_SELECTOR, "button.point")[5]
        name = button.text
        opened.execute_script("arguments[0].click()", button)
        assert opened.find_element(By.ID, "choice").get_attribute("value") == name

    def test_click_on_a_mark_chooses(self, opened: WebDriver) -> None:
        opened.execute_script(
            """const event = { points: [{ customdata: arguments[0] }] };
            document.querySelector("[data-figure]").emit("plotly_click", event);""",
            opened.find_elements(By.CSS_SELECTOR, "button.point")[6].text,
        )
        assert opened.find_element(By.ID, "choice").get_property("selectedIndex") == 6

    def test_panels_zoom_together(self, opened: WebDriver) -> None:
        ranges = opened.execute_async_script(
            """const [done] = arguments;
            const plot = document.getElementById("series");
            Plotly.relayout(plot, {"xaxis.range": [0.5, 1]}).then(() => done(
              Object.keys(plot._fullLayout).filter((name) => /^xaxis/.test(name))
                .map((name) => Array.from(plot._fullLayout[name].range))));"""
        )
        assert ranges == [[0.5, 1]]


class TestBand:
    def test_shares_of_every_instant_add_up_to_all(self, opened: WebDriver) -> None:
        """As plotly stacked them: the top of the last one is 100 % all along."""
        tops = opened.execute_script(
            """const plot = document.getElementById("series");
            const steps = plot.calcdata.filter((points) => points[0].trace.stackgroup);
            return steps[steps.length - 1].map((point) => point.y);"""
        )
        assert len(tops) == made_up.SAMPLES
        assert tops == pytest.approx([100] * len(tops), abs=0.01)

    def test_is_drawn_in_the_colours_of_its_limits(self, opened: WebDriver) -> None:
        fills = opened.find_elements(By.CSS_SELECTOR, "#series .scatterlayer .js-fill")
        seen = {fill.value_of_css_property("fill") for fill in fills}
        known = {rgb(limits.look(limit).colour) for limit in LIMITS}
        assert len({colour for colour in seen if colour in known}) >= 2

    def test_zooms_with_the_other_panels(self, opened: WebDriver) -> None:
        axes = opened.execute_script(
            """const plot = document.getElementById("series");
            return [...new Set(plot._fullData.map((trace) => trace.xaxis))];"""
        )
        assert axes == ["x"]


def rgb(colour: str) -> str:
    """Return a colour such as #0072B2 as the browser writes it."""
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


def shown(browser: WebDriver) -> list[str]:
    """Return the points whose why is on the page."""
    articles = browser.find_elements(By.CSS_SELECTOR, "article.why")
    return [str(one.get_attribute("data-point")) for one in articles if one.is_displayed()]


class TestWhy:
    def test_link_to_a_point_leads_there(self, browser: WebDriver, report: Path) -> None:
        browser.get(report.as_uri())
        name = browser.find_elements(By.CSS_SELECTOR, "button.point")[4].text
        complaints(browser)
        browser.get("about:blank")
        browser.get(f"{report.as_uri()}#why-{name}")
        assert shown(browser) == [name]
        assert browser.find_element(By.ID, "choice").get_attribute("value") == name
        top = browser.execute_script(
            "return document.getElementById(arguments[0]).getBoundingClientRect().top", f"why-{name}"
        )
        assert 0 <= top < 200
        assert "rmem 512KiB" in browser.find_element(By.ID, "drawing").text
        assert complaints(browser) == []

    def test_following_another_link_on_the_same_page(self, opened: WebDriver, report: Path) -> None:
        names = [button.text for button in opened.find_elements(By.CSS_SELECTOR, "button.point")]
        for name in (names[2], names[5]):
            opened.get(f"{report.as_uri()}#why-{name}")
            assert shown(opened) == [name]
        opened.back()
        assert shown(opened) == [names[2]]

    def test_choice_is_in_the_address(self, opened: WebDriver, report: Path) -> None:
        choice = Select(opened.find_element(By.ID, "choice"))
        choice.select_by_index(3)
        name = choice.first_selected_option.get_attribute("value")
        assert opened.current_url == f"{report.as_uri()}#why-{name}"
        assert shown(opened) == [name]
        opened.refresh()
        assert shown(opened) == [name]

    @pytest.mark.parametrize(
        "name", ["why-0000000000", "why-", "why-%", "why-<b>", "why-__proto__", "points-head"]
    )
    def test_link_that_leads_nowhere_shows_the_first(
        self, browser: WebDriver, report: Path, name: str
    ) -> None:
        browser.get("about:blank")
        complaints(browser)
        browser.get(f"{report.as_uri()}#{name}")
        first = browser.find_element(By.CSS_SELECTOR, "button.point").text
        assert shown(browser) == [first]
        assert complaints(browser) == []

    def test_says_prediction_and_verdict_and_draws_their_shares(self, opened: WebDriver) -> None:
        (article,) = [
            one for one in opened.find_elements(By.CSS_SELECTOR, "article.why") if one.is_displayed()
        ]
        assert "Predicted." in article.text
        assert "Measured." in article.text
        bars = article.find_elements(By.CSS_SELECTOR, ".bar > div")
        assert len(bars) == 2
        for bar in bars:
            pieces = bar.find_elements(By.TAG_NAME, "div")
            assert sum(piece.size["width"] for piece in pieces) == pytest.approx(bar.size["width"], abs=4)
            grown = [float(piece.value_of_css_property("flex-grow")) for piece in pieces]
            assert sum(grown) == pytest.approx(1, abs=0.001)

    def test_without_script_the_address_alone_shows_the_point(self, browser: WebDriver, report: Path) -> None:
        browser.get(report.as_uri())
        name = browser.find_elements(By.CSS_SELECTOR, "button.point")[6].text
        browser.execute_cdp_cmd(  # type: ignore[attr-defined]
            "Emulation.setScriptExecutionDisabled", {"value": True}
        )
        try:
            browser.get("about:blank")
            browser.get(f"{report.as_uri()}#why-{name}")
            assert name in shown(browser)
        finally:
            browser.execute_cdp_cmd(  # type: ignore[attr-defined]
                "Emulation.setScriptExecutionDisabled", {"value": False}
            )


class TestResiduals:
    def test_panel_shares_the_axis_and_lies_below(self, opened: WebDriver) -> None:
        found = opened.execute_script(
            """const plot = document.querySelector("[data-figure]");
            return {
              axes: Object.keys(plot._fullLayout).filter((name) => /^[xy]axis[0-9]*$/.test(name)).sort(),
              marks: [...plot.querySelectorAll(".xy2 .points path")].length,
              above: plot._fullLayout.yaxis.domain,
              below: plot._fullLayout.yaxis2.domain,
            };"""
        )
        assert found["axes"] == ["xaxis", "yaxis", "yaxis2"]
        assert found["marks"] == 7
        assert found["above"][0] > found["below"][1]

    def test_click_on_a_residual_chooses_its_point(self, opened: WebDriver) -> None:
        name = opened.find_elements(By.CSS_SELECTOR, "button.point")[5].text
        opened.execute_script(
            """const plot = document.querySelector("[data-figure]");
            const below = plot.data.filter((trace) => trace.yaxis === "y2");
            const trace = below.find((one) => one.customdata.includes(arguments[0]));
            plot.emit("plotly_click", { points: [{ customdata: arguments[0], data: trace }] });""",
            name,
        )
        assert opened.find_element(By.ID, "choice").get_attribute("value") == name

    def test_run_of_many_points_has_all_in_one_figure(self, browser: WebDriver, tmp_path: Path) -> None:
        of = [made_up.point(rmem=f"{size}MiB", rate="100mbit") for size in range(1, 11)]
        folder = made_up.store(tmp_path / "run", [(one, made_up.done(one)) for one in of])
        complaints(browser)
        browser.get(page.write(folder).as_uri())
        assert len(browser.find_elements(By.CSS_SELECTOR, "[data-figure]")) == 2
        assert len(browser.find_elements(By.CSS_SELECTOR, "[data-figure='1'] .points path")) == 10
        assert complaints(browser) == []


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a made-up run of two BBR and two CUBIC flows, with every kind of figure."""
    heat = {"title": "Map", "kind": "heat", "x": "queue", "rows": "cc", "by": [], "y": "cc_shares:bbr"}
    folder = made_up.mixed(tmp_path_factory.mktemp("mixed") / "run")
    manifest = folder.manifest()
    folder.write_manifest({**manifest, "figures": [*manifest["figures"], heat]})
    return page.write(folder)


@pytest.fixture
def shown_mixed(browser: WebDriver, mixed: Path) -> WebDriver:
    """Return the browser with that page open."""
    complaints(browser)
    browser.get(mixed.as_uri())
    return browser


class TestKinds:
    def test_all_are_drawn_without_a_word(self, shown_mixed: WebDriver) -> None:
        plots = shown_mixed.find_elements(By.CSS_SELECTOR, "[data-figure]")
        assert len(plots) == 7
        marks = (".points path", ".trace path", ".boxlayer path", ".heatmaplayer image")
        for plot in plots:
            assert plot.find_elements(By.CSS_SELECTOR, ", ".join(marks))
        assert complaints(shown_mixed) == []

    @pytest.mark.parametrize("place", range(7))
    def test_click_on_a_mark_leads_to_its_point(self, shown_mixed: WebDriver, place: int) -> None:
        """With the mark as plotly itself makes it from what is drawn."""
        name = shown_mixed.execute_script(
            """const plot = document.querySelectorAll("[data-figure]")[arguments[0]];
            const trace = plot._fullData.findLast((one) => one.customdata || one.meta);
            let id = trace.meta ?? trace.customdata;
            while (Array.isArray(id)) id = id[id.length - 1];
            plot.emit("plotly_click", {
              points: [{ customdata: trace.customdata && id, data: plot.data[trace.index] }],
            });
            return id;""",
            place,
        )
        assert shown_mixed.find_element(By.ID, "choice").get_attribute("value") == name
        assert shown(shown_mixed) == [name]

    def test_cells_are_written_in_ink_that_reads(self, shown_mixed: WebDriver) -> None:
        plot = shown_mixed.find_elements(By.CSS_SELECTOR, "[data-figure]")[-1]
        written = plot.find_elements(By.CSS_SELECTOR, ".heatmap-label")
        assert len(written) == len(made_up.QUEUES)
        assert all(float(label.text) > 50 for label in written)

    def test_delay_falls_to_the_right(self, shown_mixed: WebDriver) -> None:
        ends = shown_mixed.execute_script(
            'return document.querySelectorAll("[data-figure]")[2]._fullLayout.xaxis.range'
        )
        assert ends[0] > ends[1]

    def test_panels_over_time_share_their_axis(self, shown_mixed: WebDriver) -> None:
        found = shown_mixed.execute_script(
            """const layout = document.querySelectorAll("[data-figure]")[5]._fullLayout;
            return Object.keys(layout).filter((name) => /^[xy]axis[0-9]*$/.test(name)).sort();"""
        )
        assert found == ["xaxis", "yaxis", *(f"yaxis{number}" for number in range(2, 7))]

    @pytest.mark.parametrize("width", [390, 1000])
    def test_nothing_sticks_out_sideways(self, shown_mixed: WebDriver, width: int) -> None:
        emulate(shown_mixed, width)
        try:
            shown_mixed.refresh()
            assert shown_mixed.execute_script("return document.documentElement.scrollWidth") <= width
            assert complaints(shown_mixed) == []
        finally:
            shown_mixed.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})  # type: ignore[attr-defined]


class TestSorting:
    def test_numbers_by_value_and_nothing_last(self, opened: WebDriver) -> None:
        press(opened, "steady")
        values = column(opened, "steady")
        assert values[-1] == "–"
        numbers = [float(text) for text in values[:-1]]
        assert numbers == sorted(numbers)
        press(opened, "steady")
        values = column(opened, "steady")
        assert values[-1] == "–"
        assert [float(text) for text in values[:-1]] == sorted(numbers, reverse=True)

    def test_buffers_by_size(self, opened: WebDriver) -> None:
        press(opened, "rmem")
        assert list(dict.fromkeys(column(opened, "rmem"))) == ["256KiB", "512KiB", "1MiB", "default"]

    def test_order_is_told_to_everyone(self, opened: WebDriver) -> None:
        press(opened, "cc")
        (head,) = opened.find_elements(By.CSS_SELECTOR, "#points th[aria-sort]")
        assert head.get_attribute("aria-sort") == "ascending"
        assert head.text == "cc"

    def test_keyboard_is_enough(self, opened: WebDriver) -> None:
        button = opened.find_elements(By.CSS_SELECTOR, "#points thead button")[1]
        button.send_keys(Keys.ENTER)
        assert column(opened, "rmem")[0] == "256KiB"


class TestLooks:
    def test_text_of_figures_follows_dark_and_paper(self, opened: WebDriver) -> None:
        def colour() -> str:
            return str(opened.execute_script('return document.getElementById("series").layout.font.color'))

        light = colour()
        prefer(opened, "dark")
        try:
            opened.refresh()
            assert colour() != light
            opened.execute_script('dispatchEvent(new Event("beforeprint"))')
            assert colour() == light
            opened.execute_script('dispatchEvent(new Event("afterprint"))')
            assert colour() != light
        finally:
            prefer(opened, "light")

    def test_small_screen_scrolls_and_does_not_zoom(self, opened: WebDriver) -> None:
        emulate(opened, 390)
        try:
            opened.refresh()
            assert opened.execute_script('return document.getElementById("series").layout.dragmode') is False
        finally:
            opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})  # type: ignore[attr-defined]


def prefer(browser: WebDriver, scheme: str) -> None:
    """Say which colour scheme the reader prefers."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})  # type: ignore[attr-defined]


def emulate(browser: WebDriver, width: int) -> None:
    """Give the page a screen of that width."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)  # type: ignore[attr-defined]
