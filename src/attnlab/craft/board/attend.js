"use strict";
// Attention in numbers: scores, weights, output, error. It knows of no page; tests hold it against Python.
globalThis.attnlabAttend = (() => {
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const length = (a) => Math.sqrt(dot(a, a));
  const distance = (a, b) => length(a.map((x, i) => x - b[i]));
  const times = (a, factor) => a.map((x) => x * factor);

  function softmax(scores) {
    const best = Math.max(...scores);
    const raised = scores.map((s) => Math.exp(s - best));
    return times(raised, 1 / raised.reduce((sum, x) => sum + x, 0));
  }

  // The threshold at which what is above it, raised to a power, adds up to one: sparsemax and 1.5-entmax.
  function above(scores, threshold, power) {
    const sorted = [...scores].sort((a, b) => b - a);
    let chosen = -Infinity;
    sorted.forEach((_, i) => {
      const found = threshold(sorted.slice(0, i + 1));
      if (sorted[i] >= found) chosen = found;
    });
    return scores.map((s) => Math.max(0, s - chosen) ** power);
  }

  function sparsemax(scores) {
    return above(scores, (best) => (best.reduce((sum, s) => sum + s, 0) - 1) / best.length, 1);
  }

  function entmax15(scores) {
    return above(scores.map((s) => s / 2), (best) => {
      const mean = best.reduce((sum, s) => sum + s, 0) / best.length;
      const spread = best.reduce((sum, s) => sum + (s - mean) ** 2, 0);
      return mean - Math.sqrt(Math.max(0, (1 - spread) / best.length));
    }, 2);
  }

  // By the names that declarations use.
  const WEIGHINGS = {
    softmax,
    argmax: (scores) => scores.map((_, i) => Number(i === scores.indexOf(Math.max(...scores)))),
    sparsemax,
    entmax15,
    "softmax-plus-one": (scores) => softmax([...scores, 0]).slice(0, -1),
    sigmoid: (scores) => scores.map((s) => 1 / (1 + scores.length * Math.exp(-s))),
    relu: (scores) => scores.map((s) => Math.max(0, s) / scores.length),
  };

  // What a query makes of keys and values: softmax(scale · K q / temperature) V, or with another weighing.
  function attend({ keys, values, scale = 1 }, query, weighing = "softmax", temperature = 1) {
    const scores = keys.map((key) => scale * dot(key, query) / temperature);
    const weights = WEIGHINGS[weighing](scores);
    const output = values[0].map((_, i) => weights.reduce((sum, w, n) => sum + w * values[n][i], 0));
    return { scores, weights, output };
  }

  // How fast the error falls or grows where the query moves, by central differences: the gradient's length.
  function slope(scene, query, target, weighing, temperature, step = 1e-5) {
    const error = (q) => distance(attend(scene, q, weighing, temperature).output, target);
    return length(query.map((_, i) => {
      const moved = (by) => query.map((x, j) => (i === j ? x + by : x));
      return (error(moved(step)) - error(moved(-step))) / (2 * step);
    }));
  }

  // A task is solved by the rules of attnlab.craft: a softmax, no temperature, the error within the goal.
  const within = (error, goal) => error <= goal * (1 + 1e-9);

  return { WEIGHINGS, attend, slope, within, dot, length, distance, times };
})();
