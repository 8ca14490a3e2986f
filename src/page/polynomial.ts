// Polynomials with integer coefficients, as headroom exports them: exact, since all numbers are
// BigInt. Written as headroom writes them: "l·(24·b·s·d² + 4·b·s²·d) + 2·b·d²".

export interface Term {
  coefficient: bigint;
  powers: Record<string, number>;
}
export type Polynomial = Term[];
export type Values = Map<string, bigint>;

/// Element sizes, which formulas show as numbers.
const kTypeSymbols = ["weight_bytes", "activation_bytes", "kv_cache_bytes", "mask_bytes", "cast_bytes"];
const kLayerCounts = ["num_hidden_layers", "num_encoder_layers"];

export function polynomialOf(json: [string, Record<string, number>][]): Polynomial {
  return json.map(([coefficient, powers]) => ({ coefficient: BigInt(coefficient), powers }));
}

function valueOf(values: Values, symbol: string): bigint {
  const value = values.get(symbol);
  if (value === undefined) throw new Error(`no value of ${symbol}`);
  return value;
}

export function evaluate(polynomial: Polynomial, values: Values): bigint {
  let sum = 0n;
  for (const { coefficient, powers } of polynomial) {
    let product = coefficient;
    for (const [symbol, power] of Object.entries(powers)) {
      product *= valueOf(values, symbol) ** BigInt(power);
    }
    sum += product;
  }
  return sum;
}

/// The polynomial with element sizes as numbers, equal terms added.
export function withTypes(polynomial: Polynomial, values: Values): Polynomial {
  const sums = new Map<string, Term>();
  for (const term of polynomial) {
    const powers = { ...term.powers };
    let coefficient = term.coefficient;
    for (const symbol of kTypeSymbols) {
      const power = powers[symbol];
      if (power === undefined) continue;
      coefficient *= valueOf(values, symbol) ** BigInt(power);
      delete powers[symbol];
    }
    const key = JSON.stringify(powers);
    const sum = sums.get(key);
    if (sum) sum.coefficient += coefficient;
    else sums.set(key, { coefficient, powers });
  }
  return [...sums.values()].filter((term) => term.coefficient !== 0n);
}

const kSuperscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function superscript(power: number): string {
  return power === 1 ? "" : [...String(power)].map((digit) => kSuperscripts[Number(digit)]).join("");
}

/// A factor's text: its letter, or its value.
export type FactorText = (symbol: string) => string;

function termText(term: Term, factor: FactorText): string {
  const size = term.coefficient < 0n ? -term.coefficient : term.coefficient;
  const factors = Object.entries(term.powers).map(([symbol, power]) => factor(symbol) + superscript(power));
  if (size !== 1n || factors.length === 0) factors.unshift(String(size));
  return factors.join("·");
}

function sumText(terms: Polynomial, factor: FactorText): string {
  return terms
    .map((term, i) => {
      const sign = term.coefficient < 0n ? "−" : "+";
      if (i === 0) return (sign === "−" ? sign : "") + termText(term, factor);
      return ` ${sign} ${termText(term, factor)}`;
    })
    .join("");
}

function joined(sum: string, text: string): string {
  if (sum === "") return text;
  return text.startsWith("−") ? `${sum} − ${text.slice(1)}` : `${sum} + ${text}`;
}

/// With the layer count factored out of two terms or more.
export function textOf(polynomial: Polynomial, factor: FactorText): string {
  let rest = polynomial;
  let result = "";
  for (const layers of kLayerCounts) {
    const taken = rest.filter((term) => term.powers[layers] === 1);
    if (taken.length === 0) continue;
    rest = rest.filter((term) => term.powers[layers] !== 1);
    if (taken.length === 1) {
      result = joined(result, sumText(taken, factor));
      continue;
    }
    const inner = taken.map(({ coefficient, powers }) => {
      const { [layers]: _, ...others } = powers;
      return { coefficient, powers: others };
    });
    result = joined(result, `${factor(layers)}·(${sumText(inner, factor)})`);
  }
  if (rest.length > 0) result = joined(result, sumText(rest, factor));
  return result === "" ? "0" : result;
}

export function withSeparators(value: bigint): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}
