"use strict";
// Attention by hand: points to drag, what attention makes of them, and a course that knows when it is solved.
// Mounted on an element with data as attnlab.craft.board gives them; needs attend.js, plane.js and board.css.
globalThis.attnlabBoard = (() => {
  const { WEIGHINGS, attend, slope, within, distance, length, times } = globalThis.attnlabAttend;
  const { Plane, KEYS } = globalThis.attnlabPlane;
  const AXES = ["x", "y", "z"];
  const MOST = 8;  // keys of one's own: more are not told apart
  const COLD = 0.05, HOT = 20;  // temperatures
  let boards = 0;

  function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  const button = (text, press, say = null) => el("button", { type: "button", onclick: press, "aria-label": say }, text);
  const shown = (x) => (Math.abs(x) < 5e-4 ? "0" : x.toFixed(Math.abs(x) < 10 ? 3 : 1)).replace("-", "−");
  const inBrackets = (place) => `(${place.map(shown).join(", ")})`;
  const copied = (rows) => rows.map((row) => [...row]);
  const typed = (rows) => rows.map((row) => row.map((x) => Number(x.toFixed(4))).join(",")).join("; ");

  class Board {
    constructor(place, { tasks, scenes }, changed) {
      this.tasks = tasks;
      this.scenes = scenes;
      this.changed = changed;
      this.number = ++boards;
      this.solved = new Set();
      this.element = place.appendChild(el("div", { class: "craft" }));
      const plane = (label, reach) => new Plane({ label, reach, manual: this.id("keys"), moved: (id, at) => this.move(id, at), turned: () => this.draw() });
      this.left = plane("Keys and query", 1.6);  // with room for a long query
      this.right = plane("Values and output", 1.2);
      this.frame();
      this.open(tasks.length ? 0 : null);
    }

    id(what) { return `craft-${this.number}-${what}`; }

    // ---- what there is to do ----------------------------------------------------------------------------

    // A task of the course by its place, or a scene of one's own.
    open(place, scene = this.scenes[0]) {
      this.place = place;
      this.task = place === null ? null : this.tasks[place];
      const from = this.task ?? scene;
      Object.assign(this, { keys: copied(from.keys), values: copied(from.values), scale: from.scale, scene: scene.name });
      const start = [0.8, -0.5, 0.3].slice(0, this.keys[0].length);
      this.queries = this.task?.query ? [[...this.task.query]] : (this.task?.wishes ?? [0]).map(() => from.start ? [...from.start] : times(start, 1));
      this.asked = 0;  // which of several queries is in hand
      this.wanted = new Set(from.wanted ?? []);  // of one's own: the values to average
      this.hints = 0;
      this.told = false;  // a solution that was shown is not one that was found
      this.weighing = from.weighing ?? "softmax";
      this.temperature = 1;
      this.fields();
      this.draw();
    }

    get query() { return this.queries[this.asked]; }

    target(which = this.asked) {
      if (this.task) return this.task.targets[which];
      const rows = [...this.wanted].map((i) => this.values[i]);
      return rows.length ? this.values[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length) : null;
    }

    get goal() { return this.task ? this.task.goal : 0.05; }

    seen(which = this.asked) { return attend(this, this.queries[which], this.weighing, this.temperature); }

    // The errors that count: by the task's own rules, whatever the switches say.
    errors() {
      return this.queries.map((q, i) => (this.target(i) ? distance(attend(this, q).output, this.target(i)) : Infinity));
    }

    // ---- moving -----------------------------------------------------------------------------------------

    movable(id) {
      if (!this.task) return id !== "out" && id !== "goal";
      return id === (this.task.free === "query" ? "q" : `k${this.task.key}`);
    }

    rowOf(id) {
      if (id === "q") return this.query;
      return (id[0] === "k" ? this.keys : this.values)[Number(id.slice(1))];
    }

    move(id, place) {
      if (!this.movable(id)) return;
      const row = this.rowOf(id);
      const kept = this.task && id[0] === "k" ? this.task.length : null;
      if (kept && !length(place)) return;  // nothing has no direction to be lengthened in
      const put = kept ? times(place, kept / length(place)) : place;
      row.forEach((_, i) => { row[i] = put[i]; });
      this.draw();
    }

    // ---- the parts of the page --------------------------------------------------------------------------

    frame() {
      this.parts = Object.fromEntries(["course", "text", "asks", "switches", "left", "right", "table", "state", "help"].map((name) => [name, el("div", { class: `craft-${name}` })]));
      this.parts.state.setAttribute("role", "status");
      const figure = (plane, caption, ...more) => el("figure", {}, plane.element, el("figcaption", {}, caption, ...more));
      this.turns = [this.left, this.right].map((plane) => el("span", { class: "craft-turns", role: "group", "aria-label": "Turn the drawing" }, ...plane.turners(button)));
      this.parts.left.append(figure(this.left, "Keys and query ", this.turns[0]));
      this.parts.right.append(figure(this.right, "Values and output; the ring is the goal ", this.turns[1]));
      const p = this.parts;
      const manual = el("p", { class: "craft-manual", id: this.id("keys") }, `${KEYS}. In space PageUp and PageDown move it in depth, and the ground turns when dragged. The dotted circle is where lengths begin to be drawn shortened.`);
      this.element.append(p.course, el("div", { class: "craft-words" }, p.text, p.asks, p.state, p.help), el("div", { class: "craft-planes" }, p.left, p.right), p.switches, p.table, manual);
    }

    fields() {
      const { parts: p, task } = this;
      const entries = this.tasks.map((one, i) => [one.title, i]).concat([["Your own", null]]);
      p.course.replaceChildren(el("ol", { "aria-label": "The course" }, ...entries.map(([title, i]) => {
        const made = button(title, () => this.open(i));
        if (this.place === i) made.setAttribute("aria-current", "step");
        return el("li", {}, made);
      })));
      p.text.replaceChildren(el("h2", {}, task?.title ?? "Your own"), el("p", {}, task?.text ?? "Drag anything: keys, values, the query. Choose in the table which values to average."));
      p.asks.replaceChildren(...(this.queries.length > 1 ? [this.choice("Query in hand", this.queries.map((_, i) => [i, `${i}: ${task.wishes[i]}`]), this.asked, (i) => { this.asked = Number(i); this.fields(); this.draw(); })] : []));
      if (!task) p.asks.append(this.choice("Begin with", this.scenes.map((one) => [one.name, one.title]), this.scene, (name) => this.open(null, this.scenes.find((one) => one.name === name))), ...this.sizes());
      const slider = el("input", { type: "range", min: -1, max: 1, step: "any", value: this.heat(), "aria-label": "Temperature, what scores are divided by", oninput: (event) => { this.heat(Number(event.target.value)); this.draw(); } });
      this.heated = el("output", {});
      p.switches.replaceChildren(
        this.choice("Weights by", Object.keys(WEIGHINGS).map((name) => [name, name.replaceAll("-", " ")]), this.weighing, (name) => { this.weighing = name; this.draw(); }),
        el("label", {}, "Temperature ", slider, this.heated),
        button("Temperature 1", () => { this.temperature = 1; slider.value = 0; this.draw(); }),
        button("Start over", () => this.open(this.place, this.scenes.find((one) => one.name === this.scene))),
      );
      this.table();
    }

    // The temperature as the slider has it: halfway is 1, both ends are as far from it.
    heat(value) {
      if (value !== undefined) this.temperature = value < 0 ? COLD ** -value : HOT ** value;
      return this.temperature < 1 ? -Math.log(this.temperature) / Math.log(COLD) : Math.log(this.temperature) / Math.log(HOT);
    }

    choice(label, options, chosen, choose) {
      const select = el("select", { onchange: (event) => choose(event.target.value) });
      options.forEach(([value, text]) => select.append(el("option", { value, selected: String(value) === String(chosen) }, text)));
      return el("label", {}, `${label} `, select);
    }

    sizes() {
      const resized = (rows, size) => rows.map((row) => [...row, 0, 0].slice(0, size));
      const size = this.keys[0].length;
      const again = () => { this.fields(); this.draw(); };
      return [
        this.choice("Dimensions", [[2, "two"], [3, "three"]], size, (n) => {
          [this.keys, this.values, this.queries] = [this.keys, this.values, this.queries].map((rows) => resized(rows, Number(n)));
          again();
        }),
        button("Add a key", () => {
          if (this.keys.length === MOST) return;
          const turn = 2.4 * this.keys.length;  // where there is room
          const fresh = () => [Math.cos(turn), Math.sin(turn), 0.2].slice(0, size);
          this.keys.push(fresh());
          this.values.push(fresh());
          again();
        }),
        button("Take the last away", () => {
          if (this.keys.length === 1) return;
          this.keys.pop();
          this.values.pop();
          this.wanted.delete(this.keys.length);
          again();
        }),
      ];
    }

    // ---- the figures, and every coordinate to be typed --------------------------------------------------

    table() {
      this.inputs = new Map();
      const cells = (id) => {
        const row = this.rowOf(id);
        if (!this.movable(id)) return el("td", {}, inBrackets(row));
        const made = row.map((_, i) => el("input", { type: "number", step: 0.1, "aria-label": `${id} ${AXES[i]}`, oninput: (event) => {
          const next = [...this.rowOf(id)];
          next[i] = Number(event.target.value);
          if (event.target.value.trim() && Number.isFinite(next[i]) && Math.abs(next[i]) <= 1e6) this.move(id, next);
        }, onchange: () => this.draw() }));
        this.inputs.set(id, made);
        return el("td", { class: "craft-numbers" }, ...made);
      };
      this.rows = this.keys.map((_, i) => {
        const parts = { score: el("td"), weight: el("td"), bar: el("meter", { min: 0, max: 1, "aria-label": `weight of key ${i}` }) };
        const wish = this.task ? [] : [el("td", {}, el("input", { type: "checkbox", checked: this.wanted.has(i), "aria-label": `average value ${i}`, onchange: (event) => { this.wanted[event.target.checked ? "add" : "delete"](i); this.draw(); } }))];
        parts.row = el("tr", { class: `c${i % MOST}` }, el("th", { scope: "row" }, el("span", { class: "craft-dot" }), ` ${i}`), cells(`k${i}`), parts.score, parts.weight, el("td", {}, parts.bar), cells(`v${i}`), ...wish);
        return parts;
      });
      const heads = ["key", "where it is", "score", "weight", "", "value", ...(this.task ? [] : ["goal"])];
      this.ends = { out: el("output", {}), goal: el("output", {}), slope: el("output", {}) };
      const facts = [["query", el("span", { class: "craft-numbers" }, ...cells("q").childNodes)], ["output", this.ends.out], ["goal", this.ends.goal], ["gradient", this.ends.slope]];
      this.parts.table.replaceChildren(
        el("dl", {}, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
        el("div", { class: "craft-scroll", tabindex: 0, role: "group", "aria-label": "Keys, scores, weights and values" },
          el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((text) => (text ? el("th", { scope: "col" }, text) : el("td"))))), el("tbody", {}, ...this.rows.map((parts) => parts.row)))),
      );
    }

    // ---- drawing ----------------------------------------------------------------------------------------

    draw() {
      const { scores, weights, output } = this.seen();
      const target = this.target();
      this.rows.forEach((parts, i) => {
        parts.score.textContent = shown(scores[i]);
        parts.weight.textContent = shown(weights[i]);
        parts.bar.value = Math.max(0, Math.min(1, weights[i]));
      });
      this.inputs.forEach((made, id) => made.forEach((input, i) => {
        if (input !== (input.getRootNode().activeElement)) input.value = Number(this.rowOf(id)[i].toFixed(4));
      }));
      this.heated.textContent = shown(this.temperature);
      this.ends.out.textContent = inBrackets(output);
      this.ends.goal.textContent = target ? `${inBrackets(target)}; error ${shown(distance(output, target))}` : "none chosen";
      this.ends.slope.textContent = target ? this.aboutSlope(target) : "–";
      this.turns.forEach((group) => { group.hidden = this.keys[0].length < 3; });
      this.planes(weights, output, target);
      this.judge();
      this.changed?.(this.state());
    }

    aboutSlope(target) {
      const found = slope(this, this.query, target, this.weighing, this.temperature);
      if (this.weighing === "argmax") return `${shown(found)}: the output is the best key's value as long as it is the best, so no gradient reaches the query`;
      return `of the error by the query: ${shown(found)}`;
    }

    planes(weights, output, target) {
      const size = this.keys[0].length;
      const farthest = (rows) => 1.15 * Math.max(...rows.map(length), 0.2);
      const point = (kind, letter) => (place, i) => {
        const id = `${letter}${i}`;
        return { id, place, text: id, say: `${id}, ${kind} at ${inBrackets(place)}, weight ${shown(weights[i])}`, kind: `c${i % MOST}`, movable: this.movable(id), grow: weights[i] };
      };
      const zero = this.keys[0].map(() => 0);
      this.left.draw({
        size,
        unit: farthest(this.task ? this.task.keys : this.keys),
        lines: [...this.keys.map((to, i) => ({ from: zero, to, kind: `c${i % MOST}` })), { from: zero, to: this.query, kind: "query" }],
        points: [...this.keys.map(point("key", "k")), { id: "q", place: this.query, text: "q", say: `q, query at ${inBrackets(this.query)}`, kind: "query", movable: this.movable("q") }],
      });
      const pairs = this.values.flatMap((from, i) => this.values.slice(i + 1).map((to) => ({ from, to, kind: "hull" })));
      this.right.draw({
        size: this.values[0].length,
        unit: farthest(this.task ? this.task.values : this.values),
        lines: [...pairs, ...(target ? [{ from: output, to: target, kind: "miss" }] : [])],
        rings: target ? [{ place: target, radius: this.goal, kind: "goal" }] : [],
        points: [...this.values.map(point("value", "v")), { id: "out", place: output, text: "output", say: `output at ${inBrackets(output)}`, kind: "output", movable: false }],
      });
    }

    judge() {
      const errors = this.errors();
      const done = errors.every((error) => within(error, this.goal));
      const own = this.weighing === "softmax" && this.temperature === 1;
      const { task } = this;
      if (task && done && own && !this.told) this.solved.add(task.name);
      [...this.parts.course.querySelectorAll("button")].forEach((made, i) => made.classList.toggle("solved", this.solved.has(this.tasks[i]?.name)));
      const said = [];
      if (Number.isFinite(errors[this.asked])) {
        const sign = done ? "✓ " : "";
        const several = errors.length > 1 ? `; ${errors.filter((error) => within(error, this.goal)).length} of ${errors.length} queries do it` : "";
        said.push(`${sign}Error ${shown(errors[this.asked])}, wanted: at most ${shown(this.goal)}${several}.`);
        if (!own) said.push("That is with a softmax at temperature 1, by which the goal is judged.");
        if (done && task) said.push(this.told ? "This solution was worked out for you: start over and find it." : "Solved.");
      }
      this.parts.state.classList.toggle("solved", done && own);
      if (this.parts.state.textContent !== said.join(" ")) this.parts.state.textContent = said.join(" ");
      this.help(done && own);
    }

    // ---- hints, solutions, the next task ----------------------------------------------------------------

    help(done) {
      const { task } = this;
      const now = JSON.stringify([this.place, this.hints, this.told, done, this.asked, task ? 0 : [this.keys, this.values, [...this.wanted]]]);
      if (now === this.helped) return;  // so that the focus stays where it is
      const held = this.parts.help.contains(this.element.getRootNode().activeElement) ? this.element.getRootNode().activeElement.dataset.what : null;
      this.helped = now;
      const again = (change) => () => { change(); this.draw(); };
      const named = (what, made) => { made.dataset.what = what; return made; };
      const offers = [];
      if (task && this.hints < task.hints.length) offers.push(named("hint", button(this.hints ? "Another hint" : "A hint", again(() => { this.hints += 1; }))));
      if (task) offers.push(named("answer", button("Show a solution", again(() => this.answer()))));
      if (done && task && this.place + 1 < this.tasks.length) offers.push(named("next", button("Next: " + this.tasks[this.place + 1].title, () => this.open(this.place + 1))));
      const hints = (task?.hints ?? []).slice(0, this.hints).map((text) => el("li", {}, text));
      const why = this.told ? this.task.answers[this.asked].why.map((text) => el("li", {}, text)) : [];
      const exactly = !task && this.wanted.size ? [el("p", {}, "How near can one come, and why not nearer? Ask a terminal:"), el("pre", { tabindex: 0, "aria-label": "the command" }, this.command())] : [];
      this.parts.help.replaceChildren(el("p", { class: "craft-offers" }, ...offers), ...(hints.length ? [el("ul", { "aria-label": "Hints" }, ...hints)] : []), ...(why.length ? [el("ul", { "aria-label": "Why" }, ...why)] : []), ...exactly);
      if (held) (this.parts.help.querySelector(`[data-what="${held}"]`) ?? this.parts.help.querySelector("button"))?.focus();
    }

    answer() {
      this.told = true;
      const { task } = this;
      if (task.free === "query") task.answers.forEach((answer, i) => { this.queries[i] = [...answer.vector]; });
      else this.keys[task.key] = [...task.answers[0].vector];
    }

    command() {
      return `attnlab craft average ${[...this.wanted].sort().join(" ")} --keys "${typed(this.keys)}" --values "${typed(this.values)}" --scale ${this.scale}`;
    }

    state() {
      const { weights, output } = this.seen();
      return { task: this.task?.name ?? "", query: this.query, keys: this.keys, values: this.values, weights, output, error: this.errors()[this.asked], solved: [...this.solved] };
    }
  }

  // In every element that holds its data; or in one, with data given.
  function mount() {
    document.querySelectorAll("[data-craft]").forEach((place) => {
      if (!place.board) place.board = new Board(place, JSON.parse(place.querySelector("script").textContent));
    });
  }

  return { Board, mount };
})();
