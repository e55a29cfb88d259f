#!/usr/bin/env python3
"""The commands on ONNX models: inspect, run, diff. commands_test.py TESSERA"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from wire import *  # noqa: F403 (a vocabulary)

PROGRAM = ""


def npy(dims, values):
    shape = "".join(f"{d}, " for d in dims)
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}".ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}f", *values)


def read_npy(path):
    data = pathlib.Path(path).read_bytes()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    return list(struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:]))


class Commands(unittest.TestCase):
    """y = a - b, of which b is [1]; z = relu(y)."""
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        g = graph([node("Sub", ["a", "b"], ["y"], name="minus"), node("Relu", ["y"], ["z"], name="cut")],
                  [value("a", FLOAT, ["N", 2]), value("b", FLOAT, [1])], [value("y", FLOAT, ["N", 2]), value("z", FLOAT, ["N", 2])])
        self.write("model.onnx", model(g))
        self.write("a.npy", npy([2, 2], [1, 2, 3, 4]))
        self.write("b.bin", struct.pack("<f", 2))
        self.write("a.pb", tensor("a", [2, 2], FLOAT, raw=struct.pack("<4f", 1, 2, 3, 4)))
        with zipfile.ZipFile(self.folder / "both.npz", "w") as archive:
            archive.writestr("a.npy", npy([2, 2], [1, 2, 3, 4]))
            archive.writestr("b.npy", npy([1], [2]))

    def write(self, name, data):
        (self.folder / name).write_bytes(data)

    def run_program(self, *words, code=0):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stderr if code == 2 else done.stdout

    def outputs(self, *words):
        found = json.loads(self.run_program("run", "model.onnx", "--json", *words))["outputs"]
        return [output["tensors"][0]["elements"] for output in found]

    def test_Trap_U14_an_endless_loop_in_a_loop_ends_and_is_named(self):
        def loop_body(name, nodes):
            return graph([node("Identity", ["c" + name], ["d" + name]), *nodes],
                         [value("i" + name, INT64), value("c" + name, BOOL), value("x" + name)],
                         [value("d" + name, BOOL), value("y" + name)])

        def branch(name):
            return graph([node("Neg", ["xb"], [name])], [], [value(name)])

        choice = node("If", ["cb"], ["yb"], [attr_graph("then_branch", branch("t")), attr_graph("else_branch", branch("e"))])
        inner = node("Loop", ["m", "go", "xa"], ["ya"], [attr_graph("body", loop_body("b", [choice]))], name="inner")
        outer = node("Loop", ["", "go", "w"], ["y"], [attr_graph("body", loop_body("a", [inner]))], name="outer")
        tensors = [tensor("go", [], BOOL, raw=b"\1"), tensor("w", [2], FLOAT, raw=struct.pack("<2f", 1, 2)),
                   tensor("m", [], INT64, raw=struct.pack("<q", 1000))]
        self.write("endless.onnx", model(graph([outer], [], [value("y")], tensors)))
        for device in ("cpu", "reference"):
            said = self.run_program("run", "endless.onnx", "--seconds", "0.3", "--device", device, "--quiet", code=2)
            self.assertIn("runs for more than 0.3 seconds", said)
            self.assertIn("node 'outer' (Loop)", said)

    def test_Trap_U20_what_the_user_names_may_be_a_link(self):
        weight = tensor("w", [1], FLOAT, extra=b"".join(
            blob(13, blob(1, k) + blob(2, v)) for k, v in {"location": "weights.bin"}.items()) + integer(14, 1))
        (self.folder / "there").mkdir()
        self.write("there/model.onnx", model(graph([node("Identity", ["w"], ["y"])], [], [value("y")], [weight])))
        self.write("there/weights.bin", struct.pack("<f", 7))
        (self.folder / "folder").symlink_to("there")
        self.assertIn("y: f32[1] [7.0]", self.run_program("run", "folder/model.onnx"))
        # Its weights are those beside the name that was given.
        (self.folder / "linked.onnx").symlink_to("there/model.onnx")
        self.assertIn("external data 'weights.bin' cannot be found", self.run_program("run", "linked.onnx", code=2))
        self.write("weights.bin", struct.pack("<f", 8))
        self.assertIn("y: f32[1] [8.0]", self.run_program("run", "linked.onnx"))
        (self.folder / "weights.bin").unlink()
        (self.folder / "weights.bin").symlink_to("there/weights.bin")
        self.assertIn("external data 'weights.bin' is or goes through a symbolic link",
                      self.run_program("run", "linked.onnx", code=2))

    def test_inputs_of_every_kind(self):
        expected = [[-1, 0, 1, 2], [0, 0, 1, 2]]
        raw = "raw:f32:1:b.bin"
        for words in (["--input", "a=a.npy", "--input", f"b={raw}"], ["--input", f"b={raw}", "--input", "a=a.pb"],
                      ["--input", "a.npy", "--input", raw], ["--input", "both.npz"], ["--input", "a=both.npz", "--input", raw],
                      ["--input", f"b={raw}", "--input", "both.npz"]):
            self.assertEqual(self.outputs(*words), expected, words)

    def test_random_inputs_are_the_same_for_a_seed(self):
        words = ["--random", "7", "--dim", "N=3"]
        first = self.outputs(*words)
        self.assertEqual(len(first[0]), 6)
        self.assertEqual(first, self.outputs(*words))
        self.assertNotEqual(first, self.outputs("--random", "8", "--dim", "N=3"))
        self.assertEqual(len(self.outputs("--random", "1", "--dim", "a:0=5")[0]), 10)
        self.assertIn("--dim N=SIZE", self.run_program("run", "model.onnx", "--random", "7", code=2))

    def test_wrong_inputs(self):
        for words, expected in ((["--input", "c=a.npy"], "has no input 'c'"), (["--input", "a=a.npy", "--input", "a=a.npy"], "given twice"),
                                (["--input", "a.npy"], "no --input for 'b'"), (["--input", "a=nowhere.npy", "--random", "1"], "nowhere.npy"),
                                (["--input", "a=raw:f32:3:b.bin", "--random", "1"], "4 bytes"), (["--input", "a=raw:f31:1:b.bin"], "'f31' is no dtype"),
                                (["--input", "a=raw:f32"], "raw:DTYPE:SIZExSIZE:FILE"), (["--input", "a=raw:f32:-1:b.bin"], "is no size"),
                                (["--input", "b=a.npy", "--input", "a.npy"], "not what the model declares: float[1]"),
                                (["--random", "1", "--dim", "N"], "NAME=SIZE"), (["--input", "both.npz", "--device", "abacus"], "no device 'abacus'"),
                                (["--input", "both.npz", "--input", "a.npy"], "more than the 2 inputs")):
            self.assertIn(expected, self.run_program("run", "model.onnx", *words, code=2), words)

    def test_outputs_are_saved_and_times_shown(self):
        text = self.run_program("run", "model.onnx", "--input", "both.npz", "--output", "out/deep", "--repeat", "3", "--device", "reference")
        self.assertIn("y: f32[2, 2] [-1.0, 0.0, 1.0, 2.0]", text)
        self.assertIn("3 runs: fastest", text)
        self.assertEqual(read_npy(self.folder / "out/deep/z.npy"), [0, 0, 1, 2])
        self.assertEqual(self.run_program("run", "model.onnx", "--input", "both.npz", "--quiet"), "")

    def test_names_become_harmless_files(self):
        names = ["../up", "/etc/x", ".hidden", "a b", "a\x1bb", "a_b"]
        g = graph([node("Relu", ["x"], [n]) for n in names], [], [value(n) for n in names],
                  [tensor("x", [1], FLOAT, raw=struct.pack("<f", 1))])
        self.write("names.onnx", model(g))
        text = self.run_program("run", "names.onnx", "--output", "out")
        self.assertIn("a\\x1bb", text)
        self.assertEqual(sorted(os.listdir(self.folder / "out")),
                         sorted(["_.._up.npy", "_etc_x.npy", "_.hidden.npy", "a_b.npy", "a_b_1.npy", "a_b_2.npy"]))
        self.assertFalse((self.folder / "up.npy").exists())

    def test_models_with_flags_are_explained_and_compiled_for_each_value(self):
        """By the flag `cached` y has the elements of `past` before its own, or not."""
        then = graph([node("Concat", ["past", "x"], ["a"], [attr_int("axis", 0)])], [], [value("a", FLOAT, ["M"])])
        otherwise = graph([node("Neg", ["x"], ["b"])], [], [value("b", FLOAT, ["K"])])
        branches = [attr_graph("then_branch", then), attr_graph("else_branch", otherwise)]
        self.write("decoder.onnx", model(graph([node("If", ["cached"], ["y"], branches)], [value("x", FLOAT, ["N"]), value("cached", BOOL, [1]),
                                                value("past", FLOAT, ["P"])], [value("y", FLOAT, ["Q"])])))
        values = [{"cached": False}, {"cached": True}]
        report = json.loads(self.run_program("explain", "decoder.onnx", "--dim", "P=5", "--json"))
        self.assertEqual([variant["flags"] for variant in report["variants"]], values)
        self.assertTrue(all(variant["steps"] and "memory" in variant for variant in report["variants"]))
        text = self.run_program("explain", "decoder.onnx")
        self.assertEqual([text.count(f"with cached = {value}\n") for value in ("false", "true")], [1, 1])
        self.assertIn("has no size 'Z'", self.run_program("explain", "decoder.onnx", "--dim", "Z=5", code=2))
        printed = self.run_program("compile", "decoder.onnx")
        self.assertEqual(printed.count("func main"), 2)
        self.assertEqual(self.run_program("inspect", "--function", "decoder.onnx").count("func main"), 2)
        self.assertIn("is one function for each value of cached and inputs of any size", self.run_program("inspect", "decoder.onnx"))
        written = json.loads(self.run_program("compile", "decoder.onnx", "-o", "decoder.plan", "--json"))
        self.assertEqual([variant["flags"] for variant in written["variants"]], values)
        self.write("x.npy", npy([2], [1, 2]))
        self.write("past.npy", npy([1], [7]))
        for flag, expected in ((0, [-1, -2]), (1, [7, 1, 2])):
            self.write("flag.bin", bytes([flag]))
            words = ["--input", "x=x.npy", "--input", "past=past.npy", "--input", "cached=raw:bool:1:flag.bin", "--json"]
            for file in ("decoder.onnx", "decoder.plan"):
                outputs = json.loads(self.run_program("run", file, *words))["outputs"]
                self.assertEqual((outputs[0]["name"], outputs[0]["tensors"][0]["elements"]), ("y", expected))
        words = ["--input", "x=x.npy", "--input", "past=past.npy", "--input", "cached=x.npy"]
        self.assertIn("input 'cached' is f32[2], expected bool[1]", self.run_program("run", "decoder.plan", *words, code=2))
        self.assertIn("y", self.run_program("run", "decoder.plan", "--random", "1", "--dim", "N=3", "--dim", "P=2"))

    def test_models_run_on_the_device_that_engines_use(self):
        g = graph([node("Sub", ["a", "b"], ["y"])], [value("a", FLOAT, [1]), value("b", FLOAT, [1])], [value("y", FLOAT, [1])])
        self.write("one.onnx", model(g))
        words = [PROGRAM, "run", "one.onnx", "--random", "1", "--profile"]
        for device, code in (("", 0), ("cpu", 0), ("reference", 2)):  # the reference goes node by node, without a profile
            environment = {**os.environ, "TESSERA_DEVICE": device} if device else {k: v for k, v in os.environ.items() if k != "TESSERA_DEVICE"}
            done = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, code, (device, done.stderr))

    def test_limits(self):
        words = ("run", "model.onnx", "--input", "both.npz")
        self.assertIn("at most 3 are allowed", self.run_program(*words, "--work", "3", code=2))
        self.assertIn("seconds", self.run_program(*words, "--seconds", "1e-9", code=2))
        self.assertIn("at most 3 are allowed", self.run_program(*words, "--work", "3", "--device", "reference", code=2))
        self.assertIn("seconds", self.run_program(*words, "--seconds", "1e-9", "--device", "reference", code=2))

    def test_diff(self):
        words = ("diff", "model.onnx", "--input", "both.npz", "--device", "reference")
        self.assertIn("agree on all 2 calls", self.run_program(*words, "--device", "reference"))
        self.assertIsNone(json.loads(self.run_program(*words, "--device", "reference", "--json"))["first"])
        self.assertIn("expected 2", self.run_program(*words, code=2))
        self.assertIn("no device 'abacus'", self.run_program(*words, "--device", "abacus", code=2))

    def test_inspect(self):
        text = self.run_program("inspect", "model.onnx")
        for line in ("opset   ai.onnx 13", "input   a: float[N, 2]", "output  z: float[N, 2]", "size    N: a:0", "op      Sub x 1",
                     "supported: runs, and is one function"):
            self.assertIn(line, text)
        found = json.loads(self.run_program("inspect", "--json", "model.onnx"))
        self.assertEqual(found["dims"], {"N": ["a:0"]})
        self.assertEqual(found["ops"], {"Relu": 1, "Sub": 1})
        self.assertTrue(found["function"])

    def test_inspect_says_what_cannot_run(self):
        words = graph([node("Identity", ["s"], ["y"], name="same")], [value("s", STRING, ["N"])], [value("y", STRING, ["N"])])
        self.write("words.onnx", model(words))
        self.assertIn("not supported: input 's' is string[N]", self.run_program("inspect", "words.onnx", code=1))
        self.assertIn("input 's'", json.loads(self.run_program("inspect", "--json", "words.onnx", code=1))["wrong"])
        branch = graph([node("Identity", ["x"], ["r"])], [], [value("r", FLOAT, [2])])
        half = graph([node("If", ["c"], ["y"], [attr_graph("then_branch", branch)], name="half")],
                     [value("c", BOOL, []), value("x", FLOAT, [2])], [value("y", FLOAT, [2])])
        self.write("half.onnx", model(half))
        found = self.run_program("inspect", "half.onnx", code=1)
        self.assertIn("not supported: attribute 'else_branch' is missing; node 'half' (If)", found)
        self.assertIn("node 'half' (If)", self.run_program("run", "half.onnx", "--random", "1", code=2))

    def test_run_refuses_what_a_model_has_not(self):
        for words, expected in ((["--function", "f"], "--function: a model is one function"),
                                (["--dim", "N=2", "--dim", "N=3"], "--dim: 'N' is given twice")):
            self.assertIn(expected, self.run_program("run", "model.onnx", "--random", "1", *words, code=2))

    def test_too_many_flags_are_named(self):
        flags = [f"f{i}" for i in range(4)]
        branches = [graph([node("Slice", ["x", f"b{k}", f"e{k}"], ["r"])], [], [value("r", FLOAT, ["k"])],
                          [int_vector(f"b{k}", [0]), int_vector(f"e{k}", [1 + k])]) for k in range(2)]
        bodies = [attr_graph("then_branch", branches[0]), attr_graph("else_branch", branches[1])]
        nodes = [node("If", [flag], [f"{flag}_y"], bodies) for flag in flags]
        g = graph(nodes, [value("x", FLOAT, [3]), *(value(f, BOOL, [1]) for f in flags)], [value(f"{f}_y", FLOAT, [f"k{f}"]) for f in flags])
        self.write("flags.onnx", model(g))
        self.assertIn("it has 4 inputs of one boolean, for at most 3 there is a function for each value", self.run_program("inspect", "flags.onnx"))

    def test_states_of_recurrences_are_not_repeated(self):
        def lstm(batch):
            inputs = [value("x", FLOAT, [2, 3, 2]), value("w", FLOAT, [1, 4, 2]), value("r", FLOAT, [1, 4, 1]),
                      value("h", FLOAT, [1, batch, 1])]
            return model(graph([node("LSTM", ["x", "w", "r", "", "", "h"], ["y"], [attr_int("hidden_size", 1)], name="l")],
                               inputs, [value("y", FLOAT, [2, 1, 3, 1])]))
        self.write("fits.onnx", lstm(3))
        self.write("one.onnx", lstm(1))
        for device in ("reference", "cpu"):
            self.run_program("run", "fits.onnx", "--random", "1", "--device", device)
            found = self.run_program("run", "one.onnx", "--random", "1", "--device", device, code=2)
            self.assertIn("input 5 is f32[1, 1, 1], expected the shape [1, 3, 1]", found)

    def test_inspect_lists_what_is_missing(self):
        self.write("bad.onnx", model(graph([node("Foo", ["x"], ["y"], name="\x1b[2J")], [value("x", FLOAT, [1])], [value("y")])))
        text = self.run_program("inspect", "bad.onnx", code=1)
        self.assertIn("not supported: node '\\x1b[2J' (Foo), Foo of opset 13", text)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
