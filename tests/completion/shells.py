#!/usr/bin/env python3
"""Drives the completion of headroom in real shells: bash and zsh on a terminal, fish by `complete -C`.

usage: shells.py HEADROOM bash|zsh|fish

Of zsh, the script is sourced, and loaded as a function by its name, as an installation has it.

Exit status: 0 all passed, 1 a check failed, 77 the shell is not installed.
"""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HEADROOM = Path(sys.argv[1]).resolve()
SHELL = sys.argv[2]
SECONDS_PER_ANSWER = 60
# Not a prompt that a shell would print by itself.
PROMPT = "READY> "

# A typed line, words that completion must offer, and words that it must not.
CASES = [
    ("headroom ", {"analyze", "measure", "train-time", "completion"}, {"--phase", "bert-base"}),
    ("headroom ana", {"analyze"}, {"measure"}),
    ("headroom analyze --phase ", {"prefill", "decode", "train"}, {"generate", "serve", "bert-base"}),
    ("headroom measure --phase ", {"prefill", "decode", "generate"}, {"train", "serve"}),
    ("headroom fit --phase ", {"serve", "train"}, {"prefill", "generate"}),
    ("headroom sweep --format ", {"csv", "jsonl", "html"}, {"json", "table"}),
    ("headroom analyze --format ", {"csv", "json", "html", "trace"}, {"jsonl"}),
    ("headroom fit --format ", {"csv", "json", "html", "trace"}, {"jsonl"}),
    ("headroom plan --format ", {"csv", "json", "html"}, {"jsonl", "trace"}),
    ("headroom fit --weights ", {"nvfp4", "q4_k_m", "int4", "iq4_xs"}, {"PATH", "FORMAT"}),
    ("headroom measure --weights ", {"q4_k_m", "mxfp4", "int4", "q2_k"}, {"float16", "FORMAT"}),
    ("headroom measure --checkpoint ", {"random"}, {"PATH"}),
    ("headroom plan --recompute ", {"none", "full"}, {"every=K"}),
    ("headroom fit --machine ", {"here", "h100-80gb", "rtx-4090"}, {"bert-base", "my file.json"}),
    ("headroom fit gpt2 --machine rtx-40", {"rtx-4090"}, {"h100-80gb"}),
    ("headroom serve gpt2 --machine l40", {"l40s"}, {"h100-80gb"}),
    ("headroom analyze bert-bas", {"bert-base", "bert-base-cased"}, {"gpt2"}),
    ("headroom train-time llama-3-8", {"llama-3-8b"}, {"gpt2"}),
    ("headroom machines ", {"list", "show"}, {"bert-base"}),
    ("headroom machines show h100", {"h100-80gb", "h100-80gb-pcie"}, {"rtx-4090"}),
    ("headroom presets show gpt2-", {"gpt2-xl", "gpt2-medium"}, {"bert-base"}),
    ("headroom completion ", {"bash", "zsh", "fish"}, {"bert-base"}),
    ("headroom analyze --attent", {"--attention"}, {"--phase"}),
    ("headroom plan --fro", {"--front"}, {"--format"}),
]


def environment(home):
    """Of the shells: the program on the PATH, no files of the user's."""
    kept = {name: os.environ[name] for name in ("LANG", "LD_LIBRARY_PATH", "ASAN_OPTIONS") if name in os.environ}
    return kept | {"PATH": f"{HEADROOM.parent}:{os.environ['PATH']}", "HOME": home, "TERM": "dumb", "XDG_CONFIG_HOME": home,
                   "XDG_DATA_HOME": home, "PS1": PROMPT, "LC_ALL": "C.UTF-8"}


class Terminal:
    """A shell on a terminal."""

    def __init__(self, command, home):
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.chdir(home)
            os.execvpe(command[0], command, environment(home))

    def read(self, is_complete):
        """The output until it is complete, or until the shell says nothing more."""
        text = ""
        end = time.monotonic() + SECONDS_PER_ANSWER
        while time.monotonic() < end and not is_complete(text):
            if select.select([self.file], [], [], 0.1)[0]:
                try:
                    text += os.read(self.file, 65536).decode(errors="replace")
                except OSError:
                    break
        if not is_complete(text):
            raise AssertionError(f"no answer within {SECONDS_PER_ANSWER} s: {text!r}")
        return text

    def send(self, text):
        os.write(self.file, text.encode())

    def run(self, line):
        """The output of a command line."""
        self.send(f"{line}; echo DO''NE\n")
        return self.read(lambda text: re.search(r"DONE\s+" + re.escape(PROMPT), text))

    def close(self):
        os.close(self.file)
        os.waitpid(self.process, 0)


# The line of candidates is written by the completion functions themselves, so that neither columns
# nor pagers of the terminal matter.
START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"],
             ["bind 'set enable-bracketed-paste off'", "source <(headroom completion bash)",
              "report() { _headroom; printf 'HAVE%s\\n' \"${COMPREPLY[*]/#/ }\"; COMPREPLY=(STOP STAY); }",
              "complete -F report headroom"]),
    "zsh": (["zsh", "-f", "-i"],
            [f"PS1='{PROMPT}'; unsetopt zle_bracketed_paste prompt_sp prompt_cr; autoload -U compinit && compinit -u -D",
             "source <(headroom completion zsh)",
             # Matches are those that compadd would add.
             "compadd() { local -a all; builtin compadd -O all \"$@\"; print -r -- \"HAVE $all\" >> have; "
             "builtin compadd \"$@\"; }"]),
}

# In place of sourcing the script; cmake/WriteManuals.cmake writes this file.
INSTALLED = "unfunction _headroom 2>/dev/null; fpath=(~ $fpath); compinit -u -D"


class OnTerminal:
    """Answers of bash and zsh."""

    def __init__(self, home, form="sourced"):
        command, lines = START[SHELL]
        if form == "function":
            lines = [INSTALLED if line.startswith("source") else line for line in lines]
            script = subprocess.run([HEADROOM, "completion", "zsh"], capture_output=True, text=True, check=True).stdout
            Path(home, "_headroom").write_text("#compdef headroom\n" + script, encoding="utf-8")
        self.home = home
        self.terminal = Terminal(command, home)
        for line in lines:
            self.terminal.run(line)

    def offered(self, typed):
        if SHELL == "zsh":
            return self.offered_by_zsh(typed)
        self.terminal.send(typed + "\t")
        text = self.terminal.read(lambda text: re.search(r"HAVE[^\n]*\n", text))
        self.terminal.send("\x15")
        self.terminal.run(":")
        return set(re.search(r"HAVE([^\r\n]*)", text)[1].split())

    def offered_by_zsh(self, typed):
        file = Path(self.home) / "have"
        file.unlink(missing_ok=True)
        self.terminal.send(typed + "\t")
        time.sleep(0.1)
        self.terminal.send("\x15")
        self.terminal.run(":")
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        return set(" ".join(re.findall(r"HAVE([^\n]*)", text)).split())

    def close(self):
        self.terminal.close()


class ByFish:
    """Answers of fish, which completes without a terminal, too."""

    def __init__(self, home):
        self.home = home
        script = subprocess.run([HEADROOM, "completion", "fish"], capture_output=True, text=True, check=True).stdout
        (Path(home) / "headroom.fish").write_text(script, encoding="utf-8")

    def offered(self, typed):
        command = f"source headroom.fish; complete -C {typed!r}"
        done = subprocess.run(["fish", "--no-config", "-c", command], capture_output=True, text=True, cwd=self.home,
                              env=environment(self.home), timeout=SECONDS_PER_ANSWER)
        if done.returncode != 0 or done.stderr:
            raise AssertionError(done.stderr)
        return {line.partition("\t")[0] for line in done.stdout.splitlines()}

    def close(self):
        pass


class Completion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp()
        Path(cls.home, "my file.json").touch()
        Path(cls.home, "model.gguf").touch()
        cls.shell = ByFish(cls.home) if SHELL == "fish" else OnTerminal(cls.home)

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()
        shutil.rmtree(cls.home)

    def test_offers_what_fits_the_place(self):
        for typed, offered, not_offered in CASES:
            with self.subTest(typed):
                words = self.shell.offered(typed)
                self.assertEqual(offered - words, set(), f"not offered: {sorted(words)[:20]}")
                self.assertEqual(not_offered & words, set())

    @unittest.skipIf(SHELL != "zsh", "a function of zsh")
    def test_function_of_an_installation_offers_as_the_sourced_script(self):
        shell = OnTerminal(self.home, "function")
        self.addCleanup(shell.close)
        for typed, offered, not_offered in CASES[:6]:
            with self.subTest(typed):
                words = shell.offered(typed)
                self.assertEqual(offered - words, set())
                self.assertEqual(not_offered & words, set())

    def test_offers_files_where_one_is_read(self):
        for typed in "headroom analyze mod", "headroom measure gpt2 --checkpoint mod", "headroom inspect mod":
            with self.subTest(typed):
                self.assertIn("model.gguf", self.shell.offered(typed))

    def test_offers_values_after_an_equals_sign(self):
        words = self.shell.offered("headroom sweep --format=")
        self.assertTrue(words & {"jsonl", "--format=jsonl"}, words)
        self.assertFalse(words & {"table", "--format=table"}, words)

    def test_offers_nothing_for_a_number(self):
        self.assertEqual(self.shell.offered("headroom analyze gpt2 --new-tokens "), set())


if __name__ == "__main__":
    if not shutil.which(SHELL):
        print(f"{SHELL} is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
