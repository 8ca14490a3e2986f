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


ROWS = [sizes_never_wrap, limits_are_seen, saved_outputs_are_counted]
