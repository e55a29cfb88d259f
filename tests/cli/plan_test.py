#!/usr/bin/env python3
"""Plans in files: `tessera compile -o` in one process, `tessera run` in another."""
import json
import pathlib
import struct
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
# No program has an index of two numbers.
STEPS = """{
  "blocks": [{"id": "outer"}, {"id": "inner", "parent": "outer"}],
  "buffers": [{"id": "x", "lifetime": "external", "dtype": "f32", "shape": [4]},
              {"id": "y", "lifetime": "external", "dtype": "f32", "shape": [4]},
              {"id": "total", "lifetime": "graph", "dtype": "f32", "shape": [4]},
              {"id": "i", "lifetime": "external", "dtype": "i64", "shape": [2]}],
  "nodes": [{"id": "double", "block": "outer", "op": "mul",
             "parameters": [{"name": "a", "buffer": "x"}, {"name": "b", "scalar": 2}, {"name": "y", "buffer": "y"}]},
            {"id": "sum", "block": "inner", "region": "loop", "op": "add",
             "parameters": [{"name": "a", "buffer": "total"}, {"name": "b", "buffer": "y"}, {"name": "y", "buffer": "total"}]}],
  "regions": [{"id": "loop", "block": "inner", "kind": "for", "count": 3, "index": "i"}]
}
"""


def tessera(*arguments, stdin=""):
    return subprocess.run([TESSERA, *map(str, arguments)], input=stdin, capture_output=True, text=True)


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

    def test_descriptions_with_regions_and_states_are_one_plan(self):
        example = ROOT / "examples/describe/running_total.json"
        x, n = self.folder / "x.bin", self.folder / "n.bin"
        x.write_bytes(struct.pack("<4f", 1, 2, 3, 4))
        given = ["--input", f"x=raw:f32:4:{x}", "--input", f"n=raw:i32:1:{n}"]
        for device in ("cpu", "reference"):
            result = tessera("compile", example, "-o", self.plan, "--device", device)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
            for count, runs, total in ((3, 1, 3), (3, 4, 12), (0, 2, 0), (-1, 1, 0)):
                n.write_bytes(struct.pack("<i", count))
                for file in (example, self.plan):
                    outputs = dict(self.run_json(file, *given, "--repeat", runs, "--device", device))
                    self.assertEqual(outputs["total"][0]["elements"], [total * v for v in (1, 2, 3, 4)])
                    self.assertEqual(outputs["half"][0]["elements"], [total * v / 2 for v in (1, 2, 3, 4)])
            n.write_bytes(struct.pack("<i", 1001))
            self.refused("running_total.json:9:15: ", "run", self.plan, *given)

    def test_sizes_are_said_once_and_without_contradiction(self):
        self.compile()
        x = self.folder / "x.bin"
        x.write_bytes(struct.pack("<6f", *range(6)))
        for file in (self.program, self.plan):
            self.refused("--dim: 'N' is given twice", "run", file, "--random", 1, "--dim", "N=2", "--dim", "N=2",
                         "--dim", "M=3")
            self.refused("--dim: 'x:0' is 5, but its size 'N' is 2 elsewhere", "run", file, "--random", 1, "--dim",
                         "N=2", "--dim", "x:0=5", "--dim", "M=3")
            self.refused("--dim: the size 'M' is 4, but axis 1 of the input 'x' has 3", "run", file, "--random", 1,
                         "--input", f"x=raw:f32:2x3:{x}", "--dim", "M=4")

    def test_limits_hold_for_programs_and_plans(self):
        self.compile()
        for file in (self.program, self.plan):
            for device in ("cpu", "reference"):
                words = ["run", file, "--random", 1, "--dim", "N=64", "--dim", "M=64", "--device", device]
                self.refused("runs for more than 0.0 seconds", *words, "--seconds", 0)
                self.refused("multiply-adds, at most 1000 are allowed", *words, "--work", 1000)
                self.assertEqual(tessera(*words, "--seconds", 1000, "--work", 1e9).returncode, 0)

    def test_Trap_U14_endless_loops_end_and_are_named(self):
        loops = {
            "while": "while (x) with () limit 1000000000000 (a: f32[4]) {\n    s: f32[] = sum(a) {axes = [0]}\n    more: bool[] = lt(s, 1e30)\n"
                     "    return more\n  } do (a: f32[4]) {\n    b: f32[4] = mul(a, 0.5)\n    return b\n  }",
            "for": "for 1000000000000 (x) with () (i: i64[], a: f32[4]) {\n    b: f32[4] = mul(a, 0.5)\n    return b\n  }",
        }
        for kind, text in loops.items():
            self.program.write_text(f"func f(x: f32[4]) {{\n  y: f32[4] = {text}\n  return y\n}}\n")
            self.compile()
            for file in (self.program, self.plan):
                for device in ("cpu", "reference"):
                    result = tessera("run", file, "--random", 1, "--device", device, "--seconds", 0.3)
                    self.assertEqual(result.returncode, 2)
                    self.assertIn(f"{kind} 'y', iteration ", result.stderr)
                    self.assertIn("runs for more than 0.3 seconds", result.stderr)
        graph = self.folder / "g.json"
        graph.write_text(STEPS.replace('"count": 3', '"count": 1000000000000, "limit": 1000000000000'))
        result = tessera("run", graph, "--random", 1, "--seconds", 0.3)
        self.assertEqual(result.returncode, 2)
        self.assertIn("for region 'loop', iteration ", result.stderr)

    def test_explain_takes_plans(self):
        self.compile()
        text = tessera("explain", self.plan, "--dim", "N=8", "--dim", "M=8")
        self.assertEqual(text.returncode, 0, text.stderr)
        for part in ("a compiled plan for cpu", "steps in", "memory for N = 8, M = 8", "tiers:"):
            self.assertIn(part, text.stdout)
        self.assertEqual(len(json.loads(tessera("explain", self.plan, "--json").stdout)["plans"]), 1)
        self.refused("--dim: the program has no size 'K'", "explain", self.plan, "--dim", "K=8")
        self.refused("--function", "explain", self.plan, "--function", "f")
        graph = ROOT / "examples/describe/running_total.json"
        subprocess.run([TESSERA, "compile", graph, "-o", self.plan], check=True)
        self.assertIn("a compiled plan for ", tessera("explain", self.plan).stdout)

    def test_quiet_shows_the_times_of_repeated_runs(self):
        self.compile()
        words = ["run", self.plan, "--random", 1, "--dim", "N=2", "--dim", "M=2", "--quiet"]
        self.assertEqual(tessera(*words).stdout, "")
        self.assertRegex(tessera(*words, "--repeat", 3).stdout, r"^3 runs: fastest \S+ ms, median \S+ ms\n$")

    def test_an_input_larger_than_the_machine_is_refused(self):
        self.program.write_text("func f[N](x: i8[N]) {\n  y: i8[N] = neg(x)\n  return y\n}\n")
        self.compile()
        for file in (self.program, self.plan):
            self.refused("no memory for a tensor of 10995116277760 bytes", "run", file, "--random", 1, "--dim",
                         f"N={10 << 40}")

    def test_help_says_where_a_plan_runs(self):
        shown = " ".join(tessera("run", "--help").stdout.split())
        self.assertIn("else a plan runs on the one it was made for, all others on what TESSERA_DEVICE says", shown)

    def test_plans_and_descriptions_on_standard_input(self):
        example = ROOT / "examples/describe/running_total.json"
        subprocess.run([TESSERA, "compile", example, "-o", self.plan], check=True)
        for file in (example, self.plan):
            words = [TESSERA, "run", "-", "--random", "1", "--json"]
            result = subprocess.run(words, input=file.read_bytes(), capture_output=True)
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            expected = json.loads(tessera("run", file, "--random", 1, "--json").stdout)["outputs"]
            self.assertEqual(json.loads(result.stdout)["outputs"], expected)
        self.refused("--function: a plan is one function", "run", self.plan, "--function", "f")
        self.refused("this is a compiled plan: 'tessera run' runs it", "compile", self.plan)

    def graph(self, text=STEPS, *options):
        """The plan of a description that is no program."""
        self.description = self.folder / "graph.json"
        self.description.write_text(text)
        result = tessera("compile", self.description, "-o", self.plan, *options)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_graphs_run_in_another_process_as_they_do_from_their_description(self):
        x, i = self.folder / "x.bin", self.folder / "i.bin"
        x.write_bytes(struct.pack("<4f", 1, 2, 3, 4))
        for device in ("cpu", "reference"):
            self.assertEqual(self.graph(STEPS, "--device", device), "")
            given = ["--input", f"x=raw:f32:4:{x}"]
            for runs in (1, 3):
                expected = {"y": [2, 4, 6, 8], "total": [6 * runs * v for v in (1, 2, 3, 4)], "i": [2, 0]}
                for options in ([self.plan], [self.description, "--device", device], [self.plan, "--device", "cpu"]):
                    outputs = self.run_json(*options, *given, "--repeat", runs)
                    self.assertEqual({name: value[0]["elements"] for name, value in outputs}, expected)
            words = [TESSERA, "run", "-", "--json", *given]
            result = subprocess.run(words, input=self.plan.read_bytes(), capture_output=True)
            self.assertEqual((result.returncode, result.stderr), (0, b""))
        report = tessera("run", self.plan, *given, "--quiet", "--repeat", 2, "--profile").stdout
        self.assertRegex(report, r"2 evaluations(.|\n)* 8  outer\n(.|\n)* 6  sum in outer/inner at .*graph.json:9")

    def test_graphs_say_what_is_wrong_with_what_they_are_given(self):
        self.graph()
        x = self.folder / "x.bin"
        x.write_bytes(struct.pack("<2f", 1, 2))
        self.refused("there is no --input for 'x'", "run", self.plan)
        self.refused("'x' is f32[2], expected f32[4]", "run", self.plan, "--input", f"x=raw:f32:2:{x}")
        self.refused("--parameter: this is not for the plan of a graph description", "run", self.plan, "--random", 1,
                     "--parameter", "0=1")
        self.refused("the program runs for more than 0.0 seconds", "run", self.plan, "--random", 1, "--seconds", 0)
        self.refused("--function: a plan is one function", "run", self.plan, "--function", "f")
        self.refused("--autotune: ", "compile", self.description, "-o", self.plan, "--autotune")
        content = bytearray(self.plan.read_bytes())
        content[-1] ^= 1
        self.plan.write_bytes(content)
        self.refused("the file is damaged: its checksum is not that of its content", "run", self.plan, "--random", 1)
        content[16] = ord("9")
        self.plan.write_bytes(content)
        self.refused("the plan was made by version '9.", "run", self.plan, "--random", 1)
        self.plan.write_bytes(content[:300])
        self.refused("f.plan: ", "run", self.plan, "--random", 1)

    def test_host_functions_are_in_a_plan_by_their_names(self):
        example = ROOT / "examples/describe/particles.json"
        written = json.loads(self.graph(example.read_text(), "--json"))
        self.assertEqual((written["kernels"], written["captures"]), (["integrate", "compact", "start"], ["solve"]))
        self.assertEqual([group["nodes"] for group in written["groups"]], [["'squares'", "'total'"]])
        for file in (self.plan, example):
            result = tessera("run", file)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            for block, node, kind in (("move", "integrate", "kernel"), ("move", "compact", "kernel"),
                                      ("relax", "start", "kernel"), ("relax", "solve", "capture")):
                self.assertIn(f"block '{block}', node '{node}': there is no {kind} '{node}'", result.stderr)

    def test_descriptions_with_host_functions_are_explained_by_their_groups(self):
        report = json.loads(tessera("explain", ROOT / "examples/describe/particles.json", "--json").stdout)
        self.assertEqual((report["kernels"], report["captures"]), (["integrate", "compact", "start"], ["solve"]))
        self.assertIn("a host function", report["no_plan"])
        self.assertTrue(report["groups"])
        self.assertTrue(all(group["nodes"] and group["passes"] for group in report["groups"]))

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

    def test_integer_parameters_are_exact(self):
        program = self.folder / "integers.tsr"
        text = "func f(x: DTYPE[1]) {{ y: DTYPE[1] = add(x, $0:DTYPE) {loop} return {out} }}".replace("DTYPE", "{dtype}")
        loop = "z: {dtype}[1] = for 1 (y) with () (i: i64[], c: {dtype}[1]) {{ d: {dtype}[1] = add(c, $0:{dtype}) return d }}"
        for dtype, number in (("i64", 2**53 + 1), ("i64", -(2**63)), ("i64", 2**63 - 1), ("u64", 2**64 - 1), ("u64", 2**63 + 1)):
            raw = self.folder / "zero.bin"
            raw.write_bytes(bytes(8))
            zero = ["--input", f"x=raw:{dtype}:1:{raw}", "--parameter", f"0={number}"]
            width = 2**64
            twice = 2 * number % width
            for body, out, expected in (("", "y", number), (loop.format(dtype=dtype), "z", twice)):
                program.write_text(text.format(dtype=dtype, loop=body, out=out))
                for device in ("cpu", "reference"):
                    tensors = self.run_json(program, *zero, "--device", device)[0][1]
                    self.assertEqual(tensors[0]["elements"][0] % width, expected % width, (dtype, number, out, device))
        program.write_text(text.format(dtype="u8", loop="", out="y"))
        one = ["run", program, "--random", 1, "--parameter"]
        for wrong in ("256", "-1", "0.5", "1e300"):
            self.refused("slot 0 is u8, which does not have", *one, f"0={wrong}")
        self.assertEqual(tessera(*one, "0=2.5e2").returncode, 0)
        self.refused("slot 0 is u8, which does not have", *one, f"0={2**70}")

    def test_a_profile_names_the_kernels_and_a_trace_has_their_times(self):
        self.compile("--device", "cpu")
        trace = self.folder / "trace.json"
        sizes = ["--random", 1, "--dim", "N=8", "--dim", "M=16"]
        result = tessera("run", self.plan, *sizes, "--repeat", 3, "--profile", "--trace", trace)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("3 evaluations", result.stdout)
        self.assertRegex(result.stdout, r" us +[0-9.]+ % +3 +.*matmul")
        events = json.loads(trace.read_text())["traceEvents"]
        products = [event for event in events if "matmul" in event["name"]]
        self.assertEqual(len(products), 3)
        self.assertTrue(all(event["ph"] == "X" and event["dur"] >= 0 for event in products))
        # The results alone are on standard output as JSON.
        result = tessera("run", self.plan, *sizes, "--json", "--profile")
        self.assertEqual([output["name"] for output in json.loads(result.stdout)["outputs"]], ["shifted", "soft"])
        self.assertIn("1 evaluation,", result.stderr)
        self.refused("no/such/folder", "run", self.plan, *sizes, "--quiet", "--trace", "no/such/folder/t.json")

    def test_a_profile_of_a_description_has_its_blocks(self):
        f32 = {"lifetime": "external", "dtype": "f32", "shape": [8, 4]}
        text = json.dumps({
            "blocks": [{"id": "outer"}, {"id": "inner", "parent": "outer"}],
            "buffers": [{"id": "x", **f32}, {"id": "y", **f32}],
            "nodes": [{"id": "s", "block": "inner", "op": "softmax", "parameters": [{"name": "x", "buffer": "x"}]},
                      {"id": "c", "block": "outer", "op": "cumsum", "attributes": {"axis": 0}, "parameters": [{"name": "y", "buffer": "y"}]}],
            "edges": [{"from": ["s", "y"], "to": ["c", "x"]}]}, indent=1)
        file = self.folder / "blocks.json"
        file.write_text(text)
        self.assertEqual(tessera("compile", file, "-o", self.plan).returncode, 0)
        for source in (file, self.plan):
            result = tessera("run", source, "--random", 1, "--device", "reference", "--profile", "--quiet")
            self.assertRegex(result.stdout + result.stderr, r" us +[0-9.]+ % +2  outer\n")
            self.assertRegex(result.stdout + result.stderr, r" us +[0-9.]+ % +\d+  outer/inner\n")
            self.assertNotIn("(none)", result.stdout + result.stderr)

    def test_a_loop_beyond_its_limit_is_named(self):
        file = self.folder / "forever.json"
        file.write_text("""{"buffers": [{"id": "c", "lifetime": "external", "dtype": "i32", "shape": [1]},
  {"id": "x", "lifetime": "graph", "dtype": "f32", "shape": [4]}],
 "regions": [{"id": "for ever", "kind": "while", "condition": "c", "limit": 100}],
 "nodes": [{"id": "n", "op": "add", "region": "for ever", "parameters": [
  {"name": "a", "buffer": "x"}, {"name": "b", "scalar": 1}, {"name": "y", "buffer": "x"}]}]}""")
        one = self.folder / "one.bin"
        one.write_bytes((1).to_bytes(4, "little"))
        self.assertEqual(tessera("compile", file, "-o", self.plan).returncode, 0)
        for source in (file, self.plan):
            self.refused("forever.json:3:14: while 'for ever': goes on after its limit of 100 iterations",
                         "run", source, "--input", f"c=raw:i32:1:{one}")

    def test_what_does_not_fit_is_refused(self):
        self.compile()
        self.refused("no --input for 'x'", "run", self.plan)
        self.refused("give --dim N=SIZE", "run", self.plan, "--random", 1)
        self.refused("no input has an open size 'K'", "run", self.plan, "--random", 1, "--dim", "K=1")
        self.refused("has no input 'z'", "run", self.plan, "--input", "z=z.npy")
        self.refused("there is no slot 1", "run", self.plan, "--random", 1, "--parameter", "1=2")
        self.refused("SLOT=VALUE", "run", self.plan, "--random", 1, "--parameter", "zero")
        shorter = self.folder / "shorter.tsr"
        shorter.write_text("func f[N](x: f32[N], y: f32[N - 5]) { z: f32[N - 5] = relu(y)  return z }")
        self.refused("the size N - 5 of input 'y' is -3", "run", shorter, "--random", 1, "--dim", "N=2")
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

    def test_sizes_that_depend_on_data_cut_the_program(self):
        self.program.write_text(
            "func f[N](x: f32[N]) {\n"
            "  places: i64[N, 1], k: i64 = nonzero(x)\n"
            "  kept: f32[k] = slice(x) {starts = shape[0], stops = shape[k]}\n"
            "  y: f32[k] = exp(kept)\n"
            "  return y, k\n"
            "}\n"
        )
        self.compile()
        for size in (0, 1, 9):
            chosen = ["--random", 3, "--dim", f"N={size}"]
            expected = self.run_json(self.program, *chosen, "--device", "reference")
            self.assertEqual(expected[0][1][0]["shape"], [size])
            self.assertEqual(self.run_json(self.plan, *chosen)[1], expected[1])
        text = tessera("explain", self.program).stdout
        self.assertIn("by upper bound, i64[N, 1]", text)
        self.assertIn("f.tsr:2:3: the host learns the size 'k' before part 2", text)
        report = json.loads(tessera("explain", self.program, "--json").stdout)
        self.assertEqual((len(report["parts"]), len(report["data_dependent_sizes"])), (2, 2))

    def test_what_is_written_is_reported(self):
        result = tessera("compile", self.program, "-o", self.plan, "--json", "--dump-after", "order_steps")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        names = [one["name"] for one in report["parts"][0]["passes"]]
        self.assertEqual(names[-6:], ["tile", "lower", "order_steps", "reuse_in_place", "liveness", "assign_buffers"])
        self.assertEqual([dump["after"] for dump in report["dumps"]], ["order_steps"])
        result = tessera("compile", self.program, "-o", self.plan, "--json", "--disable", "reuse_in_place")
        ran = {one["name"]: one["ran"] for one in json.loads(result.stdout)["parts"][0]["passes"]}
        self.assertEqual((ran["reuse_in_place"], ran["order_steps"]), (False, True))

    def test_every_pass_is_dumped_and_verified(self):
        report = json.loads(tessera("compile", self.program, "-o", self.plan, "--json", "--verify").stdout)
        names = {one["name"] for one in report["parts"][0]["passes"]}
        for words in ([], ["-o", self.plan]):
            for name in names:
                result = tessera("compile", self.program, *words, "--dump-after", name, "--verify")
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertTrue(result.stdout.startswith(f"# after {name}\n"), (name, result.stdout))
        for name in ("lower", "liveness", "assign_buffers"):
            self.refused(f"pass '{name}' cannot be disabled: ", "compile", self.program, "--disable", name)
        self.refused("there is no pass 'nothing'", "compile", self.program, "--dump-after", "nothing")

    def test_explain_says_what_the_plan_s_own_tiling_said(self):
        alone = json.loads(tessera("explain", self.program, "--json", "--disable", "tile").stdout)
        self.assertEqual((alone["tiles"], alone["certificate"]["candidates"]), ([], 0))
        self.assertIn("tiling: none, ", tessera("explain", self.program, "--disable", "tile").stdout)
        tiled = json.loads(tessera("explain", self.program, "--json").stdout)
        self.assertGreater(tiled["certificate"]["candidates"], 0)

    def test_the_kind_of_a_file_is_said(self):
        self.compile()
        self.refused("this is a compiled plan: 'tessera run' runs it", "print", self.plan)
        self.refused("this is JSON", "hash", ROOT / "examples/describe/particles.json")
        self.graph()
        self.refused("this is a compiled plan: 'tessera run' runs it", "print", self.plan)
        self.refused("this is a compiled plan: 'tessera run' runs it", "compile", self.plan)
        module = ROOT / "examples/ir/module.tsr"
        self.refused("say which by --function NAME", "run", module, "--random", 1)
        self.refused("has no function 'nobody'", "run", module, "--random", 1, "--function", "nobody")

    def test_scalars_are_computed(self):
        gelu = self.run_json(ROOT / "examples/ir/gelu.tsr", "--random", 1)
        self.assertEqual(gelu, self.run_json(ROOT / "examples/ir/gelu.tsr", "--random", 1, "--device", "reference"))

    def test_axes_name_sizes(self):
        self.compile()
        by_name = self.run_json(self.plan, "--random", 7, "--dim", "N=2", "--dim", "M=3")
        self.assertEqual(by_name, self.run_json(self.plan, "--random", 7, "--dim", "x:0=2", "--dim", "w:0=3"))
        self.refused("no input has an open size 'w:1'", "run", self.plan, "--random", 7, "--dim", "w:1=4")

    def test_sizes_that_are_too_large_are_errors(self):
        for size in (2**62, 2**63 - 1):
            for command in (("explain", self.program), ("run", self.program, "--random", 1)):
                result = tessera(*command, "--dim", f"N={size}", "--dim", "M=4")
                self.assertEqual(result.returncode, 2)
                self.assertNotIn("internal", result.stderr)

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
