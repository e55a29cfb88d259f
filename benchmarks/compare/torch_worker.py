#!/usr/bin/env python3
"""PyTorch's side of the comparison (worker.h): torch_worker.py eager|jit. The caller sets what makes it fast
(compare.py)."""
import os
import sys

import torch
import torch.nn.functional as F

from worker import Inputs, serve

JIT = sys.argv[1:] == ["jit"]
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 2)))


def forward(function, *arguments):
    """A function of tensors without gradients: as it is, or traced and frozen."""
    torch.set_grad_enabled(False)
    if not JIT:
        return lambda: function(*arguments)

    class Module(torch.nn.Module):
        def forward(self, *xs):
            return function(*xs)

    traced = torch.jit.freeze(torch.jit.trace(Module().eval(), arguments))
    return lambda: traced(*arguments)


def tensors():
    return Inputs(torch.from_numpy)


def matmul(m, n, k):
    inputs = tensors()
    x, w = inputs(m, k), inputs.weight(k, n)
    return forward(lambda x: x @ w, x)


def affine_tanh(n):
    return forward(lambda x: torch.tanh(x * 0.7 + 0.1) * 1.3 + x, tensors()(n, scale=4.0))


def softmax(rows, columns):
    return forward(lambda x: torch.softmax(x, -1), tensors()(rows, columns, scale=4.0))


def gelu(rows, columns):
    return forward(lambda x: F.gelu(x), tensors()(rows, columns, scale=4.0))


def layer_norm(rows, columns):
    inputs = tensors()
    x, weight, bias = inputs(rows, columns, scale=4.0), inputs(columns, scale=0.1, offset=1.0), inputs.bias(columns)
    return forward(lambda x: F.layer_norm(x, (columns,), weight, bias), x)


def mlp_parameters(inputs):
    widths = (784, 512, 512, 10)
    return [(inputs.weight(a, b), inputs.bias(b)) for a, b in zip(widths, widths[1:])]


def mlp_of(x, layers):
    for i, (w, b) in enumerate(layers):
        x = torch.addmm(b, x, w)
        x = torch.relu(x) if i < 2 else x
    return x


def mlp(batch):
    inputs = tensors()
    x = inputs(batch, 784)
    layers = mlp_parameters(inputs)
    return forward(lambda x: mlp_of(x, layers), x)


def training(parameters, loss_of):
    """Steps of plain gradient descent."""
    if JIT:
        raise LookupError("training is measured eager")
    torch.set_grad_enabled(True)
    for p in parameters:
        p.requires_grad_()

    def run():
        loss = loss_of()
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            torch._foreach_add_(parameters, gradients, alpha=-1e-3)
        return loss.detach()
    return run


def mlp_train(batch):
    inputs = tensors()
    x = inputs(batch, 784)
    layers = mlp_parameters(inputs)
    labels = torch.arange(batch) % 10
    return training([p for layer in layers for p in layer], lambda: F.cross_entropy(mlp_of(x, layers), labels))


def block_parameters(inputs, width):
    def norm():
        return inputs(width, scale=0.1, offset=1.0), inputs.bias(width)

    def linear(a, b):
        return inputs.weight(a, b), inputs.bias(b)
    return (norm(), linear(width, 3 * width), linear(width, width), norm(), linear(width, 4 * width), linear(4 * width, width))


def block_of(x, parameters, heads):
    n0, into, out, n1, up, down = parameters
    batch, length, width = x.shape

    def linear(y, layer):
        return torch.addmm(layer[1], y.reshape(-1, layer[0].shape[0]), layer[0]).reshape(batch, length, -1)
    h = linear(F.layer_norm(x, (width,), *n0), into)
    q, k, v = h.reshape(batch, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    scores = torch.softmax((q * (width // heads) ** -0.5) @ k.transpose(-1, -2), -1)
    x = x + linear((scores @ v).transpose(1, 2).reshape(batch, length, width), out)
    return x + linear(F.gelu(linear(F.layer_norm(x, (width,), *n1), up)), down)


def block(width, length, batch, heads):
    inputs = tensors()
    x = inputs(batch, length, width)
    parameters = block_parameters(inputs, width)
    return forward(lambda x: block_of(x, parameters, heads), x)


def block_train(width, length, batch, heads):
    inputs = tensors()
    x, wanted = inputs(batch, length, width), inputs(batch, length, width)
    parameters = block_parameters(inputs, width)

    def loss():
        off = block_of(x, parameters, heads) - wanted
        return (off * off).mean()
    return training([p for pair in parameters for p in pair], loss)


def conv(batch):
    inputs = tensors()
    x, a, b = inputs(batch, 64, 56, 56), inputs(64, 64, 3, 3, scale=1 / 24), inputs(64, 64, 3, 3, scale=1 / 24)
    return forward(lambda x: torch.relu(F.conv2d(torch.relu(F.conv2d(x, a, padding=1)), b, padding=1)), x)


def adds(count):
    inputs = tensors()
    x, y = inputs(16), inputs(16, scale=1e-3)

    def chain(x, y):
        for _ in range(count):
            x = x + y
        return x
    return forward(chain, x, y)


serve({"matmul": matmul, "affine_tanh": affine_tanh, "affine_tanh_precise": affine_tanh, "softmax": softmax, "gelu": gelu,
       "layer_norm": layer_norm, "mlp": mlp, "mlp_train": mlp_train, "block": block, "block_train": block_train, "conv": conv,
       "adds": adds}, lambda tensor: tensor.numpy())
