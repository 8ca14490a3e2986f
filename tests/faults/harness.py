"""Runs headroom as a user would, in a folder of its own, and collects failed checks."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path


class Result:
    """The end of one run. A negative status is the signal that ended it."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Faults:
    def __init__(self, headroom):
        self.headroom = str(Path(headroom).resolve())
        self.folder = Path(tempfile.mkdtemp(prefix="headroom-faults-"))
        self.environment = {**os.environ, "HOME": str(self.folder / "home")}
        self.environment.pop("XDG_DATA_HOME", None)
        self.failures = 0
        self.row = ""

    def begin(self, row):
        """Starts a row in an empty folder."""
        self.row = row
        shutil.rmtree(self.folder)
        (self.folder / "home").mkdir(parents=True)
        self.cwd = self.folder / "cwd"
        self.cwd.mkdir()

    def end(self):
        shutil.rmtree(self.folder)

    def check(self, holds, message):
        if holds:
            return
        self.failures += 1
        print(f"FAILED  {self.row}: {message}")

    def run(self, *arguments, timeout=120, **options):
        """Runs headroom to its end."""
        options = {"cwd": self.cwd, "env": self.environment, "stdin": subprocess.DEVNULL, **options}
        done = subprocess.run([self.headroom, *arguments], capture_output=True, timeout=timeout, **options)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def shell(self, script, timeout=120):
        """Runs a line of bash in which $H is headroom."""
        done = subprocess.run(["bash", "-c", script], cwd=self.cwd, env={**self.environment, "H": self.headroom},
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def refused(self, arguments, status, *words, **options):
        """Checks that a run ends with `status`, and that its error has all `words`."""
        result = self.run(*arguments, **options)
        self.check(result.status == status, f"{arguments} exits with {result.status}, not {status}: {result.err}")
        self.check(result.err.startswith("headroom: error: "), f"{arguments} prints no error: {result.err}")
        for word in words:
            self.check(word in result.err, f"{arguments} does not mention {word!r}: {result.err}")
        return result

    def start(self, *arguments, **options):
        options = {"cwd": self.cwd, "env": self.environment, "stdin": subprocess.DEVNULL, **options}
        return subprocess.Popen([self.headroom, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def interrupt(self, process, number=signal.SIGINT, after=0.0, timeout=60):
        """Sends a signal and waits for the end."""
        time.sleep(after)
        process.send_signal(number)
        out, err = process.communicate(timeout=timeout)
        return Result(process.returncode, out.decode(), err.decode())

    def read_json(self, name):
        """A file's JSON; an empty object if there is none."""
        try:
            return json.loads((self.cwd / name).read_text())
        except (OSError, ValueError) as error:
            self.check(False, f"{name}: {error}")
            return {}

    def files(self):
        return sorted(file.name for file in self.cwd.iterdir())
