"""Installs the build into a folder of its own and uses it as strangers would: find_package and pkg-config, C++ and C."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD, SOURCE, CXX, CC = sys.argv[1:]
sys.argv[1:] = []


def run(*command, **more):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


class Consumer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=BUILD)
        cls.work = pathlib.Path(cls.folder.name)
        cls.prefix = cls.work / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build_and_run(self, face, compiler, language):
        build = self.work / face
        run(CMAKE, "-S", f"{SOURCE}/tests/consumer/{face}", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_{language}_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Debug")
        run(CMAKE, "--build", build)
        return run(build / "consumer")

    def test_the_installed_program_carries_the_data_of_its_demo(self):
        program = self.prefix / "bin/tessera"
        if not program.exists():
            self.skipTest("built without the program")
        self.assertIn('"held_out": 359', run(program, "demo", "--epochs", 1, "--json", cwd=self.work))

    def test_find_package_from_cpp(self):
        output = self.build_and_run("cpp", CXX, "CXX")
        self.assertIn("sum 30", output)
        self.assertRegex(output, r"main\.cpp:\d+: add: ")

    def test_find_package_from_c(self):
        self.assertRegex(self.build_and_run("c", CC, "C"), r"tessera \d+\.\d+\.\d+: 3")

    def pkg_config(self, name):
        found = [p.parent for p in self.prefix.rglob("tessera.pc")]
        self.assertEqual(len(found), 1)
        environment = {**os.environ, "PKG_CONFIG_PATH": str(found[0])}
        return shlex.split(run("pkg-config", "--cflags", "--libs", name, env=environment))

    def test_pkg_config_from_c(self):
        program = self.work / "pkg_c"
        run(CC, "-std=c11", f"{SOURCE}/tests/consumer/c/main.c", "-o", program, *self.pkg_config("tessera"))
        library = next(self.prefix.rglob("libtessera.so"))
        self.assertIn(": 3", run(program, env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)}))

    def test_pkg_config_from_cpp(self):
        program = self.work / "pkg_cpp"
        run(CXX, "-std=c++20", f"{SOURCE}/tests/consumer/cpp/main.cpp", "-o", program,
            *self.pkg_config("tessera-cpp"))
        self.assertIn("sum 30", run(program))

    def test_the_shared_library_shows_the_c_interface_only(self):
        symbols = run("nm", "-D", "--defined-only", next(self.prefix.rglob("libtessera.so"))).splitlines()
        names = [line.split()[-1] for line in symbols]
        functions = [name for name in names if name != "TESSERA_0.1"]
        self.assertGreater(len(functions), 40)
        self.assertEqual([name for name in functions if not re.fullmatch(r"tsr_\w+@@TESSERA_0\.1", name)], [])

    def test_every_function_of_the_header_is_there(self):
        header = (self.prefix / "include/tessera/capi/tessera.h").read_text()
        declared = set(re.findall(r"^TSR_API [\w\s*]*?\b(tsr_\w+)\(", header, re.M))
        symbols = run("nm", "-D", "--defined-only", next(self.prefix.rglob("libtessera.so")))
        self.assertEqual(declared, set(re.findall(r"(tsr_\w+)@@", symbols)))


unittest.main()
