#!/usr/bin/env python3
"""Checks that every option which headroom's texts recommend exists.

usage: named_options.py HEADROOM

Compares the options in the string literals of src/cli with those that the commands' help lists.
"""
import re
import subprocess
import sys
from pathlib import Path

CLI = Path(__file__).resolve().parents[2] / "src" / "cli"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def help_of(binary, *arguments):
    return subprocess.run([binary, *arguments, "--help-all"], capture_output=True, text=True, check=True).stdout


def known_options(binary):
    """Options of the program, its commands and their subcommands."""
    def commands(text):
        section = text.partition("\nCommands:")[2]
        return re.findall(r"^  ([a-z][a-z-]*) ", section, re.MULTILINE)

    top = help_of(binary)
    texts = [top]
    for command in commands(top):
        texts.append(help_of(binary, command))
        texts += [help_of(binary, command, nested) for nested in commands(texts[-1])]
    # Only the lists of options: examples may not vouch for themselves.
    lines = [line for text in texts for line in text.splitlines() if re.match(r"^  -", line)]
    return set(OPTION.findall("\n".join(lines))) | {"--help", "--help-all", "--version"}


def named_options():
    """The options of each file's string literals."""
    for file in sorted(CLI.glob("*.cpp")):
        code = re.sub(r"^\s*//.*$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', code):
            for option in OPTION.findall(literal):
                yield file.name, option


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    known = known_options(sys.argv[1])
    unknown = sorted({(file, option) for file, option in named_options() if option not in known})
    for file, option in unknown:
        print(f"{file} names {option}, which no command has")
    print(f"{len(known)} options")
    sys.exit(bool(unknown) or len(known) < 20)


if __name__ == "__main__":
    main()
