"""Ops whose oracle is NumPy, and the unsigned dtypes, which torch 1.13 does not have. The inputs are made here."""
import zlib

import numpy

from . import values
from .call import Call, entry

SHAPES = [(), (5,), (3, 4), (2, 3, 4), (2, 1, 3), (0,), (2, 0, 3)]


def generator(*parts):
    return numpy.random.default_rng(zlib.crc32(" ".join(parts).encode()))


def random_array(random, shape, name, low=-9, high=9):
    """Of a dtype by our name, short values; f64 stands for what NumPy does not have."""
    if name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if name in values.FLOATS:
        flat = [values.shortened(v) for v in random.uniform(low, high, shape).reshape(-1)]
        wide = numpy.array(flat, dtype=numpy.float64).reshape(shape)
        return values.stored(wide, name).double().numpy()
    low = max(low, 0) if name.startswith("u") else low
    return random.integers(low, high + 1, shape).astype(values.NUMPY[name])


def entry_of(name, inputs, attributes, function, result=None):
    """`function` is given the inputs with floats in f64; its result is rounded once."""
    result = result or name
    call = Call([values.stored(x, name if x.dtype.kind != "b" else "bool") for x in inputs], attributes)
    return entry(call, [values.stored(function(*inputs), result)])


# ---- ops of NumPy


def copies(card, name):
    random = generator(card["name"], name)
    for shape in SHAPES:
        yield entry_of(name, [random_array(random, shape, name)], {}, numpy.copy)


def filled(card, name):
    random = generator(card["name"], name)
    for shape in SHAPES:
        value = random_array(random, (), name)
        yield entry_of(name, [value], {"shape": values.Shape(shape)}, lambda v, s=shape: numpy.full(s, v))


def norm(order):
    """NumPy's norm of a vector, so that several axes are made one."""
    def along(x, axes, keep):
        axes = axes or tuple(range(x.ndim))
        kept = [i for i in range(x.ndim) if i not in axes]
        rows = x.transpose(*kept, *axes).reshape(*(x.shape[i] for i in kept), -1)
        out = numpy.linalg.norm(rows, ord=order, axis=-1)
        return out.reshape([1 if i in axes else x.shape[i] for i in range(x.ndim)]) if keep else out

    def cases(card, name):
        random = generator(card["name"], name)
        for shape in SHAPES[1:5]:
            x = random_array(random, shape, name, -6, 6)
            for axes in [(), (0,), (len(shape) - 1,), tuple(range(len(shape)))]:
                for keep in (False, True):
                    attributes = {"axes": list(axes), "keepdims": keep}
                    yield entry_of(name, [x], attributes, lambda v, a=axes, k=keep: along(v, a, k))
    return cases


LIMITS = {"i64": 2**63 - 1, "i32": 2**31 - 1, "i16": 2**15 - 1, "i8": 127, "u8": 255, "u16": 65535, "u32": 2**32 - 1,
          "u64": 2**64 - 1}


def cast_inputs(name, target, random):
    """Values that NumPy converts in a defined way: floats to integers within their range."""
    if name == "bool":
        return numpy.array([True, False, True])
    if name in values.FLOATS:
        special = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 100.7, -100.2, 65504.0, 1e-6, 3e-8, 3.14159]
        if target not in LIMITS:
            special += [float("inf"), float("-inf"), float("nan"), 1e-40, 70000.0, 1e20]
        rounded = values.stored(numpy.array(special, dtype=numpy.float64), name).double().numpy()
        if target not in LIMITS:
            return rounded
        least = -1 if target.startswith("u") else -LIMITS[target] - 1
        return rounded[(rounded > least) & (rounded <= LIMITS[target])]
    most = LIMITS[name]
    least = 0 if name.startswith("u") else -most - 1
    special = [0, 1, 2, 127, 128 % (most + 1), 255 % (most + 1), 2049 % (most + 1), most, most - 1, least, most // 3]
    return numpy.array(special + [int(v) for v in random.integers(0, 100, 4)], dtype=values.NUMPY[name])


def casts(card, name):
    random = generator(card["name"], name)
    for target in [*values.DTYPES, *values.UNSIGNED]:
        x = cast_inputs(name, target, random)
        yield entry_of(name, [x], {"dtype": values.Dtype(target)}, lambda v: v, target)


TABLE = {"astype": casts, "copy": copies, "full": filled, "linalg.norm": None}
BY_OP = {"l1_norm": norm(1), "l2_norm": norm(2)}


# ---- the dtypes that torch does not have

BINARY = {"add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply, "floor_div": numpy.floor_divide,
          "div": numpy.floor_divide, "mod": numpy.remainder, "fmod": numpy.fmod, "maximum": numpy.maximum,
          "minimum": numpy.minimum, "pow": numpy.power, "bit_and": numpy.bitwise_and, "bit_or": numpy.bitwise_or,
          "bit_xor": numpy.bitwise_xor, "shift_left": numpy.left_shift, "shift_right": numpy.right_shift}
TESTS = {"eq": numpy.equal, "ne": numpy.not_equal, "lt": numpy.less, "le": numpy.less_equal, "gt": numpy.greater,
         "ge": numpy.greater_equal, "logical_and": numpy.logical_and, "logical_or": numpy.logical_or,
         "logical_xor": numpy.logical_xor}
UNARY = {"abs": numpy.abs, "neg": numpy.negative, "sign": numpy.sign, "square": numpy.square, "bit_not": numpy.invert,
         "identity": numpy.copy}
REDUCTIONS = {"sum": numpy.sum, "prod": numpy.prod, "max": numpy.max, "min": numpy.min}


def unsigned_pair(name, op):
    most = LIMITS[name]
    if op.startswith("shift"):
        width = most.bit_length()
        pairs = [(1, 0), (1, width - 1), (most, 3), (most, width - 1), (most // 3, 7), (0, 5)]
    else:
        special = [1, 2, 7, most // 3, most // 2 + 1, most - 1, most]
        pairs = [(a, b) for a in [0, *special] for b in special]
    return [numpy.array(side, dtype=values.NUMPY[name]) for side in zip(*pairs)]


def unsigned(card, name):
    """Calls of an op in u16, u32 and u64."""
    op = card["name"]
    with numpy.errstate(all="ignore"):
        if op in BINARY:
            yield entry_of(name, unsigned_pair(name, op), {}, BINARY[op])
        if op in TESTS:
            yield entry_of(name, unsigned_pair(name, op), {}, TESTS[op], "bool")
        if op in UNARY:
            yield entry_of(name, unsigned_pair(name, op)[:1], {}, UNARY[op])
        if op in REDUCTIONS:
            x = numpy.array([[1, LIMITS[name], 7], [2, LIMITS[name] // 3, 5]], dtype=values.NUMPY[name])
            for axis in (0, 1):
                yield entry_of(name, [x], {"axes": [axis]}, lambda v, a=axis: REDUCTIONS[op](v, axis=a, dtype=v.dtype)
                               if op in ("sum", "prod") else REDUCTIONS[op](v, axis=a))


def entries(card):
    """All calls of a card that NumPy answers."""
    out = []
    kind, _, function = card["oracle"].partition(":")
    cases = BY_OP.get(card["name"]) or TABLE.get(function) if kind == "numpy" else None
    for name in card["dtypes"].get("T", []):
        if cases is not None:
            out += cases(card, name)
        elif name in values.UNSIGNED:
            out += unsigned(card, name)
    return out
