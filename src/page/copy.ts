// A button beside each table that copies it as CSV, in base units with the keys of headroom's CSV.

function field(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvOf(table: HTMLTableElement): string {
  const lines = [...table.rows].map((row) =>
    [...row.cells]
      .map((cell) => cell.dataset.key ?? cell.dataset.value ?? cell.textContent ?? "")
      .map((text) => field(text === "–" ? "" : text))
      .join(","),
  );
  return lines.join("\n") + "\n";
}

/// Writes to the clipboard; without permission it selects the text in a field to copy by hand.
export async function copyText(text: string, button: HTMLButtonElement): Promise<void> {
  const label = button.dataset.label ?? button.textContent ?? "";
  button.dataset.label = label;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = label), 2000);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.setAttribute("aria-label", `${label}: text to copy`);
    button.after(area);
    area.select();
  }
}

export function copyButton(label: string, text: () => string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", () => void copyText(text(), button));
  return button;
}

/// The picture as a file of its own, with dark text.
function svgOf(picture: SVGElement): string {
  const copy = picture.cloneNode(true) as SVGElement;
  copy.setAttribute("color", "#1b1f24");
  return new XMLSerializer().serializeToString(copy) + "\n";
}

export function addPictureCopies(): void {
  for (const picture of document.querySelectorAll<SVGElement>(".picture svg")) {
    picture.parentElement?.after(copyButton("Copy as SVG", () => svgOf(picture)));
  }
}

export function addTableCopies(): void {
  for (const table of document.querySelectorAll("table")) {
    table.parentElement?.after(copyButton("Copy as CSV", () => csvOf(table)));
  }
}
