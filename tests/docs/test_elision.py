#!/usr/bin/env python3
"""Tests of elision.py."""

import unittest

from elision import matches, updated

PRINTED = ["model  gpt2", "", "Name   Time", "       [ms]", "-----------", "qkv   1.250", "total  9.50"]


class Matching(unittest.TestCase):
    def test_the_same_lines_match(self):
        self.assertTrue(matches(PRINTED, PRINTED, False))

    def test_a_changed_missing_or_further_line_does_not_match(self):
        for index in range(len(PRINTED)):
            changed = [*PRINTED[:index], "other", *PRINTED[index + 1:]]
            self.assertFalse(matches(changed, PRINTED, False))
            self.assertFalse(matches(PRINTED[:index] + PRINTED[index + 1:], PRINTED, False))
            self.assertFalse(matches([*PRINTED[:index], "more", *PRINTED[index:]], PRINTED, False))

    def test_an_elision_stands_for_one_line_or_more(self):
        self.assertTrue(matches(["…", "total  9.50"], PRINTED, False))
        self.assertTrue(matches(["model  gpt2", "…", "Name   Time", "…"], PRINTED, False))
        self.assertFalse(matches([*PRINTED, "…"], PRINTED, False))
        self.assertFalse(matches(["…", "total  9.51"], PRINTED, False))

    def test_an_elision_within_a_line_stands_for_any_text(self):
        self.assertTrue(matches(["model …", "…", "total …"], PRINTED, False))
        self.assertFalse(matches(["model …", "…", "sum …"], PRINTED, False))

    def test_varying_figures_may_differ_but_words_rows_and_columns_may_not(self):
        other = ["model  gpt2", "", "Name   Time", "       [µs]", "--------------", "qkv   312.5", "total  11.00"]
        self.assertTrue(matches(PRINTED, other, True))
        self.assertFalse(matches(PRINTED, other, False))
        self.assertFalse(matches(PRINTED, other[:-1], True))
        self.assertFalse(matches(PRINTED, [*other[:5], "out   312.5", other[6]], True))
        self.assertFalse(matches(PRINTED, [*other[:5], "qkv   312.5  1", other[6]], True))

    def test_a_verdict_on_a_time_may_differ_with_its_reason(self):
        self.assertTrue(matches(["time [ms]  1.0  +4.5 %  ±15 %  PASS"],
                                ["time [ms]  9.0  -0.5 %      –  SKIP: too noisy to tell"], True))
        self.assertFalse(matches(["time [ms]  1.0  +4.5 %  ±15 %  PASS"],
                                 ["time [ms]  9.0  -0.5 %  exact  PASS"], True))
        passed = "verdict  PASS — 2 passed (1 exact, 1 within tolerance)"
        self.assertTrue(matches([passed], ["verdict  FAIL — time; 1 passed (1 exact, 0 within tolerance)"], True))
        self.assertTrue(matches([passed + ", 1 skipped"], [passed + ", 2 skipped; time not judged"], True))
        self.assertFalse(matches([passed], ["verdict  PASS — 2 held (1 exact, 1 within tolerance)"], True))

    def test_the_name_of_the_machine_may_differ(self):
        self.assertTrue(matches(["machine  A CPU · 1 thread"], ["machine  Another · 16 threads"], True))
        self.assertFalse(matches(["machine  A CPU · 1 thread"], ["machine  A CPU · 1 core"], True))


class Updating(unittest.TestCase):
    def test_a_whole_block_becomes_what_was_printed(self):
        self.assertEqual(updated(["old"], PRINTED, False), PRINTED)
        self.assertEqual(updated([], PRINTED, False), PRINTED)

    def test_left_out_lines_stay_left_out(self):
        block = ["…", "Name   Time", "       [ms]", "-----------", "qkv   7.777", "…"]
        self.assertEqual(updated(block, PRINTED, False),
                         ["…", "Name   Time", "       [ms]", "-----------", "qkv   1.250", "…"])

    def test_an_updated_block_matches(self):
        for block in (["…", "total  1.11"], ["model  bert", "…"], ["model  bert", "…", "total  1.11"],
                      ["…", "qkv   7.777", "…"], ["…"]):
            self.assertTrue(matches(updated(block, PRINTED, False), PRINTED, False))

    def test_text_left_out_of_a_line_stays_left_out_while_it_matches(self):
        self.assertEqual(updated(["model …", "…", "total  1.11"], PRINTED, False),
                         ["model …", "…", "total  9.50"])
        self.assertEqual(updated(["model …", "…"], PRINTED, False, expands=True), ["model  gpt2", "…"])


if __name__ == "__main__":
    unittest.main()
