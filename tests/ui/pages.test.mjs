// Each page: without scripts, in light and dark, on a phone, by keyboard, and live.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { PICTURES, base, browser, fitsTheWindow, isAccessible, looksAsKept, open, tab } from "./browser.mjs";

after(() => browser.close());

const PAGES = {
  home: "/",
  apps: "/apps",
  failed: "/apps?q=status:failed",
  sources: "/sources",
  images: "/images",
  pipelines: "/pipelines",
  pipeline: "/objects/eu/Pipeline/shop/checkout",
  notifications: "/notifications",
  app: "/objects/eu/Kustomization/shop/web",
  failing: "/objects/eu/Kustomization/bank/reports",
  release: "/objects/us/HelmRelease/shop/api",
  source: "/objects/eu/GitRepository/shop/apps",
  fleet: "/fleet",
  history: "/history",
  state: "/state?at=1m",
  wall: "/wall",
  graph: "/graph",
  me: "/me",
  design: "/design",
  new: "/new",
  form: "/new/HelmRelease",
  edit: "/objects/eu/Kustomization/shop-dev/checkout/edit",
  changes: "/changes",
};

for (const [name, path] of Object.entries(PAGES)) {
  test(`${name} is read without scripts`, async () => {
    const page = await tab({ javaScriptEnabled: false });
    await open(page, path);
    assert.ok((await page.locator("main h1").innerText()).trim());
    assert.ok((await page.locator("main").innerText()).length > 40);
    await page.done();
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`${name} in ${colorScheme} has no serious finding, and fits a phone`, async () => {
      const page = await tab({ colorScheme });
      await open(page, path);
      await isAccessible(page, name);
      await page.screenshot({ path: `${PICTURES}${name}-${colorScheme}.png`, fullPage: true });
      await page.setViewportSize({ width: 390, height: 844 });
      await fitsTheWindow(page, name);
      if (colorScheme === "light") await page.screenshot({ path: `${PICTURES}${name}-phone.png`, fullPage: true });
      await page.done();
    });
  }
}

// What has no data in it looks the same each time.
for (const colorScheme of ["light", "dark"]) {
  test(`the design in ${colorScheme} looks as it did`, async () => {
    const page = await tab({ colorScheme });
    await open(page, "/design");
    await looksAsKept(page, `the-design-${colorScheme}`, 0.02);
    await page.done();
  });
}

test("a change is found by its commit, and nothing is found of another one", async () => {
  const page = await tab();
  await open(page, "/objects/eu/Kustomization/shop/web");
  await page.locator("#delivery a.mono").first().click();
  await page.waitForURL("**/change?q=*");
  assert.match(await page.locator("#change").innerText(), /web/);
  await isAccessible(page, "change");
  await open(page, "/change?q=0123456789abcdef");
  assert.match(await page.locator("#change").innerText(), /No source/);
  await page.done();
});

test("a person is asked to approve, does it by keyboard, and sees the release arrive", async () => {
  const page = await tab();
  await open(page, "/");
  assert.match(await page.locator("#needs").innerText(), /checkout[^]*production needs approval of release 2 \(0\/1\)/);
  await page.locator("#needs a.name", { hasText: "checkout" }).press("Enter");
  await page.waitForURL("**/objects/eu/Pipeline/shop/checkout");
  const cells = page.locator("#board tbody tr").first().locator("td");
  await page.locator("#board tbody tr").first().getByText("2.3.0 → 2.4.0").waitFor();
  assert.deepEqual((await cells.allInnerTexts()).map((text) => text.split("\n")[0]), ["Here", "Here", "Waits"]);
  assert.match(await cells.nth(2).innerText(), /release 2: approval 0 of 1/);
  await page.screenshot({ path: `${PICTURES}pipeline-waits.png`, fullPage: true });
  // What they agree to, in the files of the repository.
  await page.locator("#compared a.button").click();
  await page.locator("#compared details.diff").first().waitFor({ timeout: 20000 });
  assert.match(await page.locator("#compared").innerText(), /release 2 in production[^]*2\.3\.0[^]*2\.4\.0/);
  await page.locator("button[value=approve]").first().press("Enter");
  // The page is sent the board as it changes: no one reloads it.
  await page.waitForFunction(() => {
    const cells = [...document.querySelectorAll("#board tbody tr:first-child td")];
    return cells.every((cell) => cell.innerText.trim() === "Here");
  }, undefined, { timeout: 30000 });
  await isAccessible(page, "the board");
  await page.done();
});

test("a manifest is changed by pull request, with what it would change shown first", async () => {
  const page = await tab();
  await open(page, "/objects/eu/Kustomization/shop-staging/checkout");
  await page.getByRole("link", { name: "Edit through Git" }).press("Enter");
  await page.waitForURL("**/edit");
  const text = page.locator("textarea[name=content]");
  assert.match(await text.inputValue(), /newTag: \S+ # what runs there/);
  await text.fill((await text.inputValue()).replace(/interval: 1h/, "interval: 7m"));
  await page.locator("input[name=title]").fill("Look more often at staging");
  await page.locator("button[value=preview]").press("Enter");
  await page.locator("#preview").waitFor();
  const preview = await page.locator("#preview").innerText();
  assert.match(preview, /environments\/staging\/checkout\.yaml[^]*-  interval: 1h\n\+  interval: 7m/);
  assert.match(preview, /changed Kustomization\/shop-staging\/checkout[^]*spec\.interval/);
  await isAccessible(page, "the preview");
  await page.screenshot({ path: `${PICTURES}preview.png`, fullPage: true });
  await page.setViewportSize({ width: 390, height: 844 });
  await fitsTheWindow(page, "the preview");
  await page.locator("button[value=propose]").press("Enter");
  await page.waitForURL("**/ChangeRequest/shop/look-more-often-at-staging-*");
  // The page is sent the pull request when it is open.
  await page.locator("#request a", { hasText: "/pulls/" }).waitFor({ timeout: 30000 });
  assert.match(await page.locator("#request").innerText(), /Look more often at staging[^]*operator[^]*Open/);
  await isAccessible(page, "the change");
  await open(page, "/");
  assert.match(await page.locator("#needs").innerText(), /Changes that wait for a merge[^]*look-more-often-at-staging/);
  await page.done();
});

test("a form makes a manifest, and says what is wrong with it", async () => {
  const page = await tab();
  await open(page, "/new/GitRepository");
  await page.locator("input[name=name]").fill("docs");
  await page.locator("input[name=namespace]").fill("shop");
  await page.locator("input[name='spec.url']").fill("no address");
  await page.locator("input[name=kustomization]").fill("shop/dev");
  await page.locator("button[value=preview]").press("Enter");
  await page.locator("#preview").waitFor();
  assert.match(await page.locator("#preview").innerText(), /gitrepository-docs\.yaml[^]*spec\.url/);
  const text = page.locator("textarea[name=content]");
  await text.fill((await text.inputValue()).replace("no address", "https://git.example.com/docs"));
  await page.locator("button[value=preview]").press("Enter");
  await page.locator("#preview", { hasText: "created" }).waitFor();
  assert.match(await page.locator("#preview").innerText(), /created GitRepository\/shop\/docs/);
  await text.fill("on: push");
  await page.locator("button[value=preview]").press("Enter");
  assert.match(await page.locator("p.problem").innerText(), /must be a manifest/);
  assert.equal(await text.inputValue(), "on: push");
  await page.done();
});

test("an environment goes back from the page, and what it had is held", async () => {
  const page = await tab();
  await open(page, "/objects/eu/Pipeline/shop/checkout");
  const form = page.locator("form.decide").last();
  await form.locator("select[name=environment]").selectOption("production");
  await form.locator("button[value=rollback]").click();
  assert.match(await page.locator("main").innerText(), /reason: rollback needs one/);
  await page.goBack();
  await form.locator("select[name=environment]").selectOption("production");
  await form.locator("input[name=reason]").fill("carts are empty");
  await form.locator("button[value=rollback]").click();
  await page.locator("#board th", { hasText: "held by operator: carts are empty" }).waitFor();
  await page.locator("#board tbody tr").nth(1).locator("td").nth(2).getByText("Here").waitFor({ timeout: 30000 });
  await page.locator("#board tbody tr").first().locator("td").nth(2).getByText("Taken back").waitFor({ timeout: 30000 });
  await open(page, "/objects/eu/Pipeline/shop/checkout");
  await page.locator("#history tr", { hasText: "production: release 2" }).first().waitFor();
  await page.locator("#history tr", { hasText: /production: release 1.*asked for by operator: carts are empty/s }).waitFor({ timeout: 30000 });
  assert.match(await page.locator("#history").innerText(), /operator\s+rollback[^]*production goes back to release 1[^]*carts are empty/);
  await page.done();
});

test("the keyboard leads everywhere", async () => {
  const page = await tab();
  await open(page, "/");
  await page.keyboard.press("?");
  assert.ok(await page.locator("#keys").isVisible());
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.waitForURL("**/apps");
  await page.keyboard.press("/");
  await page.keyboard.type("ns:shop web");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/apps?q=ns*");
  assert.equal(await page.locator("#rows > li").count(), 2);
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  assert.ok(await page.locator("#rows input").first().isChecked());
  await page.keyboard.press("Enter");
  await page.waitForURL("**/objects/**");
  await page.done();
});

test("a few letters lead to a page or an object", async () => {
  const page = await tab();
  await open(page, "/history");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("accoun");
  await page.locator("#found a", { hasText: "accounts" }).first().waitFor();
  await isAccessible(page, "palette");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/objects/eu/Kustomization/bank/accounts");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("sour");
  await page.waitForFunction(() => document.querySelector("#found a")?.textContent === "Sources");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/sources");
  await page.done();
});

test("favourites are on the home page of this browser", async () => {
  const page = await tab();
  await open(page, "/objects/eu/Kustomization/shop/web");
  await page.locator("[data-star]").click();
  await open(page, "/");
  assert.match(await page.locator("#favourites").innerText(), /web · Kustomization · shop · eu/);
  await page.locator("#favourites a").click();
  await page.waitForURL("**/objects/eu/Kustomization/shop/web");
  assert.equal(await page.locator("[data-star]").getAttribute("aria-pressed"), "true");
  await page.done();
});

test("what fails comes first where one wants it", async () => {
  const page = await tab();
  await open(page, "/apps");
  await page.locator("select[name=sort]").selectOption("status");
  await page.locator("form.filter button").click();
  await page.waitForURL("**/apps?*sort=status*");
  assert.match(await page.locator("#rows > li").first().innerText(), /Failed/);
  assert.match(await page.locator("#rows > li").last().innerText(), /Ready/);
  await page.done();
});

test("how it was is told by the ledger", async () => {
  const page = await tab();
  const now = new Date().toISOString();
  await open(page, `/state?at=${now}`);
  const line = page.locator("tr", { hasText: "web" }).first();
  assert.match(await line.innerText(), /main@sha1/);
  await open(page, "/state?at=2020-01-01T00:00:00Z");
  assert.equal(await page.locator("tbody tr").count(), 0);
  await page.done();
});

test("what is done on one page is seen on another one within a second, and focus stays", async () => {
  const [watching, acting] = [await tab(), await tab()];
  await open(watching, "/apps?q=ns:bank+transfers+cluster:us");
  const row = watching.locator("#rows > li");
  assert.match(await row.innerText(), /Ready/);
  await watching.locator("#rows a.name").focus();
  await watching.locator("#rows input").check();
  await open(acting, "/objects/us/Kustomization/bank/transfers");
  await acting.locator("input[name=reason]").fill("to look at it");
  await acting.locator("button[value=suspend]").focus();
  await acting.keyboard.press("Enter");
  await acting.waitForLoadState();
  await watching.waitForFunction(() => /Suspended/.test(document.querySelector("#rows > li")?.innerText ?? ""), null, { timeout: 1000 });
  assert.ok(await watching.locator("#rows input").isChecked(), "the selection stays");
  await acting.waitForFunction(() => /Suspended/.test(document.querySelector("#cause").innerText), null, { timeout: 2000 });
  assert.match(await acting.locator("#history").innerText(), /operator\s+suspend/);
  await acting.locator("button[value=resume]").click();
  await watching.waitForFunction(() => /Ready/.test(document.querySelector("#rows > li")?.innerText ?? ""), null, { timeout: 20000 });
  await watching.done();
  await acting.done();
});

test("several are acted on at once", async () => {
  const page = await tab();
  await open(page, "/apps?q=ns:bank+transfers");
  for (const box of await page.locator("#rows input").all()) await box.check();
  await page.locator("input[name=reason]").fill("both");
  await page.locator("button[value=reconcile]").click();
  await page.waitForURL("**/apps?q=ns*");
  assert.equal(await page.locator("#rows > li").count(), 2);
  await page.done();
});

test("what a release is built with is shown in place, with where it is from", async () => {
  const page = await tab();
  await open(page, "/objects/eu/HelmRelease/shop/api");
  await page.locator("#values a.button").click();
  await page.locator("#values tr", { hasText: "greeting" }).waitFor({ timeout: 20000 });
  assert.match(await page.locator("#values tr", { hasText: "greeting" }).innerText(), /greeting\s+"hello"\s+spec\.values/);
  await isAccessible(page, "values");
  await page.done();
});

test("the differences are shown in place", async () => {
  const page = await tab();
  await open(page, "/objects/eu/Kustomization/shop/web");
  await page.locator("#compared a.button").click();
  await page.waitForFunction(() => !document.querySelector("#compared a.button"), null, { timeout: 20000 });
  assert.match(await page.locator("#compared").innerText(), /no differences/);
  assert.match(page.url(), /web$/);
  await page.locator("#events a.button").click();
  await page.waitForFunction(() => !document.querySelector("#events a.button"), null, { timeout: 20000 });
  assert.match(await page.locator("#events").innerText(), /Progressing|ReconciliationSucceeded/);
  await page.locator("#logs a.button").click();
  await page.locator("#logs", { hasText: "It has no Pods." }).waitFor({ timeout: 20000 });
  await page.done();
});

test("each page is painted", async (t) => {
  const page = await tab();
  for (const [name, path] of Object.entries(PAGES)) {
    await open(page, path);
    const painted = await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    // A figure for docs/benchmarks.md, and no limit: machines differ.
    t.diagnostic(`${name}: first paint after ${Math.round(await painted.jsonValue())} ms`);
  }
  await page.done();
});

test("two applications are compared", async () => {
  const page = await tab();
  await open(page, "/compare");
  await page.locator("input[name=from]").fill("eu/Kustomization/shop/web");
  await page.locator("input[name=to]").fill("eu/Kustomization/shop/search");
  await page.locator("form.filter button").click();
  await page.locator("#compared").waitFor({ timeout: 20000 });
  assert.match(await page.locator("#compared").innerText(), /ConfigMap/);
  await isAccessible(page, "compare");
  await page.done();
});

test("failures are grouped by their cause", async () => {
  const page = await tab();
  await open(page, "/");
  const group = page.locator(".needs li", { has: page.locator("p.why", { hasText: "billing/settings.yaml" }) }).first();
  const names = await group.locator("a.name").allInnerTexts();
  assert.deepEqual(names, ["billing", "billing", "reports", "reports"]);
  await open(page, "/objects/us/Kustomization/bank/reports");
  assert.match(await page.locator("#cause").innerText(), /Kustomization\/bank\/billing: BuildFailed/);
  await page.done();
});

test("texts are German for who reads German", async () => {
  const page = await tab({ locale: "de-AT" });
  await open(page, "/");
  assert.equal(await page.locator("main h1").innerText(), "Was dich braucht");
  assert.equal(await page.locator("html").getAttribute("lang"), "de");
  await page.done();
});

test("pages are sent by us alone, and shown in no other page", async () => {
  const answer = await fetch(`${base}/apps`);
  assert.match(answer.headers.get("content-security-policy"), /^default-src 'self'; frame-ancestors 'none'/);
  assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  assert.equal(answer.headers.get("cache-control"), "no-store");
  const html = await answer.text();
  assert.doesNotMatch(html, /<script(?![^>]*src=)|<style|\son[a-z]+=|\sstyle=|javascript:/);
  const missing = await fetch(`${base}/nowhere`, { headers: { accept: "text/html" } });
  assert.equal(missing.status, 404);
  assert.match(await missing.text(), /<h1>/);
});
