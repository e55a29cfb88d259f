"""Ops that move elements."""
from .call import Call, Skip
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


TABLE = {"broadcast_to": target_shape, "reshape": target_shape, "transpose": permute}
