// A real browser, and what every page is held to.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

export const base = process.env.WINDLASS_UI;
assert.ok(base, "WINDLASS_UI is the console's address: make ui-test");

const executablePath = process.env.CHROMIUM ?? "/usr/lib/chromium/chromium-headless-shell";
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const PICTURES = new URL("../../target/ui/", import.meta.url).pathname;
mkdirSync(PICTURES, { recursive: true });

export const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });

/// A tab that fails the test on an error of a script, and on anything that the policy for content refuses.
export async function tab(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.errors = [];
  page.on("pageerror", (error) => page.errors.push(String(error)));
  page.on("console", (message) => {
    // A page that is refused is no error of a script.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) page.errors.push(message.text());
  });
  page.done = async () => {
    assert.deepEqual(page.errors, []);
    await context.close();
  };
  return page;
}

export async function open(page, path) {
  const answer = await page.goto(base + path);
  assert.ok(answer.status() < 400, `${path}: ${answer.status()}`);
  return answer;
}

/// No finding of axe that is serious.
export async function isAccessible(page, name) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary}`).join("; ")}`);
  assert.deepEqual(told, [], name);
}

export async function fitsTheWindow(page, name) {
  const wide = await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    const beyond = [...document.querySelectorAll("body *")].filter((one) => {
      const box = one.getBoundingClientRect();
      return box.right > width + 1 && box.width > 0 && !one.closest(".wide, pre, .skip, .hidden");
    });
    return document.documentElement.scrollWidth > width ? beyond.slice(0, 5).map((one) => one.outerHTML.slice(0, 200)) : [];
  });
  assert.deepEqual(wide, [], `${name} is wider than the window`);
}

/// Compares a picture with the one that is kept, by the share of points that differ. WINDLASS_UI_KEEP=1 keeps the new one.
export async function looksAsKept(page, name, tolerance) {
  const kept = new URL(`pictures/${name}.png`, import.meta.url).pathname;
  const taken = await page.screenshot({ fullPage: true, animations: "disabled" });
  writeFileSync(`${PICTURES}${name}.png`, taken);
  if (process.env.WINDLASS_UI_KEEP) return writeFileSync(kept, taken);
  const blank = await (await browser.newContext()).newPage();
  const share = await blank.evaluate(async (sources) => {
    const pictures = await Promise.all(sources.map(async (source) => {
      const bytes = Uint8Array.from(atob(source), (letter) => letter.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
      context.drawImage(bitmap, 0, 0);
      return context.getImageData(0, 0, bitmap.width, bitmap.height);
    }));
    const [a, b] = pictures;
    if (a.width !== b.width || Math.abs(a.height - b.height) > 8) return 1;
    let different = 0;
    const points = a.width * Math.min(a.height, b.height);
    for (let at = 0; at < points * 4; at += 4) {
      const by = Math.abs(a.data[at] - b.data[at]) + Math.abs(a.data[at + 1] - b.data[at + 1]) + Math.abs(a.data[at + 2] - b.data[at + 2]);
      if (by > 48) different += 1;
    }
    return different / points;
  }, [readFileSync(kept).toString("base64"), taken.toString("base64")]);
  await blank.context().close();
  assert.ok(share <= tolerance, `${name}: ${(share * 100).toFixed(2)} % of it differ from tests/ui/pictures (see target/ui)`);
}
