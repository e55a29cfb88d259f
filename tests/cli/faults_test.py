#!/usr/bin/env python3
"""The CPU device where something is missing or broken: another way to the same results, never a crash."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

TESSERA = sys.argv.pop()
LLVM = ["libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM.so.18.1", "libLLVM-18.so.1", "libLLVM-17.so.1", "libLLVM-16.so.1"]
ONEDNN = ["libdnnl.so.2"]
PROGRAM = """func f(x: f32[1, 16, 20, 20], w: f32[16, 16, 3, 3], m: f32[20, 30], b: f32[30]) {
  a: f32[1, 16, 18, 18] = conv(x, w)
  c: f32[1, 16, 18, 18] = relu(a)
  d: f32[1, 16, 20, 30] = matmul(x, m)
  e: f32[1, 16, 20, 30] = add(d, b)
  g: f32[1, 16, 20, 30] = tanh(e)
  s: f32[1, 16, 20, 30] = softmax(g)
  t: f32[1, 16, 20, 20] = exp(x)
  u: f32[1, 16, 20, 20] = mul(t, x)
  return c, s, u
}
"""


def limit_files():
    """As on a full disk: no file may grow beyond a few bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.cache = self.root / "cache"
        self.cache.mkdir()
        self.libraries = self.root / "libraries"
        self.libraries.mkdir()
        (self.root / "f.tsr").write_text(PROGRAM)
        self.expected = self.elements(self.tessera("reference"))

    def start(self, device="cpu", preexec=None, **environment):
        command = [TESSERA, "run", str(self.root / "f.tsr"), "--random", "7", "--device", device, "--json"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=preexec,
                                env={**os.environ, "XDG_CACHE_HOME": str(self.cache), **environment})

    def finish(self, process):
        with process:
            out, errors = process.communicate()
        self.assertEqual(process.returncode, 0, errors)
        return out, errors

    def tessera(self, device="cpu", preexec=None, **environment):
        return self.finish(self.start(device, preexec, **environment))[0]

    @staticmethod
    def elements(text):
        return [e for output in json.loads(text)["outputs"] for tensor in output["tensors"] for e in tensor["elements"]]

    def check(self, text):
        got = self.elements(text)
        self.assertEqual(len(got), len(self.expected))
        self.assertGreater(len(got), 10_000)
        worst = max(abs(a - b) / max(1, abs(b)) for a, b in zip(got, self.expected))
        self.assertLess(worst, 2e-5)

    def kernels(self):
        return [path for path in self.cache.rglob("*") if path.is_file()]

    def run_with(self, names, content):
        """With libraries of these names that come before the system's."""
        for name in names:
            path = self.libraries / name
            path.write_bytes(content) if isinstance(content, bytes) else path.symlink_to(content)
        out, errors = self.finish(self.start(LD_LIBRARY_PATH=str(self.libraries), LD_DEBUG="libs"))
        self.assertIn(str(self.libraries), errors, "the system's own libraries were opened")
        self.check(out)

    def test_nothing_is_wrong(self):
        self.check(self.tessera())

    def test_llvm_is_missing(self):
        self.run_with(LLVM, b"no library")
        self.assertEqual(self.kernels(), [], "code was made")

    def test_llvm_is_something_else(self):
        other = next(iter(sorted(pathlib.Path("/usr/lib").rglob("libz.so.1"))), None)
        if other is None:
            self.skipTest("there is no library to put in its place")
        self.run_with(LLVM, other)
        self.assertEqual(self.kernels(), [], "code was made")

    def test_onednn_is_missing(self):
        self.run_with(ONEDNN, b"no library")

    def test_both_are_missing(self):
        self.run_with(LLVM + ONEDNN, b"no library")

    def test_stored_code_runs_without_llvm(self):
        self.check(self.tessera())
        before = self.kernels()
        self.run_with(LLVM, b"no library")
        self.assertEqual(self.kernels(), before)

    def test_stored_code_is_damaged(self):
        self.check(self.tessera())
        for damage in (lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-40] + bytes(40), lambda b: bytes(len(b))):
            for path in self.kernels():
                path.write_bytes(damage(path.read_bytes()))
            self.check(self.tessera())

    def test_the_cache_cannot_be_written(self):
        shutil.rmtree(self.cache)
        self.cache.write_text("a file")
        self.check(self.tessera())

    def test_the_disk_is_full(self):
        self.check(self.tessera(preexec=limit_files))
        self.check(self.tessera())

    def test_processes_share_an_empty_cache(self):
        for _ in range(2):
            for process in [self.start() for _ in range(4)]:
                self.check(self.finish(process)[0])


if __name__ == "__main__":
    unittest.main()
