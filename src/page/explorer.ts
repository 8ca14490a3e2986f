// The page for browsers: fields make a request, the engine answers with a report's page.
import type { Answer, Request } from "./explorer_engine";
import type { Done, Job } from "./explorer_worker";
import { commandLine, kFieldsOf, requestOf } from "./explorer_request";

function element<Type extends HTMLElement>(id: string): Type {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found as Type;
}

// --- The worker.

const worker = new Worker("explorer_worker.js");
const waiting = new Map<number, { resolve(result: string): void; reject(error: Error): void }>();
let jobs = 0;

worker.onmessage = ({ data }: MessageEvent<Done>) => {
  const one = waiting.get(data.id);
  waiting.delete(data.id);
  if (data.result !== undefined) one?.resolve(data.result);
  else one?.reject(new Error(data.failure));
};
worker.onerror = () => {
  say("The engine cannot start: open the page from a web server, with a browser of 2022 or newer.");
};

function ask(job: Omit<Job, "id">): Promise<string> {
  jobs += 1;
  const id = jobs;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    worker.postMessage({ id, ...job });
  });
}

async function answerTo(request: Request): Promise<Answer> {
  return JSON.parse(await ask({ request })) as Answer;
}

// --- Fields.

const form = element<HTMLFormElement>("question");
const status = element("status");
const result = element<HTMLIFrameElement>("result");
const line = element("line");
const kFields = ["model", "other", "machine", "count", "what", "options"];

/// Files that take the place of a preset, by field.
const placed = new Map<string, { shown: string; model: string }>();

function say(text: string): void {
  status.textContent = text;
}

function field(name: string): HTMLInputElement {
  return form.elements.namedItem(name) as HTMLInputElement;
}

function command(): string {
  return form.querySelector<HTMLInputElement>("[name=command]:checked")?.value ?? "analyze";
}

function showFields(): void {
  const shown = kFieldsOf[command()] ?? [];
  for (const name of kFields) element(`field-${name}`).hidden = !shown.includes(name);
  if (command() === "plan" && !field("machine").value) field("machine").value = "h100-80gb"; // which a plan needs
}

/// The model of the files that the field shows, if it shows files.
function placedIn(name: string): string | undefined {
  const file = placed.get(name);
  return file?.shown === field(name).value ? file.model : undefined;
}

function valueOf(name: string): string {
  return placedIn(name) ?? field(name).value.trim();
}

function values(): Record<string, string> {
  return Object.fromEntries(kFields.map((name) => [name, valueOf(name)]));
}

// --- Answers.

function problem({ error, messages }: Answer): string {
  if (error === undefined) return messages.join("\n");
  const where = error.where ? `${error.where}: ` : "";
  return `${where}${error.message}${error.hint ? `\n${error.hint}` : ""}`;
}

let asked = 0;

/// Shows the report of the fields; an answer that is overtaken by a later question is dropped.
async function show(): Promise<void> {
  asked += 1;
  const own = asked;
  remember();
  try {
    const request = requestOf(command(), values());
    line.textContent = commandLine(request);
    form.setAttribute("aria-busy", "true");
    const answer = await answerTo({ ...request, format: "html" });
    if (own !== asked) return;
    say(problem(answer));
    result.hidden = answer.text === undefined;
    result.srcdoc = answer.text ?? "";
  } catch (error) {
    if (own !== asked) return;
    result.hidden = true;
    say(error instanceof Error ? error.message : String(error));
  } finally {
    if (own === asked) form.removeAttribute("aria-busy");
  }
}

/// Shows the report that was made with the page (first_report.mjs): it is there before the engine is.
async function showFirst(): Promise<void> {
  asked += 1;
  const own = asked;
  const first = await fetch("first.html");
  const text = await first.text();
  if (own !== asked) return;
  if (!first.ok) return show();
  line.textContent = commandLine(requestOf(command(), values()));
  result.hidden = false;
  result.srcdoc = text;
}

// --- A link carries the state.

function remember(): void {
  const state = new URLSearchParams({ command: command() });
  for (const name of kFieldsOf[command()] ?? []) {
    if (field(name).value && placedIn(name) === undefined) state.set(name, field(name).value);
  }
  history.replaceState(null, "", `#${state}`);
}

function recall(): void {
  const state = new URLSearchParams(location.hash.slice(1));
  const chosen = form.querySelector<HTMLInputElement>(`[name=command][value="${CSS.escape(state.get("command") ?? "analyze")}"]`);
  if (chosen) chosen.checked = true;
  for (const name of kFields) {
    const value = state.get(name);
    if (value !== null) field(name).value = value;
  }
  showFields();
}

// --- Files.

async function place(name: string, files: readonly File[]): Promise<void> {
  if (files.length === 0) return;
  try {
    // A lone JSON file is a config, whatever a download called it.
    const only = files.length === 1 ? files[0] : undefined;
    const renamed = only?.name.endsWith(".json") ? [new File([only], "config.json")] : files;
    const model = await ask({ slot: name === "model" ? "a" : "b", files: renamed });
    const shown = files.map((file) => file.name).join(", ");
    placed.set(name, { shown, model });
    field(name).value = shown;
    await show();
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
  }
}

function acceptFiles(name: string): void {
  const input = element<HTMLInputElement>(`files-${name}`);
  input.addEventListener("change", () => void place(name, [...(input.files ?? [])]));
}

document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  const over = event.target instanceof Element && event.target.closest("#field-other") ? "other" : "model";
  void place(over, [...(event.dataTransfer?.files ?? [])]);
});

// --- Lists of presets and machines.

interface Named {
  name: string;
}

/// Fills a list with the names that a command reports.
async function fill(list: string, listing: string, key: string): Promise<void> {
  const { report } = await answerTo({ command: listing });
  const named = (report as Record<string, Named[]> | undefined)?.[key] ?? [];
  element(list).append(...named.map(({ name }) => new Option(name, name)));
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  void show();
});
form.addEventListener("change", (event) => {
  const { type } = event.target as HTMLInputElement;
  if (type === "file") return;
  showFields();
  void show();
});
addEventListener("hashchange", () => {
  recall();
  void show();
});
acceptFiles("model");
acceptFiles("other");
recall();
void (location.hash === "" ? showFirst() : show());
void fill("presets", "presets", "presets");
void fill("machines", "machines", "machines");
