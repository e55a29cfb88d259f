#!/usr/bin/env python3
"""What is shipped is built so that errors in memory are harder to use (cmake/TesseraModule.cmake).
hardening_test.py CONFIGURATION PROCESSOR ARCHIVE PROGRAM…: a static library, and what is linked from such."""
import re
import shutil
import subprocess
import sys
import unittest

CONFIGURATION, PROCESSOR, ARCHIVE, *PROGRAMS = sys.argv[1:]
sys.argv[1:] = []
IS_OPTIMISED = CONFIGURATION in ("Release", "RelWithDebInfo", "MinSizeRel")


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True).stdout


@unittest.skipIf(shutil.which("readelf") is None, "readelf is not installed")
class Hardening(unittest.TestCase):
    def each(self):
        for path in PROGRAMS:
            with self.subTest(path):
                yield path

    def test_tables_of_addresses_are_read_only_before_main(self):
        for path in self.each():
            self.assertIn("GNU_RELRO", readelf("-l", path))
            self.assertRegex(readelf("-d", path), r"\(FLAGS_1\)\s+Flags:.*\bNOW\b")

    def test_they_lie_anywhere_and_their_stack_is_no_code(self):
        for path in self.each():
            self.assertRegex(readelf("-h", path), r"Type:\s+DYN")
            self.assertRegex(readelf("-l", path), r"GNU_STACK\s+\S+ \S+ \S+ \S+ \S+ RW ")

    def test_frames_have_canaries_and_calls_know_sizes(self):
        for path in self.each():
            taken = set(re.findall(r"\bUND (\w+)", readelf("--dyn-syms", path)))
            self.assertIn("__stack_chk_fail", taken)
            if IS_OPTIMISED:
                self.assertTrue([name for name in taken if name.endswith("_chk")], sorted(taken))

    @unittest.skipIf(PROCESSOR != "x86_64", "other processors have no such notes")
    def test_returns_and_jumps_can_be_checked(self):
        for path in self.each():
            self.assertRegex(readelf("-n", path), r"x86 feature:.*\bSHSTK\b")
        notes = readelf("-n", ARCHIVE)
        objects = len(re.findall(r"^File: ", notes, re.M))
        self.assertGreater(objects, 0)
        self.assertEqual(len(re.findall(r"x86 feature: IBT, SHSTK", notes)), objects)


unittest.main()
