"""The checks of CI find what they are there to find."""
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

    def test_an_unknown_room_is_refused(self):
        self.assertEqual(self.plant("utils/bad.h", "").returncode, 1)


class Readme(unittest.TestCase):
    def test_its_example_is_the_one_that_is_compiled(self):
        block = (ROOT / "README.md").read_text().split("```cpp\n")[1].split("```")[0]
        hello = [line.strip() for line in (ROOT / "examples/hello.cpp").read_text().splitlines()]
        for line in filter(None, (line.strip() for line in block.splitlines())):
            self.assertIn(line, hello)


unittest.main(argv=sys.argv[:1])
