"""Shared by the parts of published.py: the program, tables, and errors by group."""

import json
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"


class Tool:
    """The program, and a folder for the configs that its commands name."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = Path(folder)
        self.errors = ""

    def json_or_none(self, *words):
        """None: the command was refused."""
        run = subprocess.run([self.binary, *words, "--format", "json"], capture_output=True, text=True)
        self.errors = run.stderr
        return json.loads(run.stdout) if run.returncode in (0, 1) else None

    def json(self, *words):
        report = self.json_or_none(*words)
        if report is None:
            raise SystemExit(f"headroom {' '.join(words)}: {self.errors}")
        return report

    def config(self, name, config):
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(config))
        return str(file)


def preset(name):
    return json.loads((ROOT / "presets" / "models" / f"{name}.json").read_text())["config"]


def off(predicted, measured):
    return 100 * (predicted / measured - 1)


def signed(percent, digits=1):
    return f"{percent:+.{digits}f}".replace("-", "−")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| :-- |" + " --: |" * (len(head) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def median_and_ninth(errors):
    """Median and 90th percentile of absolute errors."""
    sizes = sorted(abs(error) for error in errors)
    return statistics.median(sizes), sizes[int(0.9 * (len(sizes) - 1) + 0.5)]


def spread(errors):
    median, ninth = median_and_ninth(errors)
    return f"median {median:.1f} %, nine of ten within {ninth:.1f} %"


class Groups:
    """Errors of all predictions by the machines' own rates, by device and kind of run, in the order of their rows."""

    def __init__(self):
        self.errors = {}
        self.outside = {}

    def add(self, group, error, inside):
        self.errors.setdefault(group, []).append(error)
        self.outside[group] = self.outside.get(group, 0) + (not inside)

    def lines(self):
        rows = [[group, str(len(errors)), *(f"{one:.1f}" for one in median_and_ninth(errors)),
                 signed(statistics.median(errors)), f"{max(map(abs, errors)):.1f}", str(self.outside[group])]
                for group, errors in self.errors.items()]
        return ["## Groups", "",
                "By the rates of the catalogue. *Outside*: rows outside the predicted range.", "",
                *table(["Group", "Rows", "Median [%]", "Nine of ten [%]", "Bias [%]", "Worst [%]", "Outside"], rows), "",
                f"{sum(map(len, self.errors.values()))} rows in all, {sum(self.outside.values())} outside.", ""]
