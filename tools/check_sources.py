#!/usr/bin/env python3
"""Fails when a source file is not listed in the CMakeLists.txt of its folder or one above, when a room has no README,
or when a README is longer than 15 lines."""
import pathlib
import subprocess
import sys


def main():
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    bad = []
    for name in sorted(files.stdout.split("\n")):
        path = pathlib.Path(name)
        if not path.is_file() or path.suffix not in {".h", ".cpp", ".cu", ".c"} or "consumer" in path.parts:
            continue
        if not any(lists(parent, path) for parent in path.parents if (parent / "CMakeLists.txt").is_file()):
            bad.append(f"{path} is in no CMakeLists.txt")
    for room in sorted(p for p in pathlib.Path("tessera").rglob("*") if p.is_dir() and list(p.glob("*.h"))):
        readme = room / "README.md"
        if not readme.is_file():
            bad.append(f"{room} has no README.md")
        elif len(readme.read_text().splitlines()) > 15:
            bad.append(f"{readme} has more than 15 lines")
    print("\n".join(bad) or "sources ok")
    return 1 if bad else 0


def lists(folder, path):
    words = (folder / "CMakeLists.txt").read_text().replace("(", " ").replace(")", " ").split()
    relative = str(path.relative_to(folder))
    # Headers of the program, tests and benchmarks need no listing: they are not installed.
    return relative in words or (path.suffix == ".h" and path.parts[0] != "tessera")


sys.exit(main())
