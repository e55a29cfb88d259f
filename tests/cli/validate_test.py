"""`tessera validate` as a user calls it."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop())
PROGRAM = sys.argv.pop()
EXAMPLE = ROOT / "examples/describe/particles.json"


def validate(*arguments, stdin=""):
    if isinstance(stdin, dict):
        stdin = json.dumps(stdin)
    if isinstance(stdin, str):
        stdin = stdin.encode()
    result = subprocess.run([PROGRAM, "validate", *map(str, arguments)], input=stdin, capture_output=True)
    result.out, result.err = result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace")
    return result


class Validate(unittest.TestCase):
    def test_the_example_is_valid(self):
        result = validate(EXAMPLE)
        self.assertEqual((result.returncode, result.err), (0, ""))
        self.assertIn("valid: 6 nodes, ", result.out)
        self.assertIn("memory: ", result.out)
        answer = json.loads(validate("--json", EXAMPLE).out)
        self.assertTrue(answer["valid"])
        self.assertEqual(answer["diagnostics"], [])
        self.assertEqual(answer["memory"]["temporary"], 4096 * 3 * 4)

    def test_every_error_is_told_at_its_place(self):
        text = EXAMPLE.read_text()
        broken = text.replace('"kernel": "compact"', '"kernel": "compact", "region": "nowhere"').replace('"op": "mul"', '"op": "mull"')
        result = validate("-", stdin=broken)
        self.assertEqual(result.returncode, 1)
        line = 1 + text[:text.index('"id": "squares"')].count("\n")
        self.assertIn(f"<stdin>:{line}:5: error: block 'simulate', node 'squares': there is no op 'mull'", result.out)
        self.assertIn("block 'move', node 'compact': there is no region 'nowhere'", result.out)
        self.assertIn("not valid: 2 errors", result.out)
        answer = json.loads(validate("--json", "-", stdin=broken).out)
        self.assertEqual({d["node"] for d in answer["diagnostics"] if d["severity"] == "error"}, {"squares", "compact"})
        self.assertEqual([d["line"] for d in answer["diagnostics"] if d["node"] == "squares"][0], line)

    def test_memory_that_is_too_small(self):
        result = validate("--memory", 1000, EXAMPLE)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.out, r"the description needs \d+ bytes \(external 4, graph \d+, temporary \d+\), the device has 1000")

    def test_without_a_limit_it_must_fit_the_machine(self):
        f32 = {"lifetime": "external", "dtype": "f32"}
        huge = {"buffers": [{"id": "x", "shape": [1000000, 1], **f32}, {"id": "w", "shape": [1, 1000000], **f32}, {"id": "y", "shape": [], **f32}],
                "nodes": [{"id": "m", "op": "matmul", "parameters": [{"name": "a", "buffer": "x"}, {"name": "b", "buffer": "w"}]},
                          {"id": "s", "op": "sum", "parameters": [{"name": "y", "buffer": "y"}]}],
                "edges": [{"from": ["m", "y"], "to": ["s", "x"]}]}
        expected = r"the description needs 4000008000004 bytes \(.*\), the device has \d+"
        result = validate("-", stdin=huge)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.out, expected)
        self.assertEqual(validate("--memory", 10**13, "-", stdin=huge).returncode, 0)
        for command in (["run", "-", "--random", "1"], ["compile", "-"]):
            result = subprocess.run([PROGRAM, *command], input=json.dumps(huge).encode(), capture_output=True)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr.decode(), expected)

    def test_a_region_is_called_one(self):
        loop = {"buffers": [{"id": "c", "lifetime": "external", "dtype": "i32", "shape": [1]}],
                "regions": [{"id": "r", "kind": "while", "condition": "c", "limit": 0}]}
        self.assertIn("error: region 'r': limit 0 is not positive", validate("-", stdin=loop).out)
        self.assertEqual(json.loads(validate("--json", "-", stdin=loop).out)["diagnostics"][0]["region"], "r")

    def test_what_is_no_description_exits_2(self):
        for text in ["", "[]", "{", b"\xff", "[" * 100000, "nonsense"]:
            result = validate("-", stdin=text)
            self.assertEqual(result.returncode, 2, text[:20])
            self.assertIn("tessera: <stdin>:1:", result.err)
        self.assertEqual(validate("/nonexistent").returncode, 2)
        self.assertEqual(validate().returncode, 2)

    def test_the_code_of_kernels_must_be_there(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "graph.json"
            file.write_text(json.dumps({"nodes": [{"id": "n", "kernel": "scale", "source": "scale.cu", "grid": [1]}]}))
            result = validate(file)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"node 'n': kernel 'scale': there is no file '{folder}/scale.cu'", result.out)
            (pathlib.Path(folder) / "scale.cu").mkdir()
            self.assertEqual(validate(file).returncode, 1)
            (pathlib.Path(folder) / "scale.cu").rmdir()
            (pathlib.Path(folder) / "scale.cu").write_text("")
            self.assertEqual(validate(file).returncode, 0)

    def test_Trap_U20_the_code_of_kernels_is_below_the_description(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "inner/graph.json"
            file.parent.mkdir()
            (pathlib.Path(folder) / "secret.cu").write_text("")
            for source in ["/etc/passwd", "../secret.cu", "a/../../secret.cu"]:
                file.write_text(json.dumps({"nodes": [{"id": "n", "kernel": "scale", "source": source, "grid": [1]}]}))
                result = validate(file)
                self.assertEqual(result.returncode, 1)
                self.assertIn("expected the name of a file in the folder of the description", result.out)
            file.write_text(json.dumps({"nodes": [{"id": "n", "kernel": "scale", "source": "k.cu", "grid": [1]}]}))
            (file.parent / "k.cu").symlink_to("../secret.cu")
            result = validate(file)
            self.assertEqual(result.returncode, 1)
            self.assertIn("kernel 'scale': 'k.cu' is or goes through a symbolic link", result.out)

    def test_a_file_without_anything_is_valid(self):
        self.assertEqual(validate("-", stdin={}).returncode, 0)

    def test_large_files(self):
        count = 50000
        nodes = [{"id": f"n{i}", "kernel": "k", "parameters": [
            {"name": "x", "required": i > 0}, {"name": "y", "access": "write", "dtype": "f32", "shape": "[16]"}]} for i in range(count)]
        edges = [{"from": [f"n{i}", 1], "to": [f"n{i + 1}", 0]} for i in range(count - 1)]
        result = validate("--json", "-", stdin={"nodes": nodes, "edges": edges})
        self.assertEqual(result.returncode, 0)
        self.assertEqual(json.loads(result.out)["memory"]["temporary"], 128)
        cycle = validate("-", stdin={"nodes": nodes, "edges": edges, "dependencies": [{"before": f"n{count - 1}", "after": "n0"}]})
        self.assertEqual(cycle.returncode, 1)
        self.assertIn("a cycle: ", cycle.out)


unittest.main(argv=sys.argv[:1])
