#!/usr/bin/env node
// ONNX Runtime's side of the comparison (worker.h), on as many threads as OMP_NUM_THREADS says. The time of its JavaScript call, measured
// with an identity of 16 numbers before and behind every run, is subtracted: the shorter one, since others may have disturbed the longer.
// `ort_worker.js first FILE INPUT…` times the first result of a model.
'use strict';
const fs = require('fs');
const readline = require('readline');
const ort = require('onnxruntime-node');
const { Model } = require('./onnx_model.js');

const OPTIONS = {
  intraOpNumThreads: Number(process.env.OMP_NUM_THREADS || 2), interOpNumThreads: 1, graphOptimizationLevel: 'all', logSeverityLevel: 3,
};
const count = (dims) => dims.reduce((a, b) => a * b, 1);

/** The same numbers as compare::numbers gives. */
function numbers(size, seed, scale = 1, offset = 0) {
  const out = new Float32Array(size);
  for (let i = 0; i < size; ++i) {
    let bits = (Math.imul(i, 2654435761) + seed * 40503) >>> 0;
    bits = Math.imul(bits ^ (bits >>> 15), 0x85ebca6b) >>> 0;
    bits = (bits ^ (bits >>> 13)) >>> 0;
    out[i] = offset + scale * ((bits >>> 8) / 8388608 - 1);
  }
  return out;
}

/** A model with one input `x` and constants, each with numbers of its own. */
class Draft extends Model {
  constructor() { super(); this.seed = 0; this.feeds = {}; }
  numbers(dims, scale, offset) { return numbers(count(dims), ++this.seed, scale, offset); }
  x(dims, scale = 1) {
    this.feeds.x = new ort.Tensor('float32', this.numbers(dims, scale), dims);
    return this.input('x', dims);
  }
  given(dims, scale, offset) { return this.constant(dims, this.numbers(dims, scale, offset)); }
  weight(from, to) { return this.given([from, to], 1 / Math.sqrt(from)); }
  bias(size) { return this.given([size], 0.1); }
  scalar(value) { return this.constant([], Float32Array.of(value)); }
  shape(...dims) { return this.constant([dims.length], BigInt64Array.from(dims.map(BigInt))); }
  linear(x, [w, b]) { return this.op('Add', [this.op('MatMul', [x, w]), b]); }
  norm(x, [w, b]) { return this.op('LayerNormalization', [x, w, b], { axis: -1, epsilon: { float: 1e-5 } }); }
}

function rows(op, attributes = {}) {
  return (r, c) => {
    const m = new Draft();
    return [m, m.op(op, [m.x([r, c], 4)], attributes), [r, c]];
  };
}

function matmul(m, n, k) {
  const d = new Draft(), x = d.x([m, k]);
  return [d, d.op('MatMul', [x, d.weight(k, n)]), [m, n]];
}

function affineTanh(n) {
  const d = new Draft(), x = d.x([n], 4);
  const inner = d.op('Tanh', [d.op('Add', [d.op('Mul', [x, d.scalar(0.7)]), d.scalar(0.1)])]);
  return [d, d.op('Add', [d.op('Mul', [inner, d.scalar(1.3)]), x]), [n]];
}

function layerNorm(r, c) {
  const d = new Draft(), x = d.x([r, c], 4), w = d.given([c], 0.1, 1);
  return [d, d.norm(x, [w, d.bias(c)]), [r, c]];
}

function mlp(batch) {
  const d = new Draft(), widths = [784, 512, 512, 10];
  let y = d.x([batch, 784]);
  for (let i = 0; i < 3; ++i) {
    const w = d.weight(widths[i], widths[i + 1]), b = d.bias(widths[i + 1]);
    y = d.op('Gemm', [y, w, b]);
    if (i < 2) y = d.op('Relu', [y]);
  }
  return [d, y, [batch, 10]];
}

function attention(d, h, width, length, batch, heads) {
  const depth = width / heads;
  const [q, k, v] = d.ops('Split', [h, d.shape(width, width, width)], { axis: 2 }, 3)
    .map((part) => d.op('Reshape', [part, d.shape(batch, length, heads, depth)]));
  const turned = (x, perm) => d.op('Transpose', [x], { perm });
  const scores = d.op('MatMul', [turned(q, [0, 2, 1, 3]), turned(k, [0, 2, 3, 1])]);
  const chances = d.op('Softmax', [d.op('Mul', [scores, d.scalar(1 / Math.sqrt(depth))])], { axis: -1 });
  const seen = turned(d.op('MatMul', [chances, turned(v, [0, 2, 1, 3])]), [0, 2, 1, 3]);
  return d.op('Reshape', [seen, d.shape(batch, length, width)]);
}

function block(width, length, batch, heads) {
  const d = new Draft(), x = d.x([batch, length, width]);
  const norm = () => [d.given([width], 0.1, 1), d.bias(width)];
  const linear = (a, b) => [d.weight(a, b), d.bias(b)];
  const n0 = norm(), into = linear(width, 3 * width), out = linear(width, width), n1 = norm();
  const up = linear(width, 4 * width), down = linear(4 * width, width);
  const seen = attention(d, d.linear(d.norm(x, n0), into), width, length, batch, heads);
  const middle = d.op('Add', [x, d.linear(seen, out)]);
  const wide = d.op('Gelu', [d.linear(d.norm(middle, n1), up)]);
  return [d, d.op('Add', [middle, d.linear(wide, down)]), [batch, length, width]];
}

function conv(batch) {
  const d = new Draft(), dims = [batch, 64, 56, 56];
  let y = d.x(dims);
  for (let i = 0; i < 2; ++i)
    y = d.op('Relu', [d.op('Conv', [y, d.given([64, 64, 3, 3], 1 / 24)], { pads: [1, 1, 1, 1], kernel_shape: [3, 3] })]);
  return [d, y, dims];
}

function adds(n) {
  const d = new Draft();
  let x = d.x([16]);
  d.feeds.y = new ort.Tensor('float32', d.numbers([16], 1e-3), [16]);
  const y = d.input('y', [16]);
  for (let i = 0; i < n; ++i) x = d.op('Add', [x, y]);
  return [d, x, [16]];
}

/** The feeds of a model, from words INPUT=DTYPE:SIZExSIZE[:VALUE], as model_worker.cpp reads them. */
function feedsOf(words) {
  const feeds = {};
  for (const word of words) {
    const [, name, dtype, sizes, value] = /^(.*)=(\w+):([\dx]*)(?::(-?\d+))?$/.exec(word);
    const dims = sizes === '' ? [] : sizes.split('x').map(Number), size = count(dims);
    const seed = Object.keys(feeds).length + 1;
    if (dtype === 'f32') feeds[name] = new ort.Tensor('float32', numbers(size, seed), dims);
    if (dtype === 'i64') feeds[name] = new ort.Tensor('int64', new BigInt64Array(size).fill(BigInt(value || 0)), dims);
    if (dtype === 'bool') feeds[name] = new ort.Tensor('bool', new Uint8Array(size).fill(Number(value)), dims);
  }
  return feeds;
}

const KINDS = {
  matmul, affine_tanh: affineTanh, affine_tanh_precise: affineTanh, softmax: rows('Softmax', { axis: -1 }), gelu: rows('Gelu'),
  layer_norm: layerNorm, mlp, block, conv, adds,
};

const seconds = () => Number(process.hrtime.bigint()) * 1e-9;

/** Seconds, and those of the processor. */
async function timed(session, feeds, times) {
  const begin = seconds(), before = process.cpuUsage();
  for (let i = 0; i < times; ++i) await session.run(feeds);
  const used = process.cpuUsage(before);
  return [seconds() - begin, (used.user + used.system) * 1e-6];
}

/** A line of /proc/self/status, in MiB. */
function memoryLine(name) {
  const found = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(fs.readFileSync('/proc/self/status', 'latin1'));
  return Number(found[1]) / 1024;
}

/** The milliseconds from the file to the first result of a fresh process, and the MiB that it took at most. */
async function timeFirst([file, ...words]) {
  const before = memoryLine('VmRSS'), begin = seconds();
  const session = await ort.InferenceSession.create(file, OPTIONS);
  await session.run(feedsOf(words));
  console.log(`${(1e3 * (seconds() - begin)).toFixed(3)} ${(memoryLine('VmHWM') - before).toFixed(1)}`);
}

/** A session, its feeds and its first output. */
async function prepared(kind, words) {
  if (kind === 'model') {
    const session = await ort.InferenceSession.create(words[0], OPTIONS), feeds = feedsOf(words.slice(1));
    return [session, feeds, (await session.run(feeds))[session.outputNames[0]].data];
  }
  if (!(kind in KINDS)) throw new Error('not written for this side');
  const [model, output, dims] = KINDS[kind](...words.map(Number));
  const session = await ort.InferenceSession.create(model.bytes(output, dims), OPTIONS);
  return [session, model.feeds, Object.values(await session.run(model.feeds))[0].data];
}

async function serve() {
  const empty = new Draft();
  const same = empty.op('Identity', [empty.x([16])]);
  const idle = await ort.InferenceSession.create(empty.bytes(same, [16]), OPTIONS);
  await timed(idle, empty.feeds, 2000);
  let session = null, feeds = null;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, kind, ...words] = line.trim().split(/\s+/);
    try {
      if (command === 'prepare') {
        if (session !== null) await session.release();
        session = null;
        let first;
        [session, feeds, first] = await prepared(kind, words);
        await timed(session, feeds, 10);
        const sum = first.reduce((a, b) => a + b, 0), size = first.reduce((a, b) => a + Math.abs(b), 0);
        console.log(`ok ${sum} ${size}`);
      } else {
        const times = Number(kind);
        const before = await timed(idle, empty.feeds, 200);
        const took = await timed(session, feeds, times);
        const behind = await timed(idle, empty.feeds, 200);
        console.log(took.map((time, i) => Math.max(time - Math.min(before[i], behind[i]) / 200 * times, 1e-9)).join(' '));
      }
    } catch (error) {
      console.log(`missing ${String(error.message).replace(/\s+/g, ' ')}`);
    }
  }
}

if (process.argv[2] === 'first') timeFirst(process.argv.slice(3));
else serve();
