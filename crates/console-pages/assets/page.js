// Keys, copy buttons, and the title and icon of the tab. Pages are whole without it.
"use strict";

const PLACES = { h: "/", a: "/apps", s: "/sources", f: "/fleet", p: "/pipelines", l: "/history", c: "/change", n: "/new" };

for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  const before = button.textContent;
  button.textContent = button.dataset.copied;
  setTimeout(() => { button.textContent = before; }, 1500);
});

// Favourites are kept by this browser alone.
function favourites() {
  try { return JSON.parse(localStorage.getItem("favourites")) ?? {}; } catch { return {}; }
}
const star = document.querySelector("[data-star]");
if (star) {
  const { star: place, name } = star.dataset;
  star.hidden = false;
  star.setAttribute("aria-pressed", String(place in favourites()));
  star.addEventListener("click", () => {
    const all = favourites();
    if (place in all) delete all[place]; else all[place] = name;
    localStorage.setItem("favourites", JSON.stringify(all));
    star.setAttribute("aria-pressed", String(place in all));
  });
}
const marked = document.getElementById("favourites");
if (marked) {
  const places = Object.entries(favourites()).filter(([place]) => place.startsWith("/objects/"));
  for (const [place, name] of places) {
    const link = Object.assign(document.createElement("a"), { href: place, textContent: name });
    marked.querySelector("ul").appendChild(document.createElement("li")).append(link);
  }
  marked.hidden = places.length === 0;
}

// What a live page says of itself: title and icon.
function state() {
  const shown = document.getElementById("state");
  if (!shown) return;
  if (document.title !== shown.dataset.title) document.title = shown.dataset.title;
  const icon = document.querySelector("link[rel=icon]");
  if (icon.getAttribute("href") !== shown.dataset.icon) icon.setAttribute("href", shown.dataset.icon);
}

// How long ago something was, as the server writes it.
function duration(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"]];
  const [size, unit] = units.find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.floor(Math.max(0, seconds) / size)} ${unit}`;
}
function times() {
  for (const time of document.querySelectorAll("time.ago"))
    time.textContent = duration((Date.now() - Date.parse(time.dateTime)) / 1000);
}
function soaking() {
  for (const bar of document.querySelectorAll("progress[data-since]"))
    bar.value = (Date.now() - Date.parse(bar.dataset.since)) / 1000;
}
setInterval(soaking, 15000);
setInterval(times, 15000);

// All rows of the page are selected at once.
const all = document.querySelector("[data-all]");
if (all) {
  all.hidden = false;
  all.addEventListener("change", (event) => {
    event.stopPropagation();
    for (const box of document.querySelectorAll("#rows input[name=object]"))
      if (box.checked !== event.target.checked) box.click();
  });
}

// Selections and focus outlive a row that is sent again.
const picked = new Set();
let focused = null;
document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.name !== "object") return;
  if (box.checked) picked.add(box.value); else picked.delete(box.value);
});
document.addEventListener("htmx:sse:before:message", () => {
  const row = document.activeElement?.closest("#rows > li");
  focused = row && { id: row.id, at: [...row.querySelectorAll("a, input")].indexOf(document.activeElement) };
});
document.addEventListener("htmx:sse:after:message", () => {
  state();
  times();
  for (const box of document.querySelectorAll("#rows input[name=object]")) box.checked = picked.has(box.value);
  if (focused && document.activeElement === document.body)
    document.getElementById(focused.id)?.querySelectorAll("a, input")[focused.at]?.focus();
});

const live = document.getElementById("live");
document.addEventListener("htmx:sse:after:connection", () => { if (live) live.textContent = ""; });
for (const name of ["htmx:sse:error", "htmx:sse:close"])
  document.addEventListener(name, () => { if (live) live.textContent = live.dataset.stale; });

let waiting = false;
const palette = document.getElementById("palette");
let asked = 0;
palette?.querySelector("input").addEventListener("input", (event) => {
  const number = ++asked;
  setTimeout(async () => {
    // What was typed last counts.
    if (number !== asked) return;
    const answer = await fetch(`/find?q=${encodeURIComponent(event.target.value)}`);
    const found = await answer.text();
    if (answer.ok && number === asked) document.getElementById("found").innerHTML = found;
  }, 100);
});
palette?.addEventListener("keydown", (event) => {
  const links = [...palette.querySelectorAll("#found a")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    const at = links.indexOf(document.activeElement) + step;
    (links[at] ?? palette.querySelector("input")).focus();
  } else if (event.key === "Enter" && document.activeElement.tagName === "INPUT") {
    event.preventDefault();
    links[0]?.click();
  }
});
document.addEventListener("keydown", (event) => {
  if (palette && event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    palette.showModal();
    palette.querySelector("input").select();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) return;
  const key = event.key;
  if (waiting) {
    waiting = false;
    if (PLACES[key]) location.assign(PLACES[key]);
    return;
  }
  if (key === "g") { waiting = true; setTimeout(() => { waiting = false; }, 1000); }
  else if (key === "/") { event.preventDefault(); (document.getElementById("q") ?? document.querySelector("input[type=search]")).focus(); }
  else if (key === "?") document.getElementById("keys").showModal();
  else if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
  else if (key === "x") document.activeElement.closest("#rows > li")?.querySelector("input[name=object]")?.click();
});

function move(step) {
  const names = [...document.querySelectorAll("main a.name")];
  const row = document.activeElement.closest("li, tr");
  const at = names.findIndex((name) => name === document.activeElement || (row && row.contains(name)));
  names[Math.min(names.length - 1, Math.max(0, at + step))]?.focus();
}
