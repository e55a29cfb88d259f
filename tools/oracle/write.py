"""One file per op, and a line about each on standard output."""
import numpy
import torch

from . import elementwise, indexing, made, networks, numpy_samples, numpy_shapes, opinfo, record, reductions, shapes, values
from .call import Counts

MAPPERS = {**elementwise.TABLE, **indexing.TABLE, **networks.TABLE, **reductions.TABLE, **shapes.TABLE}
SOURCES = {**indexing.SOURCES, **networks.SOURCES, **shapes.SOURCES}
opinfo.OPS.update(made.OPS)
opinfo.MADE.update(indexing.MADE)
MOST_ERRORS = 40  # of one op, before messages that are alike are left out
ERRORS_ALIKE = 4


def default_mapper(card):
    return elementwise.positional if "elementwise" in card["traits"] else None


def sources(card):
    """The entries of torch's database that are samples of the op, each with what makes calls of ours from them."""
    name = card["oracle"].removeprefix("torch:")
    mapper = MAPPERS.get(card["name"]) or default_mapper(card)
    listed = SOURCES.get(card["name"]) or [(name, "", mapper)]
    found = [(opinfo.find(name, variant), mapper) for name, variant, mapper in listed]
    return [(info, mapper) for info, mapper in found if info is not None and mapper is not None]


def torch_entries(card, counts):
    found, out, errors = sources(card), [], {}
    accepted = card["dtypes"].get("T", values.DTYPES)
    for info, mapper in found:
        for name, dtype in values.DTYPES.items():
            if name in accepted and opinfo.supports(info, dtype):
                limit = max(2, record.LIMITS[name] // len(found))
                out += record.chosen(list(record.entries(card, info, mapper, name, counts)), limit)
    for info, mapper in found:
        for name in ("f64", "i64", "bool"):
            if name in accepted and opinfo.supports(info, values.DTYPES[name]):
                for one in record.error_entries(card, info, mapper, name, counts):
                    errors.setdefault(one.text, one)
    return out, fewer(list(errors.values()))


def fewer(errors):
    """Not many of one message where several sources say the same."""
    if len(errors) <= MOST_ERRORS:
        return errors
    seen, out = Counts(), []
    for one in errors:
        seen[one.kind] += 1
        if seen[one.kind] <= ERRORS_ALIKE:
            out.append(one)
    return out


def dump(cards, folder, wanted):
    folder.mkdir(parents=True, exist_ok=True)
    if not wanted:
        for path in folder.glob("*.txt"):
            path.unlink()
    total, without = Counts(), []
    for card in cards:
        if wanted and card["name"] not in wanted:
            continue
        counts = Counts()
        entries, errors = torch_entries(card, counts) if card["oracle"].startswith("torch:") else ([], [])
        entries += numpy_samples.entries(card) + numpy_shapes.entries(card)
        counts["samples"], counts["errors"] = len(entries), len(errors)
        if not entries:
            without.append(f"{card['name']} ({card['oracle']})")
            continue
        text = f"# {card['name']}: {card['oracle']} of torch {torch.__version__}, numpy {numpy.__version__}\n"
        text += "".join(one.text + "\n" for one in entries + errors)
        (folder / f"{card['name']}.txt").write_text(text)
        counts["bytes"] = len(text)
        print(counts.text(card["name"]), flush=True)
        for what in ("samples", "errors", "bytes"):
            total[what] += counts[what]
    print(total.text(f"{len(cards) - len(without)} of {len(cards)} ops"))
    if without:
        print("without samples:", ", ".join(without))
    return 0
