#!/usr/bin/env python3
"""Fails when a file includes a room that its own room may not depend on, or a foreign header outside its room, or calls what
one place calls for all.

The table below is the architecture (docs/architecture.md). Arrows are transitive."""
import pathlib
import re
import sys

ARROWS = {
    "base": [],
    "ir": ["base"],
    "op": ["ir"],
    "stream": ["ir"],
    "cover": ["base"],
    "pattern": ["ir", "cover"],
    "kernel": ["op"],
    "autodiff": ["op"],
    "describe": ["op"],
    "plan": ["kernel"],
    "compile": ["pattern", "plan"],
    "runtime": ["pattern", "plan"],
    "engine": ["stream", "describe", "compile", "runtime"],
    "tensor": ["engine", "autodiff"],
    "nn": ["tensor"],
    "onnx": ["op"],
    "model": ["tensor", "onnx"],
    "capi": ["tensor", "model"],
}
# A foreign header, and the folders below tessera/ that may include it.
FOREIGN = {
    r"llvm|llvm-c": ["runtime/cpu"],
    r"dnnl|oneapi": ["runtime/cpu"],
    r"cuda|cublas|cudnn|nvrtc|nccl": ["runtime/cuda"],
    r"onnx/|google/protobuf": ["onnx"],
    r"zlib\.h": ["tensor"],
    r"nlohmann|CLI/|fmt/": [],
}
# What is called at one place for all: the file, and what others call. Tests and what is made for them may.
ONE_PLACE = {
    r"\b(secure_)?getenv\(": ("base/environment.cpp", "environment() of tessera/base/environment.h"),
    r"\bdlm?open\(": ("base/shared_library.cpp", "SharedLibrary of tessera/base/shared_library.h"),
}


def is_for_tests(path):
    return path.stem.endswith("_test") or "emulator" in path.parts


def reachable(room):
    seen, todo = set(), [room]
    while todo:
        for below in ARROWS.get(todo.pop(), []):
            if below not in seen:
                seen.add(below)
                todo.append(below)
    return seen


def violations(root):
    for path in sorted(root.rglob("*")):
        if path.suffix not in {".h", ".cpp", ".cu", ".c"}:
            continue
        parts = path.relative_to(root).parts
        if len(parts) < 2:  # tessera/tessera.h and the like stand above all rooms
            continue
        room, folder = parts[0], "/".join(parts[:-1])
        if room not in ARROWS:
            yield f"{path}: room '{room}' is not in the table"
            continue
        allowed = reachable(room) | {room}
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for pattern, (place, instead) in ONE_PLACE.items():
                if re.search(pattern, line.split("//")[0]) and "/".join(parts) != place and not is_for_tests(path):
                    yield f"{path}:{number}: only {place} may call this; use {instead}"
            include = re.match(r'\s*#\s*include\s*[<"]([^">]+)[">]', line)
            if not include:
                continue
            target = include[1]
            inner = re.match(r"tessera/(\w+)/", target)
            if inner and inner[1] not in allowed:
                yield f"{path}:{number}: {room} may not include {inner[1]}"
            if not inner:
                for pattern, rooms in FOREIGN.items():
                    if re.match(pattern, target) and not any(folder.startswith(r) for r in rooms):
                        yield f"{path}:{number}: {target} may only be included in {rooms or 'no room'}"
            if target.startswith("tessera/") and not inner and room != "capi":
                yield f"{path}:{number}: {room} may not include {target}, which stands above it"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tessera")
    bad = list(violations(root))
    print("\n".join(bad) or "layers ok")
    return 1 if bad else 0


sys.exit(main())
