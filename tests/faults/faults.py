#!/usr/bin/env python3
"""Plays faults as a user meets them: sizes beyond any machine, limits, kills, full disks, odd files.

usage: faults.py HEADROOM [PART_OF_A_ROW'S_NAME]

Each module has rows; each row begins in an empty folder. Exit status: 0 all held, 1 a check failed.
"""

import sys

import figures
import files
import memory
import outputs
import profiles
from harness import Faults

MODULES = [memory, figures, outputs, files, profiles]


def main():
    faults = Faults(sys.argv[1])
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    for module in MODULES:
        for row in module.ROWS:
            if wanted not in row.__name__:
                continue
            faults.begin(f"{module.__name__}.{row.__name__}")
            row(faults)
    faults.end()
    return 1 if faults.failures else 0


if __name__ == "__main__":
    sys.exit(main())
