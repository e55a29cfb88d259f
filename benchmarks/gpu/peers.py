#!/usr/bin/env python3
"""The rows of gpu_bench.cpp by PyTorch: eager, as a CUDA graph, and by torch.compile; the loop by JAX.

  peers.py [--filter TEXT] [--json FILE]

A peer that is not installed, or that cannot do a row, is left out and named. f32 means f32: no tf32."""
import argparse
import json
import os
import time
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def median(times):
    return sorted(times)[len(times) // 2]


class Torch:
    """One row at a time; times in microseconds."""

    def __init__(self):
        import torch

        self.torch = torch
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.manual_seed(0)

    def random(self, *shape, scale=1.0):
        return self.torch.randn(*shape, device="cuda") * scale

    def latency(self, work, count=100):
        for _ in range(10):
            work()
        self.torch.cuda.synchronize()
        times = []
        for _ in range(count):
            begin = time.perf_counter()
            work()
            self.torch.cuda.synchronize()
            times.append(1e6 * (time.perf_counter() - begin))
        return median(times)

    def throughput(self, work, count=30):
        for _ in range(5):
            work()
        times = []
        for _ in range(7):
            self.torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(count):
                work()
            self.torch.cuda.synchronize()
            times.append(1e6 * (time.perf_counter() - begin) / count)
        return median(times)

    def as_graph(self, work):
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay

    def compiled(self, function, *arguments):
        self.torch._dynamo.reset()
        made = self.torch.compile(function)
        return lambda: made(*arguments)

    def sides(self, function, *arguments, timer=None, with_gradients=False):
        """The times of the three ways, by name; what fails says why."""
        timer = timer or self.latency
        ways = {
            "eager": lambda: lambda: function(*arguments),
            "graph": lambda: self.as_graph(lambda: function(*arguments)),
            "compile": lambda: self.compiled(function, *arguments),
        }
        out = {}
        for name, make in ways.items():
            try:
                with self.torch.set_grad_enabled(with_gradients):
                    out[name] = timer(make())
            except Exception as error:  # a peer may fail in any way
                out[name] = repr(error)[:80]
        return out


def mlp_of(torch):
    functional = torch.nn.functional

    def mlp(x, w0, b0, w1, b1, w2, b2):
        return functional.relu(functional.relu(x @ w0 + b0) @ w1 + b1) @ w2 + b2

    return mlp


def torch_rows(peer):
    torch = peer.torch
    functional = torch.nn.functional

    def chain(x, y):
        for _ in range(1000):
            x = x + y
        return x

    def training_step(x, labels, *parameters):
        loss = functional.cross_entropy(mlp_of(torch)(x, *parameters), labels)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients):
                parameter.sub_(1e-3 * gradient)
        return loss

    def weights():
        return [peer.random(784, 512, scale=0.05), peer.random(512), peer.random(512, 512, scale=0.05), peer.random(512),
                peer.random(512, 10, scale=0.05), peer.random(10)]

    def product(size, dtype, tf32=False):
        a, b = (peer.random(size, size).to(dtype) for _ in range(2))
        torch.backends.cuda.matmul.allow_tf32 = tf32
        time_us = peer.throughput(lambda: a @ b, 10)
        torch.backends.cuda.matmul.allow_tf32 = False
        return {"TFLOP/s": 2e-6 * size**3 / time_us}

    yield "1,000 adds of 1,024 f32", lambda: peer.sides(chain, peer.random(1024), peer.random(1024))
    yield "mlp 784-512-512-10 b64, forward", lambda: peer.sides(mlp_of(torch), peer.random(64, 784), *weights())
    labels = torch.arange(64, device="cuda") % 10
    yield "mlp 784-512-512-10 b64, training step", lambda: peer.sides(
        training_step, peer.random(64, 784), labels, *[w.requires_grad_() for w in weights()], with_gradients=True)
    yield "tanh(a x + b) c + x, 64 Mi f32", lambda: peer.sides(
        lambda x: torch.tanh(1.1 * x + 0.3) * 0.7 + x, peer.random(64 << 20), timer=peer.throughput)
    yield "softmax 16384 x 4096", lambda: peer.sides(
        lambda x: torch.softmax(x, -1), peer.random(16384, 4096), timer=peer.throughput)
    yield "layer norm 16384 x 4096", lambda: peer.sides(
        lambda x, w, b: functional.layer_norm(x, (4096,), w, b), peer.random(16384, 4096), peer.random(4096), peer.random(4096),
        timer=peer.throughput)
    yield "matmul 8192 bf16", lambda: product(8192, torch.bfloat16)
    yield "matmul 4096 f32", lambda: product(4096, torch.float32)
    yield "matmul 4096 tf32", lambda: product(4096, torch.float32, tf32=True)


def jax_loop():
    import jax

    body = jax.jit(lambda x: jax.lax.fori_loop(0, 1000, lambda i, v: v * 1.0001 + 0.5, x))
    x = jax.numpy.ones(1024)
    jax.block_until_ready(body(x))
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        jax.block_until_ready(body(x))
        times.append(1e6 * (time.perf_counter() - begin))
    return {"jax, an iteration": median(times) / 1000}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="only rows whose name contains this")
    parser.add_argument("--json", help="where everything that was measured is written")
    options = parser.parse_args()
    rows = []
    try:
        rows += torch_rows(Torch())
    except Exception as error:
        print(f"PyTorch is left out: {error}")
    rows.append(("while of 1,000 iterations", jax_loop))
    results = {}
    for name, measure in rows:
        if options.filter not in name:
            continue
        try:
            results[name] = measure()
        except Exception as error:
            results[name] = {"left out": repr(error)[:120]}
        said = ", ".join(f"{k} {v:.2f}" if isinstance(v, float) else f"{k}: {v}" for k, v in results[name].items())
        print(f"| {name} | {said} |", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


main()
