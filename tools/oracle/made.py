"""Samples of functions of torch that its database has none of. They are made here and used like those of the database."""
import functools

import torch

from .call import Sample

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
NUMBERS = FLOATS + (torch.int64, torch.int32)


class Made:
    """Looks like an entry of the database: `cases(make)` gives the samples, `make(*shape)` a random tensor."""
    error_inputs_func = None
    variant_test_name = "made"

    def __init__(self, function, cases, dtypes=FLOATS):
        self.function, self.cases = function, cases
        self.name = cases.__name__
        self.dtypes = self.dtypesIfCUDA = dtypes

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def sample_inputs(self, device, dtype, requires_grad):
        yield from self.cases(functools.partial(random_tensor, dtype))

    reference_inputs = sample_inputs


def random_tensor(dtype, *shape):
    return torch.testing.make_tensor(shape, device="cpu", dtype=dtype, low=-5, high=5)


# ---- convolutions over three axes, and gradients of weights


def conv3d(make):
    yield Sample(make(1, 2, 3, 3, 3), (make(2, 2, 2, 2, 2), make(2)))
    yield Sample(make(1, 2, 4, 3, 3), (make(2, 1, 3, 2, 1),), {"stride": (2, 1, 1), "padding": (1, 0, 1), "groups": 2})
    yield Sample(make(2, 1, 3, 3, 4), (make(1, 1, 2, 2, 2), make(1)), {"dilation": (1, 2, 2), "padding": 1, "stride": 2})
    yield Sample(make(0, 1, 3, 3, 3), (make(1, 1, 2, 2, 2),))


def conv_weight_gradient(make):
    """The image, the sizes of the weights, the gradient of the result, and how the window slides."""
    yield Sample(make(2, 3, 6), ((2, 3, 3), make(2, 2, 4)))
    yield Sample(make(1, 4, 7), ((2, 2, 3), make(1, 2, 3)), {"stride": 2, "groups": 2})
    yield Sample(make(1, 2, 5, 4), ((3, 2, 2, 3), make(1, 3, 4, 4)), {"padding": (0, 1)})
    yield Sample(make(2, 2, 5, 5), ((2, 1, 2, 2), make(2, 2, 3, 2)), {"dilation": (2, 1), "stride": (1, 2), "groups": 2})
    yield Sample(make(1, 1, 3, 3, 4), ((2, 1, 2, 2, 2), make(1, 2, 2, 2, 3)))


def weight_gradient(image, sizes, gradient, stride=1, padding=0, dilation=1, groups=1):
    function = {1: torch.nn.grad.conv1d_weight, 2: torch.nn.grad.conv2d_weight, 3: torch.nn.grad.conv3d_weight}
    return function[len(sizes) - 2](image, sizes, gradient, stride, padding, dilation, groups)


# ---- formulas


def rms_norm(make):
    for shape, axis in [((5,), -1), ((2, 4), -1), ((2, 3, 4), -1), ((2, 3, 4), -2), ((2, 3, 4), 0), ((2, 0), -1), ((0, 3), 1)]:
        yield Sample(make(*shape), (make(*shape[axis:]), axis))
        yield Sample(make(*shape), (None, axis, 0.5))


def root_mean_square(x, weight=None, axis=-1, epsilon=1e-5):
    axes = tuple(range(axis % x.dim(), x.dim()))
    if weight is not None and weight.shape != x.shape[axes[0]:]:
        raise ValueError(f"a weight of shape {tuple(weight.shape)} for axes of shape {tuple(x.shape[axes[0]:])}")
    y = x * torch.rsqrt(torch.mean(x * x, axes, keepdim=True) + epsilon)
    return y if weight is None else y * weight


def attention(make):
    hides = torch.tensor([[True, False, True], [False, True, True]])
    yield Sample(make(2, 4), (make(3, 4), make(3, 5), hides))
    yield Sample(make(2, 4), (make(3, 4), make(3, 5), make(2, 3)))
    yield Sample(make(2, 2, 4), (make(3, 4), make(1, 3, 2), hides))
    yield Sample(make(2, 1, 2, 3), (make(2, 3, 3), make(3, 2), make(3)))
    yield Sample(make(3, 2), (make(3, 2), make(3, 2), make(2, 1, 3), True))
    yield Sample(make(4, 2), (make(2, 2), make(2, 3), None, True, 0.3))
    yield Sample(make(2, 4, 2), (make(2, 3, 2), make(2, 3, 1), None, False, 0.0))
    yield Sample(make(2, 4), (make(0, 4), make(0, 5)))


def attend(q, k, v, mask=None, causal=False, scale=None):
    scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype is torch.bool else scores + mask
    return torch.softmax(scores, -1) @ v


def cross_entropy(make):
    """Single cases, and targets that are ignored."""
    yield Sample(make(4), (torch.tensor(2),))
    yield Sample(make(3, 4), (torch.tensor([3, -100, 1]),))
    yield Sample(make(3, 4), (torch.tensor([3, -1, 1]),), {"ignore_index": -1, "reduction": "none"})
    yield Sample(make(2, 4, 3), (torch.tensor([[0, 3, 2], [2, 1, 2]]),), {"ignore_index": 2, "weight": make(4).abs()})
    yield Sample(make(2, 3), (torch.tensor([1, 1]),), {"ignore_index": 1})


def batch_norm(make):
    for shape in [(3, 2), (2, 3, 4), (1, 2, 2, 3)]:
        channels = shape[1]
        for training in (False, True):
            yield Sample(make(*shape), (make(channels), make(channels).abs(), make(channels), make(channels)),
                         {"training": training, "eps": 0.25})


def einsum(make):
    square = make(3, 3)
    for equation, operands in [
            ("ii->i", [square]), ("ii", [square]), ("iij->j", [make(2, 2, 3)]), ("ij,jk", [make(2, 3), make(3, 2)]),
            ("ba", [make(2, 3)]), ("...ij,...jk->...ik", [make(2, 1, 2, 2), make(3, 2, 2)]), ("i...,i...", [make(2, 3), make(2, 3)]),
            ("...->", [make(2, 3)]), ("ab,bc,cd->da", [make(2, 3), make(3, 2), make(2, 2)]), ("aB,Ba->B", [make(2, 3), make(3, 2)]),
            ("ij,j->i", [make(2, 1), make(3)]), (" i , j -> j i ", [make(2), make(3)]), (",i->i", [make(), make(3)]),
            ("ij,jk->ik", [make(2, 0), make(0, 2)]), ("i,i,i->", [make(3), make(3), make(3)])]:
        yield Sample(operands, (equation,))


# By name and variant, like the database.
OPS = {(info.name, info.variant_test_name): info for info in (
    Made(torch.nn.functional.conv3d, conv3d, (torch.float64, torch.float32)),
    Made(weight_gradient, conv_weight_gradient),
    Made(root_mean_square, rms_norm),
    Made(attend, attention),
    Made(torch.nn.functional.cross_entropy, cross_entropy),
    Made(torch.nn.functional.batch_norm, batch_norm),
    Made(lambda operands, equation: torch.einsum(equation, *operands), einsum, NUMBERS),
)}
