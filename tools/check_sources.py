#!/usr/bin/env python3
"""Fails when a source file is not listed in the CMakeLists.txt of its folder or one above, when a room has no README,
when a README is longer than 15 lines, or when TESSERA_TRY stands behind another value in a braced list: g++ does not
destroy what the list already holds when a statement expression returns out of it."""
import pathlib
import re
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
        bad += [f"{path}:{line}: TESSERA_TRY behind another value of a braced list leaks that value on an error: "
                "take it into a variable first" for line in leaking_tries(path.read_text())]
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


TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'"""
                   r"""|[{}()\[\];,]|TESSERA_TRY|\s+|[^\s{}()\[\];,]+""", re.S)


def leaking_tries(text):
    """The lines of such uses. In our format a list's brace has no space before it or follows one of = return , ( {."""
    stack, line, before, is_spaced = [], 1, "", False
    for match in TOKEN.finditer(text):
        token = match.group(0)
        if not token.isspace() and not token.startswith(("//", "/*")):
            if token in "{([":
                is_list = token == "{" and (not is_spaced or before in {"=", "return", ",", "(", "{"})
                stack.append({"is_list": is_list, "is_block": token == "{" and not is_list, "has_comma": False})
            elif token in "})]":
                del stack[-1:]
            elif token == "," and stack:
                stack[-1]["has_comma"] = True
            elif token == "TESSERA_TRY" and is_behind_a_value(stack):
                yield line
            before, is_spaced = token, False
        else:
            is_spaced = True
        line += token.count("\n")


def is_behind_a_value(stack):
    for bracket in reversed(stack):
        if bracket["is_block"]:
            return False
        if bracket["is_list"] and bracket["has_comma"]:
            return True
    return False


sys.exit(main())
