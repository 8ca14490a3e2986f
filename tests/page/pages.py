#!/usr/bin/env python3
"""Reads the pages that headroom writes with --format html.

usage: pages.py HEADROOM_BINARY

A page must be well-formed XML (which HTML parsers also read), at most 400 kB, load nothing, and hold every figure of
the report's tables and its JSON. Exit status: 0 all passed, 1 a check failed.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

MOST_BYTES = 400_000

CASES = """
analyze bert-base
analyze gpt2 --phase train --batch 8 --seq 1024 --dtype bf16
analyze llama-3-8b --phase decode --past 8191 --machine h100-80gb
analyze t5-small --enc-seq 64 --seq 32
analyze mixtral-8x7b --detail
analyze bert-tiny gpt2 --batch 1,2
diff bert-base distilbert
explain gpt2 --what params
explain bert-base --steps
explain llama-3-8b --crossovers
fit llama-3-8b --machine h100-80gb
plan llama-3-8b --machine h100-80gb
serve llama-3-8b --machine h100-80gb --rate 2 --input 512 --output 128
presets list
presets list --family bert
presets show gpt2
machines
machines h100-80gb
complexity layer-self-attention layer-rnn layer-linear-attention
system
""".strip().splitlines()


def run(headroom, arguments):
    home = tempfile.mkdtemp()
    environment = dict(os.environ, HOME=home, XDG_DATA_HOME=home, NO_COLOR="1")
    return subprocess.run([headroom, *arguments], capture_output=True, text=True, env=environment)


def parsed(page):
    """The root element; raises ParseError unless the page is well-formed."""
    return ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


def embedded_reports(root):
    scripts = root.iter("script")
    return [json.loads(script.text) for script in scripts if script.get("class") == "report"]


def without_invocation(report):
    """The report without the command line, which names the format."""
    if isinstance(report, list):
        return [without_invocation(one) for one in report]
    return {key: value for key, value in report.items() if key not in ("produced_by", "variation")}


def problems_of_structure(page, root):
    if len(page.encode()) > MOST_BYTES:
        yield f"{len(page.encode())} bytes, more than {MOST_BYTES}"
    for element in root.iter():
        for name in ("src", "href"):
            if name in element.attrib:
                yield f"<{element.tag}> has {name}"
    headings = [int(element.tag[1]) for element in root.iter() if re.fullmatch("h[1-6]", element.tag)]
    if headings[:2] != [1, 2] or headings.count(1) != 1:
        yield f"headings begin {headings[:3]}"
    if any(after > before + 1 for before, after in zip(headings, headings[1:])):
        yield f"a heading skips a level: {headings}"


def problems_of_content(headroom, arguments, root):
    written = run(headroom, [*arguments, "--format", "json"])
    expected = json.loads(written.stdout)
    reports = embedded_reports(root)
    if not reports and len(written.stdout) > MOST_BYTES and "The JSON report is" in "".join(root.itertext()):
        return
    expected_list = expected if isinstance(expected, list) else [expected]
    if arguments[0] == "system":
        return  # its figures change from one run to the next
    if [without_invocation(one) for one in reports] != [without_invocation(one) for one in expected_list]:
        yield "the embedded JSON is not the JSON report"


def problems_of_tables(headroom, arguments, root):
    """Markdown has the same cells; it is made by another writer."""
    markdown = run(headroom, [*arguments, "--format", "markdown"]).stdout
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    cells = {cell.strip().strip("*").replace("\\", "") for row in rows for cell in row.strip("|").split(" | ")}
    text = "".join(root.itertext())
    for cell in cells - {":--", "--:", ""}:
        words = re.sub(r" \[[^]]*\]$", "", cell)
        if words and words not in text and "|" not in words:
            yield f"the page lacks the cell {words!r}"


def problems_of_layers(headroom):
    """Gemma 2 alternates windows of 4096 with full attention (arXiv 2408.00118, table 1); bars show each layer."""
    made = run(headroom, ["analyze", "gemma-2-2b", "--seq", "512", "--format", "html"])
    titles = [title.text or "" for title in parsed(made.stdout).iter("{http://www.w3.org/2000/svg}title")]
    bars = [re.fullmatch(r"layer (\d+): (.*), ([0-9.]+) GFLOP", title) for title in titles]
    kinds = {int(bar[1]): bar[2] for bar in bars if bar}
    expected = {layer: "full attention" if layer % 2 else "window 4096" for layer in range(26)}
    if kinds != expected:
        yield f"layers are {kinds}"
    report = embedded_reports(parsed(made.stdout))[0]
    in_layers = sum(part["forward"]["matrix"] for part in report["components"] if part["component"] != "head")
    drawn = sum(float(bar[3]) for bar in bars if bar) * 1e9
    if abs(drawn - in_layers) > 1e-3 * in_layers:
        yield f"bars sum to {drawn}, not {in_layers}"


def check(headroom, case):
    arguments = case.split()
    made = run(headroom, [*arguments, "--format", "html"])
    if made.returncode not in (0, 1) or not made.stdout:
        return [f"exit status {made.returncode}: {made.stderr.strip()}"]
    try:
        root = parsed(made.stdout)
    except ElementTree.ParseError as error:
        return [f"not well-formed: {error}"]
    problems = list(problems_of_structure(made.stdout, root))
    problems += problems_of_content(headroom, arguments, root)
    problems += problems_of_tables(headroom, arguments, root)
    return problems


def main():
    headroom = os.path.abspath(sys.argv[1])
    failed = False
    for case in CASES:
        for problem in check(headroom, case):
            failed = True
            print(f"{case}: {problem}")
    for problem in problems_of_layers(headroom):
        failed = True
        print(f"layers: {problem}")
    print(f"{len(CASES) + 1} pages read")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
