// Buttons beside each table, which copy it as CSV in base units with the keys of headroom's CSV, and beside each picture,
// which copy it as SVG and PNG.

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

function labelOf(button: HTMLButtonElement): string {
  return (button.dataset.label ??= button.textContent ?? "");
}

function sayCopied(button: HTMLButtonElement): void {
  const label = labelOf(button);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = label), 2000);
}

/// Writes to the clipboard; without permission it selects the text in a field to copy by hand.
export async function copyText(text: string, button: HTMLButtonElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    sayCopied(button);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.setAttribute("aria-label", `${labelOf(button)}: text to copy`);
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

/// The picture as a file of its own, with dark text and a size in pixels.
function svgOf(picture: SVGSVGElement): string {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const { width, height } = picture.viewBox.baseVal;
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.setAttribute("color", "#1b1f24");
  return new XMLSerializer().serializeToString(copy) + "\n";
}

/// Pixels of a PNG per unit of its SVG: sharp on screens of twice the density.
const kPngScale = 2;

/// The picture as drawn by the browser, on white. The page's policy lets images come from data: addresses only.
async function drawn(picture: SVGSVGElement): Promise<HTMLCanvasElement> {
  const image = new Image();
  image.src = "data:image/svg+xml," + encodeURIComponent(svgOf(picture));
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = kPngScale * picture.viewBox.baseVal.width;
  canvas.height = kPngScale * picture.viewBox.baseVal.height;
  const context = canvas.getContext("2d");
  if (context === null) throw new Error("no canvas");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}

function pngOf(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob === null ? reject(new Error("no PNG")) : resolve(blob)), "image/png"),
  );
}

/// Writes to the clipboard; without permission it shows the image, to copy or save by hand.
async function copyPng(picture: SVGSVGElement, button: HTMLButtonElement): Promise<void> {
  const canvas = await drawn(picture);
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": await pngOf(canvas) })]);
    sayCopied(button);
  } catch {
    const image = new Image();
    image.src = canvas.toDataURL("image/png");
    image.alt = `${picture.getAttribute("aria-label") ?? ""} (PNG to copy or save)`;
    button.parentElement?.querySelector("img")?.remove();
    button.after(image);
  }
}

function pngButton(picture: SVGSVGElement): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy as PNG";
  button.addEventListener("click", () => void copyPng(picture, button));
  return button;
}

export function addPictureCopies(): void {
  for (const picture of document.querySelectorAll<SVGSVGElement>(".picture svg")) {
    picture.parentElement?.after(copyButton("Copy as SVG", () => svgOf(picture)), pngButton(picture));
  }
}

export function addTableCopies(): void {
  for (const table of document.querySelectorAll("table")) {
    table.parentElement?.after(copyButton("Copy as CSV", () => csvOf(table)));
  }
}
