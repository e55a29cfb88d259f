"""tools/fx-export: PyTorch modules as graphs, and what `tessera tile` makes of them."""
import importlib.machinery
import importlib.util
import json
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

    def test_in_place_is_the_same_only_without_hazard(self):
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
        self.assertEqual(len(tiles(tile(self.export(Block(True)), *pattern))), 0)

    def test_in_place_modules_have_the_spelling_of_the_method(self):
        nn = torch.nn
        modules = [nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.SiLU, nn.Mish, nn.Hardswish, nn.Hardsigmoid, nn.Dropout]
        for module in modules:
            graph = self.export(nn.Sequential(nn.Linear(2, 2), module(inplace=True)))
            same = self.export(nn.Sequential(nn.Linear(2, 2), module()))
            self.assertTrue(graph["nodes"][1]["op"].endswith("_"))
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
        self.assertEqual(graph["nodes"][2]["op"], "Tensor.relu_")
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
