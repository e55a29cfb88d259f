#!/usr/bin/env python3
"""`tessera calibrate` and `--autotune`: measure once, keep it in the cache of the user; nobody believes a damaged file."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TESSERA = sys.argv.pop()
FIELDS = ["begin_ns", "element_ns", "product_ns", "reference_ns", "byte_ns", "operation_ns"]


class Calibrate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)

    def tessera(self, *arguments):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache), "TESSERA_THREADS": "1"}
        return subprocess.run([TESSERA, *arguments], capture_output=True, text=True,
                              env=environment)

    def run_program(self):
        program = self.cache / "relu.tsr"
        program.write_text("func f(x: f32[4]) {\n  y: f32[4] = relu(x)\n  return y\n}\n")
        return self.tessera("run", str(program), "--random", "1", "--device", "cpu", "--quiet")

    def test_measures_and_shows_what_was_measured(self):
        before = self.tessera("calibrate", "--show", "--json")
        self.assertEqual(before.returncode, 1, before.stderr)
        self.assertFalse(json.loads(before.stdout)["measured"])
        measured = self.tessera("calibrate", "--json")
        self.assertEqual(measured.returncode, 0, measured.stderr)
        costs = json.loads(measured.stdout)
        for field in FIELDS:
            self.assertGreater(costs[field], 0, field)
            self.assertTrue(math.isfinite(costs[field]), field)
        self.assertEqual(costs["threads"], 1)
        self.assertTrue(pathlib.Path(costs["file"]).is_relative_to(self.cache))
        shown = self.tessera("calibrate", "--show", "--json")
        self.assertEqual((shown.returncode, json.loads(shown.stdout)), (0, costs))
        self.assertIn("kept in", self.tessera("calibrate", "--show").stdout)
        self.assertEqual(self.tessera("calibrate", "--show", "--threads", "3").returncode, 1)
        self.assertEqual(self.run_program().stderr, "")

    def test_a_damaged_file_is_ignored_with_a_line(self):
        measured = json.loads(self.tessera("calibrate", "--json").stdout)
        pathlib.Path(measured["file"]).write_bytes(b"costs")
        shown = self.tessera("calibrate", "--show")
        self.assertEqual(shown.returncode, 2)
        self.assertIn("is damaged", shown.stderr)
        ran = self.run_program()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("usual costs are used", ran.stderr)

    def test_wrong_options_are_errors(self):
        for options in (["--threads", "0"], ["--threads", "999"], ["--bogus"], ["file"]):
            result = self.tessera("calibrate", *options)
            self.assertEqual(result.returncode, 2, options)
            self.assertNotEqual(result.stderr, "")

    def test_a_cache_that_cannot_be_written_is_an_error(self):
        (self.cache / "tessera").write_text("a file")
        result = self.tessera("calibrate")
        self.assertEqual(result.returncode, 2)
        self.assertIn("cannot make the folder", result.stderr)

    def test_autotune_measures_once_and_says_what(self):
        program = self.cache / "net.tsr"
        program.write_text("func f(x: f32[16, 24], w: f32[24, 32], b: f32[32]) {\n  a: f32[16, 32] = matmul(x, w)\n"
                           "  c: f32[16, 32] = add(a, b)\n  d: f32[16, 32] = relu(c)\n  e: f32[16, 32] = mul(d, d)\n"
                           "  g: f32[16, 32] = exp(e)\n  h: f32[16, 32] = sub(g, d)\n  return h\n}\n")
        first = self.tessera("explain", str(program), "--device", "cpu", "--autotune", "--json")
        self.assertEqual(first.returncode, 0, first.stderr)
        tuning = json.loads(first.stdout)["tuning"]
        self.assertFalse(tuning["remembered"])
        self.assertGreater(len(tuning["trials"]), 0)
        for trial in tuning["trials"]:
            self.assertLessEqual(trial["predicted_ns"], 1.2 * tuning["predicted_ns"])
            self.assertGreater(trial["measured_ns"], 0)
        again = json.loads(self.tessera("explain", str(program), "--device", "cpu", "--autotune", "--json").stdout)
        self.assertTrue(again["tuning"]["remembered"])
        self.assertEqual(len(again["tuning"]["trials"]), len(tuning["trials"]))
        text = self.tessera("explain", str(program), "--device", "cpu", "--autotune").stdout
        self.assertIn("tuning, remembered: the best prediction is", text)
        self.assertIn(" ns against ", text)
        plan = self.cache / "net.plan"
        for arguments in (["compile", str(program), "--device", "cpu", "--autotune", "-o", str(plan)],
                          ["run", str(program), "--device", "cpu", "--autotune", "--random", "1", "--quiet"],
                          ["run", str(plan), "--random", "1", "--quiet"]):
            ran = self.tessera(*arguments)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""), arguments)
        refused = self.tessera("run", str(plan), "--random", "1", "--autotune")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("when a plan is made", refused.stderr)


if __name__ == "__main__":
    unittest.main()
