"""`tessera demo`: it learns, it says so in two forms, and what was interrupted goes on bit for bit."""
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop()


def demo(*arguments, cwd=None):
    result = subprocess.run([PROGRAM, "demo", *map(str, arguments)], capture_output=True, cwd=cwd)
    # Not text=True, which would turn carriage returns into line breaks.
    result.stdout, result.stderr = result.stdout.decode(), result.stderr.decode()
    return result


class Demo(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def interrupted(self, *arguments):
        """Ctrl-C after the first epoch; there must be enough others that it does not come too late."""
        process = subprocess.Popen([PROGRAM, "demo", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, cwd=self.folder)
        while "epoch  1" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        return process.returncode, out, err

    def test_it_learns(self):
        result = demo(cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("epoch ")]), 20)
        self.assertNotIn("\r", result.stdout)
        accuracy = float(result.stdout.split(" % of the 359 held-out digits are right")[0].split("\n")[-1])
        self.assertGreaterEqual(accuracy, 95)
        self.assertRegex(result.stdout, r"\n  \d \(\d+ %\)")
        self.assertRegex(result.stdout, r"a batch takes \d+\.\d+ ms as a plan, \d+\.\d+ ms op by op: \d+\.\d times as fast")
        for word in ["nodes recorded", "evaluations", "s of training", "KiB at most"]:
            self.assertIn(word, result.stdout)
        self.assertEqual(list(self.folder.iterdir()), [], "nothing was asked to be kept")

    def test_json(self):
        result = demo("--epochs", 2, "--seed", 3, "--json")
        answer = json.loads(result.stdout)
        self.assertEqual((answer["finished"], answer["epochs"], answer["seed"], answer["checkpoint"]), (True, 2, 3, None))
        self.assertGreater(answer["accuracy"], 0.5)
        self.assertGreater(answer["engine"]["nodes_per_batch"], 20)
        self.assertGreaterEqual(answer["engine"]["evaluations"], answer["batches"])
        # The loop becomes hot by itself: most of it runs as plans.
        self.assertGreater(answer["engine"]["planned"], answer["engine"]["streamed"])
        self.assertGreater(answer["engine"]["batch_ms_compiled"], 0)
        self.assertGreater(answer["engine"]["batch_ms_streamed"], answer["engine"]["batch_ms_compiled"])
        again = json.loads(demo("--epochs", 2, "--seed", 3, "--json").stdout)
        self.assertEqual((again["loss"], again["accuracy"]), (answer["loss"], answer["accuracy"]))
        other = json.loads(demo("--epochs", 2, "--seed", 4, "--json").stdout)
        self.assertNotEqual(other["loss"], answer["loss"])

    def test_interrupted_and_gone_on_with_is_the_same_bit_for_bit(self):
        whole, parts = self.folder / "whole.safetensors", self.folder / "parts.safetensors"
        self.assertEqual(demo("--epochs", 40, "--seed", 5, "--checkpoint", whole).returncode, 0)
        code, out, err = self.interrupted("--epochs", 40, "--seed", 5, "--checkpoint", parts)
        self.assertEqual((code, err), (1, ""))
        self.assertIn(f"goes on, bit for bit, with: tessera demo --checkpoint {parts}", out)
        self.assertNotEqual(parts.read_bytes(), whole.read_bytes())
        rest = demo("--epochs", 40, "--checkpoint", parts)
        self.assertEqual(rest.returncode, 0, rest.stderr)
        self.assertIn(f"Going on with {parts}: ", rest.stdout)
        self.assertEqual(parts.read_bytes(), whole.read_bytes())
        done = json.loads(demo("--epochs", 40, "--checkpoint", parts, "--json").stdout)
        self.assertEqual((done["finished"], done["epochs"], done["loss"]), (True, 40, None), "nothing is left to train")

    def test_interrupted_without_a_name_it_is_kept_here(self):
        code, out, err = self.interrupted("--epochs", 1000)
        self.assertEqual((code, err), (1, ""))
        self.assertIn("kept in tessera-digits.safetensors", out)
        answer = json.loads(demo("--checkpoint", self.folder / "tessera-digits.safetensors", "--epochs", 2, "--json").stdout)
        self.assertTrue(answer["finished"])
        self.assertGreater(answer["accuracy"], 0.5)

    def test_other_files_and_seeds_are_refused(self):
        path = self.folder / "x.safetensors"
        path.write_bytes(b"nonsense")
        result = demo("--checkpoint", path)
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith(f"tessera: {path}: "), result.stderr)
        path.unlink()
        self.assertEqual(demo("--epochs", 1, "--seed", 1, "--checkpoint", path).returncode, 0)
        result = demo("--epochs", 2, "--seed", 2, "--checkpoint", path)
        self.assertEqual(result.returncode, 2)
        self.assertIn("began with the seed 1, it cannot go on with 2", result.stderr)

    def test_a_checkpoint_that_cannot_be_kept_is_said_before_the_training(self):
        result = demo("--epochs", 1000000, "--checkpoint", self.folder / "nowhere/x.safetensors")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn(f"the training cannot be kept there: there is no folder '{self.folder}/nowhere'", result.stderr)

    def test_a_terminal_gets_a_bar(self):
        master, slave = pty.openpty()
        process = subprocess.Popen([PROGRAM, "demo", "--epochs", "1"], stdout=slave, stderr=slave)
        os.close(slave)
        seen = b""
        try:
            while chunk := os.read(master, 4096):
                seen += chunk
        except OSError:  # the other end is closed
            pass
        os.close(master)
        self.assertEqual(process.wait(), 0)
        self.assertRegex(seen.decode(), r"\r\[#*\.+\] +\d+ %  epoch  1/1  loss \d")


unittest.main(argv=sys.argv[:1])
