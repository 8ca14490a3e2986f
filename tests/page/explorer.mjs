// The page for browsers: its engine's figures are the program's, for every preset and for files beyond 4 GiB.
//
//   node explorer.mjs HEADROOM EXPLORER_FOLDER
//
// Exit status: 0 all passed, 1 a check failed.
import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, readSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import vm from "node:vm";
import { gzipSync } from "node:zlib";
import { writeConfig, writeModel } from "./large_model.mjs";

const [headroom, folder] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), "headroom-explorer-"));
let failures = 0;

function fail(text) {
  failures += 1;
  console.log(text);
}

// --- The page's worker, which is all but the page: Node has no importScripts.

function startWorker() {
  const waiting = new Map();
  Object.assign(globalThis, {
    require: createRequire(import.meta.url),
    __dirname: folder,
    fetch: async (name) => new Response(readFileSync(join(folder, name))),
    self: globalThis,
    importScripts: (name) => vm.runInThisContext(readFileSync(join(folder, name), "utf8"), { filename: join(folder, name) }),
    postMessage: ({ id, result, failure }) => {
      const { resolve, reject } = waiting.get(id);
      if (failure === undefined) resolve(result);
      else reject(new Error(failure));
    },
  });
  importScripts("explorer_worker.js");
  return (job) => new Promise((resolve, reject) => {
    const id = waiting.size;
    waiting.set(id, { resolve, reject });
    globalThis.onmessage({ data: { id, ...job } });
  });
}

const started = performance.now();
const ask = startWorker();
const answer = async (request) => exactJson(await ask({ request }));

// --- Reports.

/// Integers of JSON as text where they exceed a script's numbers.
function exactJson(text) {
  return JSON.parse(text.replace(/([:[,]\s*)(-?\d{15,})(?=\s*[,\]}])/g, '$1"$2"'));
}

/// A report without what differs by the program that wrote it.
function figures({ produced_by, ...report }) {
  return report;
}

/// JSON reports of the program, and its exit status. The program writes none if the input is at fault. The words are in
/// the engine's order, since commands that reports recommend repeat it.
function native(command, options, models) {
  const env = { ...process.env, HOME: work, XDG_DATA_HOME: work };
  const words = Object.entries(options).map(([key, value]) => (value === true ? `--${key}` : `--${key}=${value}`));
  const settings = { env, cwd: work, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 28 };
  try {
    return { status: 0, text: execFileSync(headroom, [command, ...words, "--format=json", "--", ...models], settings) };
  } catch (error) {
    return { status: error.status, text: error.stdout };
  }
}

/// Mathematical functions of two C libraries may differ in their last bit.
const kLastBits = 1e-13;

function isSame(a, b) {
  if (typeof a === "number" && typeof b === "number") return Math.abs(a - b) <= kLastBits * Math.max(Math.abs(a), Math.abs(b));
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && isSame(a[key], b[key]));
}

/// The first place where two reports differ.
function difference(a, b, place = "") {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) {
    return isSame(a, b) ? null : `${place}: ${JSON.stringify(a)}, not ${JSON.stringify(b)}`;
  }
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const found = difference(a[key], b[key], `${place}/${key}`);
    if (found !== null) return found;
  }
  return null;
}

let compared = 0;

async function compare(command, options, models) {
  const expected = native(command, options, Object.values(models));
  const got = await answer({ command, ...models, ...options, format: "json" });
  const where = `${command} ${Object.values(models).join(" ")} ${JSON.stringify(options)}`;
  if (got.status !== expected.status) {
    return fail(`${where}: exits with ${got.status}, not ${expected.status}: ${JSON.stringify(got.error ?? {})}`);
  }
  if (expected.status > 1) return undefined;
  compared += 1;
  const found = difference(figures(got.report), figures(exactJson(expected.text)));
  return found === null ? undefined : fail(`${where}: ${found}`);
}

// --- Checks.

async function firstFigure() {
  const { report, error } = await answer({ command: "analyze", model: "bert-base" });
  const seconds = (performance.now() - started) / 1000;
  if (error || report.parameters.total !== 109482240) fail(`bert-base: ${JSON.stringify(error ?? report.parameters)}`);
  console.log(`first figure after ${seconds.toFixed(2)} s`);
}

function size() {
  const kMost = 3_000_000;
  const files = readdirSync(folder).map((name) => join(folder, name));
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
  const packed = files.reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0);
  console.log(`${files.length} files of ${bytes} bytes, ${packed} with gzip`);
  if (bytes > kMost) fail(`the page has ${bytes} bytes, more than ${kMost}`);
}

/// All presets in one call of the program, which starts once.
async function everyPreset(names) {
  const expected = exactJson(native("analyze", {}, names).text);
  for (const [i, name] of names.entries()) {
    const { report, error } = await answer({ command: "analyze", model: name });
    compared += 1;
    const found = report ? difference(figures(report), figures(expected[i])) : error.message;
    if (found !== null) fail(`analyze ${name}: ${found}`);
  }
}

const kQuestions = [
  { command: "explain", what: "flops" },
  { command: "explain", what: "params", steps: true },
  { command: "analyze", phase: "train", dtype: "bf16" },
  { command: "fit", machine: "h100-80gb", batch: 16, seq: 4096 },
  { command: "plan", machine: "h100-80gb", count: 8 },
  { command: "diff", other: "bert-base" },
];

/// Each preset gets one of the questions.
async function otherCommands(names) {
  for (const [i, name] of names.entries()) {
    const { command, other, ...options } = kQuestions[i % kQuestions.length];
    const models = other ? { model_a: name, model_b: other } : { model: name };
    await compare(command, options, models);
  }
}

/// What a browser gives for a file of the disk.
function modelFile(of) {
  const path = join(work, of);
  const arrayBuffer = async (begin, end) => {
    const content = new Uint8Array(end - begin);
    const file = openSync(path);
    const got = readSync(file, content, 0, content.length, begin);
    closeSync(file);
    return content.buffer.slice(0, got);
  };
  return { name: basename(of), size: statSync(path).size, slice: (begin, end) => ({ arrayBuffer: () => arrayBuffer(begin, end) }) };
}

async function compareFiles(command, names) {
  const model = await ask({ slot: "a", files: names.map(modelFile) });
  await compare(command, {}, command === "inspect" ? { path: model } : { model });
}

/// Files of more than 4 GiB, more than the engine can address, where the engine places them.
async function largeFiles() {
  for (const name of ["a/large-llama", "a/model"]) mkdirSync(join(work, name), { recursive: true });
  const folder = join(work, "a/large-llama");
  writeConfig(folder);
  await compareFiles("analyze", ["a/large-llama/config.json"]);
  writeModel(folder);
  renameSync(join(work, "a/large-llama/model.gguf"), join(work, "a/model/model.gguf"));
  for (const command of ["analyze", "inspect"]) {
    await compareFiles(command, ["a/large-llama/config.json", "a/large-llama/model.safetensors"]);
    await compareFiles(command, ["a/model/model.gguf"]);
  }
}

async function run() {
  size();
  await firstFigure();
  const { report } = await answer({ command: "presets" });
  const names = report.presets.map(({ name }) => name);
  if (names.length < 300) fail(`only ${names.length} presets`);
  await everyPreset(names);
  await otherCommands(names);
  await largeFiles();
  console.log(`${compared} reports compared`);
}

try {
  await run();
} finally {
  rmSync(work, { recursive: true });
}
process.exit(failures === 0 ? 0 : 1);
