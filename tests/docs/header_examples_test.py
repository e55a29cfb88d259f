#!/usr/bin/env python3
"""The examples in the comments of headers compile.  header_examples_test.py FRAME SOURCES GENERATED COMPILER [OPTIONS…]

An example is a paragraph of a comment, indented by three spaces or more, with a line that ends in a semicolon. FRAME
has a function around each, which says what its names stand for. One run of the compiler checks them all."""
import pathlib
import re
import subprocess
import sys
import tempfile

STATEMENT = re.compile(r";\s*(//.*)?$")


def examples(text):
    """The paragraphs of code, each as a list of (line number, code)."""
    out, paragraph = [], []
    for number, line in enumerate(text.split("\n") + [""], 1):
        code = re.match(r"\s*//+( {3,}\S.*)$", line)
        if code:
            paragraph.append((number, code.group(1)[3:]))
        elif paragraph and re.match(r"\s*//+\s*$", line):
            paragraph.append((number, ""))
        else:
            if any(STATEMENT.search(code) for _, code in paragraph):
                out.append(paragraph)
            paragraph = []
    return out


def extract(sources, folder):
    """Writes the examples of each header to a file of its name; what is left out becomes a macro. The names of those headers."""
    found = set()
    for header in sorted((sources / "tessera").rglob("*.h")):
        paragraphs = examples(header.read_text())
        if not paragraphs:
            continue
        name = str(header.relative_to(sources))
        found.add(name)
        target = folder / "example" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = []
        for paragraph in paragraphs:
            lines.append(f'#line {paragraph[0][0]} "{header}"')
            lines += [code.replace("…", "ELIDED") for _, code in paragraph]
        target.write_text("\n".join(lines) + "\n")
    return found


def main():
    frame, sources, generated, compiler, *options = sys.argv[1:]
    frame, sources = pathlib.Path(frame), pathlib.Path(sources)
    with tempfile.TemporaryDirectory() as folder:
        found = extract(sources, pathlib.Path(folder))
        framed = set(re.findall(r'#include "example/(.*)"', frame.read_text()))
        for name in sorted(found ^ framed):
            print(f"{name}: its example is not in {frame.name}" if name in found else f"{frame.name}: {name} has no example")
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Werror=unused-result", "-I", folder, "-I", sources, "-I", generated, *options, frame])
    print(f"{len(found)} examples")
    return 1 if found != framed or done.returncode != 0 else 0


sys.exit(main())
