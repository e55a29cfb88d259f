"""Element-wise ops: inputs by position; what torch calls otherwise is in TABLE."""
import torch

from . import values
from .call import Call, Skip


def as_tensor(value, like):
    """A Python number as the tensor of rank 0 that stands for it."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, float) and not like.is_floating_point:
        raise Skip("type promotion")
    if isinstance(value, bool) and like is not torch.bool:
        raise Skip("type promotion")
    return torch.tensor(value, dtype=like)


def dtype_of(sample):
    for value in (sample.input, *sample.args, *sample.kwargs.values()):
        if isinstance(value, torch.Tensor):
            return value.dtype
    raise Skip("no tensor among the inputs")


def positional(card, sample):
    """Every argument is an input."""
    sample.only()
    like = dtype_of(sample)
    arguments = (sample.input, *sample.args)
    if len(arguments) != len(card["inputs"]):
        raise Skip("number of arguments")
    return Call([as_tensor(value, like) for value in arguments])


def scaled(card, sample):
    """add and sub of torch also take a factor for b."""
    sample.only("alpha")
    if sample.kwargs.get("alpha", 1) != 1:
        raise Skip("argument alpha")
    return positional(card, type(sample)(sample.input, sample.args))


def truncating(card, sample):
    """Floats are divided exactly, integers truncate."""
    sample.only()
    call = positional(card, sample)
    if not call.inputs[0].dtype.is_floating_point:
        call.run = lambda s: torch.div(s.input, *s.args, rounding_mode="trunc")
    return call


def shift(card, sample):
    call = positional(card, sample)
    distance = call.inputs[1]
    if distance.dtype in values.NAMES and not distance.dtype.is_floating_point:
        width = values.WIDTHS.get(values.NAMES[distance.dtype], 1)
        if bool(((distance < 0) | (distance >= width)).any()):
            raise Skip("a shift that C++ does not define")
    return call


def first_element(value):
    return value.reshape(-1)[0] if isinstance(value, torch.Tensor) and value.numel() > 0 else value


def clamp(card, sample):
    """Our bounds are scalars: the first elements of torch's."""
    sample.only("min", "max")
    x = sample.input
    low, high = (first_element(sample.argument(i, name)) for i, name in enumerate(("min", "max")))
    if x.dtype.is_floating_point:
        low, high = (float("-inf") if low is None else low), (float("inf") if high is None else high)
    if low is None or high is None:
        raise Skip("one bound on integers")
    low, high = as_tensor(low, x.dtype), as_tensor(high, x.dtype)
    return Call([x, low, high], run=lambda s: torch.clamp(s.input, low.to(s.input.dtype), high.to(s.input.dtype)))


def where(card, sample):
    sample.only()
    condition, other = sample.args
    like = next((v.dtype for v in (sample.input, other) if isinstance(v, torch.Tensor)), None)
    if like is None:
        raise Skip("no tensor among the inputs")
    return Call([condition, as_tensor(sample.input, like), as_tensor(other, like)])


def gelu(approximate):
    def mapper(card, sample):
        sample.only("approximate")
        if sample.kwargs.get("approximate", "none") != approximate:
            raise Skip("the other approximation")
        return Call([sample.input])
    return mapper


def one_number(name, otherwise):
    """x and a number that torch names."""
    def mapper(card, sample):
        sample.only(name, "inplace")
        value = sample.argument(0, name, otherwise)
        value = values.rounded_to(float(value), sample.input.dtype)
        return Call([sample.input, as_tensor(value, sample.input.dtype)],
                    run=lambda s: OPS[card["name"]](s.input, value))
    return mapper


OPS = {"elu": torch.nn.functional.elu, "leaky_relu": torch.nn.functional.leaky_relu}


def hard_sigmoid(card, sample):
    sample.only("inplace")
    dtype = sample.input.dtype
    alpha = as_tensor(1 / 6, dtype)
    # In narrow dtypes 1/6 is another number, and torch has no op that takes it.
    exact = dtype is torch.float64
    run = None if exact else lambda s: torch.clamp(s.input * alpha.to(s.input.dtype) + 0.5, 0, 1)
    return Call([sample.input, alpha, as_tensor(0.5, dtype)], run=run)


def prelu(card, sample):
    sample.only("weight")
    x, weight = sample.input, sample.argument(0, "weight")
    if weight.dim() == 0 or weight.numel() == 1:
        slope = weight
    else:  # one slope per channel: axis 1
        if x.dim() < 2 or weight.numel() != x.shape[1]:
            raise Skip("the channel axis is torch's")
        slope = weight.reshape(-1, *[1] * (x.dim() - 2))
    return Call([x, slope.contiguous()])


def softplus(card, sample):
    sample.only("beta", "threshold")
    # Ours has no settings. Without one, torch is linear above 20, where the difference is 2e-9.
    return Call([sample.input], run=lambda s: torch.nn.functional.softplus(s.input, 1, 100))


def plain(card, sample):
    sample.only("inplace")
    if sample.args:
        raise Skip("number of arguments")
    return Call([sample.input])


def round_to_integer(card, sample):
    if sample.kwargs.get("decimals", 0) != 0 or sample.args:
        raise Skip("argument decimals")
    return Call([sample.input])


TABLE = {
    "add": scaled, "sub": scaled, "div": truncating,
    "shift_left": shift, "shift_right": shift, "clip": clamp, "where": where, "round": round_to_integer,
    "gelu": gelu("none"), "gelu_tanh": gelu("tanh"), "leaky_relu": one_number("negative_slope", 0.01),
    "elu": one_number("alpha", 1.0), "hard_sigmoid": hard_sigmoid, "prelu": prelu, "softplus": softplus,
    "hard_swish": plain, "silu": plain, "selu": plain, "mish": plain, "relu": plain,
}
