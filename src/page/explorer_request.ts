// A line of options, as it is typed for the program, and the page's fields as a request.
import type { Request } from "./explorer_engine";

/// The fields of the page that a command has.
export const kFieldsOf: Record<string, readonly string[]> = {
  analyze: ["model", "machine", "options"],
  explain: ["model", "what", "options"],
  fit: ["model", "machine", "options"],
  plan: ["model", "machine", "count", "options"],
  diff: ["model", "other", "options"],
};

const kShort: Record<string, string> = { b: "batch", s: "seq", p: "past", t: "total", w: "what", n: "count" };

/// Words of a line; quotes hold words with blanks together.
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((found) => found[1] ?? found[2] ?? found[3] ?? "");
}

/// Options by name. Throws Error for a word that belongs to none.
export function parseOptions(line: string): Request {
  const request: Request = {};
  const words = wordsOf(line);
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i] ?? "";
    const option = /^--?([a-z][\w-]*)(?:=(.*))?$/.exec(word);
    if (option === null) throw new Error(`“${word}” belongs to no option: write options as --seq 4096`);
    const name = kShort[option[1] ?? ""] ?? option[1] ?? "";
    const next = words[i + 1];
    if (option[2] !== undefined) {
      request[name] = option[2];
    } else if (next !== undefined && !next.startsWith("-")) {
      request[name] = next;
      i += 1;
    } else {
      request[name] = true;
    }
  }
  return request;
}

/// The request of a command for the values of its fields; fields that are empty are left out.
export function requestOf(command: string, values: Record<string, string>): Request {
  const request: Request = { command };
  for (const field of kFieldsOf[command] ?? []) {
    const value = values[field];
    if (value && field !== "options") request[keyOf(command, field)] = value;
  }
  return { ...request, ...parseOptions(values["options"] ?? "") };
}

function keyOf(command: string, field: string): string {
  if (field === "other") return "model_b";
  return command === "diff" && field === "model" ? "model_a" : field;
}

/// The command line of the program that gives the same figures.
export function commandLine(request: Request): string {
  const quoted = (text: string) => (/^[\w./:=,@%+-]+$/.test(text) ? text : `'${text}'`);
  const words = ["headroom", String(request["command"])];
  for (const [key, value] of Object.entries(request)) {
    if (key === "command") continue;
    if (key.startsWith("model")) words.push(quoted(String(value)));
    else words.push(`--${key}`, ...(value === true ? [] : [quoted(String(value))]));
  }
  return words.join(" ");
}
