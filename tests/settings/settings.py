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


def taken(report):
    """The settings of a report that are not defaults."""
    return [one for one in report["produced_by"]["settings"] if one["source"] != "default"]


def defaults(report):
    """The options at their defaults, with their values."""
    return {one["name"]: one["value"] for one in report["produced_by"]["settings"] if one["source"] == "default"}


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
        return report["machine"]["name"], taken(report)

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
        self.assertEqual(self.machine("--machine", "a30", HEADROOM_MACHINE="a10"), ("a30", []))

    def test_empty_variable_unsets_the_value_of_the_file(self):
        self.write('machine = "l40s"\n')
        for variable in "HEADROOM_MACHINE", "HEADROOM_CONFIG":
            report = json.loads(self.output(*FIT, "--json", **{variable: ""}))
            self.assertEqual(taken(report), [])
            self.assertIsNone(report["machine"])  # all machines are compared

    def test_options_that_compare_machines_are_not_taken_for_one_machine(self):
        self.write('machine = "l40s"\n')
        report = json.loads(self.output(*FIT, "--machines", "a10,a30", "--json"))
        self.assertEqual(taken(report), [])

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
                            ("threads = 5000", "threads must be from 1 to 4096, not 5000"),
                            ('format = "jsn"', "did you mean json"),
                            ('format = "pdf"', "the values are table, json, csv, markdown, html"),
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
        for text in "table", "markdown":
            rows = self.output("sweep", "bert-tiny", "--batch", "1,2", HEADROOM_FORMAT=text).splitlines()
            self.assertEqual([len(rows), rows[0].partition(",")[0]], [3, "phase"])
        self.assertIn("<html", self.output("sweep", "bert-tiny", "--batch", "1,2", HEADROOM_FORMAT="html"))

    def test_notes_of_a_sweep_name_its_settings(self):
        done = self.run_headroom("sweep", "bert-tiny", "--batch", "1", HEADROOM_MACHINE="l40s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("note: machine l40s is that of HEADROOM_MACHINE", done.stderr)

    def test_this_machine_may_be_the_setting(self):
        self.assertEqual(self.machine(HEADROOM_MACHINE="here"),
                         ("here", [{"name": "machine", "value": "here", "source": "HEADROOM_MACHINE"}]))

    def test_threads_are_those_of_a_run(self):
        self.write("threads = 1\n")
        run = ["measure", "bert-tiny", "--runs", "1", "--warmup", "0", "--json"]
        report = json.loads(self.output(*run))
        self.assertEqual(taken(report), [{"name": "threads", "value": "1", "source": "~/.config/headroom.toml"}])
        self.assertNotIn("threads", defaults(report))
        self.assertNotIn("--threads", self.output(*run[:-1]).partition("\n\n")[0])
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
        machines = self.output("machines", HEADROOM_MACHINES=":~/machines::")
        self.assertIn("my-card", machines)
        (self.folder / "home-card.json").write_text(machine, encoding="utf-8")
        self.assertIn("home-card", self.output("machines", HEADROOM_MACHINES="~"))
        self.assertIn("did you mean my-card", self.refusal(*FIT, "--machine", "my-car"))

    def test_absent_folder_is_refused(self):
        done = self.run_headroom("presets", HEADROOM_PRESETS="absent")
        self.assertEqual(done.returncode, 3)
        self.assertIn("absent", done.stderr)

    def header(self, *arguments):
        """The options that the header of a text says are defaults."""
        lines = [line for line in self.output(*arguments).splitlines() if line.startswith("defaults ")]
        return lines[0].split()[1::2] if lines else []

    def test_header_names_the_defaults_and_json_has_their_values(self):
        self.assertEqual(self.header("analyze", "gpt2"), ["--phase", "--batch", "--seq", "--dtype", "--attention"])
        self.assertEqual(self.header("analyze", "gpt2", "--batch", "1", "-s", "128"), ["--phase", "--dtype", "--attention"])
        report = json.loads(self.output("analyze", "gpt2", "--phase", "decode", "--seq", "2", "--json"))
        found = defaults(report)
        self.assertEqual((found["batch"], found["past"], found["dtype"]), ("1", "127", "float32"))
        self.assertNotIn("phase", found)
        self.assertNotIn("seq", found)

    def test_header_of_every_command_names_its_defaults(self):
        on_device = ["--machine", "l4"]
        for command, option in ((["explain", "gpt2"], "--batch"), (["explain", "gpt2", "--steps"], "--seq"),
                                (["diff", "gpt2", "bert-tiny"], "--dtype"), (["fit", "gpt2", *on_device], "--weights"),
                                (["fit", "gpt2", "--machines", "l4"], "--seq"), (["plan", "gpt2", *on_device], "--count"),
                                (["serve", "gpt2", *on_device, "--rate", "1"], "--input-tokens"),
                                (["train-time", "gpt2", *on_device, "--tokens", "1M"], "--attention"),
                                (["complexity", "layer-rnn"], "--seq"),
                                (["measure", "bert-tiny", "--runs", "1"], "--threads"),
                                (["analyze", "gpt2", "--format", "markdown"], "--attention")):
            with self.subTest(command=command):
                self.assertIn(option, self.output(*command).partition("| :-- |")[0])
        self.assertIn("defaults: --phase", self.run_headroom("sweep", "gpt2", "--seq", "8").stderr)

    def test_options_that_others_determine_are_no_defaults(self):
        recipe = defaults(json.loads(self.output("analyze", "gpt2", "--recipe", "w8a8", "--json")))
        self.assertNotIn("weights", recipe)
        self.assertNotIn("arithmetic", recipe)
        ids = ["measure", "gpt2", "--token-ids", "1,2", "--runs", "1", "--warmup", "0", "--json"]
        self.assertNotIn("seq", defaults(json.loads(self.output(*ids))))
        plan = ["plan", "gpt2", "--machine", "l4", "--serve", "--json"]
        self.assertNotIn("phase", defaults(json.loads(self.output(*plan))))
        self.assertNotIn("seq", defaults(json.loads(self.output("analyze", "flux.1-dev", "--json"))))
        (self.folder / "p.json").write_text(
            self.output("analyze", "bert-tiny", "--seq", "9", "--machine", "t4", "--attention", "eager", "--json"))
        (self.folder / "m.json").write_text(self.output("measure", "bert-tiny", "--seq", "9", "--runs", "3", "--json"))
        report = json.loads(self.output("compare", "p.json", "m.json", "--json"))
        self.assertEqual((report["workload"]["seq_len"], report["workload"]["phase"]), (9, "prefill"))
        self.assertIsInstance(report["verdict"]["passed"], bool)
        self.assertEqual(defaults(report), {})

    def test_first_line_of_a_sweep_says_what_made_it_and_is_a_row(self):
        rows = [json.loads(row) for row in self.output("sweep", "gpt2", "--batch", "1,2", "-f", "jsonl").splitlines()]
        self.assertEqual([row["batch_size"] for row in rows], [1, 2])
        self.assertEqual((rows[0]["schema"], rows[0]["produced_by"]["command"]), ("sweep.schema.json", "sweep"))
        self.assertEqual(defaults(rows[0])["seq"], "128")
        self.assertEqual(set(rows[0]) - set(rows[1]), {"schema_version", "schema", "produced_by"})

    def test_machine_file_names_the_command_that_wrote_it(self):
        shown = json.loads(self.output("machines", "show", "l4", "--json"))
        self.assertEqual(shown["produced_by"]["arguments"], ["machines", "show", "l4", "--json"])
        (self.folder / "mine.json").write_text(json.dumps(shown), encoding="utf-8")
        again = json.loads(self.output("machines", "show", "mine.json", "--json"))
        self.assertEqual(again["produced_by"], shown["produced_by"])

    def test_values_may_hold_any_character(self):
        for text, folder in (('"#1 runs"', "#1 runs"), ("'a=b, [c] \\d'", "a=b, [c] \\d"),
                             (r'"tab\\ \"q\""', r'tab\ "q"'), (r'"two\nlines"', "two\nlines"),
                             ("plain # comment", "plain"),
                             ('[ # first\n  "#x", # second\n]', "#x")):
            (self.folder / ".config" / folder).mkdir(exist_ok=True)
            self.write(f"presets = {text} # note\n")
            settings = json.loads(self.output("system", "--json"))["configuration"]["settings"]
            self.assertEqual(settings[0]["value"], folder, text)

    def test_damaged_lines_are_refused_with_their_number(self):
        for line, words in (('machine = "l40s', "line 2: a text has no closing quote"),
                            ('machine = "l4" "l40s"', "line 2: text after the value"),
                            ('presets = ["a" "b"]', 'line 2: a list has no ","'),
                            ('presets = ["a",', 'a list has no "]"'),
                            (r'presets = "C:\temp\dir"', r'the escape "\d" is unknown'),
                            ("[machine", "a section's name has no")):
            self.write("# mine\n" + line + "\n")
            text = self.refusal("presets")
            self.assertIn("~/.config/headroom.toml", text)
            self.assertIn(words, text)

    def test_unknown_variable_gets_a_warning_with_the_nearest(self):
        done = self.run_headroom("presets", HEADROOM_MACHIN="l4")
        self.assertEqual(done.returncode, 0)
        self.assertIn("headroom: warning: the variable HEADROOM_MACHIN is not read: did you mean HEADROOM_MACHINE",
                      done.stderr)
        done = self.run_headroom("presets", HEADROOM_BATCH_OF_SOMEONE="4")
        self.assertIn("headroom reads HEADROOM_CONFIG, HEADROOM_MACHINE", done.stderr)
        quiet = self.run_headroom("presets", HEADROOM_CMAKE_ARGS="-DX=1", HEADROOM_THREADS="1")
        self.assertNotIn("warning", quiet.stderr)

    def test_phases_of_other_commands_are_named(self):
        self.assertIn("analyze, fit and plan count training", self.refusal("measure", "gpt2", "--phase", "train"))
        self.assertIn("--phase serve", self.refusal("fit", "gpt2", "--phase", "decode"))
        self.assertIn("--new-tokens", self.refusal("analyze", "gpt2", "--phase", "generate"))

    def test_context_ends_at_learned_positions(self):
        # n_positions of https://huggingface.co/openai-community/gpt2/blob/main/config.json
        report = json.loads(self.output("fit", "gpt2", "--machine", "h100-80gb", "--json"))
        self.assertEqual(report["largest_context"], 1024)
        self.assertRegex(self.output("fit", "gpt2", "--machine", "h100-80gb"),
                         "largest context +1,024 at a batch of 1, the positions")

    def test_refusals_of_huge_runs_use_units_that_fit(self):
        done = self.run_headroom("measure", "llama-3.1-405b", "--batch", "100000", "--seq", "100000")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"a run needs at least \d{1,4}\.\d\d [PE]iB, but \d{1,4}\.\d\d [GT]iB are available")

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
