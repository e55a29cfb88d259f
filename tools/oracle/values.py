"""Numbers: the dtypes, how values are written, and how they are made short and made wide.

Floats are written in the fewest decimal digits that read back to the same bits, so that the files can be read by people and
by any language. Inputs are rounded to six digits before anything is computed from them, which keeps the files small."""
import dataclasses

import numpy
import torch

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8,
          "bool": torch.bool}
# What torch 1.13 does not have is in NumPy only.
UNSIGNED = {"u16": numpy.uint16, "u32": numpy.uint32, "u64": numpy.uint64}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "u8")
NUMPY = {"f64": numpy.float64, "f32": numpy.float32, "f16": numpy.float16, "i64": numpy.int64, "i32": numpy.int32,
         "i16": numpy.int16, "i8": numpy.int8, "u8": numpy.uint8, "bool": numpy.bool_, **UNSIGNED}
WIDTHS = {"i64": 64, "i32": 32, "i16": 16, "i8": 8, "u8": 8}


@dataclasses.dataclass(frozen=True)
class Shape:
    """An attribute that is a shape."""
    sizes: tuple


@dataclasses.dataclass(frozen=True)
class Dtype:
    """An attribute that is a dtype, by our name for it."""
    name: str


def rounded_to(value, dtype):
    """A Python float as `dtype` holds it."""
    return torch.tensor(value, dtype=torch.float64).to(dtype).double().item()


def shortened(value):
    return float(f"{value:.6g}")


def with_short_values(tensor):
    """The same tensor with the same strides, its floats rounded to six digits."""
    if not tensor.dtype.is_floating_point:
        return tensor
    extent = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride())) + 1 if tensor.numel() else 0
    flat = tensor.detach().as_strided((extent,), (1,), tensor.storage_offset())
    short = torch.tensor([shortened(v) for v in flat.double().tolist()], dtype=torch.float64).to(tensor.dtype)
    return short.as_strided(tensor.shape, tensor.stride(), 0)


def deep_map(value, change):
    """`change` applied to every leaf of nested tuples, lists and dicts."""
    if isinstance(value, (tuple, list)):
        return type(value)(deep_map(v, change) for v in value)
    if isinstance(value, dict):
        return {k: deep_map(v, change) for k, v in value.items()}
    return change(value)


def short(value, dtype):
    """A leaf of a sample as it is stored: short digits, and Python floats as `dtype` holds them."""
    if isinstance(value, torch.Tensor):
        return with_short_values(value)
    if isinstance(value, float) and dtype.is_floating_point:
        return rounded_to(shortened(value), dtype)
    return value


def wide(value):
    """A leaf of a sample as it is computed with: every float in f64."""
    if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
        return value.double()
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    return value


def number_text(value, dtype):
    if not dtype.is_floating_point:
        return str(int(value))
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    if dtype is torch.float64:
        text = f"{value:.15g}"
    elif dtype is torch.float32:
        text = str(numpy.float32(value))
    else:
        text = next(t for t in (f"{value:.{digits}g}" for digits in range(1, 10)) if rounded_to(float(t), dtype) == value)
    return text[:-2] if text.endswith(".0") else text.replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def tensor_text(tensor):
    """f32[2,3] strides 1,2: 1 2 3 4 5 6, the values in row-major order whatever the strides are."""
    if isinstance(tensor, numpy.ndarray):
        name, strides = next(n for n, dtype in UNSIGNED.items() if tensor.dtype == dtype), ""
        texts = map(str, tensor.reshape(-1).tolist())
    else:
        name = NAMES[tensor.dtype]
        strides = "" if tensor.is_contiguous() else f" strides {','.join(map(str, tensor.stride()))}"
        values = tensor.double() if tensor.dtype.is_floating_point else tensor
        texts = (number_text(v, tensor.dtype) for v in values.reshape(-1).tolist())
    return f"{name}[{','.join(map(str, tensor.shape))}]{strides}: {' '.join(texts)}".rstrip()


def stored(array, name=None):
    """What NumPy computed as it is written: a tensor of torch, or an array of a dtype that torch does not have."""
    array = numpy.asarray(array)
    if name == "bf16":
        return torch.from_numpy(numpy.array(array, dtype=numpy.float64)).bfloat16()
    if name is not None:
        array = array.astype(NUMPY[name])
    if array.dtype in UNSIGNED.values():
        return array
    return torch.from_numpy(numpy.array(array))  # a copy, contiguous


def attribute_text(value):
    """As the text form of the IR writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = repr(value)
        special = {"inf": "f64.inf", "-inf": "f64.neg_inf", "nan": "f64.nan"}
        return special.get(text, text)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, Shape):
        return f"shape[{', '.join(map(str, value.sizes))}]"
    if isinstance(value, Dtype):
        return value.name
    return f"[{', '.join(attribute_text(v) for v in value)}]"
