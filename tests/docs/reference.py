#!/usr/bin/env python3
"""Compares docs/reference.md with the options that the program has.

usage: reference.py HEADROOM PAGE [--update]
"""
import difflib
import subprocess
import sys
from pathlib import Path


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["--update"]):
        sys.exit(__doc__)
    page = Path(sys.argv[2])
    printed = subprocess.run([sys.argv[1], "manual"], capture_output=True, text=True,
                             check=True).stdout
    if sys.argv[3:]:
        page.write_text(printed, encoding="utf-8")
        return
    written = page.read_text(encoding="utf-8")
    difference = difflib.unified_diff(written.splitlines(), printed.splitlines(), str(page),
                                      "headroom manual", lineterm="")
    print("\n".join(difference))
    sys.exit(written != printed)


if __name__ == "__main__":
    main()
