#!/usr/bin/env python3
"""NumPy's side of the comparison (worker.h)."""
import numpy as np

from worker import Inputs, serve


def matmul(m, n, k):
    inputs = Inputs()
    x, w = inputs(m, k), inputs.weight(k, n)
    return lambda: x @ w


def affine_tanh(n):
    x = Inputs()(n, scale=4.0)
    a, b, c = np.float32(0.7), np.float32(0.1), np.float32(1.3)

    def run():
        y = x * a
        y += b
        np.tanh(y, out=y)
        y *= c
        y += x
        return y
    return run


def softmax(rows, columns):
    x = Inputs()(rows, columns, scale=4.0)

    def run():
        y = x - x.max(axis=-1, keepdims=True)
        np.exp(y, out=y)
        y /= y.sum(axis=-1, keepdims=True)
        return y
    return run


def layer_norm(rows, columns):
    inputs = Inputs()
    x, weight, bias = inputs(rows, columns, scale=4.0), inputs(columns, scale=0.1, offset=1.0), inputs.bias(columns)

    def run():
        y = x - x.mean(axis=-1, keepdims=True)
        y *= 1 / np.sqrt((y * y).mean(axis=-1, keepdims=True) + np.float32(1e-5))
        y *= weight
        y += bias
        return y
    return run


def mlp(batch):
    inputs = Inputs()
    x, widths = inputs(batch, 784), (784, 512, 512, 10)
    layers = [(inputs.weight(a, b), inputs.bias(b)) for a, b in zip(widths, widths[1:])]

    def run():
        y = x
        for i, (w, b) in enumerate(layers):
            y = y @ w
            y += b
            if i < 2:
                np.maximum(y, 0, out=y)
        return y
    return run


def adds(count):
    inputs = Inputs()
    x, y = inputs(16), inputs(16, scale=1e-3)

    def run():
        z = x
        for _ in range(count):
            z = z + y
        return z
    return run


serve({"matmul": matmul, "affine_tanh": affine_tanh, "affine_tanh_precise": affine_tanh, "softmax": softmax, "layer_norm": layer_norm, "mlp": mlp,
       "adds": adds}, lambda array: array)
