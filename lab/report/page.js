"use strict";
// The report's behaviour: draws the figures, shows the chosen point, sorts the tables.
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = read("figures-data");
  const points = read("points-data");
  const narrow = matchMedia("(max-width: 700px)");
  const drawn = new Map(); // element -> the figure it shows, as stored
  const config = {
    responsive: true,
    displaylogo: false,
    // named one by one: plotly's own choice has a button that uploads the chart
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    plotlyServerURL: "",
  };

  // Set "yaxis2.domain" and the like in a layout.
  function set(layout, path, value) {
    const names = path.split(".");
    const last = names.pop();
    let inner = layout;
    for (const name of names) inner = inner[name] ??= {};
    inner[last] = value;
  }

  // On paper a figure is drawn as on a large screen, dark on white; the style sheet makes it fit.
  const PAPER = 960;

  function layoutFor(figure, printing) {
    const layout = structuredClone(figure.layout);
    if (printing) return { ...layout, width: PAPER };
    if (narrow.matches) {
      for (const [path, value] of Object.entries(figure.narrow)) set(layout, path, value);
    }
    const style = getComputedStyle(document.documentElement);
    layout.font.color = style.getPropertyValue("--text").trim();
    layout.hoverlabel.bgcolor = style.getPropertyValue("--paper").trim();
    return layout;
  }

  function draw(element, figure, printing = false) {
    drawn.set(element, figure);
    const layout = layoutFor(figure, printing);
    element.style.height = `${layout.height}px`;
    return Plotly.react(element, structuredClone(figure.data), layout, {
      ...config,
      displayModeBar: narrow.matches ? false : "hover",
    });
  }

  function redraw(printing) {
    for (const [element, figure] of drawn) draw(element, figure, printing);
  }

  // ---- the point that is shown over time, with its network and its commands

  const choice = document.getElementById("choice");
  const WHY = "why-"; // report.html#why-POINT leads to that point

  function choose(id) {
    if (!Object.hasOwn(points, id)) return false;
    const point = points[id];
    choice.value = id;
    for (const why of document.querySelectorAll(".why")) why.hidden = why.dataset.point !== id;
    draw(document.getElementById("series"), point);
    document.getElementById("series-caption").textContent = point.caption;
    document.querySelector("#commands code").textContent = point.commands;
    for (const name of document.querySelectorAll("code.chosen")) name.textContent = id;
    for (const drawing of document.querySelectorAll("[data-drawing]")) drawing.hidden = drawing.dataset.drawing !== id;
    document.querySelectorAll("#facts dd").forEach((value, place) => {
      value.textContent = point.facts[place][1];
    });
    for (const row of document.querySelectorAll("#points tbody tr")) {
      row.classList.toggle("chosen", row.querySelector(`[data-point="${CSS.escape(id)}"]`) !== null);
    }
    return true;
  }

  // What the reader chose is in the address, ready to be handed on.
  function chooseAndTell(id) {
    if (!choose(id)) return false;
    history.replaceState(null, "", `#${WHY}${id}`);
    return true;
  }

  function chooseAndGo(id) {
    if (chooseAndTell(id)) document.getElementById("time").scrollIntoView();
  }

  function follow() {
    const name = location.hash.slice(1);
    if (name.startsWith(WHY) && choose(name.slice(WHY.length))) document.getElementById(name).scrollIntoView();
  }

  if (choice) {
    choice.addEventListener("change", () => chooseAndTell(choice.value));
    for (const button of document.querySelectorAll("button.point")) {
      button.addEventListener("click", () => chooseAndGo(button.dataset.point));
    }
  }

  // ---- tables

  // Numbers before text, empty cells last whichever way it is sorted.
  function compare(a, b, sign) {
    if (a === "" || b === "") return (a === "") - (b === "");
    const [x, y] = [Number(a), Number(b)];
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return sign * (Number.isNaN(x) ? a.localeCompare(b, "en", { numeric: true }) : x - y);
  }

  function sortBy(table, column) {
    const heads = [...table.tHead.rows[0].cells];
    const up = heads[column].getAttribute("aria-sort") !== "ascending";
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[column].setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.sort ?? row.cells[column].textContent;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(key(a), key(b), up ? 1 : -1));
    table.tBodies[0].append(...rows);
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => sortBy(table, column));
    });
  }

  // ---- start

  for (const element of document.querySelectorAll("[data-figure]")) {
    draw(element, figures[Number(element.dataset.figure)]).then(() => {
      element.on("plotly_click", (event) => {
        const [mark] = event.points;
        const id = mark.customdata ?? mark.data?.meta; // of a line over time all marks lead to one point
        if (id) chooseAndGo(id);
      });
    });
  }
  if (choice) {
    document.documentElement.classList.add("scripted");
    choose(choice.value);
    follow();
    addEventListener("hashchange", follow);
  }

  narrow.addEventListener("change", () => redraw(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw(false));
  addEventListener("beforeprint", () => redraw(true));
  addEventListener("afterprint", () => redraw(false));
})();
