"""Reductions and scans."""
import torch

from .call import Call, Skip


def axes_of(dim):
    if dim is None:
        return []
    if isinstance(dim, int):
        return [dim]
    return [int(d) for d in dim]


def reduction(function=None):
    """`function` computes in the dtype of its input, where torch would widen integers."""
    def mapper(card, sample):
        sample.only("dim", "keepdim", "dtype")
        if sample.kwargs.get("dtype") is not None:
            raise Skip("argument dtype")
        x = sample.input
        dim, keep = sample.argument(0, "dim"), sample.argument(1, "keepdim", False)
        run = None
        if function is not None and not x.dtype.is_floating_point:
            given = {} if dim is None else {"dim": dim, "keepdim": keep}
            run = lambda s: function(s.input, **given, dtype=s.input.dtype)  # noqa: E731
        return Call([x], {"axes": axes_of(dim), "keepdims": bool(keep)}, run)
    return mapper


def arg_reduction(card, sample):
    sample.only("dim", "keepdim")
    dim, keep = sample.argument(0, "dim"), sample.argument(1, "keepdim", False)
    if dim is None:
        raise Skip("the index into the flattened tensor")
    return Call([sample.input], {"axis": dim, "keepdims": bool(keep)})


def scan(function):
    def mapper(card, sample):
        sample.only("dim", "dtype")
        if sample.kwargs.get("dtype") is not None:
            raise Skip("argument dtype")
        dim = sample.argument(0, "dim")
        return Call([sample.input], {"axis": dim}, lambda s: function(s.input, dim, dtype=s.input.dtype))
    return mapper


TABLE = {
    "all": reduction(), "any": reduction(), "max": reduction(), "min": reduction(), "mean": reduction(),
    "sum": reduction(torch.sum), "prod": reduction(torch.prod), "logsumexp": reduction(),
    "argmax": arg_reduction, "argmin": arg_reduction, "cumsum": scan(torch.cumsum), "cumprod": scan(torch.cumprod),
}
