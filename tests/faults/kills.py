#!/usr/bin/env python3
"""Kills runs at random moments, and looks at what is left: outputs and profiles are old or whole, and
the next run removes temporary files.

usage: kills.py HEADROOM [--kills 12] [--seed 1] [--calibrate]

--calibrate also kills calibrations, which take long on a busy machine, and looks for their profile.
Prints the totals. Exit status: 0 all held, 1 a check failed.
"""

import argparse
import json
import random
import signal
import sys
import time

from harness import Faults
from profiles import calibrate, folder, stored

# Commands and the seconds within which they are killed.
COMMANDS = [
    (["measure", "layer-self-attention", "--runs", "20", "--threads", "1", "-f", "json", "-o", "out"], 0.5),
    (["sweep", "gpt2", "--batch", "1..400", "--seq", "1..400", "-f", "jsonl", "-o", "out"], 0.6),
    (["plan", "llama-3-8b", "--machine", "h100-80gb", "--count", "16", "--train", "--batch", "64", "-f", "json",
      "-o", "out"], 0.8),
    (["compare", "bert-tiny", "--runs", "3", "--threads", "1", "-f", "json", "-o", "out"], 0.8),
    (["complexity", "layer-self-attention", "layer-rnn", "-f", "json", "-o", "out"], 0.3),
]
CALIBRATION = (["calibrate", "--quick", "--threads", "1", "-f", "json", "-o", "out"], 3)


def is_whole(command, text):
    try:
        if command[0] == "sweep":
            rows = text.split("\n")
            return len(rows) == 400 * 400 + 1 and rows[-1] == "" and all(json.loads(row) for row in rows[:-1])
        return bool(json.loads(text))
    except ValueError:
        return False


def kill_at(faults, command, seconds):
    """Returns whether the run was killed before its end."""
    out = faults.cwd / "out"
    out.write_text("before")
    process = faults.start(*command)
    time.sleep(seconds)
    result = faults.interrupt(process, signal.SIGKILL)
    text = out.read_text()
    faults.check(text == "before" or is_whole(command, text), f"{command} after {seconds:.3f} s writes {text[-80:]!r}")
    return result.status == -signal.SIGKILL


def check_profile(faults, command):
    for profile in stored(faults):
        faults.check(bool(json.loads(profile.read_text())), f"{command} damages {profile.name}")
    faults.check(len(stored(faults)) == 1, f"{command} loses the profile")


def check_no_temporaries(faults, place, what):
    left = [file.name for file in place.iterdir() if file.name.startswith(".")]
    faults.check(left == [], f"the next {what} leaves {left}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headroom")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calibrate", action="store_true")
    given = parser.parse_args()
    commands = COMMANDS + [CALIBRATION] * given.calibrate
    faults = Faults(given.headroom)
    faults.begin("kills")
    if given.calibrate:
        calibrate(faults)
    choice = random.Random(given.seed)
    killed = 0
    for number in range(given.kills):
        command, within = commands[number % len(commands)]
        killed += kill_at(faults, command, choice.uniform(0, within))
        if given.calibrate:
            check_profile(faults, command)
    faults.run("analyze", "gpt2", "-o", "report.txt")
    check_no_temporaries(faults, faults.cwd, "run")
    if given.calibrate:
        calibrate(faults)
        check_no_temporaries(faults, folder(faults), "calibration")
    faults.end()
    print(f"{given.kills} runs, {killed} killed before their end; {faults.failures} checks failed")
    return 1 if faults.failures else 0


if __name__ == "__main__":
    sys.exit(main())
