"use strict";
// Curves of runs, drawn by uPlot and drawn again while they grow. An arm keeps its colour; its seeds share it.

const COLOURS = ["#3b3b3b", "#0072b2", "#d55e00", "#00805f", "#b1478f", "#6e3b00"];
const DARK = ["#d8d6d0", "#56b4e9", "#ff9248", "#3cc9a3", "#e79bcb", "#f0d000"];
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 2, 1, 2, 1, 2]];
const EVERY = 3000;  // milliseconds between two looks at a study that may be running
const night = matchMedia("(prefers-color-scheme: dark)");

class Curves {
  constructor(place) {
    this.place = place;
    this.select = place.querySelector("[data-quantity]");
    this.box = place.querySelector("[data-plot]");
    this.legend = place.querySelector("[data-legend]");
    this.hidden = new Set();  // arms
    this.plot = null;
    this.shape = "";
    this.select.addEventListener("change", () => this.draw());
    night.addEventListener("change", () => { this.shape = ""; this.draw(); });
    new ResizeObserver(() => this.plot && this.plot.setSize(this.size())).observe(this.box);
    this.look();
    if ("live" in place.dataset) setInterval(() => { if (!document.hidden) this.look(); }, EVERY);
  }

  async look() {
    const answer = await fetch(this.place.dataset.curves);
    if (!answer.ok) return;
    const text = await answer.text();
    if (text === this.text) return;
    this.text = text;
    this.data = JSON.parse(text);
    const names = Object.keys(this.data.quantities);
    this.place.hidden = names.length === 0;
    if (names.join() !== [...this.select.options].map((option) => option.value).join()) {
      const chosen = this.select.value;
      this.select.replaceChildren(...names.map((name) => new Option(name.replaceAll("_", " "), name)));
      if (names.includes(chosen)) this.select.value = chosen;
    }
    this.draw();
  }

  size() {
    return { width: Math.max(240, this.box.clientWidth), height: innerWidth < 700 ? 260 : 340 };
  }

  draw() {
    const runs = (this.data && this.data.quantities[this.select.value]) || [];
    if (!runs.length) return;
    const rows = uPlot.join(runs.map((run) => [run.steps, run.values]));
    const shape = this.select.value + runs.map((run) => run.title).join();
    if (shape === this.shape) {
      this.plot.setData(rows);
      return;
    }
    this.shape = shape;
    if (this.plot) this.plot.destroy();
    const style = getComputedStyle(document.documentElement);
    const soft = style.getPropertyValue("--soft"), faint = style.getPropertyValue("--faint");
    const axis = { stroke: soft, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, width: 1 } };
    this.runs = runs;
    this.plot = new uPlot({
      ...this.size(),
      scales: { x: { time: false } },
      axes: [{ ...axis, label: "step", labelSize: 22 }, { ...axis, size: 60 }],
      legend: { show: false },
      cursor: { drag: { x: true, y: false } },
      hooks: { setCursor: [(plot) => this.tell(plot)] },
      series: [{}, ...runs.map((run) => {
        const { colour, dash } = this.look_of(run.arm);
        return {
          stroke: colour, width: 1.5, dash, spanGaps: true,
          show: !this.hidden.has(run.arm), points: { show: run.steps.length < 3 },
        };
      })],
    }, rows, this.box);
    this.name(runs);
  }

  look_of(arm) {
    if (this.data.invalid.includes(arm)) return { colour: "#8a8578", dash: [1, 3] };  // not beside the others
    const at = Math.max(0, this.data.arms.indexOf(arm));
    const colours = night.matches ? DARK : COLOURS;
    return { colour: colours[at % 6], dash: DASHES[(at + Math.floor(at / 6)) % 6] };
  }

  // A line for each arm: its look, and at the cursor the mean of its runs. Pressed, it hides or shows the arm.
  name(runs) {
    const arms = [...new Set(runs.map((run) => run.arm))];
    this.legend.replaceChildren(...arms.map((arm) => {
      const button = Object.assign(document.createElement("button"), { type: "button" });
      const { colour, dash } = this.look_of(arm);
      button.innerHTML = `<svg width="34" height="8" aria-hidden="true"><line x2="34" y1="4" y2="4" stroke="${colour}"
        stroke-width="2" stroke-dasharray="${dash.join(" ")}"/></svg><span></span> <output></output>`;
      button.querySelector("span").textContent = arm;
      button.dataset.arm = arm;
      button.setAttribute("aria-pressed", String(!this.hidden.has(arm)));
      button.addEventListener("click", () => this.toggle(arm, button));
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
  }

  toggle(arm, button) {
    const shown = this.hidden.delete(arm) || !this.hidden.add(arm);
    button.setAttribute("aria-pressed", String(shown));
    this.runs.forEach((run, at) => { if (run.arm === arm) this.plot.setSeries(at + 1, { show: shown }); });
  }

  tell(plot) {
    const at = plot.cursor.idx;
    for (const button of this.legend.querySelectorAll("button")) {
      const values = this.runs.flatMap((run, i) =>
        run.arm === button.dataset.arm && at != null && plot.data[i + 1][at] != null ? [plot.data[i + 1][at]] : []);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      button.querySelector("output").textContent = values.length ? mean.toPrecision(4) : "";
    }
  }
}

document.querySelectorAll("[data-curves]").forEach((place) => new Curves(place));
