"""From samples of torch to entries: computing what is expected, choosing, and making wrong calls that torch rejects."""
import collections
import math
import re

import torch

from . import opinfo, values
from .call import Sample, Skip, checked_inputs, entry, error_entry

LIMITS = {"f64": 24, "f32": 20, "f16": 8, "bf16": 8, "i64": 14, "i32": 8, "i16": 6, "i8": 6, "u8": 6, "bool": 10}
ELEMENTS = 260  # of all inputs and results of one sample
ELEMENTWISE = 40  # of one input of an element-wise op
ALIKE = 2  # samples that differ in values only
ERRORS = 12
ERROR_ELEMENTS = 1000  # of all inputs of one wrong call
TORCH_ERRORS = (RuntimeError, IndexError, ValueError, NotImplementedError, ZeroDivisionError)


def tensors_of(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)


def expected(info, call, sample, dtype):
    """The results in f64, rounded once to the dtype; integers as torch computes them."""
    run = call.run or (lambda s: info(s.input, *s.args, **s.kwargs))
    try:
        native = [t.dtype for t in tensors_of(run(sample))]
    except RuntimeError as error:
        if "not implemented for" not in str(error):
            raise
        native = None
    results = tensors_of(run(sample.map(values.wide)))
    if dtype.is_floating_point:
        results = [t.to(dtype) if t.dtype is torch.float64 else t for t in results]
    if native is not None and native != [t.dtype for t in results]:
        raise Skip("result of another dtype")
    return [t.detach().resolve_conj().contiguous() for t in results]


def thinned(sample):
    """A large element-wise sample with only some of its elements, as vectors. Equal ones count once."""
    tensors = []
    sample.map(lambda leaf: tensors.append(leaf) if isinstance(leaf, torch.Tensor) else None)
    if not tensors or any(t.shape != tensors[0].shape or not t.is_contiguous() for t in tensors):
        return sample
    if tensors[0].numel() <= ELEMENTWISE:
        return sample
    columns = zip(*(t.reshape(-1).tolist() for t in tensors))
    first = {repr(column): position for position, column in reversed(list(enumerate(columns)))}
    keep = torch.tensor(spread(sorted(first.values()), ELEMENTWISE))
    return sample.map(lambda leaf: leaf.reshape(-1)[keep] if isinstance(leaf, torch.Tensor) else leaf)


def short_sample(given, dtype):
    return Sample(given.input, tuple(given.args), dict(given.kwargs)).map(lambda leaf: values.short(leaf, dtype))


def entries(card, info, mapper, dtype_name, counts):
    """All samples of one dtype that have a counterpart, in torch's order."""
    dtype = values.DTYPES[dtype_name]
    seen = collections.Counter()
    for given in opinfo.samples(info, dtype):
        try:
            sample = short_sample(given, dtype)
            if "elementwise" in card["traits"]:
                sample = thinned(sample)
            call = checked_inputs(card, mapper(card, sample))
            one = entry(call, expected(info, call, sample, dtype))
        except Skip as why:
            counts[str(why)] += 1
            continue
        except TORCH_ERRORS + (TypeError, AssertionError):
            counts["not computed by torch"] += 1
            continue
        if seen[one.kind] < ALIKE:
            seen[one.kind] += 1
            yield one


def spread(items, count):
    """`count` of the items, evenly over the list."""
    if len(items) <= count:
        return items
    return [items[i * len(items) // count] for i in range(count)]


def chosen(candidates, limit):
    """A few of the candidates: small ones, spread over all of them; few without elements, few strided ones."""
    small = [c for c in candidates if c.elements <= ELEMENTS] or sorted(candidates, key=lambda c: c.elements)[:1]
    plain = [c for c in small if not c.empty and not c.strided]
    strided = spread([c for c in small if not c.empty and c.strided], max(1, limit // 4))
    empty = spread([c for c in small if c.empty], max(1, limit // 6))
    keep = {id(c) for c in spread(plain, max(1, limit - len(strided) - len(empty))) + strided + empty}
    return [c for c in small if id(c) in keep]


# ---- wrong calls


def first_line(error):
    text = re.sub(r"\s+", " ", str(error).split("\n")[0]).strip()
    return text.encode("ascii", "replace").decode()[:160]


# Messages about what we do not have; and about what torch has not written yet, unless that is the point.
NOT_OURS = re.compile(r"omplex|device|out=|named|requires.grad|memory format|layout|sparse|channels_last|mkldnn|backward"
                      r"|negative dimension|storage", re.I)
NOT_OURS_OR_MISSING = re.compile(NOT_OURS.pattern + "|not implemented|Half", re.I)


def rejected(card, info, mapper, given, dtype, counts, no_counterpart=NOT_OURS_OR_MISSING):
    """An entry if torch rejects the call and it can be written in our terms."""
    try:
        sample = short_sample(given, dtype)
        call = checked_shapes(mapper(card, sample))
    except Skip as why:
        counts[f"error input: {why}"] += 1
        return None
    except (TypeError, AttributeError, IndexError, KeyError, ValueError, RuntimeError, AssertionError):
        counts["error input: no counterpart"] += 1
        return None
    run = call.run or (lambda s: info(s.input, *s.args, **s.kwargs))
    try:
        run(sample)
    except TORCH_ERRORS as error:
        message = first_line(error)
        if no_counterpart.search(message) or not message:
            counts["error input: no counterpart"] += 1
            return None
        return error_entry(call, message)
    except TypeError:
        counts["error input: types of Python"] += 1
    return None


def checked_shapes(call):
    for tensor in call.inputs:
        if not isinstance(tensor, torch.Tensor) or tensor.dtype not in values.NAMES:
            raise Skip("no counterpart")
    return call


def longer(tensor, axis):
    return torch.cat([tensor, tensor.narrow(axis, tensor.shape[axis] - 1, 1)], axis)


def wrong_tensors(tensor):
    for axis in range(tensor.dim()):
        if tensor.shape[axis] > 0:
            yield longer(tensor, axis)
    yield tensor.unsqueeze(0)
    if tensor.dim() > 0 and tensor.shape[0] > 0:
        yield tensor[0]
    if tensor.dtype.is_floating_point:
        yield tensor.long()
    else:
        yield tensor.double()
        yield torch.zeros_like(tensor)
        if tensor.numel() > 0 and tensor.dtype is torch.int64:
            yield tensor + 100
            yield tensor - 100


def wrong_leaves(leaf):
    if isinstance(leaf, torch.Tensor):
        yield from wrong_tensors(leaf)
    elif isinstance(leaf, int) and not isinstance(leaf, bool):
        yield leaf + 9
        yield leaf - 9
        yield -1 - leaf
        yield 0
    elif isinstance(leaf, str):
        yield "nonsense"


def leaf_count(value):
    count = 0

    def step(leaf):
        nonlocal count
        count += 1
        return leaf
    values.deep_map(value, step)
    return count


def with_leaf(value, index, new):
    at = -1

    def step(leaf):
        nonlocal at
        at += 1
        return new if at == index else leaf
    return values.deep_map(value, step)


def mutations(sample):
    """The sample with one leaf made wrong, or one axis named twice."""
    parts = (sample.input, sample.args, sample.kwargs)
    leaves = []
    values.deep_map(parts, lambda leaf: leaves.append(leaf) or leaf)
    for index, leaf in enumerate(leaves):
        for wrong in wrong_leaves(leaf):
            yield Sample(*with_leaf(parts, index, wrong))


def dtype_errors(card, info, mapper, dtype_name, counts):
    """The first sample in the dtypes that neither torch nor the card takes."""
    dtype = values.DTYPES[dtype_name]
    sample = next(iter(opinfo.samples(info, dtype)), None)
    if sample is None or "T" not in card["dtypes"]:
        return
    for name, other in values.DTYPES.items():
        if name in card["dtypes"]["T"] or opinfo.supports(info, other):
            continue
        wrong = Sample(sample.input, tuple(sample.args), dict(sample.kwargs)).map(
            lambda leaf: leaf.to(other) if isinstance(leaf, torch.Tensor) and leaf.dtype is dtype else leaf)
        one = rejected(card, info, mapper, wrong, other, counts, NOT_OURS)
        if one is not None:
            yield one


def error_entries(card, info, mapper, dtype_name, counts):
    """torch's own error inputs, then wrong calls made from its samples, one per kind of message."""
    dtype = values.DTYPES[dtype_name]
    found = {}
    for given in opinfo.error_samples(info):
        one = rejected(card, info, mapper, given, dtype, counts)
        if one is not None and one.elements > ERROR_ELEMENTS:
            counts["error input: too large"] += 1
        elif one is not None:
            found.setdefault(one.text, one)
    for one in dtype_errors(card, info, mapper, dtype_name, counts):
        found.setdefault(one.text, one)
    kinds = collections.Counter(one.kind for one in found.values())
    ignored = type(counts)()
    for given in opinfo.samples(info, dtype):
        tensors = []
        values.deep_map((given.input, given.args, given.kwargs), lambda leaf: tensors.append(leaf) or leaf)
        if len(found) >= ERRORS or math.prod(max(1, t.numel()) for t in tensors if isinstance(t, torch.Tensor)) > 5000:
            continue
        for wrong in mutations(Sample(given.input, tuple(given.args), dict(given.kwargs))):
            one = rejected(card, info, mapper, wrong, dtype, ignored)
            if one is not None and kinds[one.kind] < ALIKE and one.elements <= ELEMENTS and len(found) < ERRORS:
                kinds[one.kind] += 1
                found[one.text] = one
    return list(found.values())
