"""The commands of a side of the comparison (worker.h), for those written in Python."""
import sys
import time

import numpy


def numbers(shape, seed, scale=1.0, offset=0.0):
    """The same numbers as compare::numbers gives."""
    count = int(numpy.prod(shape))
    bits = numpy.arange(count, dtype=numpy.uint32) * numpy.uint32(2654435761) + numpy.uint32(seed * 40503)
    bits ^= bits >> numpy.uint32(15)
    bits *= numpy.uint32(0x85EBCA6B)
    bits ^= bits >> numpy.uint32(13)
    unit = (bits >> numpy.uint32(8)).astype(numpy.float64) / 8388608.0 - 1.0
    return (offset + scale * unit).astype(numpy.float32).reshape(shape)


class Inputs:
    """Arrays of one workload, each with numbers of its own."""

    def __init__(self, convert=lambda array: array):
        self.seed = 0
        self.convert = convert

    def __call__(self, *shape, scale=1.0, offset=0.0):
        self.seed += 1
        return self.convert(numbers(shape, self.seed, scale, offset))

    def weight(self, size_in, size_out):
        return self(size_in, size_out, scale=size_in ** -0.5)

    def bias(self, size):
        return self(size, scale=0.1)


def serve(kinds, to_numpy):
    """`kinds`: by name a function of the sizes that gives a function to run, whose result is an array."""
    run = None
    for line in sys.stdin:
        command, *words = line.split()
        try:
            if command == "prepare":
                if words[0] not in kinds:
                    raise LookupError("not written for this side")
                run = None
                run = kinds[words[0]](*map(int, words[1:]))
                first = to_numpy(run()).astype(numpy.float64)
                for _ in range(10):
                    run()
                print(f"ok {first.sum():.9g} {abs(first).sum():.9g}", flush=True)
            else:
                count = int(words[0])
                begin, processor_begin = time.perf_counter(), time.process_time()
                for _ in range(count):
                    run()
                print(time.perf_counter() - begin, time.process_time() - processor_begin, flush=True)
        except Exception as error:  # the other sides go on
            print("missing", str(error).replace("\n", " "), flush=True)
