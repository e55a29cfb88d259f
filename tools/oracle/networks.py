"""Ops of neural networks: what torch calls its arguments, and which entries of its database are samples of an op."""
import torch
import torch.nn.functional as F

from . import elementwise
from .call import Call, Skip


def per_axis(value, axes, otherwise):
    """A setting of torch, which may be one number for all axes or absent, as a list."""
    if value is None or (isinstance(value, (tuple, list)) and not value):
        return list(otherwise)
    if isinstance(value, int):
        return [value] * axes
    if len(value) == 1:
        return [int(value[0])] * axes
    return [int(v) for v in value]


def with_batch(x, axes):
    if x.dim() == axes + 1:
        raise Skip("an image without a batch")
    return x


# ---- convolutions


def same_pads(kernel, dilations):
    """What torch's padding "same" adds: the odd one at the end."""
    totals = [d * (k - 1) for k, d in zip(kernel, dilations)]
    return [t // 2 for t in totals] + [t - t // 2 for t in totals]


def conv_pads(padding, kernel, dilations):
    if padding == "valid":
        return [0] * 2 * len(kernel)
    if padding == "same":
        return same_pads(kernel, dilations)
    if isinstance(padding, str):
        raise Skip("a padding by name")
    return per_axis(padding, len(kernel), [0] * len(kernel)) * 2


def conv(axes, transposed=False):
    names = ["weight", "bias", "stride", "padding"] + (["output_padding", "groups", "dilation"] if transposed
                                                       else ["dilation", "groups"])

    def mapper(card, sample):
        sample.only(*names)
        given = {name: sample.argument(i, name) for i, name in enumerate(names)}
        weight, ones = given["weight"], [1] * axes
        dilations = per_axis(given["dilation"], axes, ones)
        padding = 0 if given["padding"] is None else given["padding"]
        attributes = {"strides": per_axis(given["stride"], axes, ones), "dilations": dilations,
                      "pads": conv_pads(padding, weight.shape[2:], dilations),
                      "groups": 1 if given["groups"] is None else given["groups"]}
        if transposed:
            attributes["output_padding"] = per_axis(given["output_padding"], axes, [0] * axes)
        bias = [] if given["bias"] is None else [given["bias"]]
        return Call([with_batch(sample.input, axes), weight, *bias], attributes)
    return mapper


def weight_gradient(card, sample):
    sample.only("stride", "padding", "dilation", "groups")
    sizes, gradient = sample.args
    axes = len(sizes) - 2
    setting = lambda name, otherwise: per_axis(sample.kwargs.get(name), axes, [otherwise] * axes)  # noqa: E731
    groups = sample.kwargs.get("groups", 1)
    if groups < 1 or sizes[1] * groups != sample.input.shape[1] or sizes[0] != gradient.shape[1]:
        raise Skip("sizes that our op does not take")
    return Call([sample.input, gradient], {
        "kernel": list(sizes[2:]), "strides": setting("stride", 1), "pads": setting("padding", 0) * 2,
        "dilations": setting("dilation", 1), "groups": groups})


# ---- pools


def max_pool(axes):
    function = getattr(F, f"max_pool{axes}d")

    def mapper(card, sample):
        names = ["kernel_size", "stride", "padding", "dilation", "ceil_mode"]
        sample.only(*names, "return_indices")
        given = {name: sample.argument(i, name) for i, name in enumerate(names)}
        kernel = per_axis(given["kernel_size"], axes, [])
        attributes = {"kernel": kernel, "strides": per_axis(given["stride"], axes, kernel),
                      "pads": per_axis(given["padding"], axes, [0] * axes) * 2,
                      "dilations": per_axis(given["dilation"], axes, [1] * axes), "ceil_mode": bool(given["ceil_mode"])}
        settings = {name: value for name, value in given.items() if value is not None}
        return Call([with_batch(sample.input, axes)], attributes,
                    lambda s: function(s.input, **settings, return_indices=True))
    return mapper


def avg_pool(axes):
    def mapper(card, sample):
        names = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]
        sample.only(*names)
        given = {name: sample.argument(i, name) for i, name in enumerate(names)}
        if given["divisor_override"] is not None:
            raise Skip("argument divisor_override")
        kernel = per_axis(given["kernel_size"], axes, [])
        counted = given["count_include_pad"]
        return Call([with_batch(sample.input, axes)], {
            "kernel": kernel, "strides": per_axis(given["stride"], axes, kernel),
            "pads": per_axis(given["padding"], axes, [0] * axes) * 2, "ceil_mode": bool(given["ceil_mode"]),
            "count_include_pad": True if counted is None else bool(counted)})
    return mapper


def global_pool(function, axes):
    """Whatever size the sample asks for, 1 is what ours gives."""
    def mapper(card, sample):
        x = with_batch(sample.input, axes)
        if x.dim() > 2 and x.dim() != axes + 2:
            raise Skip("another number of axes, which ours takes")
        return Call([x], run=lambda s: function(s.input, 1))
    return mapper


# ---- normalisations


def along_axis(card, sample):
    sample.only("dim", "dtype")
    if sample.kwargs.get("dtype") is not None:
        raise Skip("argument dtype")
    return Call([sample.input], {"axis": sample.argument(0, "dim")})


def affine(x, weight, bias, shape):
    """The inputs of a norm: a bias without a weight needs a weight of ones."""
    if weight is None and bias is not None:
        weight = torch.ones(shape, dtype=x.dtype)
    return [t for t in (x, weight, bias) if t is not None]


def with_epsilon(eps):
    return {} if eps is None else {"epsilon": float(eps)}


def layer_norm(card, sample):
    sample.only("weight", "bias", "eps")
    shape, weight, bias, eps = (sample.argument(i, n) for i, n in enumerate(("normalized_shape", "weight", "bias", "eps")))
    if not shape or (weight is None and tuple(shape) != tuple(sample.input.shape[-len(shape):])):
        raise Skip("a shape that only torch is told")
    if weight is not None and tuple(weight.shape) != tuple(shape):
        raise Skip("a shape that only torch is told")
    return Call(affine(sample.input, weight, bias, shape), {"axis": -len(shape), **with_epsilon(eps)})


def group_norm(card, sample):
    sample.only("weight", "bias", "eps")
    groups, weight, bias, eps = (sample.argument(i, n) for i, n in enumerate(("num_groups", "weight", "bias", "eps")))
    return Call(affine(sample.input, weight, bias, sample.input.shape[1:2]), {"groups": groups, **with_epsilon(eps)})


def rms_norm(card, sample):
    weight, axis, eps = (sample.argument(i, n) for i, n in enumerate(("weight", "axis", "epsilon")))
    return Call(affine(sample.input, weight, None, ()), {"axis": axis, **with_epsilon(eps)})


def batch_norm(training):
    def mapper(card, sample):
        sample.only("training", "momentum", "eps")
        if bool(sample.kwargs.get("training")) != training:
            raise Skip("the other of inference and training")
        x, eps = sample.input, sample.kwargs.get("eps", 1e-5)
        mean, variance, weight, bias = sample.args
        if x.dim() < 2:
            raise Skip("a tensor without channels")
        ones = torch.ones(x.shape[1], dtype=x.dtype)
        weight, bias = (ones if weight is None else weight), (ones * 0 if bias is None else bias)
        if not training:
            return Call([x, weight, bias, mean, variance], with_epsilon(eps))
        axes = [i for i in range(x.dim()) if i != 1]

        def run(s):
            one = torch.ones(x.shape[1], dtype=s.input.dtype)
            y = F.batch_norm(s.input, None, None, one if s.args[2] is None else s.args[2], s.args[3], True, 0.1, eps)
            return y, s.input.mean(axes), s.input.var(axes, unbiased=False)
        return Call([x, weight, bias], with_epsilon(eps), run)
    return mapper


# ---- the rest


def cross_entropy(card, sample):
    sample.only("weight", "ignore_index", "reduction")
    target, weight = sample.argument(0, "target"), sample.kwargs.get("weight")
    if target.dtype.is_floating_point:
        raise Skip("targets that are probabilities")
    attributes = {name: sample.kwargs[name] for name in ("ignore_index", "reduction") if name in sample.kwargs}
    return Call([sample.input, target] + ([] if weight is None else [weight]), attributes)


def torch_attention(card, sample):
    sample.only("is_causal", "need_attn_weights", "dropout_p", "attn_mask")
    if sample.kwargs.get("dropout_p", 0) != 0:
        raise Skip("argument dropout_p")
    causal, mask = bool(sample.kwargs.get("is_causal")), sample.kwargs.get("attn_mask")
    return Call([sample.input, *sample.args] + ([] if mask is None else [mask]), {"causal": causal},
                lambda s: F._scaled_dot_product_attention(s.input, *s.args, mask, 0.0, False, causal)[0])


def made_attention(card, sample):
    k, v = sample.args[:2]
    mask, causal, scale = (sample.argument(2 + i, n) for i, n in enumerate(("mask", "causal", "scale")))
    attributes = {"causal": bool(causal), **({} if scale is None else {"scale": float(scale)})}
    return Call([sample.input, k, v] + ([] if mask is None else [mask]), attributes)


def einsum(card, sample):
    sample.only()
    if not isinstance(sample.args[0], str):
        raise Skip("labels that are numbers")
    operands = list(sample.input)
    if operands and operands[0].dtype.is_floating_point:
        return Call(operands, {"equation": sample.args[0]})
    # torch widens integers where it sums.
    return Call(operands, {"equation": sample.args[0]},
                lambda s: torch.einsum(s.args[0], *s.input).to(s.input[0].dtype))


def functional(name, mapper):
    return f"nn.functional.{name}", "", mapper


# Where the samples of an op come from, if not from the one entry that its card names: names, variants and mappers.
SOURCES = {
    "conv": [functional("conv1d", conv(1)), functional("conv2d", conv(2)), ("conv3d", "made", conv(3))],
    "conv_transpose": [functional(f"conv_transpose{n}d", conv(n, True)) for n in (1, 2, 3)],
    "conv_weight_gradient": [("conv_weight_gradient", "made", weight_gradient)],
    "max_pool": [functional(f"max_pool{n}d", max_pool(n)) for n in (1, 2, 3)],
    "avg_pool": [functional(f"avg_pool{n}d", avg_pool(n)) for n in (1, 2, 3)],
    "global_avg_pool": [functional(f"adaptive_avg_pool{n}d", global_pool(getattr(F, f"adaptive_avg_pool{n}d"), n))
                        for n in (1, 2, 3)],
    "global_max_pool": [functional(f"adaptive_max_pool{n}d", global_pool(getattr(F, f"adaptive_max_pool{n}d"), n))
                        for n in (1, 2, 3)],
    "rms_norm": [("rms_norm", "made", rms_norm)],
    "batch_norm": [functional("batch_norm", batch_norm(False)), ("batch_norm", "made", batch_norm(False))],
    "batch_norm_training": [functional("batch_norm", batch_norm(True)), ("batch_norm", "made", batch_norm(True))],
    "cross_entropy": [functional("cross_entropy", cross_entropy), ("cross_entropy", "made", cross_entropy)],
    "attention": [functional("_scaled_dot_product_attention", torch_attention), ("attention", "made", made_attention)],
    "einsum": [("einsum", "", einsum), ("einsum", "made", einsum)],
}

TABLE = {"matmul": elementwise.positional, "softmax": along_axis, "log_softmax": along_axis, "layer_norm": layer_norm,
         "group_norm": group_norm}
