#!/usr/bin/env python3
"""Measures this processor with torch_calibrate.py and predicts from the file.

usage: test_torch_calibrate.py HEADROOM

Exit status: 77 skipped because PyTorch is missing.
"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADROOM = Path(sys.argv.pop(1)).resolve()

try:
    import torch  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


class TorchCalibrate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = Path(cls.folder.name) / "machine.json"
        done = run(sys.executable, ROOT / "tests" / "bench" / "torch_calibrate.py", "--device", "cpu", "--dtypes",
                   "float32", "--threads", 1, "--effort", "check", "-o", cls.file)
        assert done.returncode == 0, done.stderr
        cls.machine = json.loads(cls.file.read_text(encoding="utf-8"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def seconds(self, *words):
        done = run(HEADROOM, "analyze", *words, "--machine", self.file, "--attention", "eager", "--format", "json",
                   "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["time"]["total_s"]

    def test_file_matches_the_schema(self):
        try:
            from jsonschema import Draft202012Validator
        except ImportError:
            self.skipTest("python3-jsonschema is missing")
        schema = json.loads((ROOT / "reports" / "machines.schema.json").read_text(encoding="utf-8"))
        self.assertEqual([error.message for error in Draft202012Validator(schema).iter_errors(self.machine)], [])

    def test_larger_runs_take_longer(self):
        self.assertLess(self.seconds("bert-tiny", "--seq", "16"), self.seconds("bert-base", "--seq", "128"))
        self.assertLess(self.seconds("gpt2", "--phase", "decode"), self.seconds("gpt2", "--seq", "512"))

    def test_other_types_are_refused(self):
        done = run(HEADROOM, "analyze", "gpt2", "--dtype", "fp16", "--machine", self.file)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("was not measured in float16", done.stderr)

    def test_plans_read_the_file(self):
        done = run(HEADROOM, "fit", "gpt2", "--dtype", "fp32", "--machine", self.file, "--format", "json", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
