// Live formulas: fields for batch, lengths and type evaluate every figure again, exactly. The
// address of the page carries the choices: #batch_size=4&seq_len=512.
import { copyButton } from "./copy";
import { evaluate, polynomialOf, textOf, withSeparators, withTypes } from "./polynomial";
import type { Polynomial, Values } from "./polynomial";
import { derive, kDtypeBytes, setType } from "./symbols";
import type { Rules } from "./symbols";

interface SymbolJson {
  key: string;
  letter: string;
  definition: string;
  value: string;
  used: boolean;
}

interface FormulasJson extends Rules {
  dtype: string;
  inputs: string[];
  symbols: SymbolJson[];
  figures: { pointer: string; formulas: [string, Record<string, number>][][] }[];
}

const kLabels: Record<string, string> = {
  batch_size: "Batch b",
  seq_len: "New tokens s",
  past_len: "Past tokens p",
  enc_seq_len: "Encoder tokens n",
};

/// Sliders are logarithmic, up to 2²⁰; a field takes more digits.
const kSliderSteps = 20;
const kMostDigits = 15;
/// A page inside another, as in the explorer, has no address to carry its state.
const kHasAddress = location.protocol !== "about:";

/// The formulas of one report.
class LiveFormulas {
  private readonly values: Values;
  private readonly figures: { element: HTMLElement; formulas: Polynomial[] }[] = [];
  private readonly cacheFollows: boolean;
  private dtype: string;

  constructor(
    private readonly section: HTMLElement,
    private readonly json: FormulasJson,
    private readonly number: number,
  ) {
    this.values = new Map(json.symbols.map(({ key, value }) => [key, BigInt(value)]));
    this.dtype = json.dtype;
    this.cacheFollows = this.values.get("kv_cache_bytes") === this.values.get("activation_bytes");
    for (const { pointer, formulas } of json.figures) {
      const element = section.querySelector<HTMLElement>(`[data-figure="${pointer}"]`);
      if (element) this.figures.push({ element, formulas: formulas.map(polynomialOf) });
    }
  }

  start(): void {
    const controls = document.createElement("form");
    controls.className = "controls";
    controls.setAttribute("aria-label", this.named("Try another workload"));
    controls.addEventListener("submit", (event) => event.preventDefault());
    for (const key of this.json.inputs) controls.append(this.countControl(key));
    if (this.json.dtype in kDtypeBytes) controls.append(this.typeControl());
    if (kHasAddress) controls.append(copyButton("Copy link", () => location.href));
    this.section.querySelector("h3")?.after(controls);
    this.readAddress(controls);
    this.show();
  }

  /// Unique on a page with several reports.
  private named(text: string): string {
    return this.number === 1 ? text : `${text} (report ${this.number})`;
  }

  /// In the address: "seq_len" of the first report, "2.seq_len" of the second.
  private stateKey(key: string): string {
    return this.number === 1 ? key : `${this.number}.${key}`;
  }

  private countControl(key: string): HTMLElement {
    const label = document.createElement("label");
    const name = kLabels[key] ?? key;
    const field = input("text", key, String(this.values.get(key)));
    field.inputMode = "numeric";
    field.pattern = "[0-9]*";
    field.maxLength = kMostDigits;
    const slider = input("range", "", "0");
    slider.max = String(kSliderSteps);
    slider.setAttribute("aria-label", `${name}, power of two`);
    slider.value = String(Math.log2(Number(field.value || 1)));
    field.addEventListener("input", () => {
      if (!this.set(key, field)) return;
      slider.value = String(Math.log2(Math.max(1, Number(field.value))));
    });
    slider.addEventListener("input", () => {
      field.value = String(2 ** Number(slider.value));
      this.set(key, field);
    });
    label.append(name, field);
    const group = document.createElement("div");
    group.append(label, slider);
    return group;
  }

  private typeControl(): HTMLElement {
    const label = document.createElement("label");
    const select = document.createElement("select");
    select.name = "dtype";
    for (const dtype of Object.keys(kDtypeBytes)) select.add(new Option(dtype));
    select.value = this.dtype;
    select.addEventListener("change", () => {
      this.dtype = select.value;
      this.changed();
    });
    const cached = this.json.inputs.includes("past_len") && this.cacheFollows;
    label.append(cached ? "Activations, cache" : "Activations", select);
    const group = document.createElement("div");
    group.append(label);
    return group;
  }

  /// Takes the field's number; returns false for text that is none.
  private set(key: string, field: HTMLInputElement): boolean {
    const smallest = key === "past_len" ? 0n : 1n;
    const valid = /^[0-9]+$/.test(field.value) && BigInt(field.value) >= smallest;
    field.setAttribute("aria-invalid", String(!valid));
    if (!valid) return false;
    this.values.set(key, BigInt(field.value));
    this.changed();
    return true;
  }

  private changed(): void {
    this.show();
    const state = new URLSearchParams(location.hash.slice(1));
    for (const key of this.json.inputs) state.set(this.stateKey(key), String(this.values.get(key)));
    state.set(this.stateKey("dtype"), this.dtype);
    if (kHasAddress) history.replaceState(null, "", `#${state}`);
  }

  private readAddress(controls: HTMLFormElement): void {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const key of [...this.json.inputs, "dtype"]) {
      const value = state.get(this.stateKey(key));
      const field = controls.elements.namedItem(key);
      if (value === null) continue;
      if (!(field instanceof HTMLInputElement || field instanceof HTMLSelectElement)) continue;
      field.value = value;
      field.dispatchEvent(new Event(field instanceof HTMLSelectElement ? "change" : "input"));
    }
  }

  private show(): void {
    if (this.dtype in kDtypeBytes) setType(this.dtype, this.cacheFollows, this.values);
    derive(this.json, this.values);
    const letters = new Map(this.json.symbols.map(({ key, letter }) => [key, letter]));
    for (const element of this.section.querySelectorAll<HTMLElement>("[data-symbol]")) {
      element.textContent = String(this.values.get(element.dataset.symbol ?? "") ?? "–");
    }
    for (const { element, formulas } of this.figures) {
      const [formula, value] = this.largest(formulas);
      const shown = withTypes(formula, this.values);
      write(element, ".symbols", textOf(shown, (symbol) => letters.get(symbol) ?? symbol));
      write(element, ".numbers", textOf(shown, (symbol) => String(this.values.get(symbol))));
      write(element, ".result", withSeparators(value));
    }
  }

  private largest(formulas: Polynomial[]): [Polynomial, bigint] {
    let best: [Polynomial, bigint] = [formulas[0] ?? [], evaluate(formulas[0] ?? [], this.values)];
    for (const formula of formulas.slice(1)) {
      const value = evaluate(formula, this.values);
      if (value > best[1]) best = [formula, value];
    }
    return best;
  }
}

function input(type: string, name: string, value: string): HTMLInputElement {
  const element = document.createElement("input");
  element.type = type;
  element.name = name;
  element.value = value;
  return element;
}

function write(element: HTMLElement, part: string, text: string): void {
  const target = element.querySelector(part);
  if (target && target.textContent !== text) target.textContent = text;
}

export function startFormulas(): void {
  let number = 0;
  for (const script of document.querySelectorAll("script.formulas")) {
    number += 1;
    const section = script.closest<HTMLElement>("section.live");
    const json = JSON.parse(script.textContent ?? "") as FormulasJson;
    if (section) new LiveFormulas(section, json, number).start();
  }
}
