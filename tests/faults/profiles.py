"""Profiles of this machine: kept, named when damaged, and never in the way."""

import json
import os
import signal


def folder(faults):
    return faults.folder / "home" / ".local" / "share" / "headroom" / "machines"


def calibrate(faults, *more):
    return faults.run("calibrate", "--quick", "--threads", "1", *more, timeout=300)


def stored(faults):
    return sorted(folder(faults).glob("here-*.json"))


def quick_never_replaces_full(faults):
    done = calibrate(faults)
    files = stored(faults)
    faults.check(len(files) == 1, f"stores {files}: {done.status} {done.err}")
    if not files:
        return
    profile = json.loads(files[0].read_text())
    faults.check(profile["effort"] == "quick", "the effort is not stored")
    full = json.dumps({**profile, "effort": "full", "date": "2020-01-01T00:00:00Z"})
    files[0].write_text(full)
    done = calibrate(faults)
    faults.check(done.status == 1 and "not stored" in done.err, f"exits with {done.status}: {done.err}")
    faults.check(files[0].read_text() == full, "the full profile is gone")
    damaged_profiles(faults, files[0], profile)


def damaged_profiles(faults, file, profile):
    """Each damage is refused with its place; `machines` still lists the catalogue."""
    threads = profile["by_threads"][0]
    damages = {
        "step_overhead_s": {**threads, "step_overhead_s": -1},
        "cold_step_overhead_s": {**threads, "cold_step_overhead_s": 1e308},
        "bytes_per_s": {**threads, "read": [{**threads["read"][0], "bytes_per_s": 1e-300}]},
    }
    texts = {key: json.dumps({**profile, "by_threads": [damage]}) for key, damage in damages.items()}
    texts["not valid JSON"] = "{"
    texts["read: Is a directory"] = None
    for word, text in texts.items():
        if text is None:
            file.unlink()
            file.mkdir()
        else:
            file.write_text(text)
        done = faults.run("analyze", "gpt2", "--machine", "here")
        faults.check(done.status in (2, 3) and word in done.err and file.name in done.err, f"{word}: {done.err}")
        done = faults.run("machines")
        faults.check(done.status == 0 and "h100-80gb" in done.out, f"{word}: machines exits with {done.status}")
        faults.check("headroom calibrate" in done.err and file.name in done.err, f"{word}: {done.err}")
    file.rmdir()


def interrupted_calibration_stores_nothing(faults):
    for number in (signal.SIGINT, signal.SIGTERM):
        done = faults.interrupt(faults.start("calibrate", "--threads", "1"), number, after=3)
        faults.check(done.status == 128 + number, f"exits with {done.status}: {done.err}")
        faults.check(list(folder(faults).iterdir()) == [], "something is stored")


def without_a_home(faults):
    faults.environment.pop("HOME")
    try:
        done = faults.run("machines")
        faults.check(done.status == 0, f"machines exits with {done.status}: {done.err}")
        faults.refused(["calibrate", "--quick"], 3, "HOME", timeout=20)
        done = faults.run("analyze", "gpt2")
        faults.check(done.status == 0, f"analyze exits with {done.status}: {done.err}")
    finally:
        faults.environment["HOME"] = str(faults.folder / "home")


def unreadable_folder(faults):
    folder(faults).parent.mkdir(parents=True)
    folder(faults).write_text("a file in place of the folder")
    done = faults.run("machines")
    faults.check(done.status == 0 and "h100-80gb" in done.out, f"machines exits with {done.status}: {done.err}")
    faults.refused(["calibrate", "--quick"], 3, "machines", timeout=20)
    if os.geteuid() != 0:
        folder(faults).unlink()
        folder(faults).mkdir(mode=0)
        done = faults.run("machines")
        faults.check(done.status == 0, f"machines exits with {done.status}: {done.err}")
        folder(faults).chmod(0o700)


def without_a_calibration(faults):
    """Memory needs no calibration of this machine; time does."""
    done = faults.run("fit", "gpt2", "--machine", "here", "--format", "json")
    report = json.loads(done.out)
    faults.check(done.status == 0 and report["fits"], f"gpt2 does not fit: {done.status} {done.err}")
    faults.check(report["time"] is None and report["machine"]["flops_per_s"] is None, "there is a speed")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    faults.check(report["machine"]["memory_bytes"] == memory, f"memory {report['machine']['memory_bytes']}")
    faults.check("headroom calibrate" in done.err, f"no way to a time: {done.err}")
    for form in ("table", "csv", "markdown", "html"):
        done = faults.run("fit", "gpt2", "--machine", "here", "--format", form)
        faults.check("inf" not in done.out.split() and "nan" not in done.out.split(), f"{form}: {done.out}")
    done = faults.run("fit", "llama-3.1-405b", "--machine", "here", "--memory", "64GiB", "--count", "auto")
    faults.check(done.status == 0 and "FITS" in done.out, f"exits with {done.status}: {done.out}{done.err}")
    faults.refused(["plan", "gpt2", "--machine", "here"], 2, "not calibrated", "headroom calibrate")
    faults.refused(["fit", "gpt2", "--machine", "here", "--matrix-efficiency", "0.5"], 2, "not calibrated")


def efficiencies_are_fractions(faults):
    for word in ("nan", "inf", "-1", "0", "2"):
        faults.refused(["plan", "llama-3-8b", "--machine", "h100-80gb", "--network-efficiency", word], 2,
                       "--network-efficiency", timeout=20)


ROWS = [
    quick_never_replaces_full,
    interrupted_calibration_stores_nothing,
    without_a_home,
    unreadable_folder,
    without_a_calibration,
    efficiencies_are_fractions,
]
