// Writes an ONNX model: just enough of the format's protobuf for the models of the comparison.
'use strict';

function varint(value) {
  const out = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    out.push(rest > 0n ? low | 128 : low);
  } while (rest > 0n);
  return Buffer.from(out);
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => {
  const data = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([varint((field << 3) | 2), varint(data.length), data]);
};
const float = (field, value) => {
  const data = Buffer.alloc(4);
  data.writeFloatLE(value);
  return Buffer.concat([varint((field << 3) | 5), data]);
};
const list = (field, values) => values.map((value) => bytes(field, value));

const FLOAT = 1, INT64 = 7;

/** A named tensor of an initialiser: a Float32Array or a BigInt64Array. */
function tensor(name, dims, data) {
  const raw = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return Buffer.concat([...dims.map((d) => number(1, d)), number(2, data instanceof Float32Array ? FLOAT : INT64), bytes(8, name), bytes(9, raw)]);
}

/** Attributes: a float is given as {float}, others are integers or lists of them. */
function attribute(name, value) {
  if (Array.isArray(value)) return Buffer.concat([bytes(1, name), ...value.map((v) => number(8, v)), number(20, 7)]);
  if (typeof value === 'object') return Buffer.concat([bytes(1, name), float(2, value.float), number(20, 1)]);
  return Buffer.concat([bytes(1, name), number(3, value), number(20, 2)]);
}

function valueInfo(name, dims) {
  const shape = Buffer.concat(dims.map((d) => bytes(1, number(1, d))));
  return Buffer.concat([bytes(1, name), bytes(2, bytes(1, Buffer.concat([number(1, FLOAT), bytes(2, shape)])))]);
}

/** A graph that is being written; results of ops are names. */
class Model {
  constructor() {
    this.nodes = [];
    this.initialisers = [];
    this.inputs = [];
  }
  fresh() { return `v${this.nodes.length}_${this.initialisers.length}`; }
  constant(dims, data) {
    const name = this.fresh();
    this.initialisers.push(tensor(name, dims, data));
    return name;
  }
  input(name, dims) {
    this.inputs.push(valueInfo(name, dims));
    return name;
  }
  ops(op, inputs, attributes, count) {
    const outputs = Array.from({ length: count }, (_, i) => `${this.fresh()}_${i}`);
    this.nodes.push(Buffer.concat([...list(1, inputs), ...list(2, outputs), bytes(4, op),
      ...Object.entries(attributes).map(([name, value]) => bytes(5, attribute(name, value)))]));
    return outputs;
  }
  op(op, inputs, attributes = {}) { return this.ops(op, inputs, attributes, 1)[0]; }
  bytes(output, dims) {
    const graph = Buffer.concat([...list(1, this.nodes), bytes(2, 'compare'), ...list(5, this.initialisers), ...list(11, this.inputs),
      bytes(12, valueInfo(output, dims))]);
    return Buffer.concat([number(1, 9), bytes(8, number(2, 20)), bytes(7, graph)]);
  }
}

module.exports = { Model };
