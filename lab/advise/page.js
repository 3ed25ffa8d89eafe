"use strict";
// The advice's behaviour: draws its figures, for a large screen, a small one and paper.
(() => {
  const figures = JSON.parse(document.getElementById("figures-data").textContent);
  const narrow = matchMedia("(max-width: 700px)");
  const PAPER = 960;
  const config = {
    responsive: true,
    displaylogo: false,
    // named one by one: plotly's own choice has a button that uploads the chart
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    plotlyServerURL: "",
  };

  function set(layout, path, value) {
    const names = path.split(".");
    const last = names.pop();
    let inner = layout;
    for (const name of names) inner = inner[name] ??= {};
    inner[last] = value;
  }

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

  function redraw(printing = false) {
    for (const element of document.querySelectorAll("[data-figure]")) {
      const figure = figures[element.dataset.figure];
      const layout = layoutFor(figure, printing);
      element.style.height = `${layout.height}px`;
      Plotly.react(element, structuredClone(figure.data), layout, {
        ...config,
        displayModeBar: narrow.matches ? false : "hover",
      });
    }
  }

  redraw();
  narrow.addEventListener("change", () => redraw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
  addEventListener("beforeprint", () => redraw(true));
  addEventListener("afterprint", () => redraw());
})();
