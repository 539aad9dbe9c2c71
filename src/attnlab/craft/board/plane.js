"use strict";
// Points in two or three dimensions, drawn flat: to be dragged, or moved by keyboard; the ground turns.
// Within the dotted circle lengths are as they are; beyond it they grow slowly, so that a long query is in sight.
globalThis.attnlabPlane = (() => {
  const { length, times } = globalThis.attnlabAttend;
  const NS = "http://www.w3.org/2000/svg";
  const SIDE = 400;  // of the drawing, in its own units
  const FAR = 4.5;  // the longest length that is in sight: e to this, in circles
  const STEP = 0.06, TURN = 0.15;

  const AHEAD = { ArrowLeft: [-1, 0, 0], ArrowRight: [1, 0, 0], ArrowUp: [0, 1, 0], ArrowDown: [0, -1, 0], PageUp: [0, 0, -1], PageDown: [0, 0, 1] };
  const KEYS = "Arrow keys move a point (with Shift: farther), + and − change its length, 0 puts it to zero";

  function svg(tag, attributes = {}) {
    const made = document.createElementNS(NS, tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    return made;
  }

  class Plane {
    // `moved(id, place)` is told of every movement, `turned()` when the ground has turned; `manual` is the id
    // of an element that says what the keys do; the edge is `reach` circles from the middle.
    constructor({ label, manual, moved, turned, reach }) {
      this.manual = manual;
      this.reach = reach;
      this.slow = (reach - 1) / FAR;  // how fast lengths grow beyond the circle
      this.moved = moved;
      this.turned = turned;
      this.yaw = -0.5;
      this.pitch = 0.35;
      this.element = svg("svg", { viewBox: `${-SIDE / 2} ${-SIDE / 2} ${SIDE} ${SIDE}`, role: "group", "aria-label": label, class: "craft-plane" });
      this.ground = this.element.appendChild(svg("g", { "aria-hidden": "true" }));
      this.handles = this.element.appendChild(svg("g"));
      this.top = this.element.appendChild(svg("g", { "aria-hidden": "true" }));
      this.known = new Map();  // id → handle: kept while it is dragged or has the focus
      this.element.addEventListener("pointerdown", (event) => this.grip(event));
      this.element.addEventListener("keydown", (event) => this.press(event));
    }

    // ---- from a place to the drawing, and back ----------------------------------------------------------

    squeezed(place) {
      const far = length(place) / this.unit;
      return times(place, far <= 1 ? 1 / this.unit : (1 + this.slow * Math.log(far)) / far / this.unit);
    }

    stretched(seen) {
      const far = Math.min(length(seen), this.reach);
      const real = far <= 1 ? far : Math.exp((far - 1) / this.slow);
      return times(seen, length(seen) ? real * this.unit / length(seen) : 0);
    }

    // Towards the reader, right and up; the third is the depth.
    facing([x, y, z = 0]) {
      if (this.size < 3) return [x, y, 0];
      const [cy, sy, cp, sp] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
      const [right, away] = [cy * x + sy * z, cy * z - sy * x];
      return [right, cp * y - sp * away, sp * y + cp * away];
    }

    back([right, up, depth]) {
      if (this.size < 3) return [right, up];
      const [cy, sy, cp, sp] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
      const [y, away] = [cp * up + sp * depth, cp * depth - sp * up];
      return [cy * right - sy * away, y, sy * right + cy * away];
    }

    at(place) {
      const [right, up] = this.facing(this.squeezed(place));
      return [right * SIDE / 2 / this.reach, -up * SIDE / 2 / this.reach].map((x) => Number(x.toFixed(2)));
    }

    // ---- drawing ----------------------------------------------------------------------------------------

    // points: {id, place, text, say, kind, movable, grow}; lines: {from, to, kind}; rings: {place, radius, kind}
    draw({ size, unit, points, lines = [], rings = [] }) {
      this.size = size;
      this.unit = unit;
      this.points = points;
      const circle = SIDE / 2 / this.reach;
      const parts = [`<circle r="${circle}" class="craft-circle"/>`];
      ["x", "y", "z"].slice(0, size).forEach((name, i) => {
        const end = [0, 0, 0].slice(0, size);
        end[i] = unit * 1.12;
        const [a, b] = [this.at(times(end, -1)), this.at(end)];
        parts.push(`<path d="M${a}L${b}" class="craft-axis"/><text x="${b[0] * 1.07}" y="${b[1] * 1.07 + 4}" class="craft-axis">${name}</text>`);
      });
      lines.forEach(({ from, to, kind }) => parts.push(`<path d="M${this.at(from)}L${this.at(to)}" class="craft-line ${kind}"/>`));
      this.ground.innerHTML = parts.join("");
      this.top.innerHTML = rings.map(({ place, radius, kind }) => {
        const [x, y] = this.at(place);
        return `<circle cx="${x}" cy="${y}" r="${Math.max(5, radius / unit * circle)}" class="craft-ring ${kind}"/>`;
      }).join("");
      const shown = new Set(points.map((point) => point.id));
      this.known.forEach((handle, id) => { if (!shown.has(id)) { handle.remove(); this.known.delete(id); } });
      points.forEach((point) => this.handle(point));
    }

    handle({ id, place, text, say, kind, movable, grow = 0 }) {
      if (!this.known.has(id)) {
        const made = this.handles.appendChild(svg("g", { "data-id": id }));
        made.append(svg("circle", { r: 15, class: "craft-hit" }), svg("circle"), svg("text"));
        this.known.set(id, made);
      }
      const made = this.known.get(id);
      const [, dot, name] = made.children;
      const [x, y] = this.at(place);
      made.setAttribute("transform", `translate(${x},${y})`);
      made.setAttribute("class", `craft-point ${kind}${movable ? " movable" : ""}`);
      const told = movable ? { tabindex: 0, role: "button", "aria-roledescription": "movable point", "aria-describedby": this.manual } : { role: "img" };
      ["tabindex", "aria-roledescription", "aria-describedby"].forEach((name) => name in told || made.removeAttribute(name));
      made.setAttribute("aria-label", say);
      Object.entries(told).forEach(([key, value]) => made.setAttribute(key, value));
      dot.setAttribute("r", (5 + 9 * Math.sqrt(Math.max(0, Math.min(1, grow)))).toFixed(2));
      name.textContent = text;
      name.setAttribute("x", x > SIDE * 0.4 ? -30 : 12);
      name.setAttribute("y", y < -SIDE * 0.42 || kind === "output" ? 20 : -9);
    }

    // ---- pointer ----------------------------------------------------------------------------------------

    grip(event) {
      const held = event.target.closest(".movable");
      if (!held && this.size < 3) return;
      event.preventDefault();
      if (held) held.focus({ preventScroll: true });
      const scale = SIDE / this.element.getBoundingClientRect().width;
      let [x, y] = [event.clientX, event.clientY];
      const follow = (next) => {
        const [right, down] = [(next.clientX - x) * scale, (next.clientY - y) * scale].map((d) => d * this.reach * 2 / SIDE);
        [x, y] = [next.clientX, next.clientY];
        if (held) this.shift(held.dataset.id, [right, -down, 0]);
        else this.turn(right * 1.5, down * 1.5);
      };
      this.element.setPointerCapture(event.pointerId);
      this.element.addEventListener("pointermove", follow);
      const done = () => this.element.removeEventListener("pointermove", follow);
      ["pointerup", "pointercancel"].forEach((end) => this.element.addEventListener(end, done, { once: true }));
    }

    shift(id, by) {
      const { place } = this.points.find((point) => point.id === id);
      const seen = this.facing(this.squeezed(place)).map((x, i) => x + by[i]);
      this.moved(id, this.stretched(this.back(seen)));
    }

    turn(yaw, pitch) {
      this.yaw += yaw;
      this.pitch = Math.max(-1.5, Math.min(1.5, this.pitch + pitch));
      this.turned();
    }

    // ---- keyboard ---------------------------------------------------------------------------------------

    press(event) {
      const held = event.target.closest(".movable");
      if (!held || event.altKey || event.ctrlKey || event.metaKey) return;
      const id = held.dataset.id;
      const { place } = this.points.find((point) => point.id === id);
      const far = event.shiftKey ? 4 : 1;
      if (event.key in AHEAD) this.shift(id, times(AHEAD[event.key], STEP * far));
      else if (event.key === "+" || event.key === "=") this.moved(id, times(place, 1.1));
      else if (event.key === "-" || event.key === "−") this.moved(id, times(place, 1 / 1.1));
      else if (event.key === "0") this.moved(id, place.map(() => 0));
      else return;
      event.preventDefault();
    }

    // Buttons that turn the ground, for who does not drag.
    turners(button) {
      return [["turn left", "←", -TURN, 0], ["turn right", "→", TURN, 0], ["tilt up", "↑", 0, -TURN], ["tilt down", "↓", 0, TURN]]
        .map(([say, sign, yaw, pitch]) => button(sign, () => this.turn(yaw, pitch), say));
    }
  }

  return { Plane, KEYS };
})();
