#!/usr/bin/env python3
"""Draws the output of a command as an SVG picture of a terminal, for README.md.

usage: picture.py HEADROOM [--update]

Fails if docs/analyze.svg differs from the output of `headroom analyze bert-base`; --update redraws it.
The picture follows the reader's light or dark colour scheme. Every line has a fixed length, so that
columns align in any fixed-width font.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "analyze.svg"
ARGUMENTS = ["analyze", "bert-base"]

CELL_WIDTH = 7.8  # of one character, in pixels
LINE_HEIGHT = 18
MARGIN = 18
COLUMNS = 106  # what is longer is cut
BAR_HEIGHT = 30

STYLE = """
  .screen { fill: #ffffff; stroke: #d0d7de }
  text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
         fill: #1f2328; white-space: pre }
  .prompt { fill: #1a7f37; font-weight: bold }
  .head { font-weight: bold }
  .label { fill: #0550ae }
  .rule { fill: #8c959f }
  .good { fill: #1a7f37; font-weight: bold }
  .dot { fill: #d0d7de }
  @media (prefers-color-scheme: dark) {
    .screen { fill: #0d1117; stroke: #30363d }
    text { fill: #e6edf3 }
    .prompt, .good { fill: #3fb950 }
    .label { fill: #79c0ff }
    .rule { fill: #6e7681 }
    .dot { fill: #30363d }
  }
"""


def output_of(headroom):
    with tempfile.TemporaryDirectory() as folder:
        variables = os.environ | {"HOME": folder, "XDG_DATA_HOME": folder, "NO_COLOR": "1"}
        result = subprocess.run([headroom, *ARGUMENTS], env=variables, check=True,
                                capture_output=True, text=True)
    lines = result.stdout.splitlines()
    return [line if len(line) <= COLUMNS else line[:COLUMNS - 1] + "…" for line in lines]


def pieces(line, in_table):
    """(class, text) of the parts of a line; text before a gap is a label."""
    if line.startswith("$ "):
        return [("prompt", "$ "), ("head", line[2:])]
    if re.fullmatch(r"-+", line):
        return [("rule", line)]
    match = re.match(r"(\S+(?: \S+)*\s{2,})(MATCH)?(.*)", line)
    if in_table or not match:
        return [("head" if in_table == "head" else "", line)]
    found = [("label", match[1]), ("good", match[2] or ""), ("", match[3])]
    return [piece for piece in found if piece[1]]


def text_element(line, in_table, y):
    spans = "".join(f'<tspan class="{name}">{escape(text)}</tspan>' if name else escape(text)
                    for name, text in pieces(line, in_table))
    length = f'{len(line) * CELL_WIDTH:.1f}'
    return (f'<text x="{MARGIN}" y="{y}" xml:space="preserve" textLength="{length}" '
            f'lengthAdjust="spacingAndGlyphs">{spans}</text>')


def drawn(lines):
    width = round(max(map(len, lines)) * CELL_WIDTH + 2 * MARGIN)
    height = BAR_HEIGHT + len(lines) * LINE_HEIGHT + MARGIN
    title = "headroom " + " ".join(ARGUMENTS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="screen" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        *(f'<circle class="dot" cx="{MARGIN + 4 + 18 * i}" cy="16" r="5"/>' for i in range(3)),
    ]
    rules = [index for index, line in enumerate(lines) if re.fullmatch(r"-+", line)]
    for index, line in enumerate(lines):
        in_table = "head" if rules[0] - 2 <= index < rules[0] else ""
        if rules[0] < index <= rules[-1] + 1:
            in_table = "row"
        if line:
            parts.append(text_element(line, in_table, BAR_HEIGHT + (index + 1) * LINE_HEIGHT - 4))
    return "\n".join([*parts, "</svg>", ""])


def main():
    headroom = str(Path(sys.argv[1]).resolve())
    picture = drawn(["$ headroom " + " ".join(ARGUMENTS), *output_of(headroom)])
    if sys.argv[2:] == ["--update"]:
        PICTURE.write_text(picture, encoding="utf-8")
        return 0
    if PICTURE.is_file() and PICTURE.read_text(encoding="utf-8") == picture:
        return 0
    print(f"{PICTURE} is not what `headroom {' '.join(ARGUMENTS)}` prints; --update redraws it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
