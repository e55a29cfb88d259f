#!/usr/bin/env python3
"""Plans in files: `tessera compile -o` in one process, `tessera run` in another."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TESSERA, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
# Sizes of two symbols, a kernel, a library call, a parameter, a loop, a constant.
PROGRAM = """func f[N, M](x: f32[N, M], w: f32[M, 4]) {
  scaled: f32[N, M] = mul(x, $0:f32)
  soft: f32[N, M] = softmax(scaled) {axis = -1}
  product: f32[N, 4] = matmul(soft, w)
  looped: f32[N, 4] = for 3 (product) with [N, M]() [N, M](i: i64[], c: f32[N, 4]) {
    next: f32[N, 4] = mul(c, 0.5)
    return next
  }
  shifted: f32[N, 4] = add(looped, 0.25)
  return shifted, soft
}
"""


def tessera(*arguments, stdin=""):
    return subprocess.run([TESSERA, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=120)


class Plans(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "f.tsr"
        self.program.write_text(PROGRAM)
        self.plan = self.folder / "f.plan"

    def compile(self, *options):
        result = tessera("compile", self.program, "-o", self.plan, *options)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def run_json(self, file, *options):
        result = tessera("run", file, "--json", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [(output["name"], output["tensors"]) for output in json.loads(result.stdout)["outputs"]]

    def refused(self, expected, *arguments):
        result = tessera(*arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertIn(expected, result.stderr)

    def test_a_loaded_plan_gives_what_the_program_gives(self):
        for made_for in ("cpu", "reference"):
            self.compile("--device", made_for)
            for sizes in ((1, 1), (2, 3), (5, 17), (0, 3), (64, 8)):
                chosen = ["--random", 7, "--dim", f"N={sizes[0]}", "--dim", f"M={sizes[1]}", "--parameter", "0=1.5"]
                for device in ("cpu", "reference"):
                    fresh = self.run_json(self.program, *chosen, "--device", made_for)
                    again = self.run_json(self.plan, *chosen, "--device", device)
                    self.assertEqual([name for name, _ in again], ["shifted", "soft"])
                    for (_, a), (_, b) in zip(fresh, again):
                        self.assertEqual(a[0]["shape"], b[0]["shape"])
                        if device == made_for:
                            self.assertEqual(a, b)
                        for x, y in zip(a[0]["elements"], b[0]["elements"]):
                            self.assertAlmostEqual(x, y, places=5)

    def test_parameters_are_given_at_each_run(self):
        self.compile()
        chosen = ["--random", 7, "--dim", "N=2", "--dim", "M=3"]
        low = self.run_json(self.plan, *chosen, "--parameter", "0=0.5")
        high = self.run_json(self.plan, *chosen, "--parameter", "0=5")
        self.assertNotEqual(low, high)

    def test_what_does_not_fit_is_refused(self):
        self.compile()
        self.refused("no --input for 'x'", "run", self.plan)
        self.refused("give --dim N=SIZE", "run", self.plan, "--random", 1)
        self.refused("no input has an open size 'K'", "run", self.plan, "--random", 1, "--dim", "K=1")
        self.refused("has no input 'z'", "run", self.plan, "--input", "z=z.npy")
        self.refused("there is no slot 1", "run", self.plan, "--random", 1, "--parameter", "1=2")
        self.refused("SLOT=VALUE", "run", self.plan, "--random", 1, "--parameter", "zero")
        raw = self.folder / "x.bin"
        raw.write_bytes(bytes(4 * 6))
        self.refused("expected f32[N, M]", "run", self.plan, "--input", f"x=raw:f32:6:{raw}", "--random", 1, "--dim", "N=1", "--dim", "M=1")
        self.refused("expected f32[M, 4]", "run", self.plan, "--input", f"x=raw:f32:2x3:{raw}", "--input", f"w=raw:f32:2x3:{raw}")

    def test_files_that_are_no_plans_are_refused(self):
        self.compile()
        content = self.plan.read_bytes()
        damaged = self.folder / "damaged.plan"
        for changed, expected in ((content[:-1], "cut off"), (content[:40], "cut off"), (content + b"x", "bytes"),
                                  (content[:200] + b"!" + content[201:], "checksum"),
                                  (content[:16] + b"7.7.7\0\0\0" + content[24:], "made by version '7.7.7")):
            damaged.write_bytes(changed)
            self.refused(expected, "run", damaged, "--random", 1, "--dim", "N=1", "--dim", "M=1")
            self.refused(str(damaged), "run", damaged, "--random", 1, "--dim", "N=1", "--dim", "M=1")
        self.refused("nowhere", "run", self.folder / "nowhere.plan")
        self.refused("nowhere", "compile", self.program, "-o", self.folder / "nowhere" / "f.plan")

    def test_explain_says_what_the_plan_is(self):
        result = tessera("explain", self.program, "--json", "--dim", "N=32", "--dim", "M=16")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        memory = report["memory"]
        self.assertEqual(memory["sizes"], {"N": 32, "M": 16})
        self.assertLessEqual(memory["bound"], memory["peak"])
        self.assertLessEqual(memory["peak"], memory["without_reuse"])
        self.assertEqual(max(b["offset"] + (b["bytes"] + 63) // 64 * 64 for b in memory["buffers"]), memory["peak"])
        for buffer in memory["buffers"]:
            self.assertLessEqual(buffer["first_step"], buffer["last_step"])
            self.assertLess(buffer["last_step"], len(report["steps"]))
        certificate = report["certificate"]
        self.assertEqual(certificate["optimal"], certificate["cost_ns"] == certificate["bound_ns"])
        for tile in report["tiles"]:
            self.assertLessEqual(len(tile["lost"]), 3)
            self.assertGreater(tile["cost_ns"], 0)
        self.assertIn({"change": "a scalar parameter", "tier": "hot", "why": "1 slots are given with each launch"},
                      report["tiers"])
        text = tessera("explain", self.program).stdout
        for expected in ("tiling: ", "plan: ", "memory for N = 64, M = 64: peak ", "tiers: "):
            self.assertIn(expected, text)
        self.refused("the program has no size 'K'", "explain", self.program, "--dim", "K=3")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
