#!/usr/bin/env python3
"""What tools/gpu-validate found, as the page docs/gpu-validation.md.

  gpu_summary.py FOLDER > docs/gpu-validation.md

FOLDER has machine.txt, results.tsv and, as far as they were measured, figures.json, cold.json, warm.json and peers.json."""
import json
import pathlib
import re
import sys

PARTS = ("build", "check", "measure")

# The rows of the peers that stand beside ours under other names.
PEER_OF = {
    "1,000 adds of 1,024 f32, recorded anew": "1,000 adds of 1,024 f32",
    "1,000 adds of 1,024 f32, replay": "1,000 adds of 1,024 f32",
    "mlp 784-512-512-10 b64, training step recorded anew": "mlp 784-512-512-10 b64, training step",
    "for of 1,000 iterations, an iteration": "for of 1,000 iterations",
    "for of 1,000 iterations of a gather, an iteration": "for of 1,000 iterations",
}


def read_json(path, default):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else default


def rows_of(folder, name):
    return read_json(folder / name, {"rows": []})["rows"]


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def peer_text(sides):
    sides = {way: time for way, time in sides.items() if way != "share"}
    return ", ".join(f"{way} {number(time)}" if isinstance(time, (int, float)) else f"{way}: failed" for way, time in sides.items())


def is_failed(row):
    return row["value"] == -1 and not row["unit"]


def verdict(row, sides):
    """Whether the first bound of the target is met; a share of PyTorch's figure needs that figure."""
    target = row["target"]
    if is_failed(row):
        return target
    bound = re.match(r"(<=|>=) ([0-9.]+)( of torch)?", target)
    if not bound:
        return target
    limit = float(bound[2])
    if bound[3]:
        if "share" in sides:
            return f"{target}: {'met' if sides['share'] >= limit else 'missed'}, {sides['share']:.3f} in turns"
        best = max((v for v in sides.values() if isinstance(v, (int, float))), default=None)
        if best is None:
            return f"{target}: no figure of PyTorch"
        share = row["value"] / best
        return f"{target}: {'met' if share >= limit else 'missed'}, {share:.3f}"
    is_met = row["value"] <= limit if bound[1] == "<=" else row["value"] >= limit
    return f"{target}: {'met' if is_met else 'missed'}"


def first_results(folder):
    """Cold and warm, which are runs of their own."""
    for name, target in (("cold", "<= 0.8"), ("warm", "<= 0.1")):
        for row in rows_of(folder, f"{name}.json"):
            yield {**row, "name": f"{row['name']}, {name}", "target": target}


def figures(folder):
    peers = read_json(folder / "peers.json", {})
    yield "| work | Tessera | PyTorch and JAX | target |"
    yield "| --- | --- | --- | --- |"
    rows = [row for row in rows_of(folder, "figures.json") if not row["name"].startswith("first result")]
    for row in [*rows, *first_results(folder)]:
        sides = peers.get(PEER_OF.get(row["name"], row["name"]), {})
        value = "failed" if is_failed(row) else f"{number(row['value'])} {row['unit']}"
        yield f"| {row['name']} | {value} | {peer_text(sides)} | {verdict(row, sides)} |"


def steps(folder):
    yield "| part | what | result | seconds | |"
    yield "| --- | --- | --- | --- | --- |"
    lines = (folder / "results.tsv").read_text(encoding="utf-8").splitlines()
    # A part that ran again stands at the end of the file.
    for line in sorted(lines, key=lambda line: PARTS.index(line.split("\t")[0])):
        part, name, result, seconds, said = line.split("\t")
        yield f"| {part} | {name} | {result} | {seconds} | {said.replace('|', '/')} |"


def main():
    folder = pathlib.Path(sys.argv[1])
    machine, commit, date = (folder / "machine.txt").read_text(encoding="utf-8").splitlines()
    print("# What was seen on a GPU\n")
    print("Written by `tools/gpu-validate`, which runs everything that needs a GPU, in three parts. Commit", f"`{commit}`, {date}, {machine}.\n")
    print(*steps(folder), sep="\n")
    if (folder / "figures.json").exists():
        print("\n## Figures\n\nMedians of one run (`tessera bench gpu`); peers after it on the same machine, in microseconds where no unit is said; products take turns with PyTorch's.\n")
        print(*figures(folder), sep="\n")


main()
