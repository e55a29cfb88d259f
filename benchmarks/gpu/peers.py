#!/usr/bin/env python3
"""The rows of gpu_bench.cpp by PyTorch: eager, as a CUDA graph, and by torch.compile; the loop by JAX.

  peers.py [--filter TEXT] [--json FILE] [--tessera PROGRAM]

Products take turns with Tessera where its program, tessera_bench_gpu, is given: a GPU at its power limit is as fast as the work
before lets it be, so that figures taken one after the other do not compare. A peer that is not installed, or that cannot do a row, is left out and named. f32 means f32: no tf32."""
import argparse
import json
import os
import subprocess
import time
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def median(times):
    return sorted(times)[len(times) // 2]


class Tessera:
    """Runs what it is told to (benchmarks/compare/worker.h) while nobody else does."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer or answer.startswith("missing"):
            raise RuntimeError(f"Tessera: {answer.strip() or 'it ended'}")
        return answer.split()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def in_turns(sides, rounds=15, warm_seconds=1.0):
    """By name the seconds of each side's turns; who begins changes from round to round. The GPU is warm by then."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < warm_seconds:
        for run in sides.values():
            run()
    times = {name: [] for name in sides}
    for turn in range(rounds):
        for name in sorted(sides, reverse=turn % 2 == 1):
            times[name].append(sides[name]())
    return times


class OnQuietCore:
    """While it is entered, this thread runs on the core that nobody else uses, which Tessera's program finds."""

    program = None

    def __enter__(self):
        self.before = os.sched_getaffinity(0)
        if self.program:
            found = subprocess.run([self.program, "--quiet-core"], stdout=subprocess.PIPE, text=True, check=False)
            if found.returncode == 0:
                os.sched_setaffinity(0, {int(found.stdout)})

    def __exit__(self, *_):
        os.sched_setaffinity(0, self.before)


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
        with OnQuietCore():
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


TURN_SECONDS = 0.03


def product_in_turns(peer, tessera, size, dtype, multiply):
    """The figures of both sides; `share` is Tessera's of PyTorch's, the median of the rounds."""

    def run():
        begin = time.perf_counter()
        for _ in range(count):
            multiply()
        peer.torch.cuda.synchronize()
        return time.perf_counter() - begin

    count = max(1, round(TURN_SECONDS / (1e-6 * peer.throughput(multiply, 10))))
    tessera.ask("prepare", "product", dtype, size, count)
    times = in_turns({"torch": run, "tessera": lambda: float(tessera.ask("run", 1)[0])})
    speed = {name: 2e-12 * size**3 * count / median(seconds) for name, seconds in times.items()}
    share = median([torch / ours for torch, ours in zip(times["torch"], times["tessera"])])
    return {"TFLOP/s": speed["torch"], "Tessera in turns": speed["tessera"], "share": share}


def torch_rows(peer, tessera):
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

    def product(size, name):
        dtype = torch.bfloat16 if name == "bf16" else torch.float32
        # As many bits set as in Tessera's: how much power a product takes depends on them.
        a, b = ((2 * torch.rand(size, size, device="cuda") - 1).to(dtype) for _ in range(2))
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        try:
            if tessera:
                return product_in_turns(peer, tessera, size, name, lambda: a @ b)
            return {"TFLOP/s": 2e-6 * size**3 / peer.throughput(lambda: a @ b, 10)}
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    yield "1,000 adds of 1,024 f32", lambda: peer.sides(chain, peer.random(1024), peer.random(1024))
    yield "mlp 784-512-512-10 b64, forward", lambda: peer.sides(mlp_of(torch), peer.random(64, 784), *weights())
    labels = torch.arange(64, device="cuda") % 10
    yield "mlp 784-512-512-10 b64, training step", lambda: peer.sides(
        training_step, peer.random(64, 784), labels, *[w.requires_grad_() for w in weights()], with_gradients=True)
    yield "tanh(a x + b) c + x, 64 Mi f32", lambda: peer.sides(
        lambda x: torch.tanh(1.1 * x + 0.3) * 0.7 + x, peer.random(64 << 20), timer=peer.throughput)
    yield "softmax 16384 x 4096", lambda: peer.sides(
        lambda x: torch.softmax(x, -1), peer.random(16384, 4096), timer=peer.throughput)
    yield "softmax 1024 x 96,000", lambda: peer.sides(
        lambda x: torch.softmax(x, -1), peer.random(1024, 96_000), timer=peer.throughput)
    yield "gather_elements along rows, 16384 x 4096", lambda: peer.sides(
        lambda x, order: torch.gather(x, 1, order), peer.random(16384, 4096), torch.randint(4096, (16384, 4096), device="cuda"),
        timer=peer.throughput)
    yield "layer norm 16384 x 4096", lambda: peer.sides(
        lambda x, w, b: functional.layer_norm(x, (4096,), w, b), peer.random(16384, 4096), peer.random(4096), peer.random(4096),
        timer=peer.throughput)
    for size, dtype in ((8192, "bf16"), (4096, "f32"), (4096, "tf32")):
        yield f"matmul {size} {dtype}", lambda size=size, dtype=dtype: product(size, dtype)


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
    parser.add_argument("--tessera", help="tessera_bench_gpu, which products take turns with and which finds a quiet core")
    options = parser.parse_args()
    OnQuietCore.program = options.tessera
    rows = []
    tessera = Tessera(options.tessera) if options.tessera else None
    try:
        rows += torch_rows(Torch(), tessera)
    except Exception as error:
        print(f"PyTorch is left out: {error}")
    rows.append(("for of 1,000 iterations", jax_loop))
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
    if tessera:
        tessera.close()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


main()
