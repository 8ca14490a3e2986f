"""The Python package: figures, errors, displays. Needs no other package."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from html.parser import HTMLParser
from pathlib import Path

import headroom
from documentation import run_example

GPT2 = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 12,
        "n_head": 12, "n_positions": 1024, "n_ctx": 1024, "vocab_size": 50257}
GPT2_PARAMETERS = 124_439_808  # Hugging Face, openai-community/gpt2: safetensors' own count


class Cells(HTMLParser):
    """The cells of a table, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


class Figures(unittest.TestCase):
    def test_a_preset_has_its_published_figures(self):
        analysis = headroom.analyze("bert-base", seq=128)
        self.assertEqual(analysis.parameters, 109_482_240)  # reference count of the preset
        self.assertEqual(analysis.weight_bytes, 4 * 109_482_240)
        # 12·(24·s·d² + 4·s²·d) + 2·d², the pooler last
        s, d = 128, 768
        self.assertEqual(analysis.matrix_flops, 12 * (24 * s * d**2 + 4 * s**2 * d) + 2 * d**2)
        self.assertEqual(sum(c.parameters for c in analysis.components), analysis.parameters)
        self.assertIsNone(analysis.kv_cache_bytes)
        self.assertIsNone(analysis.time_s)

    def test_options_are_keywords(self):
        analysis = headroom.analyze("llama-3-8b", phase="decode", past=8191, batch=2,
                                    dtype="bfloat16", kv_dtype="float16")
        # K and V of 32 layers, 8 heads of 128 values in 2 bytes, for 2 · 8192 tokens
        self.assertEqual(analysis.kv_cache_bytes, 2 * 32 * 8 * 128 * 2 * 2 * 8192)
        self.assertEqual(analysis.workload["past_len"], 8191)

    def test_a_config_is_a_model(self):
        for model in (GPT2, headroom.Model(GPT2, "gpt2")):
            self.assertEqual(headroom.analyze(model).parameters, GPT2_PARAMETERS)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "config.json"
            file.write_text(json.dumps(GPT2))
            self.assertEqual(headroom.analyze(file).parameters, GPT2_PARAMETERS)

    def test_a_machine_predicts_a_time(self):
        analysis = headroom.analyze("gpt2", machine="a100-80gb")
        self.assertGreater(analysis.time_s, analysis.matrix_flops / 312e12)  # its peak in 16 bits

    def test_a_verdict_is_no_error(self):
        self.assertTrue(headroom.fit("llama-3-8b", machine="h100-80gb").ok)
        self.assertFalse(headroom.fit("llama-3-70b", machine="rtx-4090").ok)

    def test_other_commands_run_by_name(self):
        self.assertIn("l·(24·b·s·d² + 4·b·s²·d)", str(headroom.explain("gpt2").data))
        self.assertTrue(headroom.plan("gpt2", machine="a100-80gb", count=2).ok)
        self.assertTrue(headroom.presets("bert-base").data)
        self.assertTrue(headroom.machines().data)
        self.assertTrue(headroom.run("completion", shell="bash").data.startswith("# bash"))


class Documentation(unittest.TestCase):
    def test_the_examples_of_the_page_run(self):
        run_example(0, {"print": lambda *_: None})


class Errors(unittest.TestCase):
    def test_an_error_has_cause_and_remedy(self):
        with self.assertRaises(headroom.HeadroomError) as raised:
            headroom.analyze("bert-bsae")
        self.assertEqual(raised.exception.code, "invalid_input")
        self.assertIn("bert-base", raised.exception.hint)
        self.assertIn("bert-bsae", str(raised.exception))

    def test_an_unknown_keyword_is_refused(self):
        with self.assertRaisesRegex(headroom.HeadroomError, "did you mean batch"):
            headroom.analyze("gpt2", bacth=2)

    def test_what_is_no_model_is_refused(self):
        with self.assertRaises(TypeError):
            headroom.from_hf("gpt2")
        with self.assertRaises(TypeError):
            headroom.analyze(42)


class Displays(unittest.TestCase):
    def test_a_notebook_shows_the_table(self):
        analysis = headroom.analyze("bert-base")
        cells = Cells(analysis._repr_html_()).cells
        self.assertEqual(len(cells), 4 * (len(analysis.components) + 1))
        self.assertEqual(cells[-4:-2], ["total", "109,482,240"])

    def test_other_reports_show_their_text(self):
        report = headroom.fit("llama-3-8b", machine="h100-80gb")
        self.assertEqual(str(report), report.text())
        self.assertTrue(report._repr_html_().startswith("<pre>"))

    def test_text_is_that_of_the_program(self):
        program = os.environ.get("HEADROOM_PROGRAM")
        if not program:
            self.skipTest("HEADROOM_PROGRAM is not set")
        printed = subprocess.run([program, "analyze", "bert-base", "--format", "csv"],
                                 check=True, capture_output=True, text=True).stdout
        self.assertEqual(headroom.analyze("bert-base").text("csv"), printed)


class Threads(unittest.TestCase):
    def test_threads_get_their_own_answers(self):
        lengths = [64, 128, 256, 512]
        alone = [headroom.analyze("gpt2", seq=n).matrix_flops for n in lengths]
        together = [None] * len(lengths)

        def analyze(index):
            for _ in range(5):
                together[index] = headroom.analyze("gpt2", seq=lengths[index]).matrix_flops

        threads = [threading.Thread(target=analyze, args=(i,)) for i in range(len(lengths))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)


if __name__ == "__main__":
    unittest.main()
