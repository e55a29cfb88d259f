#!/usr/bin/env python3
"""Operators that the ONNX project has no tests for, and models as functions, against plain Python.
operators_test.py TESSERA"""
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from wire import *  # noqa: F403 (a vocabulary)

PROGRAM = ""
MS = "com.microsoft"


def numbers(name, dims, values):
    return tensor(name, dims, FLOAT, raw=struct.pack(f"<{len(values)}f", *values))


def attr_float(name, f):
    return blob(1, name) + varint(2 << 3 | 5) + struct.pack("<f", f) + integer(20, 1)


def tessera(command, data, *options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        pathlib.Path(path).write_bytes(data)
        return subprocess.run([PROGRAM, command, *options, path], capture_output=True, text=True)


def run_op(op, inputs, attributes=(), outputs=1, domain=MS):
    """The outputs of one node as (shape, elements); inputs are (dims, values), None where one is left out."""
    names = ["" if i is None else f"i{k}" for k, i in enumerate(inputs)]
    made = [numbers(n, *i) if not isinstance(i, bytes) else i for n, i in zip(names, inputs) if i is not None]
    results = [f"y{k}" for k in range(outputs)]
    g = graph([node(op, names, results, attributes, domain=domain)], [], [value(r) for r in results], made)
    done = tessera("run", model(g, opsets=[opset(17), opset(1, MS)]), "--json")
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [(t["tensors"][0]["shape"], t["tensors"][0]["elements"]) for t in json.loads(done.stdout)["outputs"]]


def matmul(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def softmax(row):
    top = max(row)
    all_ = [math.exp(x - top) for x in row]
    return [x / sum(all_) for x in all_]


def rows(values, width):
    return [values[i:i + width] for i in range(0, len(values), width)]


def attention(q, k, v, heads, seen=None):
    """One batch: q, k, v are lists of rows."""
    size = len(q[0]) // heads
    out = [[] for _ in q]
    for h in range(heads):
        part = [[row[h * size:(h + 1) * size] for row in m] for m in (q, k, v)]
        scores = [[x / math.sqrt(size) for x in row] for row in matmul(part[0], list(zip(*part[1])))]
        if seen:
            scores = [[x if s else -math.inf for x, s in zip(row, seen)] for row in scores]
        for i, row in enumerate(matmul([softmax(row) for row in scores], part[2])):
            out[i] += row
    return [x for row in out for x in row]


class Operators(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(7)

    def make(self, *dims):
        return list(dims), [self.random.uniform(-1, 1) for _ in range(math.prod(dims))]

    def assert_close(self, got, expected):
        self.assertEqual(len(got), len(expected))
        for g, e in zip(got, expected):
            self.assertAlmostEqual(g, e, delta=1e-5 + 1e-4 * abs(e))

    def test_fused_matmul(self):
        a, b = self.make(3, 2), self.make(4, 3)
        (shape, got), = run_op("FusedMatMul", [a, b], [attr_int("transA", 1), attr_int("transB", 1), attr_float("alpha", 0.5)])
        expected = matmul(list(zip(*rows(a[1], 2))), list(zip(*rows(b[1], 3))))
        self.assertEqual(shape, [2, 4])
        self.assert_close(got, [0.5 * x for row in expected for x in row])

    def test_gelus(self):
        x, bias = self.make(2, 3), self.make(3)
        plus = [v + bias[1][i % 3] for i, v in enumerate(x[1])]
        def exact(v): return v * 0.5 * (1 + math.erf(v / math.sqrt(2)))
        def fast(v): return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))
        self.assert_close(run_op("Gelu", [x])[0][1], [exact(v) for v in x[1]])
        self.assert_close(run_op("BiasGelu", [x, bias])[0][1], [exact(v) for v in plus])
        self.assert_close(run_op("FastGelu", [x, bias])[0][1], [fast(v) for v in plus])
        self.assert_close(run_op("QuickGelu", [x])[0][1], [v / (1 + math.exp(-1.702 * v)) for v in x[1]])

    def test_skip_layer_normalization(self):
        x, skip, gamma, beta, bias = self.make(2, 4), self.make(2, 4), self.make(4), self.make(4), self.make(4)
        (_, got), _, _, (_, total) = run_op("SkipLayerNormalization", [x, skip, gamma, beta, bias], outputs=4)
        sums = [a + b + bias[1][i % 4] for i, (a, b) in enumerate(zip(x[1], skip[1]))]
        expected = []
        for row in rows(sums, 4):
            mean = sum(row) / 4
            deviation = math.sqrt(sum((v - mean) ** 2 for v in row) / 4 + 1e-12)
            expected += [(v - mean) / deviation * gamma[1][i] + beta[1][i] for i, v in enumerate(row)]
        self.assert_close(got, expected)
        self.assert_close(total, sums)

    def test_simplified_layer_normalization(self):
        x, gamma = self.make(2, 4), self.make(4)
        expected = []
        for row in rows(x[1], 4):
            deviation = math.sqrt(sum(v * v for v in row) / 4 + 1e-5)
            expected += [v / deviation * gamma[1][i] for i, v in enumerate(row)]
        self.assert_close(run_op("SimplifiedLayerNormalization", [x, gamma], domain="")[0][1], expected)

    def test_multi_head_attention(self):
        q, k, v = self.make(1, 3, 4), self.make(1, 5, 4), self.make(1, 5, 4)
        (shape, got), = run_op("MultiHeadAttention", [q, k, v], [attr_int("num_heads", 2)])
        self.assertEqual(shape, [1, 3, 4])
        self.assert_close(got, attention(rows(q[1], 4), rows(k[1], 4), rows(v[1], 4), 2))

    def test_attention_with_mask(self):
        x, w, b = self.make(1, 3, 4), self.make(4, 12), self.make(12)
        mask = tensor("i3", [1, 3], INT64, ints=[1, 0, 1])
        (_, got), = run_op("Attention", [x, w, b, mask], [attr_int("num_heads", 2)])
        all_ = [[a + b[1][i] for i, a in enumerate(row)] for row in matmul(rows(x[1], 4), rows(w[1], 12))]
        q, k, v = ([row[i * 4:(i + 1) * 4] for row in all_] for i in range(3))
        self.assert_close(got, attention(q, k, v, 2, [1, 0, 1]))

    def test_rotary_embedding(self):
        x, cosines, sines = self.make(1, 2, 3, 4), self.make(8, 2), self.make(8, 2)
        positions = tensor("i1", [1, 3], INT64, ints=[5, 0, 2])
        (_, got), = run_op("RotaryEmbedding", [x, positions, cosines, sines])
        expected = []
        for i, row in enumerate(rows(x[1], 4)):
            at = [5, 0, 2][i % 3]
            c, s = cosines[1][2 * at:2 * at + 2], sines[1][2 * at:2 * at + 2]
            expected += [row[j] * c[j] - row[j + 2] * s[j] for j in range(2)]
            expected += [row[j + 2] * c[j] + row[j] * s[j] for j in range(2)]
        self.assert_close(got, expected)


    def test_rotary_embedding_of_neighbours(self):
        x, cosines, sines = self.make(1, 3, 8), self.make(8, 1), self.make(8, 1)  # two heads of size 4, two of them turned
        positions = tensor("i1", [1], INT64, ints=[4])
        (shape, got), = run_op("RotaryEmbedding", [x, positions, cosines, sines],
                               [attr_int("interleaved", 1), attr_int("num_heads", 2), attr_int("rotary_embedding_dim", 2)])
        expected = []
        for i, row in enumerate(rows(x[1], 4)):
            c, s = cosines[1][4 + i // 2], sines[1][4 + i // 2]
            expected += [row[0] * c - row[1] * s, row[1] * c + row[0] * s, row[2], row[3]]
        self.assertEqual(shape, [1, 3, 8])
        self.assert_close(got, expected)

    def test_multi_head_attention_with_bias_past_and_lengths(self):
        q, k, v, bias = self.make(1, 2, 4), self.make(1, 3, 4), self.make(1, 3, 4), self.make(12)
        past_k, past_v = self.make(1, 2, 2, 2), self.make(1, 2, 2, 2)
        lengths = tensor("i4", [1], 6, raw=struct.pack("<i", 4))
        (_, got), (shape, present), _ = run_op("MultiHeadAttention", [q, k, v, bias, lengths, None, past_k, past_v],
                                               [attr_int("num_heads", 2)], outputs=3)
        def plus(m, at): return [[x + bias[1][at + i] for i, x in enumerate(row)] for row in rows(m[1], 4)]
        def before(m): return [m[1][2 * i:2 * i + 2] + m[1][4 + 2 * i:6 + 2 * i] for i in range(2)]
        keys, values = before(past_k) + plus(k, 4), before(past_v) + plus(v, 8)
        self.assert_close(got, attention(plus(q, 0), keys, values, 2, [1, 1, 1, 1, 0]))
        self.assertEqual(shape, [1, 2, 5, 2])
        self.assert_close(present, [row[2 * h + j] for h in range(2) for row in keys for j in range(2)])

    def test_attention_of_the_past_is_causal(self):
        x, w, b, past = self.make(1, 2, 4), self.make(4, 12), self.make(12), self.make(2, 1, 2, 3, 2)
        (_, got), (shape, _) = run_op("Attention", [x, w, b, None, past], [attr_int("num_heads", 2), attr_int("unidirectional", 1)],
                                      outputs=2)
        all_ = [[a + b[1][i] for i, a in enumerate(row)] for row in matmul(rows(x[1], 4), rows(w[1], 12))]
        q, k, v = ([row[i * 4:(i + 1) * 4] for row in all_] for i in range(3))
        def before(at): return [past[1][at + 2 * i:at + 2 * i + 2] + past[1][at + 6 + 2 * i:at + 8 + 2 * i] for i in range(3)]
        keys, values = before(0) + k, before(12) + v
        expected = attention(q[:1], keys, values, 2, [1, 1, 1, 1, 0]) + attention(q[1:], keys, values, 2)
        self.assertEqual(shape, [2, 1, 2, 5, 2])
        self.assert_close(got, expected)

    def test_dynamic_quantize_lstm(self):
        steps, width, hidden = 3, 2, 2
        x = self.make(steps, 1, width)
        w = [self.random.randrange(-100, 100) for _ in range(width * 4 * hidden)]
        r = [self.random.randrange(0, 200) for _ in range(hidden * 4 * hidden)]
        bias = self.make(1, 8 * hidden)
        def byte(v): return struct.pack(f"<{len(v)}b", *v)
        inputs = [x, tensor("i1", [1, width, 4 * hidden], 3, raw=byte(w)), tensor("i2", [1, hidden, 4 * hidden], 2, raw=bytes(r)), bias,
                  None, None, None, None, ([1], [0.01]), tensor("i9", [1], 3, raw=byte([5])), ([1], [0.02]), tensor("i11", [1], 2, raw=bytes([90]))]
        (_, got), _, (_, cell) = run_op("DynamicQuantizeLSTM", inputs, [attr_int("hidden_size", hidden)], outputs=3)
        c = h = [0.0] * hidden
        expected = []
        quantised = self.quantised(x[1])
        for t in range(steps):
            a = self.product(quantised[t * width:(t + 1) * width], [[(v - 5) * 0.01 for v in row] for row in rows(w, 4 * hidden)])
            a2 = self.product(self.quantised(h), [[(v - 90) * 0.02 for v in row] for row in rows(r, 4 * hidden)])
            gates = [p + q + bias[1][i] + bias[1][4 * hidden + i] for i, (p, q) in enumerate(zip(a, a2))]
            def sigmoid(v): return 1 / (1 + math.exp(-v))
            i, o, f, g = (gates[k * hidden:(k + 1) * hidden] for k in range(4))
            c = [sigmoid(f[j]) * c[j] + sigmoid(i[j]) * math.tanh(g[j]) for j in range(hidden)]
            h = [sigmoid(o[j]) * math.tanh(c[j]) for j in range(hidden)]
            expected += h
        self.assert_close(got, expected)
        self.assert_close(cell, c)

    @staticmethod
    def quantised(values):
        """What is left of the values after 8 bits."""
        low, high = min(0, *values), max(0, *values)
        scale = (high - low) / 255 or 1
        zero = round(-low / scale)
        return [(min(255, max(0, round(v / scale) + zero)) - zero) * scale for v in values]

    @staticmethod
    def product(row, matrix):
        return [sum(a * b for a, b in zip(row, column)) for column in zip(*matrix)]


class Resize(unittest.TestCase):
    """Attributes of version 18; what is expected follows the format's own reference."""
    def resize(self, x, attributes, scales=None, sizes=None):
        given = [x, None, scales, sizes if sizes is None else tensor("i3", [len(sizes)], INT64, ints=sizes)]
        names = ["" if i is None else f"i{k}" for k, i in enumerate(given)]
        made = [i if isinstance(i, bytes) else numbers(n, *i) for n, i in zip(names, given) if i is not None]
        g = graph([node("Resize", names, ["y"], attributes)], [], [value("y")], made)
        done = tessera("run", model(g, 18), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)["outputs"][0]["tensors"][0]
        return found["shape"], found["elements"]

    def test_axes(self):
        shape, got = self.resize(([2, 1, 2], [1, 2, 3, 4]), [attr_ints("axes", [2, 1]), attr_text("mode", "nearest")], scales=([2], [2, 3]))
        self.assertEqual(shape, [2, 3, 4])
        self.assertEqual(got, [1, 1, 2, 2] * 3 + [3, 3, 4, 4] * 3)

    def test_keep_aspect(self):
        x = ([2, 4], list(range(8)))
        for policy, expected in (("not_larger", [4, 7]), ("not_smaller", [5, 9])):
            shape, _ = self.resize(x, [attr_text("keep_aspect_ratio_policy", policy), attr_text("mode", "nearest")],
                                   sizes=[4, 9] if policy == "not_smaller" else [5, 7])
            self.assertEqual(shape, expected, policy)

    def test_antialias_linear(self):
        shape, got = self.resize(([1, 4], [1, 2, 3, 4]), [attr_int("antialias", 1), attr_text("mode", "linear")], scales=([2], [1, 0.5]))
        self.assertEqual(shape, [1, 2])
        weights = [max(0, 1 - abs(k - 0.5) / 2) for k in range(-1, 3)]  # element 0 is about place 0.5
        expected = sum(w * v for w, v in zip(weights, [1, 1, 2, 3])) / sum(weights)
        self.assertAlmostEqual(got[0], expected, places=5)
        self.assertAlmostEqual(got[1], 5 - expected, places=5)

    def test_half_pixel_symmetric(self):
        _, got = self.resize(([1, 4], [1, 2, 3, 4]), [attr_text("mode", "linear"),
                                                      attr_text("coordinate_transformation_mode", "half_pixel_symmetric")], scales=([2], [1, 0.6]))
        self.assertAlmostEqual(got[0] + got[1], 5, places=5)


class Functions(unittest.TestCase):
    def function(self, g, version=13):
        done = tessera("inspect", model(g, version), "--function")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_shapes_of_exporters_become_symbols(self):
        nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"], [attr_int("axis", 0)]),
                 node("Unsqueeze", ["n", "axes"], ["n1"]), node("Concat", ["n1", "rest"], ["to"], [attr_int("axis", 0)]),
                 node("Reshape", ["x", "to"], ["y"])]
        text = self.function(graph(nodes, [value("x", FLOAT, ["batch", 3, "steps"])], [value("y")],
                                   [int_scalar("zero", 0), int_vector("axes", [0]), int_vector("rest", [-1])]))
        self.assertIn("x: f32[batch, 3, steps]", text)
        self.assertIn("f32[batch, 3 * steps] = reshape(x)", text)
        self.assertEqual(text.count(" = "), text.count("reshape(x)") * 2, text)  # one statement, one attribute

    def test_sizes_that_depend_on_data_are_learned(self):
        text = self.function(graph([node("NonZero", ["x"], ["y"], name="where")], [value("x", FLOAT, ["n"])], [value("y")]))
        self.assertIn("nonzero(", text)

    def test_known_branches_are_chosen(self):
        then = graph([node("Relu", ["x"], ["a"])], [], [value("a")])
        other = graph([node("Abs", ["x"], ["b"])], [], [value("b")])
        g = graph([node("If", ["k"], ["y"], [attr_graph("then_branch", then), attr_graph("else_branch", other)])],
                  [value("x", FLOAT, ["n"])], [value("y")], [tensor("k", [], BOOL, raw=b"\0")])
        text = self.function(g)
        self.assertIn("abs(x)", text)
        self.assertNotIn("relu", text)


class Messages(unittest.TestCase):
    def test_all_missing_operators_at_once(self):
        g = graph([node("Foo", ["x"], ["a"], name="n1"), node("Bar", ["a"], ["b"], name="n2", domain=MS)], [value("x")], [value("b")])
        done = tessera("run", model(g, opsets=[opset(13), opset(1, MS)]))
        self.assertEqual(done.returncode, 2)
        self.assertIn("2 nodes use operators that cannot be imported", done.stderr)
        self.assertIn("node 'n1' (Foo): Foo of opset 13", done.stderr)
        self.assertIn("node 'n2' (com.microsoft.Bar): com.microsoft.Bar of opset 1", done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
