"""models_fit.py HEADROOM: `models --fit` agrees with `fit` on every model of a store."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = Path(__file__).parent / "data" / "golden" / "models"
failures = 0


def check(holds, message):
    global failures
    if not holds:
        failures += 1
        print(f"FAILED  {message}")


class Home:
    """A home whose Hugging Face cache has three models, and a machine with little memory."""

    def __init__(self, headroom, folder):
        self.headroom, self.folder = headroom, folder
        self.environment = {**os.environ, "HOME": folder, "HF_HUB_CACHE": f"{folder}/hub"}
        self.environment.pop("XDG_DATA_HOME", None)
        for name in ("gpt2", "olmo3", "t5"):
            shutil.copytree(MODELS / name, Path(folder, "hub", f"models--acme--{name}", "snapshots", "0123"))

    def run(self, *arguments):
        done = subprocess.run([self.headroom, *arguments], cwd=self.folder, env=self.environment,
                              capture_output=True, check=False, text=True)
        return done

    def report(self, *arguments):
        done = self.run(*arguments, "--format", "json")
        check(done.returncode in (0, 1), f"{arguments}: {done.stderr}")
        return json.loads(done.stdout)

    def small_machine(self):
        """A file of an RTX 4090 that lacks one byte for acme/gpt2."""
        machine = self.report("machines", "show", "rtx-4090")
        machine["name"] = "small"
        memory = machine["memory"]
        driver = memory["total"]["bytes"] - memory["usable"]["bytes"]
        needed = self.report("fit", "acme/gpt2", "--machine", "rtx-4090")["memory"]["total_bytes"]
        for key in ("total", "usable"):
            memory[key]["bytes"] = needed - driver - 1
        machine["memory_bytes"] = needed - driver - 1
        Path(self.folder, "small.json").write_text(json.dumps(machine))
        return "small.json"


def compare(home, *options):
    listed = home.report("models", "--fit", *options)["models"]
    check([one["name"] for one in listed] == ["acme/gpt2", "acme/olmo3", "acme/t5"], f"lists {listed}")
    for one in listed:
        fit = home.report("fit", one["path"], *options)
        check(one["fit"]["total_bytes"] == fit["memory"]["total_bytes"], f"{one}: another total than {fit['memory']}")
        check(one["fit"]["fits"] == fit["fits"], f"{one}: another verdict")
        check(one["fit"]["largest_context"] == fit["largest_context"], f"{one}: another context")
    return listed


def main():
    with tempfile.TemporaryDirectory() as folder:
        home = Home(os.path.abspath(sys.argv[1]), folder)
        check(all(one["fit"]["fits"] for one in compare(home, "--machine", "rtx-4090")), "an RTX 4090 is too small")
        compare(home, "--machine", "rtx-4090", "--seq", "16")
        beyond = home.report("models", "--fit", "--machine", "rtx-4090", "--seq", "100000")["notes"]
        check(any("acme/olmo3: 100000 tokens exceed" in note for note in beyond), f"no note on positions: {beyond}")
        small = compare(home, "--machine", home.small_machine())
        check(not small[0]["fit"]["fits"], "gpt2 fits a machine that lacks a byte")
        refused = home.run("models", "--seq", "16")
        check(refused.returncode == 2 and "--seq is about what fits" in refused.stderr, refused.stderr)
        check("fit" not in home.report("models")["models"][0], "a list without --fit has fits")
    print("all models agree" if failures == 0 else f"{failures} failed")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
