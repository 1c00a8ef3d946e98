// The script of the console: colors, copy buttons, choices in forms, and charts. Pages work without
// it, except for the charts.
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("js");

  // Colors follow the system until the button is used.
  function stored() {
    try { return localStorage.getItem("mcpd-theme"); } catch (e) { return null; }
  }
  function isDark() {
    var theme = root.dataset.theme;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }
  var theme = stored();
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;

  function showTheme() {
    var button = document.getElementById("theme");
    if (button) button.setAttribute("aria-pressed", String(isDark()));
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest("button");
    if (!button) return;
    if (button.id === "theme") {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("mcpd-theme", root.dataset.theme); } catch (e) { /* it lasts until the page is left */ }
      showTheme();
      drawCharts();
    } else if (button.dataset.copy) {
      var source = document.getElementById(button.dataset.copy);
      navigator.clipboard.writeText(source.value || source.textContent).then(function () {
        var label = button.firstChild;
        var before = label.data;
        label.data = "Copied";
        setTimeout(function () { label.data = before; }, 1500);
      });
    }
  });

  // A changed choice shows its fields.
  document.addEventListener("change", function (event) {
    var id = event.target.dataset && event.target.dataset.apply;
    var button = id && document.getElementById(id);
    if (button) button.form.requestSubmit(button);
  });

  // Charts.
  var charts = [];
  var series = null;
  function color(name) { return getComputedStyle(root).getPropertyValue(name).trim(); }

  function times(u, values) {
    return values.map(function (v) { return new Date(v * 1000).toTimeString().slice(0, 5); });
  }

  function chart(id, data, lines) {
    var target = document.getElementById(id);
    if (!target) return;
    target.textContent = "";
    var axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    var options = {
      width: Math.max(200, target.clientWidth), height: 170, legend: { live: false }, cursor: { show: false },
      scales: { y: { range: function (u, min, max) { return [0, Math.max(1, max * 1.1 || 1)]; } } },
      axes: [Object.assign({ values: times }, axis), Object.assign({ size: 46, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000] }, axis)],
      series: [{}].concat(lines.map(function (line) {
        return { label: line[0], stroke: color(line[1]), width: 2, dash: line[2], points: { show: !!line[3], size: 5 }, spanGaps: true };
      })),
    };
    charts.push(new uPlot(options, data, target));
  }

  function drawCharts() {
    if (!series || !window.uPlot) return;
    charts.forEach(function (c) { c.destroy(); });
    charts = [];
    chart("chart-calls", [series.time, series.ok, series.denied, series.failed],
      [["succeeded", "--good"], ["refused", "--warn", [6, 3]], ["failed", "--bad", [2, 2]]]);
    chart("chart-latency", [series.time, series.p50, series.p95],
      [["median", "--accent", [], true], ["95th percentile", "--warn", [6, 3], true]]);
  }

  function updateCharts(text) {
    series = JSON.parse(text);
    if (charts.length !== 2) return drawCharts();
    charts[0].setData([series.time, series.ok, series.denied, series.failed]);
    charts[1].setData([series.time, series.p50, series.p95]);
  }

  document.addEventListener("DOMContentLoaded", function () {
    showTheme();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () { showTheme(); drawCharts(); });
    var element = document.getElementById("charts");
    if (element) {
      updateCharts(element.dataset.series);
      var width = innerWidth;
      addEventListener("resize", function () {
        if (innerWidth !== width) { width = innerWidth; drawCharts(); }
      });
    }
  });

  document.addEventListener("htmx:sseBeforeMessage", function (event) {
    var detail = event.detail;
    if (detail.type === "series") {
      event.preventDefault();
      updateCharts(detail.data);
    } else if (detail.type === "call") {
      var none = document.getElementById("none");
      if (none) none.remove();
      var rows = document.getElementById("calls");
      while (rows && rows.children.length >= 200) rows.lastElementChild.remove();
    }
  });

  // A response that is no page, such as that of an ended session, replaces nothing: load it instead.
  document.addEventListener("htmx:responseError", function (event) {
    if (event.detail.xhr.status === 401) location.reload();
  });
  document.addEventListener("htmx:beforeSwap", function (event) {
    // Pages with a message have the same layout, but lack the part that was asked for.
    if (event.detail.xhr.status >= 400 && event.detail.xhr.status !== 401 && /text\/html/.test(event.detail.xhr.getResponseHeader("Content-Type") || "")) {
      event.detail.shouldSwap = true;
      event.detail.isError = false;
      event.detail.target = document.getElementById("main");
      event.detail.selectOverride = "#main";
      event.detail.swapOverride = "outerHTML";
    }
  });
})();
