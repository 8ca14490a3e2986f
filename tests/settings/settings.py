#!/usr/bin/env python3
"""Tests of the configuration file and of the variables HEADROOM_*.

usage: settings.py HEADROOM [UNITTEST ARGUMENTS...]
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADROOM = Path(sys.argv.pop(1)).resolve()
FIT = ["fit", "bert-tiny"]


class Settings(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / ".config").mkdir()
        self.variables = {name: value for name, value in os.environ.items()
                          if not name.startswith(("HEADROOM_", "XDG_"))}
        self.variables |= {"HOME": str(self.folder), "NO_COLOR": "1"}

    def write(self, text, file=".config/headroom.toml"):
        (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / file).write_text(text, encoding="utf-8")

    def run_headroom(self, *arguments, **variables):
        return subprocess.run([HEADROOM, *arguments], capture_output=True, text=True, cwd=self.folder,
                              env=self.variables | variables)

    def output(self, *arguments, **variables):
        done = self.run_headroom(*arguments, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refusal(self, *arguments, **variables):
        done = self.run_headroom(*arguments, **variables)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def machine(self, *arguments, **variables):
        """The machine of a fit, and the settings that its report names."""
        report = json.loads(self.output(*FIT, *arguments, "--json", **variables))
        return report["machine"]["name"], report["produced_by"].get("settings")

    def test_file_sets_the_machine_and_the_report_says_so(self):
        self.write('# mine\nmachine = "l40s"\n')
        setting = {"name": "machine", "value": "l40s", "source": "~/.config/headroom.toml"}
        self.assertEqual(self.machine(), ("l40s", [setting]))
        header = self.output(*FIT).partition("\n\n")[0]
        self.assertRegex(header, r"settings +machine l40s \(~/.config/headroom.toml\)")
        self.assertIn("settings", self.output(*FIT, "--format", "markdown"))

    def test_option_precedes_environment_precedes_file(self):
        self.write('machine = "l40s"\n')
        self.assertEqual(self.machine(HEADROOM_MACHINE="a10")[0], "a10")
        self.assertEqual(self.machine(HEADROOM_MACHINE="a10")[1][0]["source"], "HEADROOM_MACHINE")
        self.assertEqual(self.machine("--machine", "a30", HEADROOM_MACHINE="a10"), ("a30", None))

    def test_empty_variable_unsets_the_value_of_the_file(self):
        self.write('machine = "l40s"\n')
        for variable in "HEADROOM_MACHINE", "HEADROOM_CONFIG":
            report = json.loads(self.output(*FIT, "--json", **{variable: ""}))
            self.assertNotIn("settings", report["produced_by"])
            self.assertIsNone(report["machine"])  # all machines are compared

    def test_options_that_compare_machines_are_not_taken_for_one_machine(self):
        self.write('machine = "l40s"\n')
        report = json.loads(self.output(*FIT, "--machines", "a10,a30", "--json"))
        self.assertNotIn("settings", report["produced_by"])

    def test_required_machine_may_come_from_the_settings(self):
        plan = ["plan", "bert-tiny", "--json"]
        self.assertIn("--machine", self.refusal(*plan))
        report = json.loads(self.output(*plan, HEADROOM_MACHINE="a10"))
        self.assertEqual(report["machine"]["name"], "a10")

    def test_files_are_found_by_xdg_and_by_headroom_config(self):
        self.write('machine = "a10"\n', "elsewhere/headroom.toml")
        self.write('machine = "a30"\n', "mine.toml")
        elsewhere = str(self.folder / "elsewhere")
        self.assertEqual(self.machine(XDG_CONFIG_HOME=elsewhere)[0], "a10")
        self.assertEqual(self.machine(XDG_CONFIG_HOME=elsewhere, HEADROOM_CONFIG="mine.toml")[0], "a30")

    def test_named_file_must_exist(self):
        done = self.run_headroom("presets", HEADROOM_CONFIG="absent.toml")
        self.assertEqual(done.returncode, 3)
        self.assertIn("absent.toml", done.stderr)

    def test_unknown_key_is_refused_with_the_nearest(self):
        self.write('machin = "l40s"\n')
        text = self.refusal("presets")
        self.assertIn('~/.config/headroom.toml: unknown key "machin"', text)
        self.assertIn("did you mean machine", text)
        self.write('[defaults]\nmachine = "l40s"\n')
        self.assertIn('unknown key "defaults.machine"', self.refusal("presets"))
        self.write("no assignment\n")
        self.assertIn('unknown key "no assignment"', self.refusal("presets"))

    def test_bad_values_are_refused_with_their_place(self):
        for line, words in (("threads = 0", "threads must be from 1 to 4096, not 0"),
                            ("threads = two", "threads must be from 1"),
                            ('format = "jsn"', "did you mean json"),
                            ('machine = ["a10", "a30"]', "machine takes one value"),
                            ('machine = "a10"\nformat = "csv"\nmachine = "a30"', "machine is repeated")):
            self.write(line + "\n")
            text = self.refusal("presets")
            self.assertIn("~/.config/headroom.toml", text)
            self.assertIn(words, text)
        self.assertIn("HEADROOM_THREADS", self.refusal("presets", HEADROOM_CONFIG="", HEADROOM_THREADS="x"))

    def test_unknown_machine_is_refused_with_its_source_and_the_nearest(self):
        text = self.refusal(*FIT, HEADROOM_MACHINE="h100-80")
        self.assertIn('HEADROOM_MACHINE: there is no machine "h100-80"', text)
        self.assertIn("did you mean h100-80gb", text)

    def test_format_is_that_of_reports_and_lines_of_json_in_a_sweep(self):
        self.write("format = json\n")
        self.assertIn("schema_version", json.loads(self.output("analyze", "bert-tiny")))
        self.assertTrue(self.output("analyze", "bert-tiny", "-f", "csv").startswith("component,"))
        rows = self.output("sweep", "bert-tiny", "--batch", "1,2").splitlines()
        self.assertEqual([json.loads(row)["batch_size"] for row in rows], [1, 2])

    def test_threads_are_those_of_a_run(self):
        self.write("threads = 1\n")
        run = ["measure", "bert-tiny", "--runs", "1", "--warmup", "0", "--json"]
        report = json.loads(self.output(*run))
        self.assertEqual(report["produced_by"]["settings"][0]["value"], "1")
        self.assertEqual(report["context"]["threads"], 1)

    def test_own_folders_hold_presets_and_machines(self):
        preset = (ROOT / "presets/models/bert-tiny.json").read_text(encoding="utf-8")
        self.write(preset.replace('"bert-tiny"', '"my-bert"', 1), ".config/presets/my-bert.json")
        machine = (ROOT / "presets/machines/a10.json").read_text(encoding="utf-8")
        self.write(machine, "machines/my-card.json")
        self.write('presets = ["presets", "~/absent-is-refused/.."]\nmachines = "~/machines"\n')
        (self.folder / "absent-is-refused").mkdir()
        self.assertIn("my-bert", self.output("presets"))
        self.assertIn("4,385,920", self.output("analyze", "my-bert"))
        self.assertIn("my-card", self.output("machines"))
        self.assertEqual(self.machine("--machine", "my-card")[0], "my-card")
        self.assertIn("did you mean my-card", self.refusal(*FIT, "--machine", "my-car"))

    def test_absent_folder_is_refused(self):
        done = self.run_headroom("presets", HEADROOM_PRESETS="absent")
        self.assertEqual(done.returncode, 3)
        self.assertIn("absent", done.stderr)

    def test_system_shows_the_file_and_the_values(self):
        report = json.loads(self.output("system", "--json"))["configuration"]
        self.assertEqual(report, {"file": "~/.config/headroom.toml", "exists": False, "settings": []})
        self.write('machine = "l40s"\n')
        report = json.loads(self.output("system", "--json", HEADROOM_THREADS="2"))["configuration"]
        self.assertTrue(report["exists"])
        self.assertEqual([(one["name"], one["value"], one["source"]) for one in report["settings"]],
                         [("machine", "l40s", "~/.config/headroom.toml"), ("threads", "2", "HEADROOM_THREADS")])
        self.assertIn("threads = 2 (HEADROOM_THREADS)", self.output("system", HEADROOM_THREADS="2"))


if __name__ == "__main__":
    unittest.main()
