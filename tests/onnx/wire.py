"""ONNX models as bytes, written by hand, so that they can be wrong in any way. Numbers of fields are those of onnx.proto."""

FLOAT, INT64, STRING, BOOL = 1, 7, 8, 9


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append((n & 127) | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            return bytes(out)


def integer(field, value):
    return varint(field << 3) + varint(value)


def blob(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dims, elem, *, raw=None, ints=None, extra=b""):
    out = b"".join(integer(1, d) for d in dims) + integer(2, elem)
    if ints is not None:
        out += blob(7, b"".join(varint(i) for i in ints))
    if raw is not None:
        out += blob(9, raw)
    return out + blob(8, name) + extra


def int_vector(name, values):
    return tensor(name, [len(values)], INT64, ints=values)


def int_scalar(name, value):
    return tensor(name, [], INT64, ints=[value])


def value(name, elem=FLOAT, dims=()):
    shape = b"".join(blob(1, integer(1, d) if isinstance(d, int) else blob(2, d)) for d in dims)
    return blob(1, name) + blob(2, blob(1, integer(1, elem) + blob(2, shape)))


def attr_int(name, i):
    return blob(1, name) + integer(3, i) + integer(20, 2)


def attr_ints(name, values):
    return blob(1, name) + b"".join(integer(8, i) for i in values) + integer(20, 7)


def attr_text(name, text):
    return blob(1, name) + blob(4, text) + integer(20, 3)


def attr_tensor(name, t):
    return blob(1, name) + blob(5, t) + integer(20, 4)


def attr_graph(name, g):
    return blob(1, name) + blob(6, g) + integer(20, 5)


def node(op, inputs, outputs, attributes=(), name="", domain=""):
    out = b"".join(blob(1, i) for i in inputs) + b"".join(blob(2, o) for o in outputs)
    out += (blob(3, name) if name else b"") + blob(4, op) + (blob(7, domain) if domain else b"")
    return out + b"".join(blob(5, a) for a in attributes)


def graph(nodes=(), inputs=(), outputs=(), initializers=(), name="g"):
    out = b"".join(blob(1, n) for n in nodes) + blob(2, name)
    out += b"".join(blob(5, t) for t in initializers)
    return out + b"".join(blob(11, i) for i in inputs) + b"".join(blob(12, o) for o in outputs)


def opset(version, domain=""):
    return blob(1, domain) + integer(2, version)


def function(name, inputs, outputs, nodes, version=13):
    out = blob(1, name) + b"".join(blob(4, i) for i in inputs) + b"".join(blob(5, o) for o in outputs)
    out += b"".join(blob(7, n) for n in nodes) + blob(9, opset(version)) + blob(9, opset(1, "local"))
    return out + blob(10, "local")


def model(g, version=13, functions=(), opsets=None):
    out = integer(1, 8) + b"".join(blob(8, o) for o in (opsets if opsets is not None else [opset(version)]))
    if functions:
        out += blob(8, opset(1, "local"))
    return out + (blob(7, g) if g is not None else b"") + b"".join(blob(25, f) for f in functions)
