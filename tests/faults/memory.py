"""Runs that do not fit are refused before anything is allocated."""

import resource

MOST = str(2**63 - 1)


def sizes_never_wrap(faults):
    faults.refused(["measure", "gpt2", "--phase", "decode", "--past", MOST], 2, str(2**63), "1024 positions")
    for arguments in (
        ["measure", "layer-self-attention", "--batch", str(2**62), "--seq", "4"],
        ["measure", "vit-base", "--batch", MOST],
        ["measure", "whisper-tiny", "--batch", MOST],
        ["measure", "llama-2-7b", "--phase", "decode", "--past", MOST],
        ["compare", "gpt2", "--batch", str(2**62), "--seq", "4"],
    ):
        faults.refused(arguments, 3, "a run needs at least", "iB are available", timeout=20)


def limits_are_seen(faults):
    def limit_address_space():
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))

    faults.refused(["measure", "bert-base"], 3, "RLIMIT_AS (ulimit -v)", preexec_fn=limit_address_space)


def saved_outputs_are_counted(faults):
    faults.refused(["measure", "llama-2-7b", "--batch", "1000", "--save-output", "x.st"], 3, "a run needs at least",
                   timeout=20)
    faults.check(faults.files() == [], f"leaves {faults.files()}")


def threads_that_do_not_start(faults):
    """Stacks of 1 GiB do not fit the address space, as if `ulimit -u` left no thread."""
    def limit_stacks():
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 30, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))

    for arguments in (["measure", "layer-self-attention", "--runs", "1", "--threads", "4", "-o", "report.txt"],
                      ["complexity", "layer-self-attention", "--measure", "--threads", "4", "-o", "report.txt"],
                      ["calibrate", "--quick", "--threads", "2"]):
        faults.refused(arguments, 3, "starts only 1 of", "fewer threads", timeout=60, preexec_fn=limit_stacks)
    faults.check(faults.files() == [], f"leaves {faults.files()}")
    plan = ["plan", "gpt2", "--machine", "h100-80gb", "--count", "8", "--train", "--search-threads", "4", "-f", "csv"]
    done = faults.run(*plan, preexec_fn=limit_stacks)
    faults.check(done.status == 0 and done.out == faults.run(*plan).out, f"a search alone: {done.status} {done.err}")


ROWS = [sizes_never_wrap, limits_are_seen, saved_outputs_are_counted, threads_that_do_not_start]
