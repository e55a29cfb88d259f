"""`tessera ops`: the table, one card, JSON, messages, exit codes."""
import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop())
PROGRAM = sys.argv.pop()


def ops(*arguments):
    result = subprocess.run([PROGRAM, "ops", *arguments], capture_output=True)
    result.out, result.err = result.stdout.decode(errors="replace"), result.stderr.decode(errors="replace")
    return result


def cards():
    return json.loads(ops("--json").out)["ops"]


class Table(unittest.TestCase):
    def test_lists_every_op_once_sorted(self):
        lines = ops().out.splitlines()
        self.assertEqual(lines[0].split()[:2], ["OP", "DTYPES"])
        names = [line.split()[0] for line in lines[1:] if line and "`tessera ops NAME`" not in line]
        self.assertEqual(names, [card["name"] for card in cards()])
        self.assertEqual(names, sorted(set(names)))
        self.assertIn(f"{len(names)} ops", lines[-1])

    def test_says_what_each_column_says(self):
        row = next(line for line in ops().out.splitlines() if line.startswith("sigmoid "))
        self.assertEqual(row.split(None, 6),
                         ["sigmoid", "floats", "yes", "yes", "Sigmoid", "torch:sigmoid", "1 / (1 + exp(-x))"])


class Device(unittest.TestCase):
    def test_nearly_every_op_runs_on_cuda(self):
        how = {op["name"]: op["runs_as"] for op in json.loads(ops("--device", "cuda", "--json").out)["ops"]}
        self.assertEqual(sorted(how), [card["name"] for card in cards()])
        missing = [name for name, kind in how.items() if kind == "nothing"]
        self.assertLessEqual(len(missing), 0.05 * len(how), missing)
        expected = {"add": "kernel", "sum": "kernel", "eye": "kernel", "reshape": "view", "matmul": "program",
                    "sort": "program", "attention": "parts", "tile": "parts"}
        self.assertEqual({name: how[name] for name in expected}, expected)

    def test_the_table_counts_what_is_missing(self):
        lines = ops("--device", "cuda").out.splitlines()
        for name in ("cuda:0", "cuda:3", "cuda:0:tf32"):
            self.assertEqual(ops("--device", name).out.splitlines(), lines)
        for name in ("cuda:", "cuda:x", "cuda0", "cuda:0:tf16", "cuda:-1", ""):
            self.assertIn("expected cuda", ops("--device", name).err)
        self.assertEqual(lines[0].split(), ["OP", "RUNS", "AS", "DTYPES"])
        self.assertEqual(lines[-1], f"{len(cards())} ops, 0 do not run on CUDA devices")

    def test_other_devices_are_refused(self):
        result = ops("--device", "tpu")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("--device is 'tpu', expected cuda", result.err)


class OneOp(unittest.TestCase):
    def test_details(self):
        result = ops("leaky_relu")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.out, """\
leaky_relu(x: T, alpha: scalar T = 0.01) -> y: T
  x if positive, else alpha * x

  T             floats
  traits        elementwise, activation, composite
  gradient      yes
  decomposition yes
  ONNX          -
  also called   LeakyReLU LeakyRelu
  oracle        torch:nn.functional.leaky_relu
""")

    def test_attributes_with_defaults(self):
        out = ops("sum").out
        self.assertIn("  attributes    axes: integers = []\n                keepdims: boolean = false\n", out)
        self.assertIn("  attributes    dtype: dtype\n", ops("cast").out)

    def test_why_there_is_no_gradient(self):
        self.assertIn("  gradient      no: the result is boolean\n", ops("eq").out)

    def test_unknown_ops_exit_2_with_the_nearest_names(self):
        for given, near in {"sigmod": "sigmoid", "soft": "softplus", "Add": "add",
                            "exp_": "exp", "leaky": "leaky_relu"}.items():
            result = ops(given)
            self.assertEqual((result.returncode, result.out), (2, ""))
            self.assertRegex(result.err, rf"^tessera: there is no op '{given}'; near: .*\b{near}\b")
        for given in ["", "zzzzzz", "\x1b[31m", "x" * 100000]:
            result = ops(given)
            self.assertEqual(result.returncode, 2)
            self.assertTrue(result.err.startswith("tessera: there is no op '"), result.err[:80])
            self.assertNotIn("\x1b", result.err)
            self.assertLess(len(result.err), 300)

    def test_wrong_arguments_exit_2(self):
        for arguments in [["add", "sub"], ["--nonsense"], ["add", "--json", "--nonsense"]]:
            self.assertEqual(ops(*arguments).returncode, 2, arguments)


class Json(unittest.TestCase):
    def test_says_everything_about_every_op(self):
        for card in cards():
            self.assertEqual(set(card) - {"no_gradient"}, {"name", "summary", "signature", "inputs", "results", "attributes",
                                                           "dtypes", "dtype_sets", "traits", "gradient", "decomposition", "onnx", "spellings",
                                                           "oracle"})
            self.assertTrue(card["summary"], card["name"])
            self.assertTrue(card["signature"].startswith(card["name"] + "("), card["name"])
            self.assertTrue(card["gradient"] or card["no_gradient"], card["name"])
            self.assertRegex(card["oracle"], r"^(torch:|numpy:|none: )\S", card["name"])
            for given in card["inputs"]:
                self.assertIn(given["kind"], {"tensor", "scalar", "optional", "variadic"})
            for attribute in card["attributes"]:
                self.assertIn(attribute["kind"],
                              {"boolean", "integer", "number", "text", "dtype", "integers", "numbers", "shape", "size"})

    def test_one_op(self):
        listed = json.loads(ops("clip", "--json").out)["ops"]
        self.assertEqual([card["name"] for card in listed], ["clip"])
        self.assertEqual(listed[0]["inputs"][1], {"name": "low", "type": "T", "kind": "scalar", "default": "-inf"})
        self.assertEqual(listed[0], next(card for card in cards() if card["name"] == "clip"))

    def test_nine_in_ten_ops_have_an_oracle(self):
        listed = cards()
        self.assertGreaterEqual(sum(not card["oracle"].startswith("none") for card in listed) * 10, len(listed) * 9)


class Page(unittest.TestCase):
    def test_the_page_is_up_to_date(self):
        result = subprocess.run([ROOT / "tools/ops-page", "--check", PROGRAM], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


unittest.main(argv=sys.argv[:1])
