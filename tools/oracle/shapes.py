"""Ops that move elements, or make them from their places."""
import torch

from .call import Call, Skip
from .elementwise import as_tensor
from .values import Shape


def target_shape(card, sample):
    sample.only()
    sizes = sample.args[0] if len(sample.args) == 1 else None
    if not isinstance(sizes, (tuple, list)):
        raise Skip("a shape of another form")
    return Call([sample.input], {"shape": Shape(tuple(int(n) for n in sizes))})


def permute(card, sample):
    sample.only("dims")
    order = sample.argument(0, "dims")
    return Call([sample.input], {"permutation": [int(axis) for axis in order]})


def concat(card, sample):
    sample.only("dim")
    tensors = list(sample.input)
    if any(tuple(t.shape) == (0,) for t in tensors) and any(t.dim() != 1 for t in tensors):
        raise Skip("an empty vector that torch overlooks")
    return Call(tensors, {"axis": sample.argument(0, "dim", 0)})


def split(card, sample):
    """torch also takes one size for all parts but the last."""
    sample.only("dim")
    x, sizes, dim = sample.input, sample.args[0], sample.argument(1, "dim", 0)
    if isinstance(sizes, int):
        if sizes < 1:
            raise Skip("parts of size 0")
        length = x.shape[dim]
        sizes = [min(sizes, length - begin) for begin in range(0, length, sizes)] or [0]
    return Call([x], {"sizes": Shape(tuple(int(n) for n in sizes)), "axis": dim})


def flip(card, sample):
    sample.only("dims")
    axes = sample.args if sample.args and isinstance(sample.args[0], int) else sample.argument(0, "dims")
    axes = [axes] if isinstance(axes, int) else list(axes)
    if not axes and sample.input.dim() > 0:
        raise Skip("no axis, which for us is all")
    return Call([sample.input], {"axes": axes})


def tile(card, sample):
    sample.only("dims")
    return Call([sample.input], {"repeats": Shape(tuple(sample.argument(0, "dims")))})


def triangle(card, sample):
    sample.only("diagonal")
    return Call([sample.input], {"diagonal": sample.argument(0, "diagonal", 0)})


def unsqueeze(card, sample):
    sample.only("dim")
    return Call([sample.input], {"axes": [sample.argument(0, "dim")]})


def arange(card, sample):
    """torch says where to stop, we how many."""
    sample.only("dtype", "device")
    numbers = [sample.input, *sample.args]
    made = torch.arange(*numbers, dtype=sample.kwargs.get("dtype"))
    start, step = (numbers[0] if len(numbers) > 1 else 0), (numbers[2] if len(numbers) > 2 else 1)
    return Call([as_tensor(start, made.dtype), as_tensor(step, made.dtype)], {"count": made.numel()})


TABLE = {
    "arange": arange, "broadcast_to": target_shape, "concat": concat, "flip": flip, "reshape": target_shape, "tile": tile,
    "transpose": permute, "tril": triangle, "triu": triangle, "unsqueeze": unsqueeze,
}
# Several entries of torch's database that are samples of one op.
SOURCES = {"split": [("split", "", split), ("split", "list_args", split), ("split_with_sizes", "", split)]}
