"""Puts the op of docs/adding-an-op.md where the page says: add_op.py SOURCE OUT writes OUT/activation.cpp and
OUT/tests/data/op_samples.txt."""
import pathlib
import re
import sys

SOURCE, OUT = (pathlib.Path(argument) for argument in sys.argv[1:])
PAGE = (SOURCE / "docs/adding-an-op.md").read_text()


def block(name):
    found = re.findall(rf"^```\w+ {name}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    if len(found) != 1:
        sys.exit(f"docs/adding-an-op.md: {len(found)} code blocks '{name}', expected 1")
    return found[0]


def before(text, mark, addition):
    if text.count(mark) != 1:
        sys.exit(f"activation.cpp: '{mark}' is there {text.count(mark)} times, expected once")
    return text.replace(mark, addition + mark)


def main():
    family = (SOURCE / "tessera/op/families/activation.cpp").read_text()
    family = before(family, "\n}  // namespace\n}  // namespace tessera::op::formula\n", block("formula"))
    family = before(family, "};\n\n}  // namespace\n\nstd::span<const Card>", block("card"))
    samples = (SOURCE / "tests/data/op_samples.txt").read_text() + block("samples")
    (OUT / "tests/data").mkdir(parents=True, exist_ok=True)
    (OUT / "activation.cpp").write_text(family)
    (OUT / "tests/data/op_samples.txt").write_text(samples)


main()
