"""What is written down: calls of our ops with what the oracle says about them."""
import collections
import dataclasses
import math
import re
import typing

import torch

from . import values


class Skip(Exception):
    """A sample that has no counterpart in our op; the message is the reason that is counted."""


@dataclasses.dataclass
class Sample:
    """The arguments of a call in the oracle's terms."""
    input: typing.Any
    args: tuple = ()
    kwargs: dict = dataclasses.field(default_factory=dict)

    def map(self, change):
        return Sample(*(values.deep_map(part, change) for part in (self.input, self.args, self.kwargs)))

    def argument(self, position, name, otherwise=None):
        """An argument behind the input, by position or by name."""
        if position < len(self.args):
            return self.args[position]
        return self.kwargs.get(name, otherwise)

    def only(self, *names):
        """Skips a sample that says more than these keywords."""
        for name in self.kwargs:
            if name not in names:
                raise Skip(f"argument {name}")


@dataclasses.dataclass
class Call:
    """The same call in our terms."""
    inputs: list
    attributes: dict = dataclasses.field(default_factory=dict)
    run: typing.Callable = None  # what the oracle computes of the sample; None: its op as it is


@dataclasses.dataclass
class Entry:
    """One call as text, and what is needed to choose among them."""
    text: str
    kind: str  # the text without values
    elements: int
    empty: bool
    strided: bool


def call_text(call):
    attributes = ", ".join(f"{name} = {values.attribute_text(value)}" for name, value in sorted(call.attributes.items()))
    lines = [f"call {attributes}".rstrip()]
    lines += [f"x {values.tensor_text(tensor)}" for tensor in call.inputs]
    return "\n".join(lines)


def entry(call, results):
    tensors = call.inputs + results
    text = "\n".join([call_text(call)] + [f"= {values.tensor_text(tensor)}" for tensor in results])
    kind = re.sub(r": .*", "", text)
    sizes = [math.prod(tensor.shape) for tensor in tensors]
    strided = any(isinstance(tensor, torch.Tensor) and not tensor.is_contiguous() for tensor in call.inputs)
    return Entry(text, kind, sum(sizes), 0 in sizes, strided)


def error_entry(call, message):
    kind = re.sub(r"-?\d+(\.\d+)?", "#", message)  # messages that differ in numbers only are alike
    return Entry(f"{call_text(call)}\n! {message}", kind, sum(math.prod(tensor.shape) for tensor in call.inputs), False,
                 False)


class Counts(collections.Counter):
    """How many samples were written, and why others were not."""

    def text(self, op):
        skipped = ", ".join(f"{why} {n}" for why, n in sorted(self.items()) if why not in ("samples", "errors", "bytes"))
        return f"{op:24}{self['samples']:5} samples {self['errors']:3} errors {self['bytes']:7} bytes   {skipped}"


def checked_inputs(card, call):
    """Fails unless the inputs have dtypes of the card: what we do not take is no sample of ours."""
    letters = {}
    for position, tensor in enumerate(call.inputs):
        spec = card["inputs"][min(position, len(card["inputs"]) - 1)]
        if not isinstance(tensor, torch.Tensor):
            raise Skip("an input that is no tensor")
        name = values.NAMES.get(tensor.dtype)
        if name is None:
            raise Skip("complex numbers")
        if spec["type"] in card["dtypes"]:
            if name not in card["dtypes"][spec["type"]]:
                raise Skip("dtype that the op does not take")
            if letters.setdefault(spec["type"], name) != name:
                raise Skip("type promotion")
    return call
