"""One file per op, and a line about each on standard output."""
import numpy
import torch

from . import elementwise, networks, numpy_samples, opinfo, record, reductions, shapes, values
from .call import Counts

MAPPERS = {**elementwise.TABLE, **networks.TABLE, **reductions.TABLE, **shapes.TABLE}


def default_mapper(card):
    return elementwise.positional if "elementwise" in card["traits"] else None


def sources(card):
    """The entries of torch's database that are samples of the op, each with its mapper."""
    mapper = MAPPERS.get(card["name"]) or default_mapper(card)
    named = [(opinfo.find(card["oracle"].removeprefix("torch:")), mapper)]
    return [(info, how) for info, how in networks.SOURCES.get(card["name"], named) if info is not None and how is not None]


def torch_entries(card, counts):
    found = sources(card)
    out = []
    accepted = card["dtypes"].get("T", values.DTYPES)
    for info, mapper in found:
        for name, dtype in values.DTYPES.items():
            if name in accepted and opinfo.supports(info, dtype):
                limit = max(2, record.LIMITS[name] // len(found))
                out += record.chosen(list(record.entries(card, info, mapper, name, counts)), limit)
    errors = {}
    for info, mapper in found:
        for name in ("f64", "i64", "bool"):
            if name in accepted and opinfo.supports(info, values.DTYPES[name]):
                for one in record.error_entries(card, info, mapper, name, counts):
                    errors.setdefault(one.text, one)
    return out, list(errors.values())


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
        entries += numpy_samples.entries(card)
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
