"""Plots of the complexity study, drawn by gnuplot as SVG."""
import shutil
import subprocess

COLOURS = ["#c4472b", "#e0912f", "#2f7d4f", "#3b6fb6", "#7a4fa3", "#5a5a5a", "#b0863c", "#2aa198"]
SHARES = ["projections", "attention", "ffn", "head", "other"]
SHARE_TITLES = ["Projections", "Attention", "FFN", "Head", "Other"]


def data(name, rows):
    """A named block of gnuplot data."""
    return "\n".join([f"${name} << END", *(" ".join(map(repr, row)) for row in rows), "END", ""])


def header(file, x, y):
    return "\n".join([
        "set encoding utf8",
        "set terminal svg size 720,440 font 'sans-serif,12' background rgb 'white'",
        f"set output '{file}'", f"set xlabel '{x}'", f"set ylabel '{y}'",
        "set key left top reverse Left samplen 2", "set grid lc rgb '#dddddd'", ""])


def curves(series):
    """Plots series of (title, rows, dashed): lines with points, or dashed without points."""
    blocks, plots = [], []
    for i, (title, rows, dashed) in enumerate(series):
        if len(rows) < 2:
            continue
        blocks.append(data(f"d{i}", rows))
        colour = COLOURS[(i // 2 if dashed is not None else i) % len(COLOURS)]
        style = "lines dt 2 lw 1.2" if dashed else "linespoints pt 7 ps 0.5 lw 1.8"
        plots.append(f"$d{i} with {style} lc rgb '{colour}' " + (f"title '{title}'" if title else "notitle"))
    if not plots:
        return ""
    return "\n".join([*blocks, "plot " + ", \\\n  ".join(plots), ""])


def points(runs, key):
    return [(run["seq_len"], 1e3 * run[key]) for run in runs if run[key] > 0]


def layers(report, folder):
    series = [(layer["name"].removeprefix("layer-"), points(layer["times"]["runs"], "time_s"), None)
              for layer in report["layers"]]
    return (header(folder / "complexity-layers.svg", "s, positions", "time of one layer [ms]")
            + "set logscale xy\n" + curves(series))


def softmax(report, folder):
    series = []
    for layer, title in zip(report["layers"], ["softmax(queries·keysᵀ)·values", "φ(queries)·(φ(keys)ᵀ·values)"]):
        series.append((title + ", measured", points(layer["times"]["runs"], "core_time_s"), False))
        series.append((title + ", predicted", points(layer["times"]["predicted"], "core_time_s"), True))
    crossing = report["core_crossovers"][0]["measured_from"]
    mark = "" if crossing is None else (
        f"set arrow from {crossing}, graph 0 to {crossing}, graph 1 nohead lc rgb '#888888' dt 3\n"
        f"set label 's = {crossing:.0f}' at {crossing}, graph 0.06 offset 0.6,0 tc rgb '#555555'\n")
    return (header(folder / "complexity-softmax.svg", "s, positions", "time of mixing positions [ms]")
            + "set logscale xy\n" + mark + curves(series))


def generation(report, folder):
    def times(key):
        return [(row["new_tokens"], row[key]) for row in report["rows"] if row[key]]
    series = [("without a KV-cache", times("time_without_s"), None), ("with one", times("time_with_s"), None)]
    return (header(folder / "complexity-generation.svg", "G, new tokens", "total time [s]")
            + "set logscale xy\n" + curves(series))


def shares(report, folder):
    """Stacked plot of the fractions of measured time."""
    rows = []
    for row in report["rows"]:
        measured = row["measured_s"]
        if measured is None:
            continue
        total = sum(measured.values())
        sums = [0.0]
        for kind in SHARES:
            sums.append(sums[-1] + 100 * measured[kind] / total)
        rows.append([row["seq_len"], *sums])
    if len(rows) < 2:
        return ""
    plots = [f"$d using 1:{i + 2}:{i + 3} with filledcurves lc rgb '{COLOURS[i]}' fs solid 0.75 title '{title}'"
             for i, title in enumerate(SHARE_TITLES)]
    overtaking = report["attention_passes_ffn"]["from"]
    mark = "" if overtaking is None or overtaking > rows[-1][0] else (
        f"set arrow from {overtaking}, graph 0 to {overtaking}, graph 1 nohead front lc rgb '#222222' dt 3\n"
        f"set label 's = {overtaking}: attention overtakes the FFN by FLOPs' at {overtaking}, graph 0.04 right offset -0.6,0 front\n")
    return (header(folder / "complexity-shares.svg", "s, positions", "fraction of measured time [%]")
            + "set logscale x\nset yrange [0:100]\nset key outside right center\n"
            + f"set xrange [{rows[0][0]}:{rows[-1][0]}]\n" + mark
            + data("d", rows) + "plot " + ", \\\n  ".join(plots) + "\n")


def write(reports, folder):
    """Draws all plots in `folder`; prints a note if there is no gnuplot."""
    if shutil.which("gnuplot") is None:
        print("no plots: install gnuplot-nox")
        return
    for study, draw in (("layers", layers), ("associativity", softmax), ("generation", generation),
                        ("shares", shares)):
        subprocess.run(["gnuplot"], input=draw(reports[study], folder), text=True, check=True)
