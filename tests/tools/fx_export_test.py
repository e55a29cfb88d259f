"""tools/fx-export: PyTorch modules as graphs, and what `tessera tile` makes of them."""
import importlib.machinery
import importlib.util
import json
import operator
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
except ImportError:
    # The distribution's torch belongs to the distribution's Python.
    if os.path.exists("/usr/bin/python3") and os.path.realpath(sys.executable) != os.path.realpath("/usr/bin/python3"):
        os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])
    torch = None

try:
    import torchvision
except ImportError:
    torchvision = None

ROOT = pathlib.Path(sys.argv.pop())
PROGRAM = sys.argv.pop()
LIBRARY = ROOT / "examples/tile/library.json"


def load_tool():
    loader = importlib.machinery.SourceFileLoader("fx_export", str(ROOT / "tools/fx-export"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fx_export", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


def tile(graph, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graph.json"
        path.write_text(json.dumps(graph))
        command = [PROGRAM, "tile", str(path), *map(str, arguments), "--json"]
        result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def tiles(answer):
    return [(tile["pattern"], list(tile["map"].values())) for tile in answer["tiles"]]


def torch_function(op):
    """What a spelling of the exporter means in torch."""
    space, _, name = op.rpartition(".")
    if op.startswith("aten::"):
        return {"aten::copy": lambda to, value: value.expand_as(to).to(to.dtype),
                "aten::fill": lambda to, value: torch.ones_like(to) * value}[op]
    if op == "torch.slice_copy":
        return lambda x, dim=0, start=None, end=None, step=None: x[(slice(None),) * dim + (slice(start, end, step),)]
    if op == "torch.slice_scatter":
        def slice_scatter(x, value, dim=0, start=None, end=None, step=None):
            out = x.clone()
            out[(slice(None),) * dim + (slice(start, end, step),)] = value
            return out
        return slice_scatter
    if op == "Tensor.index_put":
        return lambda x, value, indices: x.index_put(tuple(torch.tensor(eval(i)) for i in indices), torch.tensor(value))
    if space == "_operator":
        return getattr(operator, name)
    if space == "Tensor":
        return getattr(torch.Tensor, name)
    return getattr(torch, name, None) or getattr(torch.nn.functional, name.lower() if "modules" in op else name)


def evaluate(graph, values):
    """The outputs of an exported graph for its arguments and attributes."""
    values = dict(values)
    for node in graph["nodes"]:
        inputs = [values[name] if isinstance(name, str) else name for name in node["inputs"]]
        attrs = {name: value for name, value in node["attrs"].items() if not name.startswith("arg")}
        last = [eval(value) if isinstance(value, str) else value for name, value in node["attrs"].items() if name.startswith("arg")]
        if node["op"] == "torch.squeeze" or node["op"] == "torch.unsqueeze" or "scatter" in node["op"]:
            result = torch_function(node["op"])(*inputs, **attrs)
        elif node["op"] == "_operator.getitem":
            index = node["attrs"]["arg1"]
            result = inputs[0][tuple(index) if isinstance(index, list) else last[0]]
        else:
            result = torch_function(node["op"])(*inputs, *last, **attrs)
        values[node["id"]] = result
        if isinstance(result, (list, tuple)):
            values.update({f"{node['id']}:{i}": item for i, item in enumerate(result)})
    return [values[name] for name in graph["outputs"]]


@unittest.skipIf(torch is None, "torch is not installed (Debian: python3-torch)")
class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.export = staticmethod(load_tool().export)

    def test_mlp_by_modules_and_by_functions_is_the_same(self):
        nn = torch.nn

        class Functional(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.zeros(4, 8))
                self.b = nn.Parameter(torch.zeros(4))

            def forward(self, x):
                return nn.functional.linear(nn.functional.relu(nn.functional.linear(x, self.w, self.b)), self.w.t())

        modules = self.export(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 8)))
        self.assertEqual([node["inputs"] for node in modules["nodes"]],
                         [["input", "0.weight", "0.bias"], ["_0"], ["_1", "2.weight", "2.bias"]])
        self.assertEqual(modules["outputs"], ["_2"])
        functions = self.export(Functional())
        self.assertEqual(functions["nodes"][0]["inputs"], ["x", "w", "b"])
        pattern = "linear_relu=1:linear->2:relu"
        self.assertEqual(tiles(tile(modules, "--pattern", pattern)), [("linear_relu", ["_0", "_1"])])
        self.assertEqual(tiles(tile(functions, "--pattern", pattern)), [("linear_relu", ["linear", "relu"])])

    def test_mlp_is_covered_by_the_example_library(self):
        nn = torch.nn
        answer = tile(self.export(nn.Sequential(nn.Linear(8, 4), nn.GELU(), nn.Linear(4, 8)), torch.zeros(2, 8)), LIBRARY)
        self.assertEqual(answer["coverage"], 3)
        self.assertEqual([name for name, _ in tiles(answer)], ["linear_activation", "linear"])

    def test_spellings_of_one_op(self):
        class Spelled(torch.nn.Module):
            def forward(self, x, y):
                a = x + y
                b = torch.add(a, y)
                c = b.add(y)
                d = c.relu()
                return torch.relu(torch.nn.functional.relu(d))

        answer = tile(self.export(Spelled()), "--pattern", "add=1:add", "--pattern", "relu=1:relu")
        self.assertEqual([name for name, _ in tiles(answer)], ["add"] * 3 + ["relu"] * 3)

    def test_what_is_written_in_place_is_a_new_value(self):
        class Block(torch.nn.Module):
            def __init__(self, reads_old):
                super().__init__()
                self.relu = torch.nn.ReLU(inplace=True)
                self.reads_old = reads_old

            def forward(self, x):
                y = torch.exp(x)
                z = self.relu(y)
                return z * y if self.reads_old else z * x

        pattern = ["--pattern", "exp_relu=1:exp->2:relu @out=1,2"]
        self.assertEqual(len(tiles(tile(self.export(Block(False)), *pattern))), 1)
        self.assertEqual(len(tiles(tile(self.export(Block(True)), *pattern))), 1)
        self.assertEqual(self.export(Block(True))["nodes"][2]["inputs"], ["relu", "relu"], "y is what was written to it")

    def test_in_place_modules_are_those_that_return_the_result(self):
        nn = torch.nn
        modules = [nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.SiLU, nn.Mish, nn.Hardswish, nn.Hardsigmoid, nn.Dropout]
        for module in modules:
            graph = self.export(nn.Sequential(nn.Linear(2, 2), module(inplace=True)))
            same = self.export(nn.Sequential(nn.Linear(2, 2), module()))
            self.assertEqual(graph, same)
            pattern = "p=1:linear->2:" + same["nodes"][1]["op"]
            self.assertEqual(len(tiles(tile(graph, "--pattern", pattern))), 1, module)

    def test_several_results_and_shapes(self):
        class Split(torch.nn.Module):
            def forward(self, x):
                a, b = x.chunk(2, dim=-1)
                return a * torch.sigmoid(b) * 0.5

        graph = self.export(Split(), torch.zeros(3, 8))
        self.assertEqual(graph["nodes"][0]["results"], [{"shape": [3, 4], "dtype": "f32"}] * 2)
        self.assertEqual(graph["nodes"][1]["inputs"], ["chunk:1"])
        self.assertEqual(graph["nodes"][2]["inputs"], ["chunk:0", "sigmoid"])
        self.assertEqual(graph["nodes"][3]["inputs"], ["mul", 0.5])
        self.assertEqual(graph["externals"], {"x": {"shape": [3, 8], "dtype": "f32"}})
        answer = tile(graph, "--regions", "--pattern", "split=1:chunk")
        self.assertEqual(tiles(answer), [("split", ["chunk"]), ("region", ["sigmoid", "mul", "mul_1"])])

    def test_transformer_block_of_torch(self):
        nn = torch.nn

        class Block(nn.Module):
            def __init__(self, width=16, heads=2):
                super().__init__()
                self.heads = heads
                self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
                self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
                self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

            def split(self, x):
                return x.reshape(1, 10, self.heads, -1).transpose(1, 2)

            def forward(self, x):
                y = self.norm1(x)
                q, k, v = self.split(self.q(y)), self.split(self.k(y)), self.split(self.v(y))
                weights = torch.softmax(q @ k.transpose(-2, -1) / 2.0, dim=-1)
                x = x + self.o((weights @ v).transpose(1, 2).reshape(1, 10, -1))
                return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

        graph = self.export(Block(), torch.zeros(1, 10, 16))
        answer = tile(graph, LIBRARY)
        self.assertEqual(answer["coverage"], answer["nodes"])
        self.assertTrue(answer["optimal"])
        names = [name for name, _ in tiles(answer)]
        self.assertIn("attention", names)
        self.assertIn("linear_activation", names)
        self.assertEqual(names.count("linear_add"), 2)

    @unittest.skipIf(torchvision is None, "torchvision is not installed (Debian: python3-torchvision)")
    def test_resnet_block_of_torchvision(self):
        block = torchvision.models.resnet.BasicBlock(64, 64)
        graph = self.export(block, torch.zeros(1, 64, 8, 8))
        self.assertIn("bn1.running_var", graph["nodes"][1]["inputs"])
        self.assertEqual(graph["nodes"][2]["op"], "torch.nn.modules.activation.ReLU")
        answer = tile(graph, LIBRARY)
        self.assertEqual(tiles(answer), [("conv_norm_relu", ["conv1", "bn1", "relu"]),
                                         ("conv_norm_add_relu", ["conv2", "bn2", "add", "relu_1"])])

    @unittest.skipIf(torchvision is None, "torchvision is not installed (Debian: python3-torchvision)")
    def test_transformer_block_of_torchvision(self):
        block = torchvision.models.vision_transformer.EncoderBlock(2, 16, 32, 0.0, 0.0)
        graph = self.export(block, torch.zeros(1, 10, 16))
        attention = graph["nodes"][1]
        self.assertEqual(attention["inputs"][:3], ["ln_1"] * 3)
        self.assertEqual(graph["nodes"][2]["inputs"], ["self_attention:0"])
        answer = tile(graph, "--pattern", "linear_gelu=1:linear->2:gelu", "--pattern", "norm=1:layer_norm")
        self.assertEqual([name for name, _ in tiles(answer)], ["norm", "norm", "linear_gelu"])

    # ---- programs that write in place

    def check_same(self, function, *shapes, with_input=(False, True)):
        """The exported program computes what the module does, which writes in place."""

        class Module(torch.nn.Module):
            def forward(self, x, y=None):
                return function(x, y) if function.__code__.co_argcount == 2 else function(x)

        class Unary(torch.nn.Module):
            def forward(self, x):
                return function(x)

        module = Unary() if function.__code__.co_argcount == 1 else Module()
        inputs = [torch.randn(shape) + 0.1 for shape in shapes]
        expected = module(*[tensor.clone() for tensor in inputs])
        for given in with_input:
            graph = self.export(module, *[tensor.clone() for tensor in inputs]) if given else self.export(module)
            self.assertFalse([node["op"] for node in graph["nodes"] if node["op"].endswith("_")], graph)
            got = evaluate(graph, dict(zip("xy", inputs)))
            expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
            self.assertEqual(len(got), len(expected))
            for a, b in zip(got, expected):
                self.assertTrue(a.shape == b.shape and torch.equal(a, b), f"{graph['nodes']}\n{a}\n{b}")

    def test_Trap_U16_in_place_ops_become_values(self):
        def updates(x, y):
            z = x * 2
            z.add_(y)
            return torch.exp(z)

        def through_a_part(x):
            z = x * 2
            z[0].mul_(3)
            return torch.exp(z)

        def parts(x, y):
            z = x + 1
            w = z.view(-1)
            z[1:3] = y[1:3]
            z += 1
            z[..., 0] = 7
            z[:, None, 1].sub_(2)
            return w * 2, z * 1

        def chained(x):
            z = x.clone()
            row = z.transpose(0, 1)[1]
            row.copy_(x[:, 0])
            z.unsqueeze(0).squeeze(0).permute(1, 0).neg_()
            row.relu_()
            return row * 1, z * 1

        def filled(x):
            z = x * 1
            z.fill_(2.0)
            z[2].zero_()
            a, b = z.split(2, dim=1)
            b.add_(a)
            torch.narrow(z, 0, 0, 1).clamp_(max=3.0)
            return z * 1

        def returned(x):
            z = x * 3
            w = z
            torch.relu_(w)
            torch.nn.functional.elu(z, inplace=True)
            z.add_(1).mul_(2)
            return z

        def selected(x):
            z = x * 1
            z[[0, 2]] = 5.0
            z.select(1, 1).exp_().add_(z.diagonal())
            return z + w_of(z)

        def w_of(z):
            return z.t().reshape(4, 4)

        def an_argument(x, y):
            x.add_(y)
            y -= 1
            return x * y

        def repeated(x):
            z = x * 1
            for i in range(3):
                z[i] += i
                z[i, i:].mul_(2)
            return z * 1

        def out_argument(x, y):
            z = x * 1
            torch.add(x, y, out=z)
            return z * 1

        for function in [through_a_part, chained, filled, returned, selected, repeated]:
            with self.subTest(function.__name__):
                self.check_same(function, (4, 4))
        for function in [updates, parts, an_argument, out_argument]:
            with self.subTest(function.__name__):
                self.check_same(function, (4, 4), (4, 4))

    def test_Trap_U16_a_copy_is_no_view(self):
        def copies(x):
            z = x * 1
            w = z[[0, 1]]
            c = z.clone()
            z.add_(1)
            return w * 1, c * 1, z * 1

        self.check_same(copies, (4, 4), with_input=[True])

        def reshaped(x):  # of a transposed tensor, reshape copies
            z = x * 1
            w = z.t().reshape(-1)
            w.add_(1)
            return z * 1

        self.check_same(reshaped, (4, 4), with_input=[True])

    def test_Trap_U16_one_form_of_arguments(self):
        def attrs(function):
            class Module(torch.nn.Module):
                def forward(self, x):
                    return function(x)

            node = self.export(Module())["nodes"][0]
            return node["attrs"]

        f = torch.nn.functional
        for forms in [
            [lambda x: x.sum(1), lambda x: torch.sum(x, dim=1), lambda x: x.sum(dim=(1,)), lambda x: torch.sum(x, [1], keepdim=False)],
            [lambda x: x.softmax(-1), lambda x: torch.softmax(x, dim=-1)],
            [lambda x: x.transpose(0, 1), lambda x: torch.transpose(x, dim1=1, dim0=0)],
            [lambda x: x.view(2, 3), lambda x: x.view((2, 3)), lambda x: x.view(size=[2, 3])],
            [lambda x: x.permute(1, 0), lambda x: torch.permute(x, (1, 0)), lambda x: x.permute(dims=[1, 0])],
            [lambda x: x.mean(0, True), lambda x: torch.mean(x, dim=0, keepdim=True)],
            [lambda x: f.leaky_relu(x, 0.2), lambda x: f.leaky_relu(x, negative_slope=0.2, inplace=True)],
            [lambda x: x.add(x, alpha=2), lambda x: torch.add(x, x, alpha=2), lambda x: torch.add(input=x, other=x, alpha=2)],
        ]:
            expected = attrs(forms[0])
            self.assertTrue(expected)
            for form in forms[1:]:
                self.assertEqual(attrs(form), expected)

    def test_Trap_U16_an_attribute_and_an_argument_of_one_name(self):
        nn = torch.nn

        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.x = nn.Parameter(torch.zeros(3))
                self.register_buffer("add", torch.zeros(3))

            def forward(self, x):
                return (x + self.x) * self.add

        graph = self.export(Both())
        self.assertEqual([node["inputs"] for node in graph["nodes"]], [["x", "param:x"], ["add", "param:add"]])
        self.assertEqual(set(graph["externals"]), {"param:x", "param:add"})

    def test_Trap_U16_what_cannot_be_exported_is_said_in_one_line(self):
        text = """
import torch
class Branch(torch.nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x
class Resize(torch.nn.Module):
    def forward(self, x):
        return (x * 1).resize_(2)
class Random(torch.nn.Module):
    def forward(self, x):
        return (x * 1).uniform_()
class Expanded(torch.nn.Module):
    def forward(self, x):
        z = x * 1
        z.expand(4, 4).add_(1)
        return z
def number():
    return 3
"""
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.py"
            model.write_text(text)
            for arguments, says in [
                (["Branch"], f"torch cannot trace {model}:5, 'return x if x.sum() > 0 else -x': "),
                (["Resize"], "changes a shape in place"),
                (["Random"], "no function of its inputs"),
                (["Expanded"], "cannot be said"),
                (["number"], "expected a torch.nn.Module, got int"),
                (["Missing"], "Missing"),
                (["Branch", "--args", "{"], "JSONDecodeError"),
                (["Resize", "--input", "2,x"], "--input"),
            ]:
                command = [sys.executable, ROOT / "tools/fx-export", f"{model}:{arguments[0]}", *arguments[1:]]
                result = subprocess.run(command, capture_output=True, text=True, timeout=1200)
                self.assertEqual(result.returncode, 1, arguments)
                self.assertIn(says, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_the_tool_writes_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.py"
            model.write_text("import torch\ndef make(n):\n    return torch.nn.Sequential(torch.nn.Linear(n, 2), torch.nn.Tanh())\n")
            out = pathlib.Path(folder) / "graph.json"
            command = [sys.executable, ROOT / "tools/fx-export", f"{model}:make", "--args", "[3]", "--input", "5,3", "-o", out]
            subprocess.run(command, check=True)
            graph = json.loads(out.read_text())
        self.assertEqual([node["shape"] for node in graph["nodes"]], [[5, 2], [5, 2]])


if __name__ == "__main__":
    unittest.main()
