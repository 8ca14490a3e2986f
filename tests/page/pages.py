#!/usr/bin/env python3
"""Reads the pages that headroom writes with --format html.

usage: pages.py HEADROOM_BINARY

A page must be well-formed XML (which HTML parsers also read), at most 400 kB, load nothing, and hold every figure of
the report's tables and its JSON. Exit status: 0 all passed, 1 a check failed.
"""

import csv
import io
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


SWEEPS = """
sweep bert-base --batch 1..64:x2 --seq 128..4096:x2
sweep llama-3-8b --phase decode --past 1023..8191:x2 --batch 1..300:x2 --dtype bf16 --machine h100-80gb
sweep gpt2 --phase train --batch 1..4 --seq 128..1024:+128 --recompute none,full
sweep gpt2 --batch 1..20 --seq 1..20 --attention eager
sweep llama-3-8b --weights bf16,q4_k_m --past 0,100 --batch 1..3 --kv-dtype bf16,q8_0 --attention eager,fused
sweep gpt2 --batch 1..16:x2
sweep gpt2
""".strip().splitlines()

SVG = "{http://www.w3.org/2000/svg}"
TIME_UNITS = {"s": 1, "ms": 1e-3, "µs": 1e-6}

# Figures of a picture, by the beginning of its title, from a row of CSV.
DRAWN = {
    "Predicted time": lambda row: float(row["time_s"]),
    "Matrix FLOPs of a training step": lambda row: sum(
        int(row[key]) for key in ("matrix_flops", "backward_matrix_flops", "recompute_matrix_flops")
    ),
    "Matrix FLOPs": lambda row: int(row["matrix_flops"]),
    "Weights": lambda row: sum(int(row[key] or 0) for key in ("weight_bytes", "activation_bytes", "kv_cache_bytes")),
    "KV-cache": lambda row: int(row["kv_cache_bytes"]),
}

AXES = {"seq": "seq_len", "past": "past_len", "batch": "batch_size", "recompute": "recompute", "weights": "weights",
        "KV-cache type": "kv_key_dtype", "attention": "attention"}


def place_in(text):
    """ "seq 128, batch 4" as keys of CSV."""
    words = [part.rpartition(" ") for part in text.split(", ") if part]
    return {AXES[name]: value for name, _, value in words}


def exact(text):
    number, unit = text.replace(",", "").split()
    return float(number) * TIME_UNITS[unit] if unit in TIME_UNITS else int(number)


def problems_of_cells(figure, rows):
    """Every cell of a heat map or point of a curve states the CSV's figure; a map has one for each row it covers."""
    caption = figure.findtext("figcaption")
    value_of = next(value for start, value in DRAWN.items() if caption.startswith(start))
    fixed = place_in(caption.partition(" · ")[2])
    titles = [title.text for title in figure.iter(SVG + "title") if ": " in title.text]
    covered = [row for row in rows if all(row[key] == value for key, value in fixed.items())]
    if len(titles) != len(covered):
        yield f"{caption}: {len(titles)} cells of {len(covered)} rows"
    for title in titles:
        place, _, text = title.partition(": ")
        at = place_in(place)
        expected = [value_of(row) for row in covered if all(row[key] == value for key, value in at.items())]
        tolerance = 1e-3 * expected[0] if caption.startswith("Predicted time") else 0
        if len(expected) != 1 or abs(exact(text) - expected[0]) > tolerance:
            yield f"{caption}: {title}, expected {expected}"


def table_rows(root):
    table = next(root.iter("table"))
    keys = [cell.get("data-key") for cell in table.find("thead").iter("th")]
    for line in table.find("tbody").iter("tr"):
        yield dict(zip(keys, ((cell.get("data-value") or cell.text) for cell in line)))


def problems_of_sweep(headroom, case):
    arguments = case.split()
    made = run(headroom, [*arguments, "--format", "html"])
    if made.returncode != 0:
        return [made.stderr]
    root = parsed(made.stdout)
    rows = list(csv.DictReader(io.StringIO(run(headroom, arguments).stdout)))
    lines = [json.loads(line) for line in run(headroom, [*arguments, "--format", "jsonl"]).stdout.splitlines()]
    text = "".join(root.itertext())
    problems = list(problems_of_structure(made.stdout, root))
    for figure in root.iter("figure"):
        problems += problems_of_cells(figure, rows)
    shown = list(table_rows(root))
    for row, line in zip(rows, shown):
        problems += [f"row {line}: {key} is {value}, not {row[key]}" for key, value in line.items()
                     if key in row and value != row[key]]
    if len(shown) < len(rows) and f"the first {len(shown)} of {len(rows)} rows" not in text:
        problems.append(f"{len(shown)} of {len(rows)} rows")
    embedded = embedded_reports(root)
    if embedded:
        embedded[0][0] = without_invocation(embedded[0][0])
        lines[0] = without_invocation(lines[0])
        if embedded[0] != lines:
            problems.append("the embedded rows are not the JSON lines")
    elif "The JSON report is" not in text:
        problems.append("no JSON")
    return problems


def problems_of_large_sweep(headroom):
    refused = run(headroom, ["sweep", "gpt2", "--batch", "1..401", "--format", "html"])
    if refused.returncode != 2 or "400 rows" not in refused.stderr or "401" not in refused.stderr or refused.stdout:
        yield f"a page of 401 rows: status {refused.returncode}, {refused.stderr}"


UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
FLOPS = {"FLOP": 1, "kFLOP": 1e3, "MFLOP": 1e6, "GFLOP": 1e9, "TFLOP": 1e12}


def figure_titled(root, start):
    return next(figure for figure in root.iter("figure") if figure.findtext("figcaption").startswith(start))


def tooltips(figure):
    return [title.text for title in figure.iter(SVG + "title")]


def page_and_report(headroom, case):
    made = run(headroom, [*case.split(), "--format", "html"])
    root = parsed(made.stdout)
    return root, embedded_reports(root)[0]


def amount(text):
    number, _, unit = text.replace(",", "").replace("−", "-").partition(" ")
    return float(number) * {**UNITS, **FLOPS, **TIME_UNITS, "": 1}[unit]


def near(one, other, tolerance=0.006):
    return abs(one - other) <= tolerance * abs(other)


FITS = """
fit llama-3-8b --machine h100-80gb --batch 16 --seq 8192
fit llama-3-70b --machine h100-80gb --batch 4 --seq 8192
fit llama-3-8b --machine h100-80gb --count 8 --phase train --batch 64 --seq 4096 --zero 3 --dp 8 --micro-batch 1
""".strip().splitlines()


def problems_of_fit(headroom, case):
    """Parts of the bar add up to the report's total, on the scale of the device's line; the line is the table's."""
    root, report = page_and_report(headroom, case)
    memory = report["memory"]
    figure = figure_titled(root, "Memory of the worst rank")
    shares = [float(re.search(r", ([0-9.]+) % of the device", tip)[1]) for tip in tooltips(figure) if "of the device" in tip]
    expected = 100 * memory["total_bytes"] / memory["capacity_bytes"]
    if abs(sum(shares) - expected) > 0.06 * len(shares):
        yield f"the parts are {sum(shares)} % of the device, not {expected}"
    boxes = [box for box in figure.iter(SVG + "rect") if "of the device" in (box.findtext(SVG + "title") or "")]
    line = next(path for path in figure.iter(SVG + "path") if path.get("stroke") == "#c62828")
    start = float(boxes[0].get("x"))
    width = float(boxes[-1].get("x")) + float(boxes[-1].get("width")) - start
    device = float(re.match(r"M([0-9.]+)", line.get("d"))[1]) - start
    if not near(width / device, expected / 100, 0.01):
        yield f"the bar has {width / device} of the device's length"
    if report["concurrency"] and any(point["largest_batch"] for point in report["concurrency"]):
        drawn = tooltips(figure_titled(root, "Concurrent sequences"))
        for point in report["concurrency"]:
            text = f"{point['largest_batch']:,} sequence{'' if point['largest_batch'] == 1 else 's'} of {point['seq_len']:,} tokens"
            if point["largest_batch"] and text not in drawn:
                yield f"no point {text!r} among {drawn}"


def problems_of_serve(headroom):
    case = "serve llama-3-8b --machine h100-80gb --rate 40 --input 512 --output 128 --ttft 300ms --tpot 8ms"
    root, report = page_and_report(headroom, case)
    plan = report["plans"][0]["figures"]
    drawn = tooltips(figure_titled(root, "Latency of the requests"))
    for name, key in ("TTFT", "ttft"), ("TPOT", "tpot"), ("end to end", "end_to_end"):
        for low, high in ("p50", "p90"), ("p90", "p99"):
            tip = next(tip for tip in drawn if tip.startswith(f"{name}, {low} to {high}: "))
            ends = [amount(end) for end in tip.partition(": ")[2].split(" to ")]
            if not all(near(end, plan[key][f"{at}_s"]) for end, at in zip(ends, (low, high))):
                yield f"serve: {tip}, not {plan[key]}"
    bars = [tip for tip in tooltips(figure_titled(root, "TTFT and throughput")) if "p50 to p90" in tip]
    if len(bars) != len(report["plans"]) or len(bars) < 2:
        yield f"serve: {len(bars)} bars of {len(report['plans'])} plans"


def problems_of_diff(headroom, case):
    """Bars of figures and sums of differences by component are those of the rows."""
    root, report = page_and_report(headroom, case)
    rows = {row["quantity"]: row for row in report["rows"]}
    names = {"parameters": "parameters", "weights": "weight_bytes", "matrix FLOPs": "matrix_flops"}
    for side in "a", "b":
        for name, key in names.items():
            model = report[side]["model"]["name"]
            tip = next(tip for tip in tooltips(figure_titled(root, "Figures of")) if tip.startswith(f"{model}, {name}: "))
            if not near(amount(tip.partition(": ")[2]), rows[key][side]):
                yield f"{case}: {tip}, not {rows[key]}"
    for start, key in ("Parameters by", "parameters"), ("Matrix FLOPs by", "matrix_flops"):
        tips = tooltips(figure_titled(root, start))
        sum_of = sum(amount(tip.partition(": ")[2]) for tip in tips)
        if not near(sum_of, rows[key]["b"] - rows[key]["a"]):
            yield f"{case}: differences of {key} sum to {sum_of}, not {rows[key]}"


def problems_of_training(headroom, case):
    """The area of saved tensors is highest at the report's bytes, on the scale of the axis' labels."""
    root, report = page_and_report(headroom, case)
    figure = figure_titled(root, "Activation memory over a training step")
    saved = next(path for path in figure.iter(SVG + "path") if path.findtext(SVG + "title") == "saved for the backward pass")
    texts = [text for text in figure.iter(SVG + "text") if text.get("text-anchor") == "end"]
    places = {float(text.text): float(text.get("y")) - 4 for text in texts if re.fullmatch(r"[0-9.]+", text.text)}
    unit = UNITS[re.search(r"activations \[(.*?)\]", "".join(figure.itertext()))[1]]
    top = min(float(y) for y in re.findall(r"V([0-9.]+)", saved.get("d")))
    (low, low_y), (high, high_y) = min(places.items()), max(places.items())
    drawn = (low + (low_y - top) / (low_y - high_y) * (high - low)) * unit
    if not near(drawn, report["memory"]["saved_activation_bytes"], 0.01):
        yield f"{case}: saved {drawn}, not {report['memory']['saved_activation_bytes']}"


def problems_of_pictures(headroom):
    for recompute in "none", "selective", "full":
        yield from problems_of_training(headroom, f"analyze gpt2 --phase train --batch 8 --seq 512 --recompute {recompute} -q")
    for case in FITS:
        yield from (f"{case}: {problem}" for problem in problems_of_fit(headroom, case))
    yield from problems_of_serve(headroom)
    for case in "diff gpt2 llama-3.2-1b --phase decode --past 1023", "diff bert-base distilbert --phase train":
        yield from problems_of_diff(headroom, case)


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
    for case in SWEEPS:
        for problem in problems_of_sweep(headroom, case):
            failed = True
            print(f"{case}: {problem}")
    for problem in [*problems_of_large_sweep(headroom), *problems_of_pictures(headroom)]:
        failed = True
        print(problem)
    for problem in problems_of_layers(headroom):
        failed = True
        print(f"layers: {problem}")
    print(f"{len(CASES) + len(SWEEPS) + 1} pages read")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
