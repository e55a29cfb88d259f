"""The checks of CI find what they are there to find."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop())


def layers(folder):
    return subprocess.run([sys.executable, ROOT / "tools/check_layers.py", folder], capture_output=True, text=True)


class LayerCheck(unittest.TestCase):
    def test_the_tree_is_clean(self):
        result = layers(ROOT / "tessera")
        self.assertEqual(result.returncode, 0, result.stdout)

    def plant(self, where, line):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / where
            path.parent.mkdir(parents=True)
            path.write_text(f"#pragma once\n{line}\n")
            return layers(folder)

    def test_a_planted_violation_is_found(self):
        result = self.plant("base/bad.h", '#include "tessera/ir/node.h"')
        self.assertEqual(result.returncode, 1)
        self.assertIn("bad.h:2: base may not include ir", result.stdout)

    def test_compile_and_runtime_never_meet(self):
        self.assertEqual(self.plant("compile/bad.cpp", '#include "tessera/runtime/device.h"').returncode, 1)
        self.assertEqual(self.plant("runtime/bad.cpp", '#include "tessera/compile/pass.h"').returncode, 1)
        self.assertEqual(self.plant("compile/good.cpp", '#include "tessera/plan/plan.h"').returncode, 0)

    def test_foreign_headers_stay_in_their_room(self):
        self.assertEqual(self.plant("ir/bad.cpp", "#include <llvm-c/Core.h>").returncode, 1)
        self.assertEqual(self.plant("runtime/cpu/good.cpp", "#include <dnnl.h>").returncode, 0)
        self.assertEqual(self.plant("engine/bad.cpp", "#include <cuda.h>").returncode, 1)

    def test_one_place_reads_the_environment_and_one_opens_libraries(self):
        result = self.plant("engine/bad.cpp", 'const char* x = std::getenv("X");')
        self.assertEqual(result.returncode, 1)
        self.assertIn("only base/environment.cpp may call this; use environment()", result.stdout)
        self.assertEqual(self.plant("runtime/cpu/bad.cpp", 'void* x = dlopen("x.so", RTLD_NOW);').returncode, 1)
        self.assertEqual(self.plant("engine/good_test.cpp", 'const char* x = std::getenv("X");').returncode, 0)

    def test_an_unknown_room_is_refused(self):
        self.assertEqual(self.plant("utils/bad.h", "").returncode, 1)


class NameCheck(unittest.TestCase):
    def check(self, *sources):
        with tempfile.TemporaryDirectory() as folder:
            room = pathlib.Path(folder) / "tessera/room"
            room.mkdir(parents=True)
            (pathlib.Path(folder) / "cli").mkdir()
            (room / "CMakeLists.txt").write_text("")
            for i, source in enumerate(sources):
                (room / f"{i}.cpp").write_text(f"namespace {{\n{source}\n}}  // namespace\n")
            return subprocess.run([sys.executable, ROOT / "tools/check_names.py"], capture_output=True, text=True, cwd=folder)

    def test_the_tree_is_clean(self):
        result = subprocess.run([sys.executable, ROOT / "tools/check_names.py"], capture_output=True, text=True, cwd=ROOT)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_one_name_for_two_things_is_found(self):
        for one, other in [("constexpr int most = 1, least = 2;", "constexpr double least = f(3);"),
                           ("struct Options { int x; };", "class Options {};"),
                           ("using Numbers = std::vector<int>;", "using Numbers = std::vector<long>;"),
                           ("int up(int a, Map<int, int> b = {}) { return a; }", "long up(int c, Map<int, int> d) { return c; }"),
                           ("std::string_view text() { return R\"(};)\"; }\nint twice() { return 2; }", "int twice() { return 3; }")]:
            result = self.check(one, other)
            self.assertEqual(result.returncode, 1, one)
            self.assertIn("0.cpp both have", result.stdout)

    def test_overloads_and_equal_aliases_are_none(self):
        for one, other in [("int up(int a) { return a; }", "int up(double a) { int most = 2; return most; }"),
                           ("using Numbers = std::vector<int>;", "using Numbers = std::vector<int>;"),
                           ("void f() { constexpr int most = 1; }", "void g() { constexpr int most = 2; }"),
                           ("constexpr int most = limits::max();", "constexpr int least = limits::max();")]:
            self.assertEqual(self.check(one, other).stdout, "names ok\n", one)


class BuildLimits(unittest.TestCase):
    def check(self, log, unit="unit.o"):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "log").write_text(log)
            # What it is compiled with takes no time.
            command = {"directory": name, "command": f"sh -c true -c x.cpp -o {unit}", "file": "x.cpp"}
            (folder / "commands.json").write_text(json.dumps([command]))
            return subprocess.run([sys.executable, ROOT / "tools/check_build_limits.py", folder / "log", folder / "commands.json"],
                                  capture_output=True, text=True)

    def test_small_units_pass(self):
        self.assertEqual(self.check("14.90 1200 unit.o\n3.00 100 other.o\n").returncode, 0)

    def test_a_unit_that_took_too_long_is_compiled_again(self):
        result = self.check("15.80 700 unit.o\n")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("unit.o: 15.8 s, compiled again 0.0 s", result.stdout)

    def test_what_stays_too_long_or_large_is_refused(self):
        self.assertEqual(self.check("15.80 700 unit.o\n", unit="another.o").returncode, 1)
        self.assertEqual(self.check("3.00 1300 unit.o\n").returncode, 1)


# As much of PyTorch as the exporter needs to begin: its tracer gives a value that is neither true nor false.
TORCH = {
    "__init__.py": """
float64 = float32 = float16 = bfloat16 = int64 = int32 = int16 = int8 = uint8 = bool = _assert = None
class Tensor: pass
class nn:
    class Module:
        def eval(self): return self
""",
    "fx/__init__.py": """
class Node: pass
class Proxy:
    def __init__(self, node, tracer): pass
    def __bool__(self): raise TypeError("traced values cannot steer a branch\\n  and a second line")
class Tracer:
    def trace(self, module): return module.forward(self.proxy(None))
""",
    "fx/operator_schemas.py": "_torchscript_schema_to_signature = None\n",
    "fx/passes/__init__.py": "",
    "fx/passes/shape_prop.py": "class ShapeProp: pass\n",
}


class FxExport(unittest.TestCase):
    def run_tool(self, files, module):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / "torch" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            model = pathlib.Path(folder) / "model.py"
            model.write_text("import torch\n\n\nclass Branch(torch.nn.Module):\n    def forward(self, x):\n        return self.part(x)\n\n"
                             "    def part(self, x):\n        return x if x else -x\n")
            command = [sys.executable, ROOT / "tools/fx-export", f"{model}:{module}"]
            result = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        return result.stderr.replace(str(model), "model.py")

    def test_what_torch_cannot_trace_is_said_in_one_line(self):
        self.assertEqual(self.run_tool(TORCH, "Branch"),
                         "fx-export: model.py:Branch: torch cannot trace model.py:9, 'return x if x else -x': "
                         "traced values cannot steer a branch\n")

    def test_a_python_without_torch_is_told_so_in_one_line(self):
        self.assertEqual(self.run_tool({"__init__.py": "raise ImportError('no torch here')\n"}, "Branch"),
                         "fx-export: PyTorch is needed, and this Python has none: no torch here\n")


class Readme(unittest.TestCase):
    def test_its_example_is_the_one_that_is_compiled(self):
        block = (ROOT / "README.md").read_text().split("```cpp\n")[1].split("```")[0]
        hello = [line.strip() for line in (ROOT / "examples/hello.cpp").read_text().splitlines()]
        for line in filter(None, (line.strip() for line in block.splitlines())):
            self.assertIn(line, hello)


unittest.main(argv=sys.argv[:1])
