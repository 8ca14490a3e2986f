#!/usr/bin/env python3
"""Checks that every letter of a printed formula is defined on the same screen, and that a letter has
one meaning in all commands.

usage: letters.py HEADROOM

Reads the golden cases, and runs the commands that print formulas on a preset of every model_type.
Formulas and definitions are read from the text alone: a formula is a word with `·`, `/` or O(…)
around single letters, a definition an entry of the lines `where` and `here`.
"""
import collections
import csv
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CASES = Path(__file__).resolve().parent.parent / "golden" / "cases"
COMMANDS = [
    "analyze {}", "analyze {} --attention fused --phase train", "explain {}",
    "explain {} --attention fused --past 100", "explain {} --what params",
    "explain {} --what activations", "explain {} --what kv --phase decode --past 100",
    "explain {} --what activations --phase train --dtype bfloat16",
    "complexity {} --study shares --seq 64,128", "complexity {} --study generation --new-tokens 4",
    "complexity {} --seq 64,128"]

LETTER = r"(?:(?<!\w)|(?<=log_))([A-Za-zα-ω])(?!\w)"
PRODUCT = re.compile(r"\S*\w[)ᵀ]?[·/][(]?\w\S*|O\(\S[^)]*\)")
OPERAND = re.compile(r"(?<!\d )" + LETTER + r"(?= [=<>≤+−] )|"
                     r"(?<=[=<>≤+−] )" + LETTER + r"(?= |$|[,:)])")
ENTRY = re.compile(r"(\S+)(?: = -?[\d,]+)? ([a-z]\w+_\w+|\w+)(.*)")
# The number of parameters is no symbol; the sources of the rules of thumb define it.
# That of tokens neither.
TOKENS = re.compile(r"N, D .*tokens")
PARAMETERS = re.compile(r"(?<!\w)N(?!\w).*parameters|parameters?.*(?<!\w)N(?!\w)")
UNIT = re.compile(r"[(\[]?\w*(1|B|FLOP|MAC|tokens|requests)/(s|B|token)[)\],;]?")


def plain(text):
    """Without exponents, which Python counts as letters of a word."""
    return re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]", "", text)


def definitions(lines):
    """The entries of `where`, and below `here`: (letter, name, what the definition says)."""
    found, inside = [], False
    for line in lines:
        label, text = re.match(r"(\S*)\s*(.*)", line).groups()
        inside = label in ("where", "here") or (inside and not label and bool(text))
        if not inside or label == "here":
            continue
        found += [match.groups() for match in map(ENTRY.fullmatch, text.split(" · ")) if match]
    return found


def used_letters(line):
    letters = set()
    for word in PRODUCT.findall(line):
        if not UNIT.fullmatch(word):
            word = re.sub(r"[A-Za-z]ᵀ?(?=\[)", "", word)  # an operand with its sizes: X[b,s,d]
            letters |= set(re.findall(LETTER, word.replace("O(", "(")))
    return letters | {letter for pair in OPERAND.findall(line) for letter in pair if letter}


def check(command, text, meanings):
    """Returns the letters without definition; adds those with one to `meanings`."""
    lines = [plain(line) for line in text.splitlines()]
    entries = definitions(lines)
    known, used = set(), set()
    for letter, name, rest in entries:
        known.add(letter)
        used |= set(re.findall(LETTER, rest))
        if re.fullmatch(LETTER, letter):
            meanings[letter].setdefault(name, command)
    for line in lines:
        if not line.startswith(("$", "headroom:", "where")):
            used |= used_letters(line)
    if PARAMETERS.search("\n".join(lines)):
        known.add("N")
    if TOKENS.search("\n".join(lines)):
        known.add("D")
    return sorted(used - known)


def golden_blocks():
    for path in sorted(CASES.glob("*.txt")):
        for block in re.split(r"\n(?=\$ headroom)", path.read_text()):
            command, _, text = block.partition("\n")
            # Other formats than a table carry keys instead of a legend.
            if "--format" not in command and "presets show" not in command:
                yield command, text


def run(binary, command):
    done = subprocess.run([binary, *command.split()], capture_output=True, text=True, check=False)
    return f"$ headroom {command}", done.stdout if done.returncode == 0 else ""


def preset_blocks(binary):
    listing = csv.DictReader(run(binary, "presets list --format csv")[1].splitlines())
    presets = {row["model_type"]: row["name"] for row in listing}
    if not presets:
        sys.exit("`headroom presets list` lists none")
    commands = [command.format(name) for name in presets.values() for command in COMMANDS]
    with ThreadPoolExecutor() as pool:
        yield from pool.map(lambda command: run(binary, command), commands)


def main():
    meanings, failures, blocks = collections.defaultdict(dict), [], 0
    for source in (golden_blocks(), preset_blocks(sys.argv[1])):
        for command, text in source:
            blocks += 1
            undefined = check(command, text, meanings)
            if undefined:
                failures.append(f"{command}\n  prints without a definition: {', '.join(undefined)}")
    for letter, names in meanings.items():
        if len(names) > 1:
            uses = ", ".join(f"{name} ({command})" for name, command in names.items())
            failures.append(f"{letter} has several meanings: {uses}")
    print("\n".join(failures) or f"{len(meanings)} letters, each defined, in {blocks} outputs")
    return 1 if failures or not meanings else 0


if __name__ == "__main__":
    sys.exit(main())
