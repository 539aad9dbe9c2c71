"use strict";
// Everything the page can do beyond being read: copy a table, download a picture, tell a mark's numbers.
document.documentElement.classList.add("js");

const SVG = "http://www.w3.org/2000/svg";
const held = (element) => JSON.parse(element.querySelector("script[type='application/json']").textContent);

function say(button, word) {
  const before = button.textContent;
  if (button.dataset.saying) return;
  button.dataset.saying = "yes";
  button.textContent = word;
  setTimeout(() => { button.textContent = before; delete button.dataset.saying; }, 1400);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // a page from a mail attachment may be refused the clipboard
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function save(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The picture as a file of its own: with a size, and in the light colours it carries.
function standalone(figure) {
  const drawn = figure.querySelector(".wide svg").cloneNode(true);
  const [, , width, height] = drawn.getAttribute("viewBox").split(" ");
  drawn.setAttribute("width", width);
  drawn.setAttribute("height", height);
  drawn.setAttribute("xmlns", SVG);
  return { text: new XMLSerializer().serializeToString(drawn), width: Number(width), height: Number(height) };
}

async function asPng(figure) {
  const { text, width, height } = standalone(figure);
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: width * 3, height: height * 3 });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function asPdf(figure) {
  const bytes = Uint8Array.from(atob(held(figure).pdf), (letter) => letter.charCodeAt(0));
  return new Blob([bytes], { type: "application/pdf" });
}

const MAKERS = {
  svg: (figure) => new Blob([standalone(figure).text], { type: "image/svg+xml" }),
  pdf: asPdf,
  png: asPng,
  csv: (figure) => new Blob([held(figure).csv], { type: "text/csv;charset=utf-8" }),
};

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copy === "code") {
    await copy(button.closest(".code").querySelector("code").textContent);
    say(button, "Copied");
  } else if (button.dataset.copy) {
    await copy(held(button.closest(".tabled"))[button.dataset.copy]);
    say(button, "Copied");
  } else if (button.dataset.download) {
    const figure = button.closest("figure");
    const name = figure.dataset.file.replace(/[^\p{L}\p{N}_-]+/gu, "-").replace(/^-+|-+$/g, "");
    save(await MAKERS[button.dataset.download](figure), `${name}.${button.dataset.download}`);
    say(button, "Saved");
  }
});

const tip = document.getElementById("tip");
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest(".drawn svg [aria-label]");
  const told = mark && mark.getAttribute("role") === "graphics-symbol" ? mark.getAttribute("aria-label") : "";
  tip.hidden = !told;
  if (!told) return;
  tip.textContent = told;
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18}px`;
});

// Paper has no way to open what is folded.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((folded) => { folded.open = true; });
});
addEventListener("afterprint", () => opened.forEach((folded) => { folded.open = false; }));
