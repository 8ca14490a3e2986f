#!/usr/bin/env python3
"""preset_sources.py: checks presets/sources.csv against the presets' texts.

A config as published has the SHA-256 that its row states. Where its note ends with a git blob or a
SHA-256, it also has that id, as the published file, with or without a final newline.
"""

import csv
import hashlib
import pathlib
import re
import sys

PRESETS = pathlib.Path(__file__).resolve().parents[2] / "presets"
STATES = {"raw", "rewritten", "pruned", "written"}
OPENING = '\n  "config": '
INDENT = 2  # columns before the published text's own


def published_text(preset):
    """The config's text in the preset, without the indent."""
    text = (PRESETS / "models" / f"{preset}.json").read_text(encoding="utf-8")
    config = text[text.index(OPENING) + len(OPENING):].rstrip().removesuffix("}").rstrip()
    first, *others = config.split("\n")
    return "\n".join([first, *(line[INDENT:] for line in others)])


def git_blob(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def faults(row):
    """Yields the differences between the row and the preset's text."""
    if row["state"] not in STATES:
        yield f"its state is '{row['state']}'"
    content = published_text(row["preset"]).encode()
    if row["sha256"] and sha256(content) != row["sha256"]:
        yield "its text has another sha256"
    blob = re.search(r"git blob ([0-9a-f]{40})$", row["note"] or "")
    if blob and blob[1] not in (git_blob(content), git_blob(content + b"\n")):
        yield "its text is another git blob"
    digest = re.search(r"SHA-256 ([0-9a-f]{64})$", row["note"] or "")
    if digest and digest[1] not in (sha256(content), sha256(content + b"\n")):
        yield "its text has another SHA-256 than the published one"
    if row["state"] == "raw" and not row["repository"] and not blob and not digest:
        yield "it is raw, without a copy, a git blob or a published SHA-256"


def main():
    with open(PRESETS / "sources.csv", encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    found = [f"{row['preset']}: {fault}" for row in rows for fault in faults(row)]
    print(*found, f"{len(rows)} presets, {len(found)} faults", sep="\n")
    return 1 if found or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
