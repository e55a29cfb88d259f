#!/usr/bin/env python3
"""Fails when a translation unit costs more than the design allows: 15 s or 1.2 GB. Arguments: compile-meter's log, and
compile_commands.json, if not that of the release build.

The processor seconds of a unit grow by half while others use the machine: one that took too long is compiled
again, alone, before it is refused."""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "build/release/compile_commands.json"
SECONDS, MEGABYTES, TRIES = 15.0, 1229, 2


def read_log(path):
    rows = [line.split() for line in open(path)]
    return [(float(seconds), int(megabytes), name) for seconds, megabytes, name in rows]


def command_of(name):
    """How the unit is compiled, and where; None if nobody knows."""
    entries = json.loads(COMMANDS.read_text()) if COMMANDS.exists() else []
    for entry in entries:
        words = shlex.split(entry["command"])
        if "-o" in words and words[words.index("-o") + 1] == name:
            return words, entry["directory"]
    return None


def compile_again(name):
    """What the unit costs now, or None."""
    known = command_of(name)
    if known is None:
        return None
    words, directory = known
    with tempfile.TemporaryDirectory() as folder:
        words[words.index("-o") + 1] = f"{folder}/unit.o"
        log = f"{folder}/log"
        done = subprocess.run([ROOT / "tools/compile-meter", *words], cwd=directory, env={**os.environ, "TESSERA_COMPILE_LOG": log})
        return read_log(log)[0] if done.returncode == 0 else None


def cost(row):
    """The least that the unit took, of a few times if the first was too long."""
    seconds, megabytes, name = row
    for _ in range(TRIES):
        if seconds <= SECONDS:
            break
        again = compile_again(name)
        if again is None:
            break
        print(f"{name}: {seconds:.1f} s, compiled again {again[0]:.1f} s")
        seconds = min(seconds, again[0])
    return seconds, megabytes, name


def main():
    rows = [cost(row) for row in read_log(sys.argv[1])]
    bad = [row for row in rows if row[0] > SECONDS or row[1] > MEGABYTES]
    for seconds, megabytes, name in sorted(rows, reverse=True)[:5]:
        print(f"  {seconds:6.1f} s {megabytes:5d} MB  {name}")
    for seconds, megabytes, name in bad:
        print(f"over the limit of {SECONDS:.0f} s and {MEGABYTES} MB: {name} ({seconds:.1f} s, {megabytes} MB)")
    print(f"{len(rows)} units, {sum(row[0] for row in rows):.0f} s of CPU")
    return 1 if bad else 0


sys.exit(main())
