#!/usr/bin/env python3
"""tessera devices, and the names that devices have. The program is the last argument."""
import json
import os
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()


def tessera(*arguments, **environment):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment})


class Devices(unittest.TestCase):
    def test_what_was_found(self):
        result = tessera("devices", TESSERA_THREADS="3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^reference +ops as they are defined")
        self.assertRegex(result.stdout, r"(?m)^cpu +3 threads, kernels (by LLVM \d+\.\d+\.\d+|interpreted), products (by oneDNN|our own)")

    def test_json(self):
        answer = json.loads(tessera("devices", "--json").stdout)
        by_name = {device["name"]: device for device in answer["devices"]}
        self.assertIn("threads", by_name["cpu"]["found"])
        self.assertIsInstance(by_name["cpu"]["lacks"], list)

    def test_a_wrong_number_of_threads_is_said(self):
        result = tessera("devices", TESSERA_THREADS="1e3")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("TESSERA_THREADS: '1e3' is no number of threads"), 1, result.stderr)

    def test_what_a_device_is_told_stands_behind_its_name(self):
        program = "func f(x: f32[4]) {\n  y: f32[4] = tanh(x)\n  return y\n}\n"
        for device, code in [("cpu:precise", 0), ("cpu:threads=1", 0), ("cpu:slow", 2), ("cpu:threads=0", 2)]:
            result = subprocess.run([PROGRAM, "explain", "-", "--device", device], input=program, capture_output=True, text=True)
            self.assertEqual(result.returncode, code, result.stderr)
            if code == 0:
                self.assertIn(f"device: {device}: ", result.stdout)


if __name__ == "__main__":
    unittest.main()
