// What people come for, from the home page on, with the clicks that it takes: docs/operations/pages.md has them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { browser, open, tab } from "./browser.mjs";

after(() => browser.close());

const told = readFileSync(new URL("../../docs/operations/pages.md", import.meta.url), "utf8");

/// Plays a task, which gets the page and what clicks on it.
function task(question, play) {
  test(question, async () => {
    const line = told.split("\n").find((line) => line.startsWith(`| ${question} |`));
    assert.ok(line, `docs/operations/pages.md does not have "${question}"`);
    const page = await tab();
    await open(page, "/");
    let clicks = 0;
    await play(page, async (selector, options) => {
      clicks += 1;
      await page.locator(selector, options).first().click();
      await page.waitForLoadState();
    });
    assert.equal(clicks, Number(line.split("|")[2]), "clicks");
    await page.done();
  });
}

const text = (page, selector = "main") => page.locator(selector).first().innerText();

/// Goes to an object by its name, which counts as one.
async function goTo(page, click, name) {
  await page.keyboard.press("Control+k");
  await page.keyboard.type(name);
  await click("#found a", { hasText: name });
  await page.waitForURL("**/objects/**");
}

task("which of my applications fail, and for which cause?", async (page) => {
  assert.match(await text(page), /BuildFailed[^]*billing/);
});

task("why is this one, which waits for another one, not delivered?", async (page, click) => {
  await click("a.name", { hasText: "reports" });
  assert.match(await text(page, "#cause"), /billing: BuildFailed .*settings.yaml:4/);
});

task("which commit does it have, who wrote that, and how long did each step take?", async (page, click) => {
  await goTo(page, click, "accounts");
  assert.match(await text(page, "#delivery"), /Commit[^]*Artifact \+ [^]*Applied \+ [^]*Raise limits[^]*Testkit/);
});

task("is this application on the commit of another one, in all clusters?", async (page, click) => {
  await goTo(page, click, "accounts");
  await click("#delivery a.mono");
  const names = await page.locator("#change section", { hasText: "Delivered" }).locator("a.name").allInnerTexts();
  assert.equal(names.filter((name) => name === "transfers").length, 2);
});

task("what would be changed if it was applied now?", async (page, click) => {
  await goTo(page, click, "accounts");
  await click("#compared a.button");
  await page.locator("#compared", { hasText: "no differences" }).waitFor({ timeout: 20000 });
});

task("what do its Events tell?", async (page, click) => {
  await goTo(page, click, "accounts");
  await click("#events a.button");
  await page.locator("#events", { hasText: "ReconciliationSucceeded" }).waitFor({ timeout: 20000 });
});

task("why does its source fail?", async (page, click) => {
  await click("a.name", { hasText: "experiments" });
  assert.match(await text(page, "h1"), /GitRepository/);
  assert.match(await text(page, "#cause"), /no-such-branch/);
});

task("what did it have yesterday?", async (page, click) => {
  await click("header nav a", { hasText: "History" });
  await click("main a", { hasText: "State at" });
  assert.match(await text(page, "h1"), /State at/);
});

for (const [verb, state, question] of [
  ["suspend", /Suspended/, "suspend it in two clusters, with a reason"],
  ["resume", /Ready|In progress/, "let it go on in both"],
]) {
  task(question, async (page, click) => {
    await click("header nav a", { hasText: "Applications" });
    await page.locator("#q").fill("ns:shop cart");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/apps?q=ns*");
    await click("[data-all] input");
    await page.locator("input[name=reason]").fill("a task");
    await click(`button[value=${verb}]`);
    await page.waitForFunction((state) => {
      const rows = [...document.querySelectorAll("#rows > li")];
      return rows.length === 2 && rows.every((row) => new RegExp(state).test(row.innerText));
    }, state.source, { timeout: 10000 });
  });
}

task("how is each cluster?", async (page, click) => {
  await click("header nav a", { hasText: "Fleet" });
  await click("main a", { hasText: "Clusters" });
  assert.match(await text(page, "#wall"), /eu[^]*Ready[^]*us[^]*Ready/);
});

task("which applications have another version in another cluster?", async (page, click) => {
  await click("header nav a", { hasText: "Fleet" });
  assert.match(await text(page, "#matrix"), /accounts[^]*main@sha1/);
});

task("which sources fail, and why?", async (page, click) => {
  await click("header nav a", { hasText: "Sources" });
  await click("#facets a", { hasText: "Failed" });
  assert.match(await text(page, "#rows"), /experiments[^]*no-such-branch/);
});

task("what is made of what?", async (page, click) => {
  await click("header nav a", { hasText: "Graph" });
  assert.ok((await page.locator("svg.graph a").count()) > 40);
});

task("where is this commit?", async (page, click) => {
  const found = await page.request.get(new URL("/api/v1/objects?kind=git&limit=1", page.url()).href);
  const [{ revision }] = (await found.json()).items;
  await click("header nav a", { hasText: "Change" });
  await page.locator("main input[type=search]").fill(revision.split(":")[1]);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/change?q=*");
  assert.match(await text(page, "#change"), /Delivered/);
});

task("how often do we deploy, and how much fails?", async (page, click) => {
  await click("header nav a", { hasText: "History" });
  assert.match(await text(page, ".cards"), /Deployments[^]*\/ day[^]*Change failure rate[^]*%/);
});

task("who stopped this application, and why?", async (page, click) => {
  await goTo(page, click, "cart");
  assert.match(await text(page, "#history"), /operator\s+suspend[^]*a task/);
});

task("what changed last?", async (page, click) => {
  await click("header nav a", { hasText: "Applications" });
  await page.locator("select[name=sort]").selectOption("newest");
  await click("form.filter button");
  assert.match(page.url(), /sort=newest/);
});

task("reconcile all that fails, with its sources", async (page, click) => {
  await click("header nav a", { hasText: "Applications" });
  await click("#facets a", { hasText: "Failed" });
  await click("[data-all] input");
  await click("input[name=withSource]");
  await click("button[value=reconcile]");
  await page.waitForURL("**/apps?status=Failed");
});

task("who am I to the clusters?", async (page, click) => {
  await click("a.user");
  assert.match(await text(page), /You are[^]*operator/);
});
