// The page for browsers in headless Chromium: each report appears, files take the place of a preset, a link repeats a
// question, a mistake is explained, nothing is logged or sent elsewhere, and axe-core finds no violation.
//
//   node explorer_browser.mjs EXPLORER_FOLDER NODE_MODULES CHROMIUM [SCREENSHOTS]
//
// Exit status: 0 all passed, 1 a check failed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { writeModel } from "./large_model.mjs";

const [folder, modules, executablePath, screenshots] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(join(modules, "playwright-core/index.mjs")));
const axe = readFileSync(join(modules, "axe-core/axe.min.js"), "utf8");
const work = mkdtempSync(join(tmpdir(), "headroom-explorer-"));
const kAddress = "http://headroom.invalid/";
const kTypes = { css: "text/css", html: "text/html", js: "text/javascript", gz: "application/gzip" };
let failures = 0;

function fail(text) {
  failures += 1;
  console.log(text);
}

/// The page of a question, as a link has it.
async function opened(browser, state, options = {}) {
  const context = await browser.newContext(options);
  await context.route("**/*", (route) => {
    const { origin, pathname } = new URL(route.request().url());
    if (`${origin}/` !== kAddress) {
      fail(`requests ${route.request().url()}`);
      return route.abort();
    }
    const file = pathname === "/" ? "index.html" : pathname.slice(1);
    return route.fulfill({ body: readFileSync(join(folder, file)), contentType: kTypes[file.split(".").pop()] });
  });
  const page = await context.newPage();
  page.on("console", (message) => fail(`${state}: console: ${message.text()}`));
  page.on("pageerror", (error) => fail(`${state}: ${error.message}`));
  await page.goto(`${kAddress}#${state}`);
  return page;
}

async function reportText(page) {
  await page.locator("form:not([aria-busy])").waitFor();
  const report = page.frameLocator("#result").locator("main");
  return report.innerText({ timeout: 60_000 });
}

const kQuestions = [
  ["command=analyze&model=bert-base", "109,482,240"],
  ["command=explain&model=gpt2&what=params", "124,439,808"],
  ["command=fit&model=llama-3-8b&machine=h100-80gb", "FITS"],
  ["command=plan&model=llama-3-8b&machine=h100-80gb&count=8", "FITS"],
  ["command=diff&model=bert-base&other=gpt2", "124,439,808"],
];

const kWidths = [400, 800, 1600];

async function review(browser, [state, expected]) {
  for (const colorScheme of ["light", "dark"]) {
    const page = await opened(browser, state, { colorScheme });
    const text = await reportText(page);
    if (!text.includes(expected)) fail(`${state}: the report lacks ${expected}: ${text.slice(0, 300)}`);
    await page.evaluate(axe);
    const found = await page.evaluate(() => globalThis.axe.run({ exclude: ["iframe"] }));
    for (const { id, nodes } of found.violations) fail(`${state}, ${colorScheme}: ${id}: ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`);
    for (const width of kWidths) {
      await page.setViewportSize({ width, height: 900 });
      const needed = await page.evaluate(() => document.documentElement.scrollWidth);
      if (needed > width) fail(`${state}: ${needed} px wide in ${width} px`);
      const name = `explorer-${new URLSearchParams(state).get("command")}-${colorScheme}-${width}.png`;
      if (screenshots) await page.screenshot({ path: join(screenshots, name) });
    }
    await page.context().close();
  }
}

/// The report that the page opens with is the engine's own answer to the question in its fields.
async function openFirst(browser) {
  const page = await opened(browser, "");
  const first = await reportText(page);
  const since = await page.evaluate(() => performance.now());
  const line = await page.locator("#line").textContent();
  await page.evaluate(() => document.querySelector("#result").removeAttribute("srcdoc"));
  await page.getByRole("button", { name: "Show" }).click();
  const answered = await reportText(page);
  if (first !== answered) fail(`the page opens with another report: ${first.slice(0, 300)}`);
  if (line !== await page.locator("#line").textContent()) fail(`the page opens with the line ${line}`);
  await page.context().close();
  return since;
}

/// Keys alone: another report, another model.
async function useKeyboard(browser) {
  const page = await opened(browser, "command=analyze&model=bert-base");
  await reportText(page);
  if (await page.locator("[name=other]").isVisible()) fail("analyze shows the field of another model");
  await page.locator("[name=command]:checked").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("gpt2");
  await page.keyboard.press("Enter");
  await page.frameLocator("#result").getByText("gpt2").first().waitFor();
  const line = await page.locator("#line").textContent();
  if (line !== "headroom explain gpt2 --what flops") fail(`keys lead to ${line}`);
  if (!page.url().includes("command=explain&model=gpt2")) fail(`the address is ${page.url()}`);
  await page.context().close();
}

async function explainMistakes(browser) {
  const page = await opened(browser, "command=analyze&model=bert-bsae");
  await page.getByText("did you mean bert-base").waitFor();
  if (await page.locator("#result").isVisible()) fail("a report is shown for a mistake");
  await page.context().close();
}

/// Files of more than 4 GiB, of which the headers suffice.
async function useFiles(browser) {
  writeModel(work);
  const page = await opened(browser, "command=analyze&model=bert-base");
  await reportText(page);
  for (const names of [["config.json"], ["model.gguf"], ["config.json", "model.safetensors"]]) {
    await page.locator("#files-model").setInputFiles(names.map((name) => join(work, name)));
    await page.frameLocator("#result").getByText("2,761,990,144").first().waitFor();
    await page.locator("[name=model]").fill("bert-base");
    await page.locator("[name=model]").press("Enter");
    await page.frameLocator("#result").getByText("109,482,240").first().waitFor();
  }
  await page.context().close();
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const question of kQuestions) await review(browser, question);
const since = await openFirst(browser);
await useKeyboard(browser);
await explainMistakes(browser);
await useFiles(browser);
await browser.close();
rmSync(work, { recursive: true });
console.log(`${kQuestions.length} reports reviewed; the first was there after ${since.toFixed(0)} ms`);
process.exit(failures === 0 ? 0 : 1);
