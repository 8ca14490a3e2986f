// Pages in headless Chromium: figures after a reader's choices equal the program's JSON to the unit, nothing is loaded,
// nothing is logged, and axe-core finds no violation.
//
//   node browser.mjs HEADROOM NODE_MODULES CHROMIUM [SCREENSHOTS]
//
// Exit status: 0 all passed, 1 a check failed.
import { execFileSync } from "node:child_process";
import { readFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [headroom, modules, executablePath, screenshots] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(join(modules, "playwright-core/index.mjs")));
const axe = readFileSync(join(modules, "axe-core/axe.min.js"), "utf8");
const home = mkdtempSync(join(tmpdir(), "headroom-page-"));
let failures = 0;

function fail(text) {
  failures += 1;
  console.log(text);
}

function run(words) {
  const env = { ...process.env, HOME: home, XDG_DATA_HOME: home, NO_COLOR: "1" };
  try {
    return execFileSync(headroom, words, { env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 26 });
  } catch (error) {
    if (error.status === 1) return error.stdout; // a verdict that fails
    throw error;
  }
}

/// Integers of JSON as BigInt: a script's numbers have 53 bits.
function exactJson(text) {
  const marked = text.replace(/([:[,]\s*)(-?\d{15,})(?=\s*[,\]}])/g, '$1"$2"');
  return JSON.parse(marked);
}

function at(json, pointer) {
  return pointer.split("/").slice(1).reduce((value, key) => value[key], json);
}

// Each begins on the page of the first command and then sets the fields to the values of each position.
const kTrials = [
  { page: ["bert-base"], positions: [{ batch: 3 }, { seq: 511 }, { batch: 64, seq: 512, dtype: "bf16" }] },
  { page: ["llama-3.2-1b"], positions: [{ seq: 1 }, { past: 1000, seq: 24 }, { batch: 7, seq: 131071, dtype: "fp16" }] },
  { page: ["mistral-7b", "--phase", "decode", "--past", "100"], positions: [{ past: 5000, batch: 9 }, { past: 4096, seq: 3 }] },
  { page: ["mixtral-8x7b", "--phase", "decode"], positions: [{ batch: 1, past: 77 }, { batch: 3, past: 9 }] },
  { page: ["gpt2", "--phase", "train", "--dtype", "bf16"], positions: [{ batch: 5, seq: 999, dtype: "fp32" }] },
  { page: ["t5-small", "--enc-seq", "64", "--seq", "32"], positions: [{ "enc-seq": 100, seq: 17, batch: 2 }] },
];

const kFields = { batch: "batch_size", seq: "seq_len", past: "past_len", "enc-seq": "enc_seq_len", dtype: "dtype" };
const kDtypes = { fp32: "float32", bf16: "bfloat16", fp16: "float16" };

function commandLine(base, position) {
  const words = [...base];
  for (const [option, value] of Object.entries(position)) {
    const i = words.indexOf(`--${option}`);
    if (i >= 0) words.splice(i, 2);
    words.push(`--${option}`, String(value));
  }
  return ["analyze", ...words];
}

async function choose(page, position) {
  for (const [option, value] of Object.entries(position)) {
    const field = page.locator(`.controls [name=${kFields[option]}]`);
    if (option === "dtype") await field.selectOption(kDtypes[value]);
    else await field.fill(String(value));
  }
}

async function shownFigures(page) {
  return page.$$eval("[data-figure]", (figures) =>
    figures.map((figure) => ({ pointer: figure.dataset.figure, symbols: figure.querySelector(".symbols")?.textContent,
      numbers: figure.querySelector(".numbers")?.textContent, result: figure.querySelector(".result").textContent })));
}

function compareFigures(where, figures, json) {
  if (figures.length < 5) fail(`${where}: the page shows ${figures.length} figures`);
  for (const { pointer, result } of figures) {
    const expected = String(at(json, pointer));
    if (result.replaceAll(",", "") !== expected) fail(`${where}: ${pointer} is ${result}, not ${expected}`);
  }
}

/// Opens a page of its own context, which counts requests and logged messages.
async function opened(browser, words, options = {}, address = kAddress) {
  const page = await browser.newPage(options);
  const html = run([...words, "--format", "html"]);
  page.on("console", (message) => fail(`${words.join(" ")}: console: ${message.text()}`));
  page.on("pageerror", (error) => fail(`${words.join(" ")}: ${error.message}`));
  page.on("request", (request) => {
    const isPicture = request.url().startsWith("data:image/"); // of the page itself, to copy
    if (!isPicture && ![address, "about:blank"].includes(request.url().split("#")[0])) fail(`${words.join(" ")}: requests ${request.url()}`);
  });
  await page.route(address + "**", (route) => route.fulfill({ body: html, contentType: "text/html" }));
  await page.goto(address);
  return page;
}

const kAddress = "http://headroom.invalid/";
/// Pages of secure addresses may write to the clipboard.
const kSecureAddress = "https://headroom.invalid/";

async function tryFormulas(browser, { page: base, positions }) {
  const plain = await opened(browser, ["analyze", ...base], { javaScriptEnabled: false });
  const page = await opened(browser, ["analyze", ...base]);
  const [written, evaluated] = [await shownFigures(plain), await shownFigures(page)];
  written.forEach((figure, i) => {
    for (const part of ["symbols", "numbers", "result"]) {
      if (figure[part] === evaluated[i][part]) continue;
      fail(`${base.join(" ")}: ${figure.pointer}: the script writes ${evaluated[i][part]}, headroom ${figure[part]}`);
    }
  });
  for (const position of positions) {
    await page.goto("about:blank");
    await page.goto(kAddress);
    await choose(page, position);
    const words = commandLine(base, position);
    compareFigures(words.join(" "), await shownFigures(page), exactJson(run([...words, "--format", "json"])));
    await followLink(browser, page, words);
  }
  await plain.close();
  await page.close();
}

/// The address carries the choices to another reader.
async function followLink(browser, page, words) {
  const before = await shownFigures(page);
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  const after = await shownFigures(page);
  if (JSON.stringify(before) !== JSON.stringify(after)) fail(`${words.join(" ")}: ${address} shows other figures`);
}

/// The button beside the first table gives headroom's CSV. Without a clipboard it selects the text in a field.
async function copyTable(browser, words) {
  const page = await opened(browser, words);
  await page.locator(".scroll:has(table) + button").first().click();
  const copied = await page.locator("textarea").inputValue();
  const expected = run([...words, "--format", "csv"]);
  if (copied !== expected) fail(`${words.join(" ")}: the page copies ${copied}, headroom writes ${expected}`);
  await page.close();
}

/// Width, height and darkest pixel of the PNG that `image`, a data: address, holds.
function readPng(page, image) {
  return page.evaluate(async (address) => {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    const { data } = context.getImageData(0, 0, picture.width, picture.height);
    let [darkest, opaque] = [255, true];
    for (let i = 0; i < data.length; i += 4) {
      darkest = Math.min(darkest, data[i] + data[i + 1] + data[i + 2]);
      opaque &&= data[i + 3] === 255;
    }
    return { width: picture.width, height: picture.height, darkest, opaque };
  }, image);
}

/// The PNG has twice the SVG's size, dark text on white in both colour schemes, and goes to the clipboard; where a page may
/// not write there, it is shown.
async function copyPng(browser, words) {
  for (const colorScheme of ["light", "dark"]) {
    for (const isAllowed of [true, false]) {
      const where = `${words.join(" ")}, PNG, ${colorScheme}, ${isAllowed ? "clipboard" : "shown"}`;
      const page = await opened(browser, words, { colorScheme }, isAllowed ? kSecureAddress : kAddress);
      if (isAllowed) await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      const size = await page.locator(".picture svg").first().evaluate((svg) => [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height]);
      const button = page.locator(".picture button", { hasText: "Copy as PNG" }).first();
      await button.click();
      let address;
      if (isAllowed) {
        await page.locator(".picture button", { hasText: "Copied" }).first().waitFor();
        address = await page.evaluate(async () => {
          const [item] = await navigator.clipboard.read();
          const bytes = new Uint8Array(await (await item.getType("image/png")).arrayBuffer());
          return "data:image/png;base64," + btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
        });
      } else {
        address = await page.locator(".picture img").first().getAttribute("src");
      }
      const png = await readPng(page, address);
      if (png.width !== Math.round(2 * size[0]) || png.height !== Math.floor(2 * size[1])) fail(`${where}: ${png.width} × ${png.height} of ${size}`);
      if (!png.opaque || png.darkest > 150) fail(`${where}: darkest ${png.darkest}, opaque ${png.opaque}`);
      await page.close();
    }
  }
}

/// Every control is reached with Tab, and a slider moves with the arrow keys.
async function useKeyboard(browser) {
  const page = await opened(browser, ["analyze", "bert-base"]);
  const reached = new Set();
  for (let i = 0; i < 200; ++i) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => [...document.querySelectorAll("*")].indexOf(document.activeElement)));
  }
  const controls = await page.$$eval("button, input, select, summary", (all) =>
    all.filter((one) => one.checkVisibility()).map((one) => [...document.querySelectorAll("*")].indexOf(one)));
  for (const control of controls) if (!reached.has(control)) fail(`Tab does not reach element ${control}`);
  await page.locator(".controls [type=range]").first().focus();
  await page.keyboard.press("ArrowRight");
  const batch = await page.locator(".controls [name=batch_size]").inputValue();
  if (batch !== "2") fail(`an arrow key sets the batch to ${batch}`);
  await page.close();
}

const kPages = [
  ["analyze", "bert-base"],
  ["analyze", "llama-3.2-1b", "--machine", "h100-80gb", "--detail"],
  ["analyze", "gpt2", "bert-tiny"],
  ["analyze", "gpt2", "--phase", "train", "--recompute", "selective"],
  ["explain", "bert-base", "--steps"],
  ["plan", "llama-3-8b", "--machine", "h100-80gb"],
  ["fit", "llama-3-8b", "--machine", "h100-80gb"],
  ["fit", "llama-3-8b", "--machine", "h100-80gb", "--count", "8", "--phase", "train", "--batch", "64", "--zero", "3"],
  ["serve", "llama-3-8b", "--machine", "h100-80gb", "--rate", "40", "--input", "512", "--output", "128", "--ttft", "300ms"],
  ["diff", "gpt2", "llama-3.2-1b"],
  ["sweep", "llama-3-8b", "--phase", "decode", "--past", "1023..8191:x2", "--batch", "1..64:x2", "--weights", "bf16,int4", "--machine", "h100-80gb"],
  ["sweep", "gpt2", "--batch", "1..64:x2"],
  ["complexity", "layer-self-attention", "layer-rnn", "layer-linear-attention"],
];

/// A prediction for another machine beside a measurement: a page of compare without a calibration.
function comparedFiles() {
  const [predicted, measured] = ["predicted.json", "measured.json"].map((name) => join(home, name));
  writeFileSync(predicted, run(["analyze", "bert-tiny", "--machine", "a100-80gb", "--attention", "eager", "--json"]));
  writeFileSync(measured, run(["measure", "bert-tiny", "--runs", "1", "--json"]));
  return ["compare", predicted, measured];
}

const kWidths = [400, 800, 1600];

async function reviewPage(browser, words) {
  for (const colorScheme of ["light", "dark"]) {
    const page = await opened(browser, words, { colorScheme });
    await page.evaluate(axe);
    const found = await page.evaluate(() => globalThis.axe.run());
    for (const { id, nodes } of found.violations) {
      fail(`${words.join(" ")}, ${colorScheme}: ${id}: ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`);
    }
    for (const width of kWidths) {
      await page.setViewportSize({ width, height: 900 });
      const needed = await page.evaluate(() => document.documentElement.scrollWidth);
      if (needed > width) fail(`${words.join(" ")}: ${needed} px wide in ${width} px`);
      const path = `${words.join("-").replaceAll("/", "-")}-${colorScheme}-${width}.png`;
      if (screenshots) await page.screenshot({ path: join(screenshots, path), fullPage: true });
    }
    await page.close();
  }
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const trial of kTrials) await tryFormulas(browser, trial);
await copyTable(browser, ["analyze", "bert-base"]);
await copyTable(browser, ["analyze", "gpt2", "--phase", "train", "--seq", "1000"]);
await copyPng(browser, ["analyze", "bert-base"]);
await copyPng(browser, ["sweep", "gpt2", "--batch", "1..8:x2", "--seq", "128,256"]);
await useKeyboard(browser);
for (const words of [...kPages, comparedFiles()]) await reviewPage(browser, words);
await browser.close();
rmSync(home, { recursive: true });
console.log(`${kTrials.flatMap((trial) => trial.positions).length} positions tried, ${kPages.length + 1} pages reviewed`);
process.exit(failures === 0 ? 0 : 1);
