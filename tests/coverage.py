#!/usr/bin/env python3
"""Sums up clang's source-based coverage by module.

usage: coverage.py EXPORT_JSON ROOT MISSED_FILE

EXPORT_JSON: the output of llvm-cov export. MISSED_FILE gets one line for each branch that no test
takes: file:line:column and the side. Two kinds of sides that cannot be taken do not count: an
enumeration's value beside those of an exhaustive switch, and the branches of
coverage_exceptions.txt, which the table names by their reason.
"""

import collections
import json
import pathlib
import sys

FLAWLESS = ("base", "checkpoint", "spec")  # modules whose every branch has a test
EXCEPTIONS = pathlib.Path(__file__).with_name("coverage_exceptions.txt")
SWITCH = "a switch over all values of an enumeration gets no other"


def module_of(path):
    return path.parts[1] if path.parts[0] == "src" else "include"


def read_exceptions():
    """(code, reason) by file."""
    exceptions = collections.defaultdict(list)
    for line in EXCEPTIONS.read_text().splitlines():
        if line and not line.startswith("#"):
            file, code, reason = line.split(" | ")
            exceptions[file].append((code, reason))
    return exceptions


def reason_of(source, line, column, side, exceptions):
    """Why no test can take this side of a condition; empty if one can."""
    text = source[line - 1]
    if side == "true" and text[: column - 1].endswith("switch ("):  # the implicit default
        return SWITCH
    return next((reason for code, reason in exceptions if code in text), "")


def missed_branches(file):
    """Sides of conditions that were never taken, over all instances of a template."""
    taken = collections.defaultdict(lambda: [0, 0])
    for line, column, end_line, end_column, true, false, *_ in file["branches"]:
        sides = taken[line, column, end_line, end_column]
        sides[0] += true
        sides[1] += false
    missed = [
        (line, column, side)
        for (line, column, *_), sides in sorted(taken.items())
        for side, times in zip(("true", "false"), sides)
        if times == 0
    ]
    return missed, 2 * len(taken)


def main():
    export, root, missed_file = sys.argv[1:]
    exceptions = read_exceptions()
    lines = collections.defaultdict(lambda: [0, 0])
    branches = collections.defaultdict(lambda: [0, 0])
    excused = collections.Counter()
    missed_lines = []
    for file in json.load(open(export))["data"][0]["files"]:
        path = pathlib.Path(file["filename"]).relative_to(root)
        source = pathlib.Path(file["filename"]).read_text().splitlines()
        module = module_of(path)
        summary = file["summary"]["lines"]
        lines[module][0] += summary["covered"]
        lines[module][1] += summary["count"]
        missed, count = missed_branches(file)
        for line, column, side in missed:
            reason = reason_of(source, line, column, side, exceptions[str(path)])
            count -= 1
            if reason:
                excused[module, reason] += 1
                continue
            branches[module][1] += 1
            if module in FLAWLESS:
                missed_lines.append(f"{path}:{line}:{column}: never {side}\n")
        branches[module][0] += count
        branches[module][1] += count
    pathlib.Path(missed_file).write_text("".join(missed_lines))
    print("| Module | Lines | Covered [%] | Branches | Covered [%] |\n| :-- | --: | --: | --: | --: |")
    for module in sorted(lines):
        row = [module]
        for covered, count in (lines[module], branches[module]):
            row += [f"{count:,}", f"{100 * covered / count:.1f}" if count else "–"]
        print("| " + " | ".join(row) + " |")
    print("\n| Module | Branches that no test can take | Number |\n| :-- | :-- | --: |")
    for (module, reason), number in sorted(excused.items()):
        print(f"| {module} | {reason} | {number} |")


if __name__ == "__main__":
    main()
