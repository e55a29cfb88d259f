"""PyTorch's own samples: the OpInfo database of torch 1.13 (Debian's python3-torch), made small and deterministic."""
import math
import random
import sys
import types
import unittest
import warnings
import zlib

import numpy
import torch

# torch's test suite needs this module for golden files only, and Debian does not have it.
stand_in = types.ModuleType("expecttest")
stand_in.ACCEPT = False
stand_in.TestCase = unittest.TestCase
sys.modules.setdefault("expecttest", stand_in)

from torch.testing._internal import common_methods_invocations as database  # noqa: E402
from torch.testing._internal.opinfo import core  # noqa: E402
from torch.testing._internal.opinfo.definitions import _masked, linalg, special  # noqa: E402

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

LARGEST = 64  # elements that a tensor may have before its axes are made shorter
LONGEST = 6
BUFFER = (500,)  # what torch makes strided views of


def small_make_tensor(*shape, **options):
    sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if math.prod(sizes) > LARGEST and tuple(sizes) != BUFFER:
        sizes = tuple(min(n, LONGEST) for n in sizes)
    return torch.testing.make_tensor(tuple(sizes), **options)


for module in (database, core, _masked, linalg, special):
    module.make_tensor = small_make_tensor
    for name, size in {"L": 6, "M": 4, "S": 3, "XS": 2}.items():
        if hasattr(module, name):
            setattr(module, name, size)

# torch 1.13 draws from sets, which Python 3.11 no longer does.
draw = random.sample
random.sample = lambda population, k: draw(sorted(population) if isinstance(population, set) else population, k)

OPS = {}
for info in database.op_db:
    OPS.setdefault((info.name, info.variant_test_name), info)


def seed(text):
    number = zlib.crc32(text.encode())
    torch.manual_seed(number)
    random.seed(number)
    numpy.random.seed(number)


def find(name, variant=""):
    return OPS.get((name, variant))


def supports(info, dtype):
    # What only GPUs compute in half precision is computed in f64 here anyway.
    return dtype in info.dtypes or (dtype is torch.float16 and dtype in info.dtypesIfCUDA)


MADE = {}  # samples of our own for entries of the database, by name and variant: a function of the dtype


def samples(info, dtype):
    """The samples of an op and those that torch compares with NumPy."""
    own = MADE.get((info.name, info.variant_test_name))
    if own is not None:
        seed(f"{info.name} {info.variant_test_name} {dtype}")
        yield from own(dtype)
        return
    for kind in (info.reference_inputs, info.sample_inputs):
        seed(f"{info.name} {info.variant_test_name} {dtype}")
        given = 0
        try:
            for sample in kind("cpu", dtype, requires_grad=False):
                given += 1
                yield sample
        except (RuntimeError, TypeError, ValueError, IndexError, AssertionError, NotImplementedError):
            pass  # a generator that cannot make samples of this dtype
        if given > 0:  # the reference samples begin with the samples
            return


def error_samples(info):
    seed(f"{info.name} {info.variant_test_name} errors")
    if info.error_inputs_func is None:
        return
    for error in info.error_inputs("cpu"):
        yield error.sample_input
