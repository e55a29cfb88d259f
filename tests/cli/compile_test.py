#!/usr/bin/env python3
"""`tessera compile` and `tessera explain`, as a user calls them."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TESSERA, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
PROGRAM = """func f(x: f32[2, 3]) {
  a: f32[3, 2] = transpose(x)
  b: f32[3, 2] = exp(a)
  c: f32[2, 3] = transpose(b)
  d: f32[2, 3] = mul(c, 1.0)
  unused: f32[2, 3] = add(d, d)
  return d
}
"""
COMPILED = """func f(x: f32[2, 3]) {
  t1: f32[2, 3] = exp(x)
  return t1
}
"""


def tessera(*arguments, stdin=""):
    return subprocess.run([TESSERA, *map(str, arguments)], input=stdin, capture_output=True, text=True)


class Compile(unittest.TestCase):
    def test_prints_the_function(self):
        result = tessera("compile", "-", "--verify", stdin=PROGRAM)
        self.assertEqual((result.returncode, result.stderr), (0, "tessera: warning: <stdin>:6:3: add is not needed\n"))
        self.assertEqual(result.stdout, COMPILED)

    def test_descriptions(self):
        example = ROOT / "examples/describe/particles.json"
        result = tessera("compile", example, "--device", "cpu")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("launch:\n", result.stdout)
        self.assertIn("while region 'until_rest'", result.stdout)
        self.assertIn("ops 'squares', 'total'\n", result.stdout)
        units = json.loads(tessera("compile", example, "--json").stdout)["sequences"][0]["units"]
        group = [unit for unit in units if "nodes" in unit]
        self.assertEqual([unit["nodes"] for unit in group], [["'squares'", "'total'"]])
        self.assertIn("mul", group[0]["plan"])
        levels = [unit["level"] for unit in units]
        self.assertEqual(levels, sorted(levels))
        self.assertEqual(tessera("compile", example, "--device", "nowhere").returncode, 2)
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder) / "broken.json"
            broken.write_text(example.read_text().replace('"op": "mul"', '"op": "mull"'))
            # Whether a description is valid is asked of `validate`; to the others it is an error.
            self.assertEqual(tessera("validate", broken).returncode, 1)
            for arguments in (["compile"], ["compile", "-o", pathlib.Path(folder) / "plan"], ["explain"], ["run"]):
                result = tessera(arguments[0], broken, *arguments[1:])
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertIn("the description is not valid", result.stderr)
                self.assertIn("there is no op 'mull'", result.stderr)

    def test_descriptions_on_standard_input(self):
        example = ROOT / "examples/describe/particles.json"
        for command in ("compile", "explain"):
            expected = tessera(command, example)
            result = tessera(command, "-", stdin=example.read_text())
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(len(result.stdout.splitlines()), len(expected.stdout.splitlines()))
        result = tessera("compile", "-", stdin="{")
        self.assertEqual(result.returncode, 2)
        self.assertIn("<stdin>:1:", result.stderr)

    def test_dumps_of_descriptions(self):
        example = ROOT / "examples/describe/particles.json"
        result = tessera("compile", example, "--dump-after", "canonicalise")
        self.assertIn("# after canonicalise, ops 'squares', 'total'\nfunc ", result.stdout)
        dumps = json.loads(tessera("compile", example, "--dump-after", "tile", "--json").stdout)["dumps"]
        self.assertTrue(dumps and all("ops 'squares', 'total'" in dump["after"] for dump in dumps))

    def test_options_that_say_nothing_are_errors(self):
        example = ROOT / "examples/describe/particles.json"
        for arguments, expected in ((["compile", example, "--function", "f"], "--function: a graph description is one function"),
                                    (["explain", example, "--function", "f"], "--function: a graph description is one function"),
                                    (["compile", example, "--dump-after", "nothing"], "--dump-after: "),
                                    (["compile", "-", "-o", ""], "expected the name of a file")):
            result = tessera(*arguments, stdin=PROGRAM)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn(expected, result.stderr)

    def test_explain_names_what_stays(self):
        example = ROOT / "examples/describe/running_total.json"
        self.assertIn("from run to run: 'total'", tessera("explain", example).stdout)
        self.assertEqual(json.loads(tessera("explain", example, "--json").stdout)["states"], ["'total'"])

    def test_what_is_in_vain_is_a_warning(self):
        text = "func f(x: f32[4], unused: f32[9]) {\n  dead: f32[4] = exp(x)\n  a: f32[4] = relu(x)\n  return a\n}"
        for command in ("compile", "explain"):
            result = tessera(command, "-", stdin=text)
            self.assertEqual(result.returncode, 0)
            self.assertEqual(result.stderr, "tessera: warning: <stdin>:1:19: input 'unused' is not read\n"
                                            "tessera: warning: <stdin>:2:3: exp is not needed\n")

    def test_tuples_are_found_before_anything_is_made(self):
        text = "func f(p: (f32[2], f32[2]), q: (f32[2])) {\n  a: f32[2] = item(p, 0)\n  return a, q\n}"
        with tempfile.TemporaryDirectory() as folder:
            result = tessera("compile", "-", "-o", pathlib.Path(folder) / "plan", stdin=text)
            self.assertEqual(result.returncode, 2)
            self.assertIn("<stdin>:1:8: input 'p' is a tuple\n  <stdin>:1:29: input 'q' is a tuple\n", result.stderr)
            self.assertIn("result 'q' is a tuple", result.stderr)

    def test_disable_and_dump(self):
        result = tessera("compile", "-", "--disable", "simplify_views", "--dump-after", "simplify_algebra", stdin=PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("# after simplify_algebra\nfunc f("))
        self.assertEqual(result.stdout.count("transpose"), 4)

    def test_json(self):
        result = json.loads(tessera("compile", "-", "--json", "--dump-after", "drop_dead", stdin=PROGRAM).stdout)
        self.assertEqual(result["function"], COMPILED)
        self.assertEqual([dump["after"] for dump in result["dumps"]], ["drop_dead"])
        self.assertIn("simplify_views", [one["name"] for one in result["passes"] if one["changed"]])

    def test_decompose(self):
        text = "func f(x: f32[2, 3]) { a: f32[2, 3] = softmax(x) return a }"
        self.assertIn("softmax", tessera("compile", "-", stdin=text).stdout)
        self.assertNotIn("softmax", tessera("compile", "-", "--decompose", stdin=text).stdout)

    def test_floats(self):
        text = "func f(x: f32[2]) { a: f32[2] = add(x, 0.0) return a }"
        self.assertIn("add", tessera("compile", "-", stdin=text).stdout)
        self.assertNotIn("add", tessera("compile", "-", "--floats", "fast", stdin=text).stdout)

    def test_examples(self):
        files = sorted((ROOT / "examples" / "ir").glob("*.tsr"))
        self.assertGreaterEqual(len(files), 10)
        for path in files:
            self.assertEqual(tessera("print", "--verify", path).returncode, 0, path)
            result = tessera("compile", path, "--verify")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(tessera("print", "--verify", "-", stdin=result.stdout).returncode, 0, path)

    def test_sizes_are_folded_before_they_are_compared(self):
        text = "func f(x: f32[5]) { y: f32[8 / 2] = relu(x) return y }"
        result = tessera("compile", "-", stdin=text)
        self.assertEqual(result.returncode, 2)
        self.assertIn("f32[4]", result.stderr)
        self.assertEqual(tessera("compile", "-", stdin=text.replace("8 / 2", "10 / 2")).returncode, 0)
        wrong = "func f(x: f32[(0 - 7) / 2]) { return x }"
        self.assertIn("dimension -3 is negative", tessera("compile", "-", stdin=wrong).stderr)

    def test_errors(self):
        for arguments, stdin, message in [
            (["-", "--disable", "no_pass"], PROGRAM, "there is no pass 'no_pass'; the passes are "),
            (["-", "--dump-after", "no_pass"], PROGRAM, "--dump-after: there is no pass 'no_pass'"),
            (["-"], "expr 1 + 2", "expected a function or a module"),
            (["-"], "func f(x: f32[2]) { a: f32[3] = exp(x) return a }", "<stdin>:1:21: exp: its result is f32[2]"),
            (["-"], "func f(x: f32[2]) { a: f32[2] = what(x) return a }", "there is no op 'what'"),
            (["-"], "func", "<stdin>:1"),
            (["/nonexistent"], "", "/nonexistent"),
            (["/nonexistent.onnx"], "", "onnx"),
        ]:
            result = tessera("compile", *arguments, stdin=stdin)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(message, result.stderr)


class Explain(unittest.TestCase):
    def test_says_what_and_where(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "f.tsr"
            path.write_text(PROGRAM)
            text = tessera("explain", path).stdout
            self.assertIn(f"  mul(x, 1) is x, {path}:5:18\n", text)
            self.assertIn("duplicate_cheap", text)
            self.assertIn("disabled", tessera("explain", path, "--disable", "drop_dead").stdout)

    def test_json(self):
        passes = json.loads(tessera("explain", "-", "--json", stdin=PROGRAM).stdout)["passes"]
        self.assertEqual(passes[0]["name"], "canonicalise")
        notes = [note["what"] for one in passes for note in one["notes"]]
        self.assertIn("transposes that cancel", notes)


unittest.main(argv=sys.argv[:1])
