"""The accuracy report: statistics of the pairs, text and plot."""
import math
import statistics

COLOURS = ["#c4472b", "#e0912f", "#3b6fb6", "#3f8f5b"]  # of suites


def spread(values):
    """Median, 90th percentile and maximum of absolute values, and the signed median."""
    sizes = sorted(abs(value) for value in values)
    return {"pairs": len(sizes), "median": statistics.median(sizes),
            "p90": sizes[min(len(sizes) - 1, math.ceil(0.9 * len(sizes)) - 1)], "worst": sizes[-1],
            "bias": statistics.median(values)}


def suites_of(pairs):
    return list(dict.fromkeys(pair["suite"] for pair in pairs))


def summary(pairs):
    """Errors of all pairs and of each suite, with and without the correction for drift; resident memory;
    the noise, and the exact rows."""

    def by_suite(key):
        return {suite: spread([pair[key] for pair in pairs if pair["suite"] == suite])
                for suite in suites_of(pairs)}

    return {"error": spread([pair["error"] for pair in pairs]), "by_suite": by_suite("error"),
            "uncorrected": spread([pair["uncorrected"] for pair in pairs]),
            "uncorrected_by_suite": by_suite("uncorrected"),
            "resident": spread([pair["rss"] for pair in pairs if pair["rss"] is not None]),
            "noise": spread([pair["noise"] for pair in pairs]),
            "exact_rows": sum(pair["exact_rows"] for pair in pairs),
            "exact_failures": sum(len(pair["exact_failures"]) for pair in pairs)}


def by_kind(pairs):
    """Errors of the operators of each kind, overall and by suite; the difference between their two
    runs; and the kind's fraction of a pass, over all passes."""
    kinds = sorted({one["kind"] for pair in pairs for one in pair["operators"]})

    def of_kind(kind, key, suite=None):
        return [one[key] for pair in pairs if suite in (None, pair["suite"])
                for one in pair["operators"] if one["kind"] == kind and one[key] is not None]

    figures = {}
    for kind in kinds:
        medians = {suite: statistics.median(map(abs, errors)) for suite in suites_of(pairs)
                   if (errors := of_kind(kind, "error", suite))}
        noise = of_kind(kind, "noise")
        figures[kind] = {**spread(of_kind(kind, "error")), "medians": medians,
                         "noise": statistics.median(map(abs, noise)) if noise else None,
                         "share": statistics.mean(pair["shares"].get(kind, 0) for pair in pairs)}
    return figures


def percent(value, sign=False):
    if value is None:
        return "–"
    return f"{100 * value:+.1f}" if sign else f"{100 * value:.1f}"


def table(heads, rows):
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(heads) + " |", "| :-- |" + " --: |" * (len(heads) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def of_errors(figures):
    return [percent(figures["median"]), percent(figures["p90"]), percent(figures["worst"]),
            percent(figures["bias"], True)]


def summary_table(figures):
    rows = [["All pairs", str(figures["error"]["pairs"]), *of_errors(figures["error"])]]
    several = len(figures["by_suite"]) > 1
    if several:
        rows += [[f"Pairs {suite}", str(one["pairs"]), *of_errors(one)]
                 for suite, one in figures["by_suite"].items()]
    plain = figures["uncorrected"]
    rows.append(["All pairs, without correction for drift", str(plain["pairs"]), *of_errors(plain)])
    if several:
        rows += [[f"Pairs {suite}, without it", str(one["pairs"]), *of_errors(one)]
                 for suite, one in figures["uncorrected_by_suite"].items()]
    for name, key in [("Noise: repeated runs", "noise"), ("Resident memory", "resident")]:
        rows.append([name, str(figures[key]["pairs"]), *of_errors(figures[key])])
    return table(["", "Pairs", "Median error [%]", "p90 [%]", "Worst [%]", "Bias [%]"], rows)


def kind_table(report):
    suites = suites_of(report["pairs"])
    rows = [[kind, percent(one["share"]), str(one["pairs"]), *of_errors(one),
             *(percent(one["medians"].get(suite)) for suite in suites), percent(one["noise"])]
            for kind, one in report["by_kind"].items()]
    return table(["Kind", "Fraction [%]", "Times", "Median error [%]", "p90 [%]", "Worst [%]",
                  "Bias [%]", *(f"Median {suite} [%]" for suite in suites), "Noise [%]"], rows)


def pair_table(pairs):
    rows = []
    for pair in pairs:
        threads = pair["arguments"][pair["arguments"].index("--threads") + 1]
        rows.append([pair["arguments"][0], pair["workload"], threads,
                     f"{pair['predicted_s'] * 1e3:.2f}", f"{pair['measured_s'] * 1e3:.2f}",
                     percent(pair["error"], True), percent(pair["uncorrected"], True),
                     percent(pair["noise"], True), percent(pair["rss"], True)])
    lines = table(["Model", "Workload", "Threads", "Predicted [ms]", "Measured [ms]", "Error [%]",
                   "Uncorrected [%]", "Noise [%]", "Resident [%]"], rows)
    lines[1] = lines[1].replace("| --: |", "| :-- |", 1)
    return lines


def attempts_text(report):
    """How many pairs were measured more than once, and which attempt counts."""
    again = sum(pair["attempts"] > 1 for pair in report["pairs"])
    return [f"Two runs that differ by more than {percent(report['unsettled'])} % tell of a machine that does other work. Such a",
            f"pair was measured again, up to {report['attempts']} times ({again} of {len(report['pairs'])} pairs), and the attempt with the least noise counts,",
            "whatever its error."]


def markdown(report):
    lines = ["# Accuracy", "",
             "Predicted against measured time of whole passes, after one `headroom calibrate`, which measures none",
             "of these shapes. Every pair is one `headroom compare`, which probes the machine before and after the",
             "run and corrects the prediction for drift since the calibration. *Uncorrected* is the error of",
             "`analyze --machine here`, which knows the calibration only: other programs and the clock move it. Each",
             "run was measured twice; noise is the difference between the two medians, the limit of any prediction.",
             "",
             "No time of these pairs enters a prediction. The calibration's probes were developed on the suite *in",
             "view*, so its errors are too small. The suite *seen once* was chosen afterwards; its first run had a",
             "median error of 5.1 % and a bias of +4.2 %, and the faults that it showed were fixed. The suite *held",
             "out* was chosen after the last change: expect its errors for other models and lengths. The suite *new",
             "kinds*, committed before any of it was timed, has architectures and types that no other suite has.", "",
             *attempts_text(report), "",
             "```sh", "headroom calibrate",
             f"python3 tests/bench/accuracy.py --headroom build/release/headroom --runs {report['runs']}", "```", "",
             f"{report['date']} · {report['machine']}", "",
             *summary_table(report["summary"]), "",
             f"Counts and bytes: {report['summary']['exact_rows']} rows are exact, "
             f"{report['summary']['exact_failures']} are not.", "",
             "![Predicted against measured](accuracy.svg)", "", "## By kind of operator", "",
             "Operators that take more than 2 % of their pass. The fraction is that of the kind in a pass, over all",
             "pairs. Noise is the median difference between an operator's two runs.", "",
             *kind_table(report)]
    for suite in suites_of(report["pairs"]):
        lines += ["", f"## Pairs {suite}", "",
                  *pair_table([pair for pair in report["pairs"] if pair["suite"] == suite])]
    return "\n".join(lines) + "\n"


class Plane:
    """A square plot with logarithmic axes from `low` to `high` seconds."""

    SIZE, MARGIN = 480, 60

    def __init__(self, low, high):
        self.low, self.high = low, high

    def at(self, seconds):
        length = self.SIZE - 2 * self.MARGIN + 40
        return self.MARGIN + length * math.log(seconds / self.low) / math.log(self.high / self.low)

    def point(self, x, y):
        return f"{self.at(x):.1f},{self.SIZE - self.at(y):.1f}"


def frame(plane):
    """The band of ±12 %, the diagonal and the grid."""
    low, high, size, point = plane.low, plane.high, plane.SIZE, plane.point
    parts = [f'<rect width="{size}" height="{size}" fill="white"/>',
             f'<polygon fill="#dde8f4" points="{point(low, low * 1.12)} {point(high / 1.12, high)} '
             f'{point(high, high)} {point(high, high / 1.12)} {point(low * 1.12, low)} {point(low, low)}"/>',
             f'<polyline fill="none" stroke="#557" points="{point(low, low)} {point(high, high)}"/>']
    first, last = plane.at(low), plane.at(high)
    decade = 10 ** math.ceil(math.log10(low))
    while decade < high:
        at = plane.at(decade)
        label = f"{decade * 1e3:g} ms"
        parts += [f'<line x1="{at:.1f}" y1="{size - first:.1f}" x2="{at:.1f}" y2="{size - last:.1f}" stroke="#ddd"/>',
                  f'<line x1="{first:.1f}" y1="{size - at:.1f}" x2="{last:.1f}" y2="{size - at:.1f}" stroke="#ddd"/>',
                  f'<text x="{at:.1f}" y="{size - 36}" text-anchor="middle">{label}</text>',
                  f'<text x="{plane.MARGIN - 6}" y="{size - at + 4:.1f}" text-anchor="end">{label}</text>']
        decade *= 10
    return parts


def svg(pairs):
    """Scatter plot of all pairs, one colour per suite."""
    plane = Plane(min(min(p["predicted_s"], p["measured_s"]) for p in pairs) / 1.5,
                  max(max(p["predicted_s"], p["measured_s"]) for p in pairs) * 1.5)
    size = plane.SIZE
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" '
             'font-family="sans-serif" font-size="12">', *frame(plane)]
    for suite, colour in zip(suites_of(pairs), COLOURS):
        for pair in pairs:
            if pair["suite"] != suite:
                continue
            x, y = plane.point(pair["predicted_s"], pair["measured_s"]).split(",")
            parts.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}" fill-opacity="0.75"/>')
    for i, (suite, colour) in enumerate(zip(suites_of(pairs), COLOURS)):
        y = plane.MARGIN + 4 + 18 * i
        parts += [f'<circle cx="{plane.MARGIN + 12}" cy="{y - 4}" r="3.5" fill="{colour}"/>',
                  f'<text x="{plane.MARGIN + 22}" y="{y}">{suite}</text>']
    parts += [f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">predicted</text>',
              f'<text x="16" y="{size / 2}" text-anchor="middle" transform="rotate(-90 16 {size / 2})">measured</text>',
              f'<text x="{size / 2}" y="28" text-anchor="middle">{len(pairs)} pairs; the band is ±12 %</text>',
              "</svg>"]
    return "\n".join(parts) + "\n"
