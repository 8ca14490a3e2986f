"""Outputs are opened before the work, and are whole or absent; standard error may be gone."""

import os
import resource
import signal
import stat

LONG_RUN = ["measure", "layer-self-attention", "--runs", "1000000"]
LONG_SWEEP = ["sweep", "gpt2", "--batch", "1..100000", "--seq", "1..1024"]


def unwritable_outputs_are_refused_first(faults):
    for arguments in (
        [*LONG_RUN, "-o", "missing/report.json"],
        [*LONG_RUN, "--save-output", "missing/out.safetensors"],
        [*LONG_SWEEP, "-o", "missing/rows.csv"],
        ["compare", "gpt2", "-o", "missing/report.json"],
        ["calibrate", "-o", "missing/report.json"],
        ["plan", "llama-3-70b", "--machine", "h100-80gb", "-o", "missing/report.json"],
    ):
        faults.refused(arguments, 3, "missing/", "cannot be written", timeout=20)
    faults.check(faults.files() == [], f"leaves {faults.files()}")


def closed_standard_error(faults):
    done = faults.shell('"$H" measure layer-self-attention --runs 1 -o z.txt 2>&-')
    faults.check(done.status == 0, f"measure exits with {done.status}")
    text = (faults.cwd / "z.txt").read_text()
    faults.check("note:" not in text and text.startswith("layer-self-attention"), "the report has foreign text")
    done = faults.shell('"$H" analyze nonexistent 2>/dev/full')
    faults.check(done.status == 2, f"analyze exits with {done.status}")
    done = faults.shell('"$H" analyze gpt2 >&-')
    faults.check(done.status == 3 and "standard output" in done.err, f"{done.status}: {done.err}")
    done = faults.shell('"$H" analyze gpt2 >/dev/full')
    faults.check(done.status == 3 and "No space left" in done.err, f"{done.status}: {done.err}")
    done = faults.shell('"$H" presets --help >/dev/full')
    faults.check(done.status == 3, f"--help exits with {done.status}")
    done = faults.shell('"$H" presets | head -n 1; exit ${PIPESTATUS[0]}')
    faults.check(done.err == "", f"prints {done.err}")


def full_disk(faults):
    def limit_file_size():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    (faults.cwd / "report.json").write_text("before")
    faults.refused(["analyze", "gpt2", "-f", "json", "-o", "report.json"], 3, "File too large",
                   preexec_fn=limit_file_size)
    faults.check((faults.cwd / "report.json").read_text() == "before", "the old report is gone")
    faults.check(faults.files() == ["report.json"], f"leaves {faults.files()}")


def modes_and_links(faults):
    secret = faults.cwd / "secret.json"
    secret.write_text("before")
    secret.chmod(0o600)
    faults.run("analyze", "gpt2", "-o", "secret.json")
    faults.check(stat.S_IMODE(secret.stat().st_mode) == 0o600, "the mode changed")
    faults.check(secret.read_text() != "before", "the report was not written")
    target = faults.cwd / "target"
    target.write_text("precious")
    (faults.cwd / "link").symlink_to(target)
    faults.run("analyze", "gpt2", "-o", "link")
    faults.check(target.read_text() == "precious", "a link's target was overwritten")


def standard_output_by_name(faults):
    done = faults.shell('echo first >log; "$H" analyze gpt2 -o /dev/stdout >>log')
    text = (faults.cwd / "log").read_text()
    faults.check(done.status == 0 and text.startswith("first\ngpt2"), f"{done.status}: {text[:40]}")
    faults.check(stat.S_ISCHR(os.stat("/dev/null").st_mode), "/dev/null was replaced")
    faults.check(faults.run("analyze", "gpt2", "-o", "/dev/null").status == 0, "/dev/null fails")


def interrupted_measurements_are_marked(faults):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        done = faults.interrupt(faults.start(*LONG_RUN, "-f", "json", "-o", "run.json"), number, after=2)
        faults.check(done.status == 128 + number, f"exits with {done.status}: {done.err}")
        report = faults.read_json("run.json")
        faults.check(report.get("interrupted") is True, "the report is not marked")
        faults.check(len(report.get("time", {}).get("samples_s", [])) > 0, "no run was kept")
        faults.check(faults.files() == ["run.json"], f"leaves {faults.files()}")
        (faults.cwd / "run.json").unlink(missing_ok=True)


def interrupted_before_a_result(faults):
    process = faults.start("measure", "gpt2-xl", "--runs", "1", "-o", "run.json", "--save-output", "out.st")
    done = faults.interrupt(process, signal.SIGTERM, after=0.5)
    faults.check(done.status == 143 and "interrupted" in done.err, f"exits with {done.status}: {done.err}")
    faults.check(faults.files() == [], f"leaves {faults.files()}")


def interrupted_sweeps_are_partial(faults):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        (faults.cwd / "rows.csv").write_text("before")
        done = faults.interrupt(faults.start(*LONG_SWEEP, "-o", "rows.csv"), number, after=1)
        faults.check(done.status == 128 + number, f"exits with {done.status}: {done.err}")
        faults.check("rows.csv.partial" in done.err, f"does not name the partial file: {done.err}")
        faults.check((faults.cwd / "rows.csv").read_text() == "before", "the old file is gone")
        lines = (faults.cwd / "rows.csv.partial").read_text().split("\n")
        faults.check(lines[-1] == "" and len({line.count(",") for line in lines[:-1]}) == 1, "a row is cut")
        faults.check(faults.files() == ["rows.csv", "rows.csv.partial"], f"leaves {faults.files()}")


def ignored_hangup_stays_ignored(faults):
    process = faults.start("sweep", "gpt2", "--batch", "1..2000", "--seq", "1..100", "-o", "rows.csv",
                           preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    done = faults.interrupt(process, signal.SIGHUP, after=0.1)
    faults.check(done.status == 0, f"exits with {done.status}")


def killed_runs_are_cleaned_up(faults):
    process = faults.start(*LONG_SWEEP, "-o", "rows.csv")
    faults.interrupt(process, signal.SIGKILL, after=1)
    left = faults.files()
    faults.check(len(left) == 1 and left[0].startswith(".headroom-"), f"leaves {left}")
    faults.run("analyze", "gpt2", "-o", "report.txt")
    faults.check(faults.files() == ["report.txt"], f"leaves {faults.files()}")


ROWS = [
    unwritable_outputs_are_refused_first,
    closed_standard_error,
    full_disk,
    modes_and_links,
    standard_output_by_name,
    interrupted_measurements_are_marked,
    interrupted_before_a_result,
    interrupted_sweeps_are_partial,
    ignored_hangup_stays_ignored,
    killed_runs_are_cleaned_up,
]
