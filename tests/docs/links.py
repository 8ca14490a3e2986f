#!/usr/bin/env python3
"""Checks the Markdown pages of the repository: links and paths in code spans exist, quoted code is in
its source, docs/README.md links every page, every command has a page, and README.md has at most 130
lines.

usage: links.py [HEADROOM]   (HEADROOM, the program, tells which commands there are)
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_README_LINES = 130
FOLDERS = ("cmake", "docs", "include", "presets", "reports", "src", "tests", ".ci")


def pages():
    return [file for file in [*ROOT.glob("*.md"), *(f for folder in FOLDERS for f in (ROOT / folder).rglob("*.md"))]
            if not {"samples", "node_modules"} & set(file.parts)]


def prose(text):
    """The text without code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchor(heading):
    """A heading's anchor, as GitHub makes it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def anchors(text):
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)}


def problems_of_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose(text))):
        if re.match(r"https?://", target):
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{target}: there is no such file"
        elif fragment and file.suffix == ".md" and fragment not in anchors(file.read_text(encoding="utf-8")):
            yield f"{target}: {file.name} has no such heading"


def problems_of_paths(text):
    """Checks paths in code spans, except placeholders in capitals and wildcards."""
    for span in re.findall(r"`([^`\n]+)`", prose(text)):
        for word in span.split():
            inside = word.split("/")[0] in FOLDERS and "/" in word
            if inside and not re.search(r"[A-Z]{4,}|[*$<…]", word) and not (ROOT / word.rstrip(",.;:")).exists():
                yield f"`{word}`: there is no such file"


def problems_of_quotes(text):
    for source, code in re.findall(r"^<!-- from (\S+) -->\n```\w*\n(.*?)^```$", text,
                                   re.MULTILINE | re.DOTALL):
        file = ROOT / source
        if not file.is_file() or code.strip() not in file.read_text(encoding="utf-8"):
            yield f"a quotation of {source} is not in it: {code.splitlines()[0]}"


def problems_of_index():
    index = ROOT / "docs" / "README.md"
    text = index.read_text(encoding="utf-8")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page != index and f"({page.relative_to(index.parent)})" not in text:
            yield f"docs/README.md does not link {page.name}"


def problems_of_commands(headroom):
    listed = subprocess.run([headroom, "--help"], check=True, capture_output=True, text=True).stdout
    for command in re.findall(r"^  ([a-z][a-z-]*) {2,}\S", listed.partition("\nCommands:")[2], re.MULTILINE):
        if not (ROOT / "docs" / f"{command}.md").is_file():
            yield f"the command {command} has no page docs/{command}.md"


def all_problems(headroom):
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for problem in [*problems_of_links(page, text), *problems_of_paths(text), *problems_of_quotes(text)]:
            yield f"{page.relative_to(ROOT)}: {problem}"
    yield from problems_of_index()
    lines = len((ROOT / "README.md").read_text(encoding="utf-8").splitlines())
    if lines > MOST_README_LINES:
        yield f"README.md has {lines} lines, more than {MOST_README_LINES}"
    if headroom:
        yield from problems_of_commands(headroom)


def main():
    problems = list(all_problems(sys.argv[1] if len(sys.argv) > 1 else None))
    print("\n".join(problems) if problems else f"{len(pages())} pages are sound")
    return min(len(problems), 1)


if __name__ == "__main__":
    sys.exit(main())
