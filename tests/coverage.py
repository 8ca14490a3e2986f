#!/usr/bin/env python3
"""Sums up clang's source-based coverage by module.

usage: coverage.py EXPORT_JSON ROOT MISSED_FILE

EXPORT_JSON: the output of llvm-cov export. MISSED_FILE gets one line for each branch that no test
takes: file:line:column and the side.
"""

import collections
import json
import pathlib
import sys

FLAWLESS = ("base", "checkpoint", "spec")  # modules whose every branch has a test


def module_of(path):
    return path.parts[1] if path.parts[0] == "src" else "include"


def missed_branches(file):
    """Sides of conditions that were never taken, over all instances of a template."""
    taken = collections.defaultdict(lambda: [0, 0])
    for line, column, end_line, end_column, true, false, *_ in file["branches"]:
        sides = taken[line, column, end_line, end_column]
        sides[0] += true
        sides[1] += false
    return {place: sides for place, sides in taken.items() if not all(sides)}, 2 * len(taken)


def main():
    export, root, missed_file = sys.argv[1:]
    lines = collections.defaultdict(lambda: [0, 0])
    branches = collections.defaultdict(lambda: [0, 0])
    missed_lines = []
    for file in json.load(open(export))["data"][0]["files"]:
        path = pathlib.Path(file["filename"]).relative_to(root)
        module = module_of(path)
        summary = file["summary"]["lines"]
        lines[module][0] += summary["covered"]
        lines[module][1] += summary["count"]
        missed, count = missed_branches(file)
        branches[module][1] += count
        for (line, column, *_), (true, false) in sorted(missed.items()):
            for side, times in (("true", true), ("false", false)):
                if times == 0:
                    branches[module][0] -= 1
                    if module in FLAWLESS:
                        missed_lines.append(f"{path}:{line}:{column}: never {side}\n")
        branches[module][0] += count
    pathlib.Path(missed_file).write_text("".join(missed_lines))
    print("| Module | Lines | Covered [%] | Branches | Covered [%] |\n| :-- | --: | --: | --: | --: |")
    for module in sorted(lines):
        row = [module]
        for covered, count in (lines[module], branches[module]):
            row += [f"{count:,}", f"{100 * covered / count:.1f}" if count else "–"]
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
