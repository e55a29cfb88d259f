#!/usr/bin/env python3
"""Tessera and its peers on the same work, in turns, on the same threads. Prints a table of ratios.

  tessera bench compare [--filter TEXT] [--rounds N] [--threads N] [--clock processor] [--json FILE]
  tessera bench compare --models FOLDER      the ONNX models that tools/fetch-models fetched, against ONNX Runtime

A peer that is not installed is left out and named; tools/setup --peers installs them. Every side computes from the same numbers, and
its first result is compared with Tessera's. A time is the fastest round; a ratio is Tessera's time over that of the fastest peer."""
import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TURN = 0.02  # seconds that one side runs before the next has its turn
LOOK = 0.005  # seconds between two looks whether a side's threads sleep
LONGEST_REST = 0.5

# What a row does, its sizes (worker.h), and the most that Tessera's time may be, over that of the best peer.
ROWS = [
    ("matmul 256³", "matmul", (256, 256, 256), 1.03),
    ("matmul 512³", "matmul", (512, 512, 512), 1.03),
    ("matmul 1024³", "matmul", (1024, 1024, 1024), 1.03),
    ("matmul 2048³", "matmul", (2048, 2048, 2048), 1.03),
    ("matmul 8×768×768", "matmul", (8, 768, 768), 1.06),
    ("tanh(a·x+b)·c+x, 1e5", "affine_tanh", (100_000,), 0.25),
    ("tanh(a·x+b)·c+x, 1e7", "affine_tanh", (10_000_000,), 0.13),
    ("the same, precise, 1e5", "affine_tanh_precise", (100_000,), 0.40),
    ("the same, precise, 1e7", "affine_tanh_precise", (10_000_000,), 0.20),
    ("softmax 1024²", "softmax", (1024, 1024), 0.6),
    ("layer norm 4096×768", "layer_norm", (4096, 768), 1.05),
    ("gelu 1024×3072", "gelu", (1024, 3072), 0.65),
    ("MLP b64, forward", "mlp", (64,), 0.95),
    ("MLP b64, training step", "mlp_train", (64,), 0.80),
    ("block d768 s128 b1", "block", (768, 128, 1, 12), 0.95),
    ("block d768 s128 b8", "block", (768, 128, 8, 12), 0.95),
    ("block d256 s64 b1", "block", (256, 64, 1, 4), 0.82),
    ("block d64 s16 b1", "block", (64, 16, 1, 4), 0.55),
    ("block d256 s64 b1, training step", "block_train", (256, 64, 1, 4), 0.62),
    ("conv 3×3 64×56×56 + relu, twice, b1", "conv", (1,), 0.55),
    ("conv 3×3 64×56×56 + relu, twice, b8", "conv", (8,), 0.45),
]
# 1,000 dependent adds of 16 floats: Tessera's way, and the most nanoseconds an op may take.
ADDS = [("fused", "adds_compiled", 2.0), ("fusion off", "adds_unfused", 20.0), ("recorded and run anew", "adds", 90.0)]
ADD_COUNT = 1000
FIRST = (256, 64, 1, 4)
FIRST_TARGETS = {"cold": 150.0, "warm": 20.0}  # milliseconds


def decoder_inputs(frames, past):
    """One word, with the keys and values of those before."""
    parts = [f"past_key_values.{layer}.{side}.{part}=f32:1x8x{size}x36" for layer in range(6)
             for side, size in (("decoder", past), ("encoder", frames)) for part in ("key", "value")]
    return ["input_ids=i64:1x1:7", f"encoder_hidden_states=f32:1x{frames}x288", "use_cache_branch=bool:1:1", *parts]


# A model, its file below the folder of models, and its inputs (model_worker.cpp).
MODELS = [
    ("face detection, front, 128×128", "blazeface/ONNX/face_detection_front_128x128_barracuda.onnx", ["input:0=f32:1x128x128x3"]),
    ("face detection, back, 256×256", "blazeface/ONNX/face_detection_back_256x256_barracuda.onnx", ["input:0=f32:1x256x256x3"]),
    ("PP-OCRv4 detection, 96×160", "ocr/assets/ch_PP-OCRv4_det_infer.onnx", ["x=f32:1x3x96x160"]),
    ("PP-OCRv4 recognition, 48×160", "ocr/assets/ch_PP-OCRv4_rec_infer.onnx", ["x=f32:1x3x48x160"]),
    ("PP-OCR classification, 48×192", "ocr/assets/ch_ppocr_mobile_v2.0_cls_infer.onnx", ["x=f32:1x3x48x192"]),
    ("moonshine encoder, 8 bits, 8,000 samples", "moonshine/dist/model/tiny/quantized/encoder_model.onnx", ["input_values=f32:1x8000"]),
    ("moonshine decoder, 8 bits, a word", "moonshine/dist/model/tiny/quantized/decoder_model_merged.onnx", decoder_inputs(40, 10)),
    ("silero 5, 512 samples", "silero/dist/silero_vad_v5.onnx", ["input=f32:1x512", "state=f32:2x1x128", "sr=i64::16000"]),
    ("silero legacy, 512 samples", "silero/dist/silero_vad_legacy.onnx",
     ["input=f32:1x512", "sr=i64::16000", "h=f32:2x1x64", "c=f32:2x1x64"]),
]
MODEL_TARGET, MEAN_TARGET = 1.0, 0.88
# Of the first result: the most that Tessera's time may be over ONNX Runtime's, and the MiB that it may take beyond it.
FIRST_MODEL_TARGETS = {"cold": (1.5, 60.0), "warm": (1.0, 0.0)}

THREADS = {}  # the number of threads, for every side


def set_threads(count):
    THREADS.update(dict.fromkeys(("TESSERA_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(count)))


# An allocator that keeps memory and uses large pages; the widest vectors.
TORCH = {"ATEN_CPU_CAPABILITY": "avx512", "GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1"}


CLOCKS = ("wall", "processor")


class Side:
    """A program that serves workloads over pipes."""
    clock = CLOCKS[0]

    def __init__(self, name, command, environment=()):
        self.name = name
        self.errors = tempfile.TemporaryFile("w+")
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env={**os.environ, **THREADS, **dict(environment)})
        self.seconds = []

    def ask(self, *words):
        """The answer's words, or an error."""
        try:
            self.program.stdin.write(" ".join(map(str, words)) + "\n")
            self.program.stdin.flush()
            answer = self.program.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.program.wait()
            self.errors.seek(0)
            raise RuntimeError(f"it ended with status {self.program.returncode}: {self.errors.read().strip()[-400:]}")
        if answer.startswith("missing"):
            raise LookupError(answer[8:].strip())
        return answer.split()

    def prepare(self, kind, sizes):
        self.seconds = []
        self.first = [float(word) for word in self.ask("prepare", kind, *sizes)[1:]]
        once = float(self.ask("run", 1)[0])
        self.count = max(1, min(10_000, int(TURN / max(once, 1e-7))))

    def turn(self):
        self.seconds.append(float(self.ask("run", self.count)[CLOCKS.index(self.clock)]) / self.count)

    def rest(self):
        """Waits until its threads sleep. Those of some engines look for work for 20 ms and more: the side behind them would have one
        processor and a half of two."""
        until = time.monotonic() + LONGEST_REST
        before = self.processor_ns()
        while time.monotonic() < until:
            time.sleep(LOOK)
            now = self.processor_ns()
            if None not in (before, now) and now - before < LOOK * 1e9 / 20:
                return
            before = now

    def processor_ns(self):
        """What all its threads have used, or None where the system does not say."""
        try:
            return sum(int(task.read_text().split()[0]) for task in pathlib.Path(f"/proc/{self.program.pid}/task").glob("*/schedstat"))
        except OSError:
            return None


def workers(bench, models=None):
    """Every side by name: how it is started. Those of models are two."""
    # The distribution's packages belong to its own Python.
    python = ["/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable]
    node_path = os.pathsep.join(str(folder / "node_modules") for folder in (ROOT / "build/peers", models or ROOT / "models"))
    runtime = (["node", HERE / "ort_worker.js"], {"NODE_PATH": node_path})
    if models is not None:
        return {"Tessera": ([bench / "tessera_compare_models"], {}), "ORT": runtime}
    return {
        "Tessera": ([bench / "tessera_compare_worker"], {"TESSERA_DEVICE": "cpu"}),
        "oneDNN": ([bench / "tessera_compare_onednn"], {}),
        "torch": (python + [HERE / "torch_worker.py", "eager"], TORCH),
        "torch.jit": (python + [HERE / "torch_worker.py", "jit"], TORCH),
        "ORT": runtime,
        "NumPy": (python + [HERE / "numpy_worker.py"], {}),
    }


def start_sides(programs):
    sides, missing = {}, {}
    for name, (command, environment) in programs.items():
        if shutil.which(command[0]) is None:
            missing[name] = f"there is no {command[0]}"
            continue
        side = Side(name, command, environment)
        try:
            side.ask("prepare", "none")
        except LookupError:
            sides[name] = side
        except RuntimeError as error:
            missing[name] = str(error).splitlines()[-1]
    return sides, missing


def agree(a, b):
    """Whether two first results have nearly the same sums. Thousands of probabilities that are all nearly 0 are, too."""
    return all(abs(x - y) <= 2e-3 * max(abs(a[1]), 1e-2) for x, y in zip(a, b))


def measure(sides, kinds, sizes, rounds):
    """One row. `kinds`: by side; others have that of ''."""
    notes, ready = [], []
    for side in sides.values():
        try:
            side.prepare(kinds.get(side.name, kinds[""]), sizes)
            ready.append(side)
        except (LookupError, RuntimeError) as error:
            notes.append(f"{side.name}: {error}")
    for side in ready:
        side.rest()
    before = float(sides["Tessera"].ask("probe")[0])
    for _ in range(rounds):
        for side in ready:
            side.turn()
            side.rest()
    row = {"sides": {side.name: {"fastest": min(side.seconds), "median": statistics.median(side.seconds), "rounds": side.seconds}
                     for side in ready},
           "cache_line_ns": [before, float(sides["Tessera"].ask("probe")[0])]}
    mine = [side for side in ready if side.name == "Tessera"]
    notes += [f"{side.name}: the first result differs: {side.first} and {mine[0].first}" for side in ready
              if mine and not agree(mine[0].first, side.first)]
    row["notes"] = notes
    return row


def text_of(seconds):
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def judge(row, target, as_ratio=True):
    """Adds the best peer and Tessera's ratio; the words of the table."""
    sides = row["sides"]
    peers = {name: side["fastest"] for name, side in sides.items() if name != "Tessera"}
    if "Tessera" not in sides:
        return ["–", "–", "–", "no result of Tessera"]
    best = min(peers, key=peers.get, default=None)
    if best is not None:
        row.update(best_peer=best, ratio=sides["Tessera"]["fastest"] / peers[best])
    ratio = f"{row['ratio']:.2f}" if best else "–"
    if not as_ratio or best is None:
        return [text_of(sides["Tessera"]["fastest"]), f"{best} {text_of(peers[best])}" if best else "–", ratio, ""]
    return [text_of(sides["Tessera"]["fastest"]), f"{best} {text_of(peers[best])}", ratio,
            f"≤ {target}: {'met' if row['ratio'] <= target else 'missed'}"]


def print_row(name, words, row):
    others = ", ".join(f"{side} {text_of(figures['fastest'])}" for side, figures in row["sides"].items()
                       if side not in ("Tessera", row.get("best_peer")))
    print(f"| {name} | {' | '.join(words)} | {others or '–'} |", flush=True)
    for note in row["notes"]:
        if "not written for this side" not in note and "no single call" not in note:
            print(f"  {name}: {note}", file=sys.stderr, flush=True)


def time_first(worker, rounds):
    """Milliseconds to the first result in a fresh process, by the state of the kernel cache."""
    out = {"cold": [], "warm": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for state in out:
                done = subprocess.run([worker, "first", "block", *map(str, FIRST)], capture_output=True, text=True, check=True,
                                      env={**os.environ, **THREADS, "XDG_CACHE_HOME": cache})
                out[state].append([float(word) for word in done.stdout.split()])
    return out


def machine():
    with open("/proc/cpuinfo") as text:
        model = next((line.split(":")[1].strip() for line in text if line.startswith("model name")), platform.machine())
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return {"machine": f"{os.cpu_count()} × {model}", "commit": commit, "date": time.strftime("%Y-%m-%d"), "load": os.getloadavg()[0]}


def all_rows(sides, options, report):
    wanted = lambda name: options.filter in name
    for name, kind, sizes, target in filter(lambda row: wanted(row[0]), ROWS):
        row = report["rows"][name] = measure(sides, {"": kind}, sizes, options.rounds)
        print_row(name, judge(row, target), {**row})
    for way, kind, target in ADDS:
        name = f"1,000 adds of 16 floats, {way}, an op"
        if not wanted(name):
            continue
        row = report["rows"][name] = measure(sides, {"": "adds", "Tessera": kind}, (ADD_COUNT,), options.rounds)
        for side in row["sides"].values():
            side.update(fastest=side["fastest"] / ADD_COUNT, median=side["median"] / ADD_COUNT)
        words = judge(row, target, as_ratio=False)
        if "Tessera" in row["sides"]:
            took = row["sides"]["Tessera"]["fastest"] * 1e9
            words[0], words[3] = f"{took:.1f} ns", f"≤ {target:g} ns: {'met' if took <= target else 'missed'}"
        print_row(name, words, row)


def first_rows(bench, options, report):
    report["first"] = time_first(bench / "tessera_compare_worker", max(3, options.rounds // 2))
    for state, times in report["first"].items():
        streamed, planned = (statistics.median(column) for column in zip(*times))
        target = FIRST_TARGETS[state]
        print(f"| first result of the d256 block, {state} kernel cache | {streamed:.1f} ms; by a plan {planned:.1f} ms | – | – | "
              f"≤ {target:g} ms: {'met' if streamed <= target else 'missed'}; plan {'met' if planned <= target else 'missed'} | – |")


def time_first_model(program, words, rounds):
    """The medians of milliseconds and MiB to the first result in a fresh process, by the state of the kernel cache."""
    command, environment = program
    out = {"cold": [], "warm": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            for state, figures in out.items():
                done = subprocess.run([*command, "first", *words], capture_output=True, text=True, check=True,
                                      env={**os.environ, **THREADS, **environment, "XDG_CACHE_HOME": cache})
                figures.append([float(word) for word in done.stdout.split()])
    return {state: [statistics.median(column) for column in zip(*figures)] for state, figures in out.items()}


def first_model_words(first):
    """Of both states: times, memory, and whether both targets are met."""
    words = []
    for state, (most_ratio, most_more) in FIRST_MODEL_TARGETS.items():
        (mine, my_memory), (theirs, their_memory) = first["Tessera"][state], first["ORT"][state]
        is_met = mine <= most_ratio * theirs and my_memory <= their_memory + most_more
        words.append(f"{mine:.0f} / {theirs:.0f} ms, {my_memory:.0f} / {their_memory:.0f} MiB: {'met' if is_met else 'missed'}")
    return words


def model_rows(programs, sides, options, report):
    print("\n| model | Tessera | ORT | ratio | target | first result, cold | warm |\n| --- | --- | --- | --- | --- | --- | --- |")
    ratios = []
    for name, file, inputs in filter(lambda model: options.filter in model[0], MODELS):
        path = options.models / file
        if not path.exists():
            print(f"left out: {name}: there is no {path}")
            continue
        row = report["rows"][name] = measure(sides, {"": "model"}, (path, *inputs), options.rounds)
        words = judge(row, MODEL_TARGET)
        if "ratio" in row:
            ratios.append(row["ratio"])
            row["first"] = {side: time_first_model(program, (path, *inputs), max(3, options.rounds // 3)) for side, program in programs.items()}
            words += first_model_words(row["first"])
        print(f"| {name} | {' | '.join(words)} |", flush=True)
        for note in row["notes"]:
            print(f"  {name}: {note}", file=sys.stderr, flush=True)
    if ratios:
        mean = report["mean"] = statistics.geometric_mean(ratios)
        print(f"| geometric mean | | | {mean:.2f} | ≤ {MEAN_TARGET}: {'met' if mean <= MEAN_TARGET else 'missed'} | | |")


def write_report(report, options):
    lines = [ns for row in report["rows"].values() for ns in row["cache_line_ns"]]
    if lines:
        print(f"\na cache line took {min(lines):.0f} to {max(lines):.0f} ns from thread to thread")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="only rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=9, help="turns of every side")
    parser.add_argument("--threads", type=int, default=2, help="of every side; the targets are for 2")
    parser.add_argument("--clock", choices=CLOCKS, default=CLOCKS[0],
                        help="processor: what one thread took, on a machine that is busy with other work")
    parser.add_argument("--models", type=pathlib.Path, help="the folder of ONNX models: they are run instead")
    parser.add_argument("--json", type=pathlib.Path, help="where everything that was measured is written")
    parser.add_argument("--bench", type=pathlib.Path, default=ROOT / "build/release/bin/bench", help="the folder of the built programs")
    options = parser.parse_args()
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads are at least 1")
    if options.models and not options.models.is_dir():
        parser.error(f"there is no folder {options.models}")
    if options.json and not (options.json.parent.is_dir() and os.access(options.json.parent, os.W_OK)):
        parser.error(f"--json: nothing can be written to {options.json.parent}")
    programs = workers(options.bench, options.models and options.models.resolve())
    if not programs["Tessera"][0][0].exists():
        raise SystemExit(f"{programs['Tessera'][0][0]} is not there: cmake --build --preset release --target benchmarks")
    if options.clock == "processor" and options.threads != 1:
        raise SystemExit("--clock processor tells something about one thread only: --threads 1")
    Side.clock = options.clock
    set_threads(options.threads)
    sides, missing = start_sides(programs)
    report = {**machine(), "threads": options.threads, "clock": options.clock, "missing": missing, "rows": {}}
    if "Tessera" not in sides:
        raise SystemExit(f"Tessera's own worker did not start: {missing['Tessera']}")
    print(f"{report['machine']}, commit {report['commit']}, {report['date']}, load {report['load']:.1f}; fastest of {options.rounds} rounds, f32, {options.threads} threads, {options.clock} time")
    for name, why in missing.items():
        print(f"left out: {name}: {why}")
    if options.models is not None:
        model_rows(programs, sides, options, report)
        return write_report(report, options)
    print("\n| work | Tessera | best peer | ratio | target | others |\n| --- | --- | --- | --- | --- | --- |")
    all_rows(sides, options, report)
    if options.filter in "first result of the d256 block":
        first_rows(options.bench, options, report)
    write_report(report, options)


if __name__ == "__main__":
    main()
