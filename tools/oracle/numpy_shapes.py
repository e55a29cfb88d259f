"""Ops that move elements and whose oracle is NumPy: slices, padding, indices. The inputs are made here."""
import math

import numpy

from . import values
from .call import Call, entry, error_entry
from .numpy_samples import generator, random_array
from .record import first_line, spread

MANY = ("f64", "i64")  # dtypes that get all cases; the others a few
FEW = 4


def made(inputs, attributes, function, results):
    """`inputs` are arrays with the names of their dtypes, `results` names of dtypes. What NumPy rejects is an entry too."""
    call = Call([values.stored(array, name) for array, name in inputs], attributes)
    try:
        found = function(*(array for array, _ in inputs))
    except (ValueError, IndexError) as error:
        return error_entry(call, first_line(error))
    return entry(call, [values.stored(array, name) for array, name in zip(found, results)])


def thinned(cases):
    """All cases in some dtypes, a few in the others, which get no wrong calls."""
    def few(card, name):
        found = [one for one in cases(generator(card["name"], name), name)]
        if name in MANY:
            return found
        return spread([one for one in found if "\n! " not in one.text], FEW)
    return few


# ---- slices

SHAPES = [(6,), (5, 4), (2, 3, 4), (3, 0), (1,)]
ENDS = (2**63 - 1, -2**63)


def slice_call(random, name, shape, parts):
    """`parts`: axis, start, stop, step."""
    x = random_array(random, shape, name)
    where = [slice(None)] * len(shape)
    for axis, start, stop, step in parts:
        where[axis] = slice(start, stop, step)
    axes, starts, stops, steps = ([part[i] for part in parts] for i in range(4))
    attributes = {"axes": axes, "starts": values.Shape(tuple(starts)), "stops": values.Shape(tuple(stops)), "steps": steps}
    return made([(x, name)], attributes, lambda v: [v[tuple(where)]], [name])


def slices(random, name):
    for _ in range(36):
        shape = SHAPES[random.integers(len(SHAPES))]
        parts = []
        for axis in range(len(shape)):
            if random.integers(3) > 0:
                start, stop = (int(v) for v in random.integers(-8, 9, 2))
                parts.append((axis, start, stop, int(random.choice([-3, -2, -1, 1, 1, 2, 5]))))
        yield slice_call(random, name, shape, parts)
    for step in (1, -1, 3, -2):
        for start in ENDS:
            for stop in ENDS:
                yield slice_call(random, name, (5,), [(0, start, stop, step)])
    yield slice_call(random, name, (5, 4), [(-1, 1, 3, 1), (0, -2, ENDS[0], 1)])
    yield slice_call(random, name, (5,), [(0, 0, 5, 2**62)])
    yield slice_call(random, name, (5,), [(0, 4, ENDS[1], -2**63)])
    yield slice_call(random, name, (5, 4), [(1, 1, 3, 0)])


def update_call(random, name, shape, parts):
    """`parts`: axis, start, step, count. Going down past the first element stops there."""
    where, update = [slice(None)] * len(shape), list(shape)
    for axis, start, step, count in parts:
        first = start + shape[axis] if start < 0 else start
        stop = first + step * count
        where[axis] = slice(first, None if stop < 0 else stop, step)
        update[axis] = count
    x, new = random_array(random, shape, name), random_array(random, tuple(update), name)

    def put(v, u):
        out = v.copy()
        out[tuple(where)] = u
        return [out]
    axes, starts, steps = ([part[i] for part in parts] for i in range(3))
    return made([(x, name), (new, name)], {"axes": axes, "starts": values.Shape(tuple(starts)), "steps": steps}, put, [name])


def updates(random, name):
    """Some of them reach out of an axis; with two elements or more NumPy sees that they do not fit."""
    for _ in range(40):
        shape = SHAPES[random.integers(3)]
        parts = []
        for axis, size in enumerate(shape):
            step = int(random.choice([-2, -1, 1, 1, 2, 3]))
            count = int(random.integers(2, 4))
            if random.integers(2) > 0:
                parts.append((axis, int(random.integers(-size, size)), step, count))
        yield update_call(random, name, shape, parts)
    yield update_call(random, name, (4,), [(0, 2, 1, 0)])
    yield update_call(random, name, (4, 3), [(1, -1, 1, 1)])
    yield update_call(random, name, (4, 3), [])


# ---- axes of size 1, padding


def squeezes(random, name):
    for shape in [(1,), (1, 3, 1), (2, 1, 1, 3), (1, 0, 1), (2, 3)]:
        for axes in [(), (0,), (-1,), (0, -1), (1,), (0, 0), (4,)]:
            x = random_array(random, shape, name)
            yield made([(x, name)], {"axes": list(axes)}, lambda v, a=axes: [numpy.squeeze(v, a or None)], [name])


def pads(random, name):
    for mode in ("constant", "edge", "reflect", "wrap"):
        for shape, before, after in [((4,), (1,), (2,)), ((3, 4), (0, 2), (1, 0)), ((3, 4), (2, 3), (2, 3)),
                                     ((2, 1, 3), (1, 0, 2), (0, 0, 1)), ((3,), (0,), (0,)), ((0, 3), (0, 1), (0, 2)),
                                     ((0, 3), (1, 0), (0, 0)), ((1, 3), (1, 2), (1, 0))]:
            x, value = random_array(random, shape, name), random_array(random, (), name)
            attributes = {"before": values.Shape(before), "after": values.Shape(after), "mode": mode}
            extra = {"constant_values": value} if mode == "constant" else {}
            # NumPy before 1.25 takes the wrong elements where it goes around more than once.
            if mode == "wrap" and any(b + a > 0 and max(b, a) > n for n, b, a in zip(shape, before, after)):
                continue
            yield made([(x, name), (value, name)], attributes,
                       lambda v, _, b=before, a=after, m=mode, e=extra: [numpy.pad(v, list(zip(b, a)), m, **e)], [name])
    x, value = random_array(random, (5, 4), name), random_array(random, (), name)
    yield made([(x, name), (value, name)], {"before": values.Shape((-2, 1)), "after": values.Shape((1, -1))},
               lambda v, c: [numpy.pad(v[2:, :-1], [(0, 1), (1, 0)], constant_values=c)], [name])
    yield made([(x, name), (value, name)], {"mode": "nonsense"}, lambda v, c: [numpy.pad(v, [(1, 1), (1, 1)], "nonsense")], [])


# ---- indices


def indices(random, shape, size):
    """Of i64 or i32, of both signs."""
    name = str(random.choice(["i64", "i64", "i32"]))
    return random.integers(-size, size, shape), name


def takes(random, name):
    for shape, axis, index_shape in [((5,), 0, (3,)), ((4, 3), 0, (2, 2)), ((4, 3), 1, (5,)), ((4, 3), -1, ()), ((2, 3, 4), 1, (2, 1)),
                                     ((2, 3, 4), -3, (3,)), ((3, 0), 0, (2,)), ((3,), 0, (0,)), ((4, 3), 2, (2,)), ((4, 3), -3, (2,))]:
        x, about = random_array(random, shape, name), indices(random, index_shape, shape[axis] if -len(shape) <= axis < len(shape) else 3)
        yield made([(x, name), about], {"axis": axis}, lambda v, i, a=axis: [numpy.take(v, i, a)], [name])
    for wrong in (4, -5, 2**62, -2**63):
        x = random_array(random, (4, 3), name)
        yield made([(x, name), (numpy.array([0, wrong]), "i64")], {"axis": 0}, lambda v, i: [numpy.take(v, i, 0)], [name])


def rows_of(index):
    return tuple(numpy.moveaxis(index, -1, 0))


def gather_parts(x, index, batch):
    if batch == 0:
        return x[rows_of(index)]
    return numpy.stack([gather_parts(part, rows, batch - 1) for part, rows in zip(x, index)])


# x, rows, how many axes a row names, batch axes
GATHERS = [((4, 3), (2,), 2, 0), ((4, 3), (2, 2), 1, 0), ((2, 3, 4), (3,), 2, 0), ((2, 3, 4), (), 3, 0), ((5,), (3, 1), 1, 0),
           ((2, 3, 4), (2, 3), 1, 1), ((2, 3, 4), (2,), 2, 1), ((2, 2, 3, 2), (2, 2, 3), 1, 2), ((3, 4), (0,), 1, 0)]


def random_rows(random, sizes, rows):
    columns = [random.integers(-size, size, rows) for size in sizes]
    return numpy.stack(columns, -1) if columns else numpy.zeros((*rows, 0), numpy.int64)


def gathers(random, name):
    for shape, rows, depth, batch in GATHERS:
        x = random_array(random, shape, name)
        index = random_rows(random, shape[batch:batch + depth], rows)
        yield made([(x, name), (index, str(random.choice(["i64", "i32"])))], {"batch_dims": batch},
                   lambda v, i, b=batch: [gather_parts(v, i, b)], [name])
    x = random_array(random, (4, 3), name)
    for wrong in ([[0, 3]], [[-5, 0]], [[0, 0, 0]]):
        yield made([(x, name), (numpy.array(wrong), "i64")], {}, lambda v, i: [gather_parts(v, i, 0)], [name])


COMBINE = {"add": numpy.add, "mul": numpy.multiply, "max": numpy.maximum, "min": numpy.minimum}


def scatters(random, name):
    for reduction in ("none", *COMBINE):
        for shape, rows, depth, batch in GATHERS:
            if batch > 0:
                continue
            index = random_rows(random, shape[:depth], rows)
            x = random_array(random, shape, name, -3, 3)
            update = random_array(random, rows + shape[depth:], name, -3, 3)
            yield scatter_call(name, x, index, update, reduction)
    x = random_array(random, (4, 3), name)
    yield scatter_call(name, x, numpy.array([[4]]), x[:1], "none")
    yield scatter_call(name, x, numpy.array([[0], [1]]), random_array(random, (3, 3), name), "none")
    yield scatter_call(name, x, numpy.array([[0, 0, 0]]), random_array(random, (1,), name), "add")


def scatter_call(name, x, index, update, reduction):
    def put(v, i, u):
        out = v.copy()
        if reduction == "none":
            out[rows_of(i)] = u
        else:
            COMBINE[reduction].at(out, rows_of(i), u)
        return [out]
    return made([(x, name), (index, "i64"), (update, name)], {"reduction": reduction}, put, [name])


def places(random, name):
    for shape in [(), (5,), (3, 4), (2, 3, 2), (0,), (2, 0)]:
        for _ in range(2):
            x = random.integers(0, 2, shape) if name in ("bool", *values.UNSIGNED, "u8") else random.integers(-1, 2, shape)

            def find(v):
                rows = numpy.argwhere(v)
                out = numpy.zeros((math.prod(v.shape), v.ndim), numpy.int64)
                out[:len(rows)] = rows
                return [out, numpy.array(len(rows))]
            yield made([(x, name)], {}, find, ["i64", "i64"])


# ---- what has no inputs; orders and scans that torch has not


def eyes(random, name):
    for rows, columns, diagonal in [(3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 3, 7), (3, 3, -3), (0, 3, 0), (3, 0, 1), (1, 1, 0),
                                    (2, 3, 2**62), (2, 3, -2**62)]:
        attributes = {"shape": values.Shape((rows, columns)), "diagonal": diagonal, "dtype": values.Dtype(name)}
        yield made([], attributes, lambda n=rows, m=columns, k=diagonal: [numpy.eye(n, m, k)], [name])


def unsigned_sorts(name):
    most = numpy.iinfo(values.NUMPY[name]).max
    x = numpy.array([[most, 0, 7, most, 1], [3, most // 2 + 1, most // 2, 3, 2]], dtype=values.NUMPY[name])
    yield made([(x, name)], {}, lambda v: [numpy.sort(v), numpy.argsort(v, kind="stable")], [name, "i64"])


def sorts_of_specials(name):
    nan, inf = math.nan, math.inf
    x = numpy.array([[nan, 1, inf, nan, -inf, 0], [0, -1, -inf, 2, nan, 2], [inf, inf, 3, 3, -inf, -inf]])
    yield made([(x, name)], {"axis": 1}, lambda v: [numpy.sort(v), numpy.argsort(v, kind="stable")], [name, "i64"])
    yield made([(x, name)], {"axis": 0}, lambda v: [numpy.sort(v, 0), numpy.argsort(v, 0, kind="stable")], [name, "i64"])


SCANS = {"cumsum": (numpy.cumsum, 0), "cumprod": (numpy.cumprod, 1)}


def scans(card, name):
    """What torch has no word for: from the end, and without the element itself."""
    function, neutral = SCANS[card["name"]]

    def scan(x, axis, exclusive, reverse):
        x = numpy.flip(x, axis) if reverse else x
        if exclusive and x.shape[axis] > 0:
            begin = numpy.full_like(numpy.take(x, [0], axis), neutral)
            x = numpy.concatenate([begin, numpy.delete(x, -1, axis)], axis)
        out = function(x, axis, dtype=x.dtype)
        return numpy.flip(out, axis) if reverse else out
    random = generator(card["name"], name)
    for shape, axis in [((5,), 0), ((3, 4), 0), ((3, 4), -1), ((2, 3, 2), 1), ((0, 2), 0), ((2, 0), 0)]:
        for exclusive, reverse in [(True, False), (False, True), (True, True)]:
            attributes = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
            yield made([(random_array(random, shape, name, -3, 3), name)], attributes,
                       lambda v, a=axis, e=exclusive, r=reverse: [scan(v, a, e, r)], [name])


BY_OP = {"eye": thinned(eyes), "gather": thinned(takes), "gather_nd": thinned(gathers), "nonzero": thinned(places),
         "pad": thinned(pads), "scatter_nd": thinned(scatters), "slice": thinned(slices), "squeeze": thinned(squeezes),
         "update_slice": thinned(updates)}


def entries(card):
    out = []
    for name in card["dtypes"].get("T", [*values.DTYPES, *values.UNSIGNED]):
        if card["name"] in BY_OP:
            out += BY_OP[card["name"]](card, name)
        elif card["name"] == "sort" and name in values.UNSIGNED:
            out += unsigned_sorts(name)
        elif card["name"] == "sort" and name in values.FLOATS:
            out += sorts_of_specials(name)
        elif card["name"] in SCANS and name in MANY:
            out += scans(card, name)
    return out
