#!/usr/bin/env python3
"""Runs the console blocks of a page and compares them with what headroom prints.

usage: console.py HEADROOM PAGE.md [--data FOLDER] [--update] [--refresh] [--expand]

A block holds commands with their output, standard output followed by standard error:

    ```console
    $ headroom explain gpt2 | head -n 3
    gpt2      decoder · …
    …
    $ echo $?
    0
    ```

Commands start with `$ ` and run in bash, in one folder per page that links to the top-level entries
of the repository; a backslash at the end of a line continues it. `./dev run ARGS` runs `headroom
ARGS`. A command must exit with 0 unless `$ echo $?` follows it. A line `…` stands for one or more
lines, `…` within a line for any text.

`<!-- figures vary -->` on the line before a block marks figures that depend on the machine. Then
numbers, units of time, verdicts and the machine's name may differ, but not words, rows and columns;
only standard output is compared. `<!-- not run -->` marks commands that need files which are not
here: only their names and options are checked.

--update rewrites blocks that differ and keeps their elisions; --refresh also rewrites figures that
vary; --expand also writes out `…` within lines, so that a new block can start as a sketch. --data
FOLDER is XDG_DATA_HOME, to share machine profiles between pages. Exit status: 0 fine, 1 a block
differs.
"""

import argparse
import difflib
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from elision import matches, updated

ROOT = Path(__file__).resolve().parents[2]
SECONDS_PER_COMMAND = 600


@dataclass
class Step:
    """One command of a block, and its expected output."""

    command: list  # its lines, "$ " included
    expected: list = field(default_factory=list)

    @property
    def text(self):
        lines = [self.command[0].removeprefix("$ "), *self.command[1:]]
        return "\n".join(line.removeprefix("> ") for line in lines)

    @property
    def asks_for_status(self):
        return self.text.strip() == "echo $?"


@dataclass
class Block:
    begin: int  # index of the line after the opening fence
    end: int  # index of the closing fence
    mark: str  # "", "figures vary" or "not run"
    steps: list

    @property
    def varies(self):
        return self.mark == "figures vary"


def parse_steps(lines, where):
    steps = []
    for line in lines:
        if steps and steps[-1].command[-1].endswith("\\"):
            steps[-1].command.append(line)
        elif line.startswith("$ "):
            steps.append(Step([line]))
        elif not steps:
            raise ValueError(f"{where}: a console block starts with a command, `$ …`")
        else:
            steps[-1].expected.append(line)
    return steps


def parse_blocks(lines, page):
    blocks, begin = [], None
    for index, line in enumerate(lines):
        if begin is None and line.strip() == "```console":
            begin = index + 1
        elif begin is not None and line.strip() == "```":
            mark = re.fullmatch(r"<!-- (figures vary|not run) -->", lines[begin - 2].strip())
            steps = parse_steps(lines[begin:index], f"{page}:{begin + 1}")
            blocks.append(Block(begin, index, mark[1] if mark else "", steps))
            begin = None
    return blocks


def shell_text(command):
    return re.sub(r"(^|[|;(]\s*)\./dev run\b", r"\1headroom", command)


def environment(headroom, data, work):
    path = f"{headroom.parent}{os.pathsep}{os.environ['PATH']}"
    home = {"HOME": str(work / "home"), "XDG_DATA_HOME": str(data)}
    home |= {"HF_HUB_CACHE": "", "HF_HOME": "", "XDG_CACHE_HOME": "",
             "OLLAMA_MODELS": str(work / "home" / ".ollama" / "models")}
    own = {name: value for name, value in os.environ.items()
           if not name.startswith("HEADROOM_") and name != "XDG_CONFIG_HOME"}
    return own | home | {"PATH": path, "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


def run(step, varies, folder, variables):
    """Returns (lines, exit status): standard output, then standard error unless figures vary."""
    result = subprocess.run(
        ["bash", "-c", "set -o pipefail\n" + shell_text(step.text)], cwd=folder, env=variables, check=False,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS_PER_COMMAND)
    printed = result.stdout + (b"" if varies else result.stderr)
    return [line.rstrip() for line in printed.decode().splitlines()], result.returncode


class Page:
    def __init__(self, path, options):
        self.path = path
        self.options = options
        self.lines = path.read_text(encoding="utf-8").split("\n")
        self.blocks = parse_blocks(self.lines, path.name)
        self.failures = 0

    def check(self, folder, variables):
        replaced = []
        for block in self.blocks:
            lines = self.check_block(block, folder, variables)
            replaced.append((block, lines))
        if self.options.writes:
            for block, lines in reversed(replaced):
                self.lines[block.begin:block.end] = lines
            self.path.write_text("\n".join(self.lines), encoding="utf-8")

    def check_block(self, block, folder, variables):
        lines, status = [], 0
        for number, step in enumerate(block.steps):
            following = block.steps[number + 1] if number + 1 < len(block.steps) else None
            if step.asks_for_status:
                printed = [str(status)]
            elif block.mark == "not run":
                printed = step.expected
                self.check_options(block, step, folder, variables)
            else:
                printed, status = run(step, block.varies, folder, variables)
                if status != 0 and not (following and following.asks_for_status) and \
                        not self.may_fail(block, printed, status):
                    self.report(block, step, [f"ends with exit status {status}"] + printed[-4:])
            lines += step.command + self.settled(block, step, printed)
        return lines

    @staticmethod
    def may_fail(block, printed, status):
        """Returns true for a verdict, which the page shows, and for a pipe that `head` has closed."""
        verdict = block.varies or any("DOES NOT FIT" in line or "NO PLAN FITS" in line for line in printed)
        return (verdict and status == 1) or status == 128 + signal.SIGPIPE

    def settled(self, block, step, printed):
        """Compares the output of a command and returns the lines for the block."""
        fits = matches(step.expected, printed, block.varies)
        if fits and not self.options.expand and not (self.options.refresh and block.varies):
            return step.expected
        if self.options.writes:
            return updated(step.expected, printed, block.varies, self.options.expand)
        difference = difflib.unified_diff(step.expected, printed, "page", "printed", lineterm="")
        self.report(block, step, list(difference))
        return step.expected

    def check_options(self, block, step, folder, variables):
        """Checks the commands and options of a block that is not run against --help."""
        for command in re.split(r"[|;\n]", shell_text(step.text)):
            words = command.split()
            if not words or words[0] != "headroom" or len(words) < 2:
                continue
            result = subprocess.run(["headroom", words[1], "--help-all"], cwd=folder, env=variables,
                                    check=False, capture_output=True, text=True)
            known = set(re.findall(r"(?<!\w)--?[a-z][\w-]*", result.stdout))
            wrong = [word for word in words[2:] if re.match(r"--?[a-z]", word)
                     and word.split("=")[0] not in known]
            if result.returncode != 0 or wrong:
                self.report(block, step, [f"not in `headroom {words[1]} --help`: {wrong}"])

    def report(self, block, step, lines):
        self.failures += 1
        print(f"{self.path.name}:{block.begin}: {step.command[0]}")
        print("\n".join(f"    {line}" for line in lines))


def work_folder(path):
    """Makes a folder with links to the entries of the repository, and returns it."""
    (path / "home").mkdir()
    (path / "work").mkdir()
    for entry in ROOT.iterdir():
        if entry.name not in ("build", ".git"):
            (path / "work" / entry.name).symlink_to(entry)
    return path / "work"


def main():
    parser = argparse.ArgumentParser(description="Runs the console blocks of a page.")
    parser.add_argument("headroom", type=Path)
    parser.add_argument("page", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--refresh", action="store_true")
    parser.add_argument("--expand", action="store_true")
    options = parser.parse_args()
    options.writes = options.update or options.refresh or options.expand
    page = Page(options.page, options)
    with tempfile.TemporaryDirectory() as folder:
        data = (options.data or Path(folder, "data")).resolve()
        data.mkdir(parents=True, exist_ok=True)
        variables = environment(options.headroom.resolve(), data, Path(folder))
        page.check(work_folder(Path(folder)), variables)
    commands = sum(len(block.steps) for block in page.blocks)
    print(f"{page.path.name}: {commands} commands in {len(page.blocks)} blocks, {page.failures} differ")
    return min(page.failures, 1)


if __name__ == "__main__":
    sys.exit(main())
