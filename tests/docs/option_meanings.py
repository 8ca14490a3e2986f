#!/usr/bin/env python3
"""Checks that options of one name have one set of values and one default in all commands, but for the
exceptions that docs/options.md lists with a reason.

usage: option_meanings.py HEADROOM docs/options.md [--update]

Values and defaults are those of `headroom manual`: the default is the last text in parentheses.
--update rewrites the table's first three columns, and puts `?` where a reason is missing.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

HEADING = "### Options that differ between commands"
ROW = re.compile(r"^\| (`--[a-z-]+`) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$")
# One number, or several where a command takes them.
COUNTS = {"N", "GRID", "LENGTHS", "INT"}


def values_of(text):
    words = [word.strip("` ").removesuffix(",…") for word in text.split(", ")]
    return ", ".join(f"`{'N' if word in COUNTS else word}`" for word in words if word)


def default_of(description):
    found = re.findall(r"\(([^()]*)\)", description)
    return found[-1] if found else "none"


def options_of(manual):
    """option -> (values, default) -> commands"""
    options = defaultdict(lambda: defaultdict(list))
    command = None
    for line in manual.splitlines():
        if line.startswith("## headroom "):
            command = line.removeprefix("## headroom ")
        row = re.match(r"^\| `--([a-z-]+)`[^|]*\|([^|]*)\|(.*)\|$", line)
        if row and command:
            options[row[1]][values_of(row[2].strip()), default_of(row[3])].append(command)
    return options


def differing(options):
    """Rows of the table: all variants but the most common one, and that one to compare with."""
    for name, variants in sorted(options.items()):
        if len(variants) == 1:
            continue
        for (values, default), commands in sorted(variants.items(), key=lambda one: -len(one[1])):
            cell = f"{values}; default: {default}" if values else f"default: {default}"
            yield f"`--{name}`", ", ".join(f"`{command}`" for command in commands), cell


def main():
    page = Path(sys.argv[2])
    manual = subprocess.run([sys.argv[1], "manual"], capture_output=True, text=True, check=True).stdout
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(HEADING)
    table = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    written = [ROW.match(line) for line in table[0].splitlines()[2:]]
    reasons = {(row[1], row[2]): row[4] for row in written if row}
    expected = list(differing(options_of(manual)))
    lines = ["| Option | Commands | Values and default | Reason |", "| :-- | :-- | :-- | :-- |"]
    lines += [f"| {option} | {commands} | {cell} | {reasons.get((option, commands), '?')} |"
              for option, commands, cell in expected]
    new = "\n".join(lines) + "\n"
    if sys.argv[3:] == ["--update"]:
        page.write_text(before + HEADING + rest[:table.start()] + new + rest[table.end():], encoding="utf-8")
        return
    if not options_of(manual):
        sys.exit("headroom manual lists no options")
    missing = [line for line in new.splitlines() if line not in table[0].splitlines()]
    surplus = [line for line in table[0].splitlines() if line not in new.splitlines()]
    for line in missing:
        print(f"not in the table, or without a reason: {line}")
    for line in surplus:
        print(f"no longer true: {line}")
    sys.exit(bool(missing or surplus or "| ? |" in table[0]))


if __name__ == "__main__":
    main()
