#!/usr/bin/env python3
"""Tests of headroom on a terminal: the width of reports, notes and errors, and progress.

usage: terminal.py HEADROOM [UNITTEST ARGUMENTS...]
"""

import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import unittest
from pathlib import Path

HEADROOM = Path(sys.argv.pop(1)).resolve()
REPORTS = """
analyze bert-base
analyze llama-3-8b --dtype bf16 --machine h100-80gb --new-tokens 128
analyze llama-4-scout --machine h100-80gb
analyze deepseek-v4-flash --machine h100-80gb --new-tokens 128
complexity whisper-small
analyze gpt-oss-20b --phase decode --past 32767 --kv-policy vllm
explain gpt2
explain deepseek-v3
explain gpt2 --steps
explain gpt-oss-20b --what kv
explain gpt2 --crossovers
diff gpt2 bert-base
fit llama-3-8b --machine h100-80gb
fit llama-3-70b
plan llama-3-8b --machine a100-80gb --count 8 --train --batch 32 --seq 4096 --keep 3 --front
serve llama-3-8b --machine h100-80gb --rate 1 --requests 20
serve llama-3-8b --machines h100-80gb,l40s --price h100-80gb=2.50 --rate 2 --requests 20 --ttft 1s --tpot 60ms
train-time llama-3-8b --machine h100-80gb --tokens 1T --count 64
complexity layer-self-attention layer-rnn layer-conv
machines
machines show h100-80gb
system
presets
presets show gpt2
fit bert-base --machine h100-80gb --phase train
analyze --help
plan --help-all
""".strip().splitlines()


def on_terminal(arguments, columns, home, **more):
    """The output on a terminal of this width, errors included, with more variables of the environment."""
    process, file = pty.fork()
    if process == 0:
        os.chdir(home)
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("HEADROOM_", "XDG_"))}
        # The size is set before the program asks for it.
        command = f'stty columns {columns} rows 50; exec "$@"'
        os.execvpe("sh", ["sh", "-c", command, "sh", str(HEADROOM), *arguments],
                   variables | {"HOME": home, "NO_COLOR": "1", "TERM": "dumb"} | more)
    fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    output = b""
    while True:
        try:
            part = os.read(file, 65536)
        except OSError:
            break
        if not part:
            break
        output += part
    os.waitpid(process, 0)
    os.close(file)
    return output.decode().replace("\r\n", "\n")


def without_progress(text):
    """Drops a bar, which is erased before the report."""
    return re.sub(r"\r[^\r\n]*\x1b\[K", "", text)


class OnTerminal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def test_no_line_is_wider_than_the_terminal(self):
        for columns in 80, 120:
            for report in REPORTS:
                with self.subTest(report, columns=columns):
                    text = without_progress(on_terminal(report.split(), columns, self.home))
                    self.assertGreater(text.count("\n"), 1, text)
                    self.assertEqual([line for line in text.splitlines() if len(line) > columns], [])

    def test_breaking_lines_loses_no_word(self):
        for report in "explain deepseek-v3", "fit llama-3-8b --machine h100-80gb", "analyze gpt-oss-20b":
            with self.subTest(report):
                narrow = on_terminal(report.split(), 80, self.home)
                wide = on_terminal(report.split(), 1000, self.home)
                # Tables drop columns, so only lines of words and formulas are compared.
                words = [word for line in wide.splitlines() if " = " in line or " · " in line for word in line.split()]
                self.assertGreater(len(words), 20)
                self.assertEqual(set(words) - set(narrow.split()), set())

    def test_memory_stays_on_a_narrow_screen(self):
        header = on_terminal(["analyze", "llama-3-8b", "--phase", "train"], 80, self.home)
        self.assertIn("Weights", header)
        self.assertNotIn("Intensity", header)

    def test_columns_says_the_width_of_a_terminal_that_does_not(self):
        def widest(columns):
            text = without_progress(on_terminal(["analyze", "gpt2"], 0, self.home, COLUMNS=columns))
            return max(len(line) for line in text.splitlines())

        self.assertLessEqual(widest("80"), 80)
        for no_width in "wide", "80x", "99999", "0":
            self.assertGreater(widest(no_width), 80, no_width)

    def test_colours_show_on_a_terminal_unless_no_color_has_a_value(self):
        for value, is_coloured in ("", True), ("1", False):
            text = without_progress(on_terminal(["analyze", "gpt2"], 100, self.home, NO_COLOR=value))
            self.assertEqual("\x1b[" in text, is_coloured)

    def test_the_terminal_of_one_of_several_processes_is_no_reader(self):
        text = on_terminal(["analyze", "gpt2"], 60, self.home, NO_COLOR="", OMPI_COMM_WORLD_SIZE="2")
        self.assertNotIn("\x1b", text)
        self.assertGreater(max(len(line) for line in text.splitlines()), 60)

    def test_a_long_sweep_shows_rows_and_the_time_left(self):
        text = on_terminal(["sweep", "gpt2", "--batch", "1..3000", "--seq", "1..1000", "--past", "0..3", "-o", "/dev/null"],
                           80, self.home)
        self.assertRegex(text, r"\[#+\.*\] [\d,]+ rows · \d+ s left")

    def test_a_long_search_shows_its_progress(self):
        text = on_terminal(["plan", "deepseek-v3", "--machine", "h100-80gb", "--count", "2048", "--train", "--batch",
                            "4096", "--seq", "4096"], 80, self.home)
        self.assertRegex(text, r"\[#+\.*\] searching plans \d+ %")

    def test_a_long_search_of_a_training_run_shows_its_progress(self):
        text = on_terminal(["train-time", "deepseek-v3", "--machine", "h100-80gb", "--count", "2048", "--tokens", "1T"],
                           80, self.home)
        self.assertRegex(text, r"\[#+\.*\] searching plans \d+ %")

    def test_weights_and_the_first_run_are_announced(self):
        text = on_terminal(["measure", "gpt2", "--runs", "1", "--warmup", "0", "--seq", "8"], 80, self.home)
        self.assertRegex(text, r"\] weights \d+ %")
        self.assertRegex(text, r"\] first run, not timed")
        self.assertNotIn("weights", without_progress(text).partition("\n")[0])


if __name__ == "__main__":
    unittest.main()
