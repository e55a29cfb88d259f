"""The program as a user calls it: output, messages, exit codes."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop())
PROGRAM = sys.argv.pop()


def tessera(*arguments, stdin=""):
    if isinstance(stdin, str):
        stdin = stdin.encode()
    result = subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, timeout=120)
    result.out, result.err = result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace")
    return result


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, text):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path


class Program(unittest.TestCase):
    def test_version_and_help(self):
        self.assertRegex(tessera("--version").out, r"^tessera \d+\.\d+\.\d+\n$")
        self.assertEqual(tessera("--help").returncode, 0)
        self.assertIn("Exit codes", tessera("--help").out)
        for command in ["demo", "print", "equal", "hash", "ops", "bench"]:
            result = tessera(command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("Examples:", result.out)

    def test_wrong_arguments_exit_2(self):
        for arguments in [[], ["nonsense"], ["print"], ["print", "--nonsense", "f"], ["equal", "a"], ["bench", "nonsense"]]:
            result = tessera(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertTrue(result.err, arguments)

    def test_demo_ir(self):
        result = tessera("demo", "ir")
        self.assertEqual(result.returncode, 0)
        self.assertIn("func attention_scores[S]", result.out)


class Print(Files):
    def test_examples_print_to_themselves(self):
        examples = sorted((ROOT / "examples/ir").glob("*.tsr"))
        self.assertGreaterEqual(len(examples), 10)
        for path in examples:
            once = tessera("print", "--verify", path)
            self.assertEqual(once.returncode, 0, once.err)
            self.assertEqual(tessera("print", "-", stdin=once.out).out, once.out)
            self.assertEqual(tessera("equal", path, "-", stdin=once.out).out, "equal\n")

    def test_json(self):
        result = tessera("print", "--json", "-", stdin="free x expr x + 1")
        self.assertEqual(json.loads(result.out)["nodes"][-1]["opcode"], "add")

    def test_verify_says_no(self):
        result = tessera("print", "--verify", "-", stdin="func f(x: f32[2]) { a: f32[3] = tuple(x) return a }")
        self.assertEqual(result.returncode, 1)
        self.assertIn("<stdin>:1:21: target 'a' has type f32[3]", result.err)

    def test_errors_have_place_and_caret(self):
        path = self.file("bad.tsr", "func f(x: f32[2]) {\n  return y\n}\n")
        result = tessera("print", path)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.err, f"tessera: {path}:2:10: unknown variable 'y'\n    return y\n           ^\n")

    def test_hostile_input_ends_in_a_message(self):
        for text in ["", b"\x00\xff\xfe" * 1000, "expr " + "(" * 1000000, "type " + "(" * 1000000,
                     "expr " + "i64.neg(" * 1000000, "func f(p: bool[]) {" + "a: bool[] = if p with (p) (p: bool[]) {" * 100000,
                     "\n" * 1000000 + "func", "func " + "a" * 10000000 + "(", b"PK\x03\x04" + b"\x00" * 100]:
            result = tessera("print", "-", stdin=text)
            self.assertEqual(result.returncode, 2, text[:40])
            self.assertIn("tessera: <stdin>:", result.err)
            self.assertLess(len(result.err), 2000)

    def test_unreadable_files(self):
        for path in ["/nonexistent", self.folder.name]:
            result = tessera("print", path)
            self.assertEqual(result.returncode, 2)
            self.assertIn(str(path), result.err)


class Equal(Files):
    def setUp(self):
        super().setUp()
        self.add = self.file("add.tsr", "func main(x: f32[2]) { a: f32[2] = relu(x) b: f32[2] = add(a, x) return b }")
        self.sub = self.file("sub.tsr", "func main(x: f32[2]) { a: f32[2] = relu(x) b: f32[2] = sub(a, x) return b }")
        self.renamed = self.file("renamed.tsr", "func other(input: f32[2]) { t: f32[2] = relu(input) u: f32[2] = add(t, input) return u }")

    def test_equal(self):
        result = tessera("equal", self.add, self.renamed)
        self.assertEqual((result.returncode, result.out), (0, "equal\n"))
        self.assertEqual(json.loads(tessera("equal", "--json", self.add, self.renamed).out), {"equal": True})

    def test_different_with_the_path(self):
        result = tessera("equal", self.add, self.sub)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.out.splitlines()[0], "main.body[1].value: add ≠ sub")
        answer = json.loads(tessera("equal", "--json", self.add, self.sub).out)
        self.assertEqual(answer, {"equal": False, "path": "main.body[1].value", "left": "add", "right": "sub", "reason": "different op"})

    def test_free_variables(self):
        x = self.file("x.tsr", "free x: f32\nexpr x + 1.0")
        y = self.file("y.tsr", "free y: f32\nexpr y + 1.0")
        self.assertEqual(tessera("equal", x, y).returncode, 1)
        self.assertEqual(tessera("equal", "--mapping", x, y).returncode, 0)
        self.assertEqual(tessera("equal", x, x).returncode, 0)
        self.assertEqual(tessera("hash", x).out, tessera("hash", x).out)
        self.assertNotEqual(tessera("hash", x).out, tessera("hash", y).out)
        self.assertEqual(tessera("hash", "--mapping", x).out, tessera("hash", "--mapping", y).out)

    def test_errors_are_2(self):
        self.assertEqual(tessera("equal", self.add, "/nonexistent").returncode, 2)
        self.assertEqual(tessera("equal", self.add, self.file("bad.tsr", "func")).returncode, 2)


class Hash(Files):
    def test_equal_programs_have_equal_hashes(self):
        a = self.file("a.tsr", "func f(x: f32[2]) { return x }")
        b = self.file("b.tsr", "func g(y: f32[2]) { return y }")
        self.assertRegex(tessera("hash", a).out, r"^[0-9a-f]{32}\n$")
        self.assertEqual(tessera("hash", a).out, tessera("hash", b).out)
        self.assertEqual(json.loads(tessera("hash", "--json", a).out)["hash"], tessera("hash", a).out.strip())


unittest.main(argv=sys.argv[:1])
