#!/usr/bin/env python3
"""Fails when two sources of a target give one name, in unnamed namespaces, to two things: sources are compiled several
at a time (TESSERA_JOIN_UNITS). It reads text and sees what is usual here: constants, types, and functions whose parameters
have the same types."""
import collections
import pathlib
import re
import sys

DROPPED = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|^\s*\#(?:[^\n]*\\\n)*[^\n]*""",
                     re.S | re.M)
TYPE = re.compile(r"(?:struct|class|enum(?: class)?|union)\s+(\w+)")
ALIAS = re.compile(r"using\s+(\w+)\s*=\s*(.*)", re.S)
FUNCTION = re.compile(r"(\w+)\s*\((.*)\)[^()]*$", re.S)
VARIABLE = re.compile(r"[^()=]*[^()=!<>]=(?!=)")
CONSTANT = re.compile(r"(?:^|,|\s)(\w+)\s*(?:\[[^\]]*\])?\s*=(?!=)")


def declarations(text):
    """What stands in unnamed namespaces, one by one, without bodies."""
    text = DROPPED.sub(lambda match: '""' if match.group(0)[0] in "\"'R" else " ", text)
    text = re.sub(r"=\s*\{[^{}]*\}(?=\s*[,)])", "", text)  # defaults of parameters
    depth, inside, begin = 0, None, 0
    for match in re.finditer(r"namespace\s*\{|[{};]", text):
        token = match.group(0)
        if token.startswith("namespace") and inside is None:
            inside, begin = depth, match.end()
        elif inside is not None and depth == inside + 1 and token in "{;":
            if text[begin:match.start()].strip():
                yield text[begin:match.start()].strip()
        depth += {"}": -1, ";": 0}.get(token, 1)
        if inside is not None and depth == inside:
            inside = None
        if token == ";" or token == "}":
            begin = match.end()


def types_of(parameters):
    """Parameters without their names and defaults."""
    parts, depth = [""], 0
    for letter in parameters:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return ", ".join(re.sub(r"(?<=[\s&*])\w+$", "", part.split("=")[0].strip()).strip() for part in parts)


def names(declaration):
    """Each name with what tells its meanings apart; equal aliases and overloads are no clash."""
    declaration = re.sub(r"^template\s*<[^{;]*?>\s*(?=\w)", "", re.sub(r"\[\[.*?\]\]", "", declaration)).strip()
    if alias := ALIAS.match(declaration):
        yield alias.group(1), f"using {alias.group(2)}"
    elif kind := TYPE.match(declaration):
        yield kind.group(1), None
    elif VARIABLE.match(declaration):
        for name in CONSTANT.findall(re.sub(r"\([^()]*\)", "", declaration)):
            yield name, None
    elif function := FUNCTION.search(declaration):
        yield function.group(1), f"({types_of(function.group(2))})"


def clashes(paths):
    seen = collections.defaultdict(list)
    for path in paths:
        for declaration in declarations(path.read_text()):
            for name, meaning in names(declaration):
                for other, theirs in seen[name]:
                    is_alias = str(meaning).startswith("using") and str(theirs).startswith("using")
                    if other != path and (meaning == theirs) != is_alias:
                        yield f"{path} and {other} both have '{name}'"
                seen[name].append((path, meaning))


# Folders that are a target of their own.
APART = [pathlib.Path("tessera/runtime/cuda/emulator")]


def main():
    bad = []
    for lists in sorted(pathlib.Path("tessera").rglob("CMakeLists.txt")) + [pathlib.Path("cli/CMakeLists.txt")]:
        folder = lists.parent
        nested = [p.parent for p in folder.rglob("CMakeLists.txt") if p != lists] + APART
        sources = [p for p in sorted(folder.rglob("*.cpp")) if not any(n in p.parents for n in nested)]
        tests = [p for p in sources if p.stem.endswith("_test")]
        bad += clashes(p for p in sources if p not in tests)
        bad += clashes(tests)
    print("\n".join(dict.fromkeys(bad)) or "names ok")
    return 1 if bad else 0


sys.exit(main())
