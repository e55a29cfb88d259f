"""The program as a user calls it: output, messages, exit codes."""
import json
import os
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
    result = subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, capture_output=True)
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
        for command in ["demo", "print", "equal", "hash", "signature", "hot", "ops", "tile", "validate", "bench"]:
            result = tessera(command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("Examples:", result.out)

    def test_what_cannot_be_written_is_an_error(self):
        for words in (["--help"], ["--version"], ["run", "--help"], ["demo", "ir"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stderr), (2, "tessera: cannot write to standard output\n"), words)

    def test_wrong_arguments_exit_2(self):
        for arguments in [[], ["nonsense"], ["print"], ["print", "--nonsense", "f"], ["equal", "a"], ["bench", "nonsense"]]:
            result = tessera(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertTrue(result.err, arguments)

    def test_unknown_commands_are_named(self):
        self.assertIn("unknown command 'prnt'; did you mean print?", tessera("prnt", "x").err)
        self.assertIn("unknown command 'zzz'; the commands are demo, print", tessera("zzz").err)
        self.assertIn("expected a command: demo, print", tessera().err)

    def test_seeds_that_do_not_fit(self):
        for seed in ["99999999999999999999999", "-1", "1.5", "x", ""]:
            result = tessera("demo", "ir", "--seed", seed)
            self.assertEqual(result.returncode, 2, seed)
            self.assertIn("--seed", result.err)
        self.assertEqual(tessera("demo", "ir", "--seed", "18446744073709551615").returncode, 0)

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

    def test_verify_knows_the_ops(self):
        wrong = "y: f32[2, 2] = matmul(x, x) z: f32[2, 3] = nosuch(x)"
        for text in [f"func main(x: f32[2, 3]) {{ {wrong} return y, z }}",
                     f"module func main(x: f32[2, 3]) {{ {wrong} return y, z }}"]:
            result = tessera("print", "--verify", "-", stdin=text)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("3 and 2 do not agree", result.err)
            self.assertIn("there is no op 'nosuch'", result.err)
            self.assertEqual(tessera("print", "-", stdin=text).returncode, 0)

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
        for path in ["/nonexistent", self.folder.name, "/dev/zero"]:
            result = tessera("print", path)
            self.assertEqual(result.returncode, 2)
            self.assertIn(str(path), result.err)

    def test_unknown_options_are_named(self):
        for arguments in [["print", "--nosuch"], ["tile", "--nosuch"], ["compile", "F", "--nosuch"]]:
            result = tessera(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"tessera: {arguments[0]}: unknown option '--nosuch'", result.err)


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

    def test_names_of_sizes_do_not_count(self):
        a = self.file("a", "func f[A, B](x: f32[A * B + A]) { return x }")
        b = self.file("b", "func f[Z, B](x: f32[Z * B + Z]) { return x }")
        self.assertEqual(tessera("equal", a, b).returncode, 0)
        self.assertEqual(tessera("hash", a).out, tessera("hash", b).out)

    def test_lists_without_elements_show_their_type(self):
        a = self.file("a", "func f(x: f32[2]) { y: f32[2] = g(x) {a = []} return y }")
        b = self.file("b", "func f(x: f32[2]) { y: f32[2] = g(x) {a = [:float]} return y }")
        self.assertIn("[] ≠ [:float]", tessera("equal", a, b).out)

    def test_standard_input_is_read_once(self):
        result = tessera("equal", "-", "-", stdin="expr 1")
        self.assertEqual(result.returncode, 2)
        self.assertIn("only one of A and B", result.err)

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


def instruction(op, inputs, output, **more):
    return {"op": op, "inputs": inputs, "output": output, **more}


class Signature(Files):
    def signature(self, stream, **more):
        result = tessera("signature", "--json", "-", stdin=json.dumps({"stream": stream, **more}))
        self.assertEqual(result.returncode, 0, result.err)
        return json.loads(result.out)

    def test_the_seeds_example(self):
        answer = self.signature([instruction("matmul", ["x", "W"], "a"), instruction("relu", ["a"], "b")])
        self.assertEqual(answer["canonical"], ["t0=matmul(in0,in1)", "t1=relu(t0)"])
        self.assertRegex(answer["signature"], r"^[0-9a-f]{32}$")
        self.assertEqual(answer["components"], [{"signature": answer["signature"], "ops": [0, 1]}])

    def test_two_graphs(self):
        answer = json.loads(tessera("signature", "--json", ROOT / "examples/stream/two_graphs.json").out)
        self.assertEqual([part["ops"] for part in answer["components"]], [[0, 2], [1, 3]])
        first = self.signature([instruction("f", ["p"], "q"), instruction("h", ["q"], "r")])
        self.assertEqual(answer["components"][0]["signature"], first["signature"])

    def test_text(self):
        lines = tessera("signature", ROOT / "examples/stream/mlp.json").out.splitlines()
        self.assertEqual(lines[0], "t0:f32[d0,128]=matmul(in0:f32[d0,784],in1:f32[784,128])")
        self.assertEqual(lines[1], "t1=relu(t0) live")
        self.assertEqual(lines[4], "t4=softmax(t3){axis=1}")
        self.assertRegex(lines[5], "^signature [0-9a-f]{32}$")
        self.assertRegex(lines[6], "^component [0-9a-f]{32} ops 0 1 2 3 4$")

    def test_what_counts_and_what_does_not(self):
        stream = [instruction("mul", ["x", 0.5], "a"), instruction("add", ["a", "y"], "b")]
        base = self.signature(stream)["signature"]
        same = [[instruction("mul", ["p", 7], "q"), instruction("add", ["q", "r"], "s")],
                [{"op": "mul", "inputs": ["x", 1e30], "outputs": ["a"], "attrs": {}, "types": {}}, stream[1]]]
        other = [[instruction("mul", [0.5, "x"], "a"), stream[1]],
                 [stream[0], instruction("add", ["y", "a"], "b")],
                 [stream[0], instruction("add", ["a", "x"], "b")],
                 [stream[0], instruction("add", ["a", "y"], "b", effect="read")],
                 [stream[0], instruction("add", ["a", "y"], "b", types={"b": "f32[2]"})],
                 [stream[0], instruction("add", ["a", "y"], "b", attrs={"alpha": 1})],
                 stream + [instruction("add", ["a", "y"], "c")]]
        for changed in same:
            self.assertEqual(self.signature(changed)["signature"], base, changed)
        for changed in other:
            self.assertNotEqual(self.signature(changed)["signature"], base, changed)
        self.assertNotEqual(self.signature(stream, live=["a", "b"])["signature"], base)
        self.assertEqual(self.signature(stream, live=["b"])["signature"], base)
        freed = [stream[0], {**stream[1], "free": ["a", "b"]}]
        self.assertEqual(self.signature(freed)["signature"], self.signature(stream, live=[])["signature"])

    def test_wrong_fields(self):
        for text, message in [
                ("[", "2:1: expected a value"), ("{}", "1:1: missing field"), ("3", "1:1: expected an object"),
                ('{"stream":{}}', "1:11: stream: expected an array, got an object"),
                ('{"stream":[{"op":3}]}', '1:18: stream[0].op: expected a string, got a number'),
                ('{"stream":[{"op":"f","inputs":["x",null]}]}', "1:36: stream[0].inputs[1]: expected the name of a value or a number"),
                ('{"stream":[{"op":"f","effect":"boom"}]}', '1:31: stream[0].effect: expected "write", "random", "read"'),
                ('{"stream":[{"op":"f","output":"a","outputs":["b"]}]}', "expected either 'output' or 'outputs', got both"),
                ('{"stream":[{"op":"f","outputs":["b","b"]}]}', 'expected different outputs, got "b" twice'),
                ('{"stream":[{"op":"f","inputs":["x"],"types":{"x":"f32[2"}}]}', 'expected a type such as'),
                ('{"stream":[{"op":"f","inputs":["x"],"types":{"x":"q7[2]"}}]}', 'expected a type such as'),
                ('{"stream":[{"op":"f","types":{"q":"f32[2]"}}]}', 'expected types of inputs and outputs'),
                ('{"stream":[{"op":"f","attrs":{"a":null}}]}', "1:35: stream[0].attrs.a: expected a boolean, a number"),
                ('{"stream":[{"op":"f","attr":{}}]}', '1:22: stream[0]: unknown field "attr", expected one of op'),
                ('{"stream":[],"live":["q"]}', '1:22: live[0]: expected a value of the stream, got "q"')]:
            result = tessera("signature", "-", stdin=text + "\n")
            self.assertEqual(result.returncode, 2, text)
            self.assertIn("tessera: <stdin>:", result.err)
            self.assertIn(message, result.err)

    def test_hostile_input_ends_in_a_message(self):
        for text in ["", b"\x00\xff\xfe" * 1000, "[" * 1000000, '{"stream":' * 100000, '{"stream":[{"op":"\\ud800"}]}',
                     '{"stream":[{"op":"f","op":"g"}]}', '{"stream":[{"op":"f","inputs":["x"],"types":{"x":"' + "(" * 3000 + '"}}]}',
                     '{"stream":[{"op":"f","inputs":["x"],"types":{"x":"' + "f" * 100000 + '"}}]}']:
            result = tessera("signature", "-", stdin=text)
            self.assertEqual(result.returncode, 2, text[:40])
            self.assertIn("tessera: <stdin>:", result.err)
            self.assertLess(len(result.err), 2000)

    def test_a_long_stream(self):
        stream = [instruction("f", ["t"], "t") for _ in range(50000)]
        self.assertEqual(len(self.signature(stream)["canonical"]), 50000)


def peak_memory(arguments, lines):
    """The most memory that the program held while it read these lines, in KiB; and what it printed."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=out)
        for line in lines:
            process.stdin.write(line)
        process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return used.ru_maxrss, out.read().decode(), process.returncode


class Hot(Files):
    def test_a_stream_of_any_length_takes_bounded_memory(self):
        def lines(count):  # every value has a name of its own, and none is said to die
            for i in range(count):
                yield b'{"op":"add","inputs":["x%d","w"],"output":"y%d"}\n{"op":"exp","inputs":["y%d"],"output":"z%d"}\n' % (i, i, i, i)

        small, _, _ = peak_memory(["hot", "-"], lines(150_000))
        large, out, code = peak_memory(["hot", "-"], lines(600_000))
        self.assertEqual((code, out.splitlines()[0].split(",")[0]), (0, "1200000 instructions"))
        self.assertLess(large, 1.25 * small)

    def test_lines_that_are_no_text(self):
        self.assertIn("line 1 holds a zero byte", tessera("hot", "-", stdin=b"\0\0\0\n").err)
        self.assertEqual(tessera("hot", "-", stdin="").out, "0 instructions, 0 of them hot\n")
        self.assertIn("it is a directory", tessera("hot", "/").err)

    def hot(self, instructions, *arguments):
        text = "".join(json.dumps(one) + "\n" for one in instructions)
        result = tessera("hot", "--json", *arguments, "-", stdin=text)
        self.assertEqual(result.returncode, 0, result.err)
        return json.loads(result.out)

    layer = [instruction("matmul", ["x", "w"], "a"), instruction("relu", ["a"], "b"), instruction("add", ["b", "y"], "c")]

    def test_three_ops_fifty_times(self):
        answer = self.hot(self.layer * 50)
        signature = json.loads(tessera("signature", "--json", "-", stdin=json.dumps({"stream": self.layer})).out)["signature"]
        self.assertEqual(answer, {"instructions": 150, "hot_instructions": 120, "units": [
            {"signature": signature, "length": 3, "count": 50, "first_hot_at": 30}]})

    def test_threshold(self):
        answer = self.hot(self.layer * 5, "--threshold", "2")
        self.assertEqual((answer["hot_instructions"], answer["units"][0]["first_hot_at"]), (9, 6))
        self.assertEqual(self.hot(self.layer * 5)["units"], [])
        for threshold in ["0", "-1", "x"]:
            self.assertEqual(tessera("hot", "--threshold", threshold, "-").returncode, 2)

    def test_examples(self):
        result = tessera("hot", ROOT / "examples/stream/training.jsonl")
        self.assertRegex(result.out, r"^108 instructions, 18 of them hot\nunit [0-9a-f]{32} length 9 count 12 hot at 90\n$")
        answer = json.loads(tessera("hot", "--json", ROOT / "examples/stream/interleaved.jsonl").out)
        self.assertEqual([(unit["length"], unit["count"]) for unit in answer["units"]], [(2, 12), (3, 12)])

    def test_one_result_is_enough_for_many_spellings_and_blank_lines(self):
        text = "\n".join(json.dumps(one) for one in self.layer * 11).replace('"relu"', '"torch.relu"', 3) + "\r\n\n   \n"
        answer = json.loads(tessera("hot", "--json", "-", stdin=text).out)
        self.assertEqual([(unit["length"], unit["count"]) for unit in answer["units"]], [(3, 11)])

    def test_contradicting_types_are_an_error(self):
        lines = ['{"op":"f","inputs":["x"],"output":"a","types":{"x":"f32[2]","a":"f32[2]"}}',
                 '{"op":"g","inputs":["a"],"output":"b","types":{"a":"f32[3]"}}']
        for text in ["\n".join(lines), "\n".join([lines[0], lines[1].replace('"a"', '"x"')])]:
            result = tessera("hot", "-", stdin=text)
            self.assertEqual(result.returncode, 2)
            self.assertIn("<stdin>:2:", result.err)
            self.assertIn("expected f32[2], the type", result.err)
            result = tessera("signature", "-", stdin='{"stream":[' + text.replace("\n", ",\n") + "]}")
            self.assertEqual(result.returncode, 2)
            self.assertIn("<stdin>:2:", result.err)
        # Written again, it is another value; spelled in another way, it is the same type.
        fine = ['{"op":"f","inputs":["x"],"output":"x","types":{"x":"f32[2,3]"}}',
                '{"op":"g","inputs":["x"],"output":"x","types":{"x":"f32[6]"}}',
                '{"op":"h","inputs":["x"],"output":"y","types":{"x":"f32[ 6 ]"}}']
        self.assertEqual(tessera("hot", "-", stdin="\n".join(fine)).returncode, 0)
        self.assertEqual(tessera("signature", "-", stdin='{"stream":[' + ",".join(fine) + "]}").returncode, 0)

    def test_what_dies_is_part_of_a_unit(self):
        def signature(free):
            lines = ['{"op":"mm","inputs":["x","w"],"output":"t"}',
                     '{"op":"relu","inputs":["t"],"output":"r"%s}' % free] * 50
            units = json.loads(tessera("hot", "--json", "-", stdin="\n".join(lines)).out)["units"]
            self.assertEqual([(u["length"], u["count"]) for u in units], [(2, 50)])
            return units[0]["signature"]
        found = [signature(""), signature(',"free":["t"]'), signature(',"free":["r"]'), signature(',"free":["t","r"]')]
        self.assertEqual(len(set(found)), 4)

    def test_names_of_sizes_do_not_count(self):
        def signature(a, b):
            stream = [{"op": "f", "inputs": ["x", "y"], "output": "z",
                       "types": {"x": "f32[%s+%s]" % (a, b), "y": "f32[%s]" % b, "z": "f32[2*%s+%s]" % (a, b)}}]
            return json.loads(tessera("signature", "--json", "-", stdin=json.dumps({"stream": stream})).out)
        self.assertEqual(signature("A", "B"), signature("Z", "B"))
        self.assertEqual(signature("A", "B"), signature("B", "A"))

    def test_errors_have_the_line_of_the_file(self):
        path = self.file("bad.jsonl", json.dumps(self.layer[0]) + "\n\n" + '{"op":"f","inputs":3}\n')
        result = tessera("hot", path)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.err.splitlines()[0], f"tessera: {path}:3:20: inputs: expected an array, got a number")
        for text in ["[1]", "{", '{"op":"f"} x', "nonsense", b"\xff\xfe", "[" * 100000]:
            result = tessera("hot", "-", stdin=text)
            self.assertEqual(result.returncode, 2, text[:20])
            self.assertIn("tessera: <stdin>:1:", result.err)
        self.assertEqual(tessera("hot", "/nonexistent").returncode, 2)

    def test_nothing_is_not_hot(self):
        self.assertEqual(self.hot([]), {"instructions": 0, "hot_instructions": 0, "units": []})


unittest.main(argv=sys.argv[:1])
