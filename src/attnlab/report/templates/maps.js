"use strict";
// Attention maps: every head small, one of them large, before and after training or step by step, arms side by
// side.
// Needs nothing but this file, maps.css and the data in the element it is mounted on.
globalThis.attnlabMaps = (() => {
  const FONT = "Helvetica, Arial, sans-serif";
  // Lightness alone tells a weight, so every eye reads it; blue and orange tell a gain from a loss.
  const THEMES = {
    light: {
      paper: "#ffffff", ink: "#1f2328", soft: "#5c6370", line: "#d5d3cd",
      more: [[255, 255, 255], [122, 192, 233], [0, 114, 178], [0, 30, 72]],
      less: [[255, 255, 255], [246, 178, 107], [213, 94, 0], [96, 36, 0]],
    },
    dark: {
      paper: "#16181d", ink: "#e8e6e1", soft: "#a5abb6", line: "#3d424b",
      more: [[22, 24, 29], [0, 78, 128], [86, 180, 233], [236, 248, 255]],
      less: [[22, 24, 29], [130, 60, 0], [255, 146, 72], [255, 240, 226]],
    },
  };
  const LEVELS = 48;
  const EXPORTED = 460;  // width of one map in a saved picture
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let onPaper = false;
  const theme = () => THEMES[dark.matches && !onPaper ? "dark" : "light"];

  // ---- small things ---------------------------------------------------------------------------------------

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

  const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const short = (text, most = 14) => ([...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text);
  const shown = (value) => (Math.abs(value) < 0.0005 ? "0" : value.toFixed(Math.abs(value) < 0.1 ? 3 : 2)).replace("-", "−");
  const signed = (value) => (value > 0 && shown(value) !== "0" ? "+" : "") + shown(value);

  function colour(value, most, palette) {
    if (!(most > 0)) return palette.paper;
    const stops = value < 0 ? palette.less : palette.more;
    const place = Math.min(1, Math.round(Math.abs(value) / most * LEVELS) / LEVELS) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(place));
    const mixed = stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * (place - low)));
    return `rgb(${mixed.join(",")})`;
  }

  // ---- the numbers ----------------------------------------------------------------------------------------

  const unpacked = new WeakMap();

  // One head's map as numbers, row by row; null where there is none.
  function weights(view, when, probe, layer, head) {
    if (when === "difference") {
      const before = weights(view, 0, probe, layer, head);
      const after = weights(view, view.steps.length - 1, probe, layer, head);
      return before && after && after.map((value, i) => value - before[i]);
    }
    const kept = view.maps[when][`${probe}/${layer}`];
    if (!kept || head >= kept.scale.length) return null;
    if (!unpacked.has(kept)) {
      const bytes = Uint8Array.from(atob(kept.levels), (letter) => letter.charCodeAt(0));
      unpacked.set(kept, kept.signed ? new Int8Array(bytes.buffer) : bytes);
    }
    const size = view.probes[probe].tokens.length ** 2;
    return Float32Array.from(unpacked.get(kept).subarray(head * size, (head + 1) * size), (level) => level * kept.scale[head]);
  }

  const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

  // ---- one map, as SVG ------------------------------------------------------------------------------------

  // {svg, width, height, cell, left, top}: what is inside an <svg> of this size.
  function drawn({ values, tokens, title, width, most, difference, palette }) {
    const count = tokens.length;
    const labels = tokens.map((token) => short(token));
    const gutter = Math.min(width * 0.3, 10 + 6.6 * Math.max(...labels.map((label) => [...label].length)));
    const cell = Math.min(30, (width - gutter - 2) / count);
    const [left, top] = [gutter, gutter + 22];
    const side = cell * count;
    const every = Math.max(1, Math.ceil(10 / cell));
    const byColour = new Map();
    for (let q = 0; q < count; q++) {
      for (let k = 0; k < count; k++) {
        const value = values[q * count + k];
        if (!value) continue;
        const fill = colour(value, most, palette);
        if (!byColour.has(fill)) byColour.set(fill, []);
        byColour.get(fill).push(`M${(left + k * cell).toFixed(2)},${(top + q * cell).toFixed(2)}h${cell.toFixed(2)}v${cell.toFixed(2)}h-${cell.toFixed(2)}z`);
      }
    }
    const text = (x, y, words, more = "") =>
      `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" font-family="${FONT}" font-size="11" fill="${palette.soft}" ${more}>${escaped(words)}</text>`;
    const parts = [
      `<text x="0" y="12" font-family="${FONT}" font-size="12.5" font-weight="bold" fill="${palette.ink}">${escaped(title)}</text>`,
      `<rect x="${left}" y="${top}" width="${side}" height="${side}" fill="${palette.paper}" stroke="${palette.line}"/>`,
      ...[...byColour].map(([fill, paths]) => `<path fill="${fill}" d="${paths.join("")}"/>`),
    ];
    labels.forEach((label, i) => {
      if (i % every) return;
      const middle = (i + 0.5) * cell;
      parts.push(text(left - 5, top + middle + 3.8, label, 'text-anchor="end"'));
      parts.push(text(0, 0, label, `transform="translate(${(left + middle + 3.8).toFixed(1)},${top - 5}) rotate(-90)"`));
    });
    const below = top + side + 14;
    const bar = Math.min(160, side);
    const ends = difference ? [-most, most] : [values.some((v) => v < 0) ? -most : 0, most];
    for (let i = 0; i < 32; i++) {
      const value = ends[0] + (ends[1] - ends[0]) * (i + 0.5) / 32;
      parts.push(`<rect x="${(left + i * bar / 32).toFixed(2)}" y="${below}" width="${(bar / 32 + 0.4).toFixed(2)}" height="9" fill="${colour(value, most, palette)}"/>`);
    }
    parts.push(`<rect x="${left}" y="${below}" width="${bar}" height="9" fill="none" stroke="${palette.line}"/>`);
    const say = difference ? signed : shown;
    parts.push(text(left, below + 22, say(ends[0])), text(left + bar, below + 22, say(ends[1]), 'text-anchor="end"'));
    return { svg: parts.join(""), width, height: below + 28, cell, left, top };
  }

  const wrapped = (inner, width, height, more = "") =>
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width.toFixed(0)} ${height.toFixed(0)}" width="${width.toFixed(0)}" height="${height.toFixed(0)}" ${more}>${inner}</svg>`;

  // ---- files ----------------------------------------------------------------------------------------------

  async function painted(svg, width, height, times = 3) {
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
    await image.decode();
    const canvas = el("canvas", { width: Math.round(width * times), height: Math.round(height * times) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas;
  }

  // One page that holds the picture, loss-free: tokens of any script look as they do on the screen.
  async function asPdf(canvas, width, height) {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const rgb = new Uint8Array(pixels.length / 4 * 3);
    for (let from = 0, to = 0; from < pixels.length; from += 4) {
      rgb[to++] = pixels[from]; rgb[to++] = pixels[from + 1]; rgb[to++] = pixels[from + 2];
    }
    const packed = await new Response(new Blob([rgb]).stream().pipeThrough(new CompressionStream("deflate"))).arrayBuffer();
    const page = `q ${width} 0 0 ${height} 0 0 cm /I Do Q`;
    const objects = [
      ["<</Type/Catalog/Pages 2 0 R>>"],
      ["<</Type/Pages/Kids[3 0 R]/Count 1>>"],
      [`<</Type/Page/Parent 2 0 R/MediaBox[0 0 ${width} ${height}]/Resources<</XObject<</I 5 0 R>>>>/Contents 4 0 R>>`],
      [`<</Length ${page.length}>>stream\n${page}\nendstream`],
      [`<</Type/XObject/Subtype/Image/Width ${canvas.width}/Height ${canvas.height}/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/FlateDecode/Length ${packed.byteLength}>>stream\n`, packed, "\nendstream"],
    ];
    const pieces = ["%PDF-1.4\n"];
    const length = () => pieces.reduce((sum, piece) => sum + (piece.byteLength ?? piece.length), 0);
    const places = objects.map((object, i) => {
      const place = length();
      pieces.push(`${i + 1} 0 obj`, ...object, "\nendobj\n");
      return place;
    });
    const table = length();
    const rows = places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("");
    pieces.push(`xref\n0 6\n0000000000 65535 f \n${rows}trailer<</Size 6/Root 1 0 R>>\nstartxref\n${table}\n%%EOF\n`);
    return new Blob(pieces, { type: "application/pdf" });
  }

  function saved(blob, file) {
    const link = el("a", { href: URL.createObjectURL(blob), download: file });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // ---- the viewer -----------------------------------------------------------------------------------------

  class Viewer {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
      this.file = (root.dataset.file || "attention").replace(/[^\p{L}\p{N}_-]+/gu, "-");
      const first = this.data.views[0];
      this.state = { left: 0, right: -1, probe: 0, when: first.steps.length > 1 ? "both" : "after", one: false, layer: 0, head: 0, q: 1, k: 0, step: 0 };
      this.state.layer = Math.max(0, first.layers.findLastIndex((layer) => layer.heads));
      this.build();
      this.refresh();
      new ResizeObserver(() => this.width !== this.root.clientWidth && this.draw()).observe(root);
      dark.addEventListener("change", () => this.refresh());
      addEventListener("beforeprint", () => { onPaper = true; this.refresh(); });
      addEventListener("afterprint", () => { onPaper = false; this.refresh(); });
    }

    get views() {
      return [this.state.left, this.state.right].filter((at) => at >= 0).map((at) => this.data.views[at]);
    }

    build() {
      const { views } = this.data;
      const label = (view) => (view.seed === null ? view.name : `${view.name}, seed ${view.seed}`);
      const choice = (words, options, key, convert) => {
        const select = el("select", { onchange: () => { this.state[key] = convert(select.value); this.refresh(); } },
          ...options.map(([value, text]) => el("option", { value, selected: String(value) === String(this.state[key]) }, text)));
        return el("label", {}, words, " ", select);
      };
      const arms = views.map((view, at) => [at, label(view)]);
      const one = el("input", { type: "checkbox", onchange: () => { this.state.one = one.checked; this.refresh(); } });
      this.probes = el("label", {}, "Text ", el("select", { onchange: (event) => { this.state.probe = Number(event.target.value); this.refresh(); } }));
      const most = Math.max(...views.map((view) => view.steps.length));
      const times = [["both", "before and after"], ["before", "before"], ["after", "after"], ["difference", "after less before"], ...(most > 2 ? [["step", "step by step"]] : [])];
      this.slider = el("input", { type: "range", min: "0", step: "1", value: "0", oninput: () => { this.state.step = this.steps()[Number(this.slider.value)]; this.refresh(); } });
      this.sliderLabel = el("label", { class: "maps-step", hidden: true }, "Step ", this.slider, " ", el("output"));
      this.overview = el("div", { class: "maps-overview" });
      this.panes = el("div", { class: "maps-panes" });
      this.told = el("p", { class: "maps-told", role: "status" });
      this.facts = el("p", { class: "maps-facts" });
      this.table = el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "What each token takes most from" });
      const numbers = el("details", { class: "more", ontoggle: () => this.list() }, el("summary", {}, "What each token takes most from, as a table"), this.table);
      this.numbers = numbers;
      const save = (kind) => el("button", { type: "button", "data-save": kind, "aria-label": `Save what is shown as ${kind.toUpperCase()}`, onclick: () => this.save(kind) }, kind.toUpperCase());
      this.root.append(
        el("div", { class: "maps-tools", role: "group", "aria-label": "What is shown" },
          this.probes,
          ...(views.length > 1 ? [choice("Arm", arms, "left", Number), choice("beside", [[-1, "nothing"], ...arms], "right", Number)] : []),
          ...(most > 1 ? [choice("Show", times, "when", String)] : []), this.sliderLabel,
          el("label", {}, one, " one scale for all heads, 0 to 1")),
        this.overview, this.facts, this.panes, this.told, numbers,
        el("p", { class: "maps-save", role: "group", "aria-label": "Save what is shown" }, el("span", {}, "Save as "), ...["svg", "pdf", "png", "csv"].map(save)),
        ...(this.data.left_out ? [el("p", { class: "note" }, this.data.left_out)] : []));
    }

    refresh() {
      const { state } = this;
      const select = this.probes.querySelector("select");
      const probes = this.views[0].probes;
      state.probe = Math.min(state.probe, probes.length - 1);
      select.replaceChildren(...probes.map((probe, at) => el("option", { value: at, selected: at === state.probe }, short(probe.text, 48))));
      this.slide();
      this.thumbnails();
      this.draw();
    }

    // ---- step by step -------------------------------------------------------------------------------------

    // Every step at which one of the arms that are shown was looked at.
    steps() {
      return [...new Set(this.views.flatMap((view) => view.steps))].sort((a, b) => a - b);
    }

    slide() {
      const steps = this.steps();
      const at = Math.max(0, steps.findLastIndex((step) => step <= this.state.step));
      this.state.step = steps[at];
      Object.assign(this.slider, { max: steps.length - 1, value: at });
      const words = steps[at].toLocaleString("en");
      this.slider.setAttribute("aria-valuetext", `step ${words}`);
      this.sliderLabel.querySelector("output").textContent = words;
      this.sliderLabel.hidden = this.state.when !== "step";
    }

    // What of a view the small maps show: the place of a step, or the difference.
    time(view) {
      const last = view.steps.length - 1;
      if (this.state.when === "step") return Math.max(0, view.steps.findLastIndex((step) => step <= this.state.step));
      return this.state.when === "difference" && last ? "difference" : this.state.when === "before" ? 0 : last;
    }

    // The largest weight of a head: over all steps where one goes through them, so that a colour keeps its meaning.
    most(view, when, probe, layer, head) {
      const times = this.state.when === "step" ? view.steps.map((_, at) => at) : [when];
      return Math.max(...times.map((at) => largest(weights(view, at, probe, layer, head) ?? [])));
    }

    // ---- every head, small --------------------------------------------------------------------------------

    thumbnails() {
      this.overview.replaceChildren(...this.views.map((view, side) => {
        const rows = view.layers.map((layer, depth) => {
          const about = `layer ${depth + 1}`;
          if (!layer.heads) return el("div", { class: "maps-row" }, el("span", { class: "maps-layer" }, about), el("span", { class: "note" }, `no maps: ${layer.without}`));
          const heads = Array.from({ length: layer.heads }, (_, head) => this.thumbnail(view, this.time(view), depth, head, side));
          return el("div", { class: "maps-row" }, el("span", { class: "maps-layer" }, about), el("span", { class: "maps-heads" }, ...heads));
        });
        const words = `Every ${view.layers[0].per} of ${view.name}`;
        return el("div", { class: "maps-grid", role: "radiogroup", "aria-label": `${words}: choose one with the arrow keys`, onkeydown: (event) => this.choose(event, view, side) },
          el("p", { class: "maps-over", "aria-hidden": "true" }, words), ...rows);
      }));
    }

    thumbnail(view, when, layer, head, side) {
      const chosen = layer === this.state.layer && head === this.state.head;
      const probe = Math.min(this.state.probe, view.probes.length - 1);
      const tokens = view.probes[probe].tokens.length;
      const canvas = el("canvas", { width: tokens, height: tokens });
      const values = weights(view, when, probe, layer, head);
      const image = new ImageData(tokens, tokens);
      const most = this.state.one ? 1 : this.most(view, when, probe, layer, head);
      const palette = theme();
      const known = new Map();
      values.forEach((value, i) => {
        const fill = colour(value, most, palette);
        if (!known.has(fill)) known.set(fill, fill.startsWith("#") ? palette.more[0] : fill.match(/\d+/g).map(Number));
        image.data.set([...known.get(fill), 255], 4 * i);
      });
      canvas.getContext("2d").putImageData(image, 0, 0);
      return el("button", {
        type: "button", role: "radio", "aria-checked": String(chosen), tabindex: chosen ? "0" : "-1", "data-at": `${side}/${layer}/${head}`,
        "aria-label": `layer ${layer + 1}, ${view.layers[layer].per} ${head + 1}: ${this.summary(view, layer, head)}`,
        onclick: () => this.pick(layer, head, side),
      }, canvas);
    }

    // The figures of a head, after training or at the step that is shown; or before it and after, where both are.
    summary(view, layer, head, both = false) {
      const last = this.state.when === "step" ? this.time(view) : view.figures.length - 1;
      const [before, after] = [view.figures[0][layer] || {}, view.figures[last][layer] || {}];
      const told = Object.keys(after).filter((measure) => head < after[measure].length).map((measure) => {
        const now = shown(after[measure][head]);
        return `${measure} ${both && last && measure in before ? `${shown(before[measure][head])} → ` : ""}${now}`;
      });
      return told.join(", ");
    }

    pick(layer, head, side) {
      Object.assign(this.state, { layer, head });
      for (const button of this.overview.querySelectorAll("[role=radio]")) {
        const chosen = button.dataset.at.split("/").slice(1).join("/") === `${layer}/${head}`;
        button.setAttribute("aria-checked", String(chosen));
        button.tabIndex = chosen ? 0 : -1;
      }
      this.overview.querySelector(`[data-at="${side}/${layer}/${head}"]`)?.focus();
      this.draw();
    }

    choose(event, view, side) {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!step) return;
      event.preventDefault();
      const depths = view.layers.map((layer, at) => (layer.heads ? at : -1)).filter((at) => at >= 0);
      const wrap = (value, size) => (value + size) % size;
      const layer = step[0] ? depths[wrap(depths.indexOf(this.state.layer) + step[0], depths.length)] : this.state.layer;
      const heads = view.layers[layer].heads;
      this.pick(layer, step[1] ? wrap(this.state.head + step[1], heads) : Math.min(this.state.head, heads - 1), side);
    }

    // ---- one head, large ----------------------------------------------------------------------------------

    // What is to be seen: [{view, when, title, values, tokens}].
    shown() {
      const { when, layer, head } = this.state;
      return this.views.flatMap((view) => {
        const last = view.steps.length - 1;
        const probe = Math.min(this.state.probe, view.probes.length - 1);
        const wanted = when === "step" ? [this.time(view)] : when === "both" && last ? [0, last] : when === "before" ? [0] : when === "difference" && last ? ["difference"] : [last];
        const arm = this.views.length > 1 ? `${short(view.name, 24)}, ` : "";
        return wanted.map((at) => ({
          view, at, probe, tokens: view.probes[probe].tokens,
          values: view.layers[layer]?.heads ? weights(view, at, probe, layer, head) : null,
          short: at === "difference" ? `${arm}since step ${view.steps[0].toLocaleString("en")}` : `${arm}at step ${view.steps[at].toLocaleString("en")}`,
          title: arm + (at === "difference" ? `step ${view.steps[last].toLocaleString("en")} less step ${view.steps[0].toLocaleString("en")}` : `${at === 0 && last ? "before: " : at && at === last ? "after: " : ""}step ${view.steps[at].toLocaleString("en")}`),
          without: view.layers[layer] ? view.layers[layer].without || `this layer has ${view.layers[layer].heads} here` : "there is no such layer",
        }));
      });
    }

    scaleOf(panes, difference) {
      if (this.state.one) return 1;
      const alike = panes.filter((pane) => pane.values && (pane.at === "difference") === difference);
      return Math.max(1e-9, ...alike.map((pane) => this.most(pane.view, pane.at, pane.probe, this.state.layer, this.state.head)));
    }

    draw() {
      const panes = this.shown();
      this.width = this.root.clientWidth;
      const columns = panes.length > 1 && this.width >= 620 ? 2 : 1;
      const room = Math.max(240, Math.min(560, (this.width - 20 * (columns - 1)) / columns));
      this.state.q = Math.min(this.state.q, panes[0].tokens.length - 1);
      this.state.k = Math.min(this.state.k, panes[0].tokens.length - 1);
      this.maps = [];
      const focused = this.panes.contains(document.activeElement) ? [...this.panes.children].indexOf(document.activeElement.closest(".maps-pane")) : -1;
      this.panes.replaceChildren(...panes.map((pane, at) => this.pane(pane, at, panes, room)));
      this.panes.children[focused]?.querySelector("[tabindex]")?.focus();
      const { layer, head, when } = this.state;
      const both = when === "both" || when === "difference";
      const told = this.views.map((view) => [view.name, this.summary(view, layer, head, both)]).filter(([, words]) => words);
      this.facts.replaceChildren(el("strong", {}, this.title()), ...told.map(([arm, words]) =>
        el("span", {}, this.views.length > 1 ? `${arm}: ${words}` : words)));
      this.tell();
      this.list();
    }

    title() {
      const { layer, head } = this.state;
      const layers = this.views[0].layers;
      return `Layer ${layer + 1}, ${layers[layer] ? layers[layer].per : "head"} ${head + 1}`;
    }

    pane(pane, at, panes, room) {
      if (!pane.values) return el("div", { class: "maps-pane" }, el("p", { class: "note" }, `${pane.title}: no map; ${pane.without}.`));
      const difference = pane.at === "difference";
      const made = drawn({ ...pane, width: room, most: this.scaleOf(panes, difference), difference, palette: theme() });
      const holder = el("div", {
        class: "maps-drawing", tabindex: "0", role: "application", "aria-roledescription": "attention map",
        "aria-label": `${pane.title}; ${this.title()}: tokens that look, downwards; tokens looked at, across. The arrow keys go from weight to weight.`,
        onkeydown: (event) => this.walk(event, pane.tokens.length),
        onpointermove: (event) => this.point(event, at), onpointerdown: (event) => this.point(event, at),
        onfocus: () => this.tell(),
      });
      holder.innerHTML = wrapped(made.svg, made.width, made.height, 'aria-hidden="true"');
      const cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      cursor.setAttribute("class", "maps-cursor");
      for (const side of ["width", "height"]) cursor.setAttribute(side, made.cell);
      holder.firstChild.append(cursor);
      this.maps[at] = { ...made, cursor, pane, holder };
      return el("div", { class: "maps-pane" }, holder);
    }

    walk(event, count) {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -count], End: [0, count] }[event.key];
      if (!step) return;
      event.preventDefault();
      const within = (value) => Math.max(0, Math.min(count - 1, value));
      Object.assign(this.state, { q: within(this.state.q + step[0]), k: within(this.state.k + step[1]) });
      this.tell();
    }

    point(event, at) {
      const { left, top, cell, width, holder, pane } = this.maps[at];
      const box = holder.firstChild.getBoundingClientRect();
      const times = width / box.width;
      const [k, q] = [((event.clientX - box.left) * times - left) / cell, ((event.clientY - box.top) * times - top) / cell].map(Math.floor);
      if (k < 0 || q < 0 || k >= pane.tokens.length || q >= pane.tokens.length) return;
      Object.assign(this.state, { q, k });
      this.tell();
    }

    tell() {
      const { q, k } = this.state;
      const there = this.maps.filter(Boolean);
      for (const { cursor, left, top, cell } of there) {
        cursor.setAttribute("x", left + k * cell);
        cursor.setAttribute("y", top + q * cell);
      }
      if (!there.length) { this.told.textContent = ""; return; }
      const tokens = there[0].pane.tokens;
      const values = there.map(({ pane }) => {
        const value = pane.values[q * pane.tokens.length + k];
        return `${pane.at === "difference" ? signed(value) : shown(value)} ${pane.short}`;
      });
      this.told.textContent = `“${tokens[q]}” (${q + 1}) from “${tokens[k]}” (${k + 1}): ${values.join(", ")}`;
    }

    list() {
      if (!this.numbers.open) return;
      const panes = this.shown().filter((pane) => pane.values);
      const most = (pane, q) => {
        const row = [...pane.values.subarray(q * pane.tokens.length, (q + 1) * pane.tokens.length)];
        const order = row.map((value, k) => [Math.abs(value), k]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, 3);
        return order.filter(([size]) => size > 0).map(([, k]) => `${pane.tokens[k]} ${pane.at === "difference" ? signed(row[k]) : shown(row[k])}`).join(", ");
      };
      this.table.replaceChildren(el("table", {},
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "token"), ...panes.map((pane) => el("th", { scope: "col" }, pane.title)))),
        el("tbody", {}, ...(panes[0]?.tokens ?? []).map((token, q) =>
          el("tr", {}, el("th", { scope: "row" }, token), ...panes.map((pane) => el("td", {}, q < pane.tokens.length ? most(pane, q) : "")))))));
    }

    // ---- take it along ------------------------------------------------------------------------------------

    // Everything that is shown in one picture, in light colours.
    picture() {
      const panes = this.shown().filter((pane) => pane.values);
      let [x, height] = [16, 0];
      const parts = panes.map((pane) => {
        const difference = pane.at === "difference";
        const made = drawn({ ...pane, width: EXPORTED, most: this.scaleOf(panes, difference), difference, palette: THEMES.light });
        const part = `<g transform="translate(${x},34)">${made.svg}</g>`;
        x += EXPORTED + 24;
        height = Math.max(height, made.height + 44);
        return part;
      });
      const title = `<text x="16" y="20" font-family="${FONT}" font-size="13" fill="${THEMES.light.soft}">${escaped(this.title())}</text>`;
      const paper = `<rect width="${x}" height="${Math.ceil(height)}" fill="#ffffff"/>`;
      return { svg: wrapped(paper + title + parts.join(""), x, Math.ceil(height)), width: x, height: Math.ceil(height) };
    }

    csv() {
      const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const panes = this.shown().filter((pane) => pane.values);
      const tokens = panes[0]?.tokens ?? [];
      const rows = [["query", "query_token", "key", "key_token", ...panes.map((pane) => pane.title)]];
      tokens.forEach((token, q) => tokens.forEach((other, k) =>
        rows.push([q, token, k, other, ...panes.map((pane) => (pane.tokens.length === tokens.length ? pane.values[q * tokens.length + k].toPrecision(4) : ""))])));
      return rows.map((row) => row.map((value) => quoted(String(value))).join(",")).join("\n") + "\n";
    }

    async save(kind) {
      const { svg, width, height } = this.picture();
      const made = {
        svg: () => new Blob([svg], { type: "image/svg+xml" }),
        png: async () => new Promise(async (done) => (await painted(svg, width, height)).toBlob(done, "image/png")),
        pdf: async () => asPdf(await painted(svg, width, height), width, height),
        csv: () => new Blob([this.csv()], { type: "text/csv;charset=utf-8" }),
      };
      saved(await made[kind](), `${this.file}-layer-${this.state.layer + 1}-head-${this.state.head + 1}.${kind}`);
    }
  }

  // Every viewer below an element that is not there yet: for a page that is put together later.
  function mount(below = document) {
    for (const root of below.querySelectorAll(".maps:not([data-mounted])")) {
      root.dataset.mounted = "yes";
      root.viewer = new Viewer(root);
    }
  }
  mount();
  return { mount };
})();
