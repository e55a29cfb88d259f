#!/usr/bin/env python3
"""Hostile ONNX files: each must end with exit code 2 and one message that names the file and what is wrong, within a
budget of work and memory. Models that only look hostile must work, and long ones take time as they are long.
hostile_test.py TESSERA [--sanitized] [NAME…]
--sanitized: the program is instrumented, which takes more work and address space than the budget."""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from wire import *  # noqa: F403 (a vocabulary)

MEMORY = 6 << 30
WORK = 20  # times the processor time of a harmless chain of 20,000 nodes, in the same run
GROWTH = 25  # times the processor time for 10 times as many nodes; squares would be 100
MIN, MAX = -(1 << 63), (1 << 63) - 1
F = b"\0\0\x80?"  # 1.0


def one_op(op, initializers, attributes=(), outputs=("y",), version=13):
    """A model of one node whose inputs are all initializers, in order."""
    names = [f"i{k}" for k in range(len(initializers))]
    made = [make(name) for make, name in zip(initializers, names)]
    return model(graph([node(op, names, outputs, attributes, name="n")], [], [value(o) for o in outputs], made), version)


def ints(*values):
    return lambda name: int_vector(name, values)


def scalar(v):
    return lambda name: int_scalar(name, v)


def floats(dims, count=None):
    def make(name):
        n = 1
        for d in dims:
            n *= d
        return tensor(name, dims, FLOAT, raw=F * (n if count is None else count))
    return make


def with_tensor(t):
    return model(graph([node("Identity", ["w"], ["y"])], [], [value("y")], [t]))


def chain(length):
    """Of what is given when it runs: nothing is known before."""
    ops = ("Relu", "Sigmoid", "Neg", "Tanh", "Exp")
    nodes = [node(ops[i % len(ops)], [f"v{i}"], [f"v{i + 1}"]) for i in range(length)]
    return model(graph(nodes, [value("v0", FLOAT, ["N"])], [value(f"v{length}", FLOAT, ["N"])]))


def nested(depth):
    g = graph([node("Constant", [], ["c"], [attr_tensor("value", tensor("", [], FLOAT, raw=F))])], [], [value("c")])
    for _ in range(depth):
        g = graph([node("If", ["k"], ["c"], [attr_graph("then_branch", g), attr_graph("else_branch", g[:0])])], [],
                  [value("c")], [tensor("k", [], BOOL, raw=b"\1")])
    return model(g)


def calls(count, times):
    """Function i calls function i + 1 `times` times."""
    functions = []
    for i in range(count):
        nodes = [node(f"f{i + 1}", ["x"], [f"y{k}"], domain="local") for k in range(times)]
        functions.append(function(f"f{i}", ["x"], ["y0"], nodes))
    functions.append(function(f"f{count}", ["x"], ["y"], [node("Relu", ["x"], ["y"])]))
    g = graph([node("f0", ["w"], ["y"], domain="local")], [], [value("y")], [tensor("w", [1], FLOAT, raw=F)])
    return model(g, functions=functions)


def loop(body_nodes, count=None, carried=(), scanned=()):
    """A loop over w; without a count it goes on for ever."""
    body = graph(list(body_nodes) + [node("Identity", ["c"], ["c2"])],
                 [value("i", INT64), value("c", BOOL)] + [value(n) for n, _ in carried],
                 [value("c2", BOOL)] + [value(o) for _, o in carried] + [value(n) for n, _ in scanned])
    inputs = ["" if count is None else "m", "t"] + ["w"] * len(carried)
    tensors = [tensor("t", [], BOOL, raw=b"\1"), tensor("w", [2], FLOAT, raw=F * 2)]
    if count is not None:
        tensors.append(int_scalar("m", count))
    outputs = [f"o{k}" for k in range(len(carried))] + [o for _, o in scanned] or ["o"]
    return model(graph([node("Loop", inputs, outputs, [attr_graph("body", body)], name="n")], [],
                       [value(outputs[0])], tensors))


def external(location, **keys):
    """A model with one weight of one float in another file."""
    entries = {"location": location, **keys}
    extra = b"".join(blob(13, blob(1, k) + blob(2, str(v))) for k, v in entries.items())
    return with_tensor(tensor("w", [1], FLOAT, extra=extra + integer(14, 1)))


def recursive_function():
    f = function("f", ["x"], ["y"], [node("f", ["x"], ["y"], domain="local")])
    return model(graph([node("f", ["w"], ["y"], domain="local")], [], [value("y")],
                       [tensor("w", [1], FLOAT, raw=F)]), functions=[f])


def lstm(hidden):
    return one_op("LSTM", [floats([1, 1, 2]), floats([1, 12, 2]), floats([1, 12, 3]), floats([1, hidden])],
                  [attr_int("hidden_size", 3)], version=14)


def bomb(op, shapes, attributes=()):
    """One node on tensors of ones, which the file need not hold."""
    nodes = [node("ConstantOfShape", [f"s{k}"], [f"x{k}"]) for k in range(len(shapes))]
    nodes.append(node(op, [f"x{k}" for k in range(len(shapes))], ["y"], attributes, name="n"))
    return model(graph(nodes, [], [value("y")], [int_vector(f"s{k}", dims) for k, dims in enumerate(shapes)]))


RELU = graph([node("Relu", ["x"], ["y"])], [value("x", FLOAT, [2])], [value("y", FLOAT, [2])])
GOOD = model(RELU)

# name: (bytes, what the message must say)
HOSTILE = {
    # wire
    "empty": (b"", "the file is empty"),
    "truncated": (GOOD[:-7], "is not an ONNX model"),
    "length_of_2_to_63": (varint(7 << 3 | 2) + varint(1 << 63), "is not an ONNX model"),
    "length_beyond_the_end": (varint(7 << 3 | 2) + varint(1 << 30), "is not an ONNX model"),
    "open_groups": (varint(99 << 3 | 3) * 100_000, "is not an ONNX model"),
    "html": (b"<!DOCTYPE html><html><body>404</body></html>", "is not an ONNX model"),
    "zip": (b"PK\3\4" + b"\0" * 64, "is not an ONNX model"),
    "json": (b'{"graph": {"node": []}}', "is not an ONNX model"),
    "zeros": (b"\0" * 4096, "is not an ONNX model"),
    "endless_varint": (b"\xff" * 64, "is not an ONNX model"),
    "nested_graphs": (nested(60), "nest deeper than 100 messages"),
    "invalid_utf8": (model(graph([node("Relu", ["x"], [b"\xff\xfe"])], [value("x")], [])), "not valid UTF-8"),
    # model
    "no_graph": (model(None), "field 'graph' is missing"),
    "no_opset": (model(RELU, opsets=[]), "field 'opset_import' is missing"),
    "opset_9999": (model(RELU, 9999), "version 9999"),
    "opset_0": (model(RELU, 0), "version 0"),
    "opset_negative": (model(RELU, -3), "version -3"),
    "opset_twice": (model(RELU, opsets=[opset(13), opset(12)]), "twice"),
    "cycle": (model(graph([node("Relu", ["b"], ["a"], name="first"), node("Relu", ["a"], ["b"])], [], [value("b")])),
              "node 'first' (Relu): input 'b' is the output of"),
    "own_input": (model(graph([node("Relu", ["a"], ["a"])], [], [value("a")])), "a cycle"),
    "undefined_input": (model(graph([node("Relu", ["q"], ["y"], name="n")], [], [value("y")])),
                        "node 'n' (Relu): input 'q' is not defined"),
    "undefined_output": (model(graph([], [], [value("q")])), "output 'q' is not defined"),
    "duplicate_output": (model(graph([node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])], [value("x")], [])),
                         "output 'y' is defined twice"),
    "duplicate_input": (model(graph([], [value("x"), value("x")], [])), "input 'x' is defined twice"),
    "duplicate_initializer": (model(graph([], [], [], [int_scalar("w", 1), int_scalar("w", 2)])), "'w' is defined twice"),
    "output_shadows_input": (model(graph([node("Relu", ["x"], ["x"])], [value("x")], [])), "'x' is defined twice"),
    "attribute_twice": (one_op("Softmax", [floats([2])], [attr_int("axis", 0), attr_int("axis", 0)]), "'axis' is given twice"),
    "attribute_of_wrong_type": (one_op("Softmax", [floats([2])], [attr_text("axis", "0")]),
                                "attribute 'axis' is a string, expected an integer"),
    "attribute_without_value": (one_op("Softmax", [floats([2])], [blob(1, "axis")]), "has no value and no type"),
    "no_op_type": (model(graph([node("", ["x"], ["y"])], [value("x")], [])), "field 'op_type'"),
    "unknown_ops": (model(graph([node("Foo", ["x"], ["y"], name="a"), node("Bar", ["y"], ["z"], name="b")], [value("x")], [])),
                    "node 'b' (Bar): Bar of opset 13"),
    "unknown_domain": (one_op("Relu", [floats([2])]).replace(b"Relu", b"Relv"), "Relv of opset 13"),
    "name_of_10_mb": (model(graph([node("Relu", ["x"], ["y" * 10_000_000])], [value("x")], [])), "at most 4096 are allowed"),
    "terminal_escapes": (model(graph([node("Relu", ["\x1b]0;gotcha\x07"], ["y"])], [], [])), "\\x1b]0;gotcha"),
    "missing_input": (one_op("Add", [floats([2])]), "Add"),
    "too_many_inputs": (one_op("Relu", [floats([2]), floats([2])]), "relu"),
    # tensors
    "dims_overflow": (with_tensor(tensor("w", [1 << 40, 1 << 40], FLOAT, raw=b"")), "a product that does not fit"),
    "dims_negative": (with_tensor(tensor("w", [-1], FLOAT, raw=b"")), "field 'dims' has -1"),
    "dims_int64_min": (with_tensor(tensor("w", [MIN], FLOAT, raw=b"")), f"field 'dims' has {MIN}"),
    "raw_data_short": (with_tensor(tensor("w", [4], FLOAT, raw=F)), "field 'raw_data' has 4 bytes, expected 16"),
    "raw_data_long": (with_tensor(tensor("w", [1], FLOAT, raw=F * 9)), "field 'raw_data' has 36 bytes, expected 4"),
    "petabyte_tensor": (with_tensor(tensor("w", [1 << 48], FLOAT, raw=F)), "field 'raw_data' has 4 bytes"),
    "no_data": (with_tensor(tensor("w", [4], FLOAT)), "field 'float_data' has 0 entries, expected 4"),
    "int_data_short": (with_tensor(tensor("w", [4], INT64, ints=[1])), "field 'int64_data' has 1 entries, expected 4"),
    "unknown_dtype": (with_tensor(tensor("w", [1], 77, raw=F)), "field 'data_type' is 77"),
    "no_dtype": (with_tensor(tensor("w", [1], 0, raw=F)), "field 'data_type' is 0"),
    "rank_10_to_6": (with_tensor(tensor("w", [1] * 1_000_000, FLOAT, raw=F)), "field 'dims' has 1000000 entries"),
    "string_tensor": (with_tensor(tensor("w", [1], STRING)), "of type string"),
    "rank_of_declared_shape": (model(graph([], [value("x", FLOAT, [1] * 1000)], [])), "has 1000 dimensions"),
    "negative_declared_size": (model(graph([], [value("x", FLOAT, [-5])], [])), "has the dimension -5"),
    # external data
    "external_absolute": (external("/etc/passwd"), "is no path inside the folder of the file that names it"),
    "external_traversal": (external("../../etc/passwd"), "is no path inside the folder of the file that names it"),
    "external_dot": (external("./weights.bin"), "is no path inside the folder of the file that names it"),
    "external_backslash": (external("..\\weights.bin"), "is no path inside the folder of the file that names it"),
    "external_empty": (external(""), "is no path inside the folder of the file that names it"),
    "external_absent": (external("nowhere.bin"), "cannot be found"),
    "external_folder": (external("folder"), "is no regular file"),
    "external_fifo": (external("fifo"), "is no regular file"),
    "external_symlink": (external("symlink"), "symbolic link"),
    "external_through_symlink": (external("folder_link/weights.bin"), "symbolic link"),
    "external_hard_link": (external("hard_link"), "has several hard links"),
    "external_petabyte": (external("weights.bin", length=1 << 50), "has 8 bytes, too few"),
    "external_offset": (external("weights.bin", offset=9), "has 8 bytes, too few"),
    "external_overflow": (external("weights.bin", offset=8, length=MAX), "has 8 bytes, too few"),
    "external_negative": (external("weights.bin", offset=-1), "expected a size"),
    "external_wrong_length": (external("weights.bin", length=8), "has 8 bytes, expected 4"),
    "external_unknown_key": (external("weights.bin", shell="rm"), "the unknown key 'shell'"),
    # functions
    "recursive_function": (recursive_function(), "calls itself"),
    "deep_functions": (calls(3000, 1), "more than 64 deep"),
    "exponential_functions": (calls(40, 2), "more than 2000000 nodes"),
    "function_twice": (model(RELU, functions=[function("f", [], [], [])] * 2), "function 'f' is defined twice"),
    "function_output_undefined": (model(RELU, functions=[function("f", [], ["q"], [])]), "output 'q' is not defined"),
    # operators
    "constant_of_shape_bomb": (one_op("ConstantOfShape", [ints(1 << 20, 1 << 20)]), "node 'n' (ConstantOfShape)"),
    "constant_of_negative_shape": (one_op("ConstantOfShape", [ints(-4)]), "a shape has the size -4"),
    "constant_of_overflowing_shape": (one_op("ConstantOfShape", [ints(MAX, MAX)]), "node 'n' (ConstantOfShape)"),
    "expand_bomb": (one_op("Expand", [floats([1]), ints(1 << 30, 1 << 30)]), "node 'n' (Expand)"),
    "tile_bomb": (one_op("Tile", [floats([1]), ints(1 << 40)]), "node 'n' (Tile)"),
    "tile_negative": (one_op("Tile", [floats([1]), ints(-2)]), "node 'n' (Tile)"),
    "range_bomb": (one_op("Range", [scalar(0), scalar(MAX), scalar(1)]), "node 'n' (Range)"),
    "range_step_0": (one_op("Range", [scalar(0), scalar(5), scalar(0)]), "the step, is 0"),
    "pad_bomb": (one_op("Pad", [floats([1]), ints(1 << 40, 1 << 40)]), "node 'n' (Pad)"),
    "pad_overflow": (one_op("Pad", [floats([1]), ints(MAX, MAX)]), "node 'n' (Pad)"),
    "slice_step_0": (one_op("Slice", [floats([4]), ints(0), ints(4), ints(0), ints(0)]), "has a 0"),
    "gather_out_of_range": (one_op("Gather", [floats([4]), ints(99)]), "node 'n' (Gather)"),
    "reshape_wrong_count": (one_op("Reshape", [floats([4]), ints(3)]), "node 'n' (Reshape)"),
    "reshape_two_unknown": (one_op("Reshape", [floats([4]), ints(-1, -1)]), "node 'n' (Reshape)"),
    "transpose_wrong": (one_op("Transpose", [floats([2, 2])], [attr_ints("perm", [0, 0])]), "node 'n' (Transpose)"),
    "concat_axis": (one_op("Concat", [floats([2])], [attr_int("axis", 7)]), "node 'n' (Concat)"),
    "split_wrong_sum": (one_op("Split", [floats([4]), ints(3, 3)], outputs=("y", "z")), "node 'n' (Split)"),
    "eye_bomb": (one_op("Trilu", [floats([2])]), "node 'n' (Trilu)"),
    "one_hot_bomb": (one_op("OneHot", [ints(0), scalar(1 << 50), floats([2])]), "node 'n' (OneHot)"),
    "resize_bomb": (one_op("Resize", [floats([1]), lambda n: tensor(n, [0], FLOAT, raw=b""),
                                      lambda n: tensor(n, [0], FLOAT, raw=b""), ints(1 << 40)]), "node 'n' (Resize)"),
    "conv_stride_0": (one_op("Conv", [floats([1, 1, 4]), floats([1, 1, 2])], [attr_ints("strides", [0])]),
                      "attribute 'strides' has the entry 0"),
    "conv_group_0": (one_op("Conv", [floats([1, 1, 4]), floats([1, 1, 2])], [attr_int("group", 0)]), "node 'n' (Conv)"),
    "conv_pads_huge": (one_op("Conv", [floats([1, 1, 4]), floats([1, 1, 2])], [attr_ints("pads", [MAX, MAX])]),
                       "attribute 'pads' has the entry"),
    "pool_no_kernel": (one_op("MaxPool", [floats([1, 1, 4])]), "node 'n' (MaxPool)"),
    "lstm_wrong_weights": (lstm(5), "node 'n' (LSTM)"),
    "lstm_flat_weights": (one_op("LSTM", [floats([1, 1, 2]), floats([12]), floats([1, 12, 3])], [attr_int("hidden_size", 3)], version=14),
                          "expected rank 3"),
    "quantize_mismatch": (one_op("QuantizeLinear", [floats([4]), floats([3])]), "node 'n' (QuantizeLinear)"),
    "quantize_rank_0": (one_op("QuantizeLinear", [floats([]), floats([3])], [attr_int("axis", 0)]), "node 'n' (QuantizeLinear)"),
    "matmul_integer_rank_0": (one_op("MatMulInteger", [lambda n: tensor(n, [], 2, raw=b"\1"), lambda n: tensor(n, [], 2, raw=b"\1"),
                                                       lambda n: tensor(n, [2], 2, raw=b"\1\1"), lambda n: tensor(n, [2], 2, raw=b"\1\1")]),
                              "node 'n' (MatMulInteger)"),
    "stft_flat_window": (one_op("STFT", [floats([1, 8, 1]), scalar(1), floats([])], version=17), "node 'n' (STFT)"),
    "stft_step_0": (one_op("STFT", [floats([1, 8, 1]), scalar(0), floats([4])], version=17), "node 'n' (STFT)"),
    "scan_of_nothing": (one_op("Scan", [], [attr_graph("body", RELU), attr_int("num_scan_inputs", 1)], version=8), "node 'n' (Scan)"),
    "scan_wrong_counts": (one_op("Scan", [floats([2])], [attr_graph("body", RELU), attr_int("num_scan_inputs", 9)]),
                          "attribute 'num_scan_inputs' is 9"),
    "loop_of_sequences": (loop([node("SequenceEmpty", [], ["a"])], 2, [], [("a", "rows")]), "node 'n' (Loop)"),
    "if_without_branch": (one_op("If", [lambda n: tensor(n, [], BOOL, raw=b"\1")]), "attribute 'then_branch' is missing"),
    "roi_bomb": (one_op("RoiAlign", [floats([1, 1, 4, 4]), floats([1, 4]), ints(0)],
                        [attr_int("output_height", 1 << 40), attr_int("output_width", 1 << 40)], version=16), "node 'n' (RoiAlign)"),
    "roi_batch": (one_op("RoiAlign", [floats([1, 1, 4, 4]), floats([1, 4]), ints(7)], version=16), "has the batch 7"),
    "resize_flat_scales": (one_op("Resize", [floats([2, 2]), floats([0]), floats([1])]), "there are 1 scales, expected 2"),
    "grid_wrong": (one_op("GridSample", [floats([1, 1, 4, 4]), floats([1, 2, 2, 1])], version=16), "node 'n' (GridSample)"),
    "space_to_depth_of_0": (one_op("SpaceToDepth", [floats([1, 1, 4, 4])], [attr_int("blocksize", 0)]), "attribute 'blocksize' is 0"),
    "lrn_size_0": (one_op("LRN", [floats([1, 2, 3])], [attr_int("size", 0)]), "attribute 'size' is 0"),
    "einsum_wrong": (one_op("Einsum", [floats([2, 2])], [attr_text("equation", "ijk->i")]), "node 'n' (Einsum)"),
    "unpool_negative": (one_op("MaxUnpool", [floats([1, 1, 1]), lambda n: tensor(n, [1, 1, 1], INT64, ints=[0])],
                               [attr_ints("kernel_shape", [1]), attr_ints("pads", [5, 5])]), "node 'n' (MaxUnpool)"),
    "nms_wrong_shapes": (one_op("NonMaxSuppression", [floats([1, 2, 3]), floats([1, 1, 2])]), "do not fit each other"),
    "top_k_too_large": (one_op("TopK", [floats([4]), ints(9)], outputs=("y", "z")), "node 'n' (TopK)"),
    "top_k_negative": (one_op("TopK", [floats([4]), ints(-9)], outputs=("y", "z")), "node 'n' (TopK)"),
    "doubling_concats": (loop([node("Concat", ["a", "a"], ["b"], [attr_int("axis", 0)])], None, [("a", "b")]),
                         "node 'n' (Loop)"),
    "endless_loop": (loop([]), "the loop goes on after 100000 iterations"),
    "loop_of_2_to_62": (loop([], 1 << 62), "the loop goes on after 100000 iterations"),
    "sequence_out_of_range": (model(graph([node("SequenceConstruct", ["w"], ["s"]), node("SequenceAt", ["s", "i"], ["y"], name="n")], [],
                                          [value("y")], [tensor("w", [1], FLOAT, raw=F), int_scalar("i", 5)])), "node 'n' (SequenceAt)"),
    "sequence_as_tensor": (model(graph([node("SequenceConstruct", ["w"], ["s"]), node("Relu", ["s"], ["y"], name="n")], [],
                                       [value("y")], [tensor("w", [1], FLOAT, raw=F)])), "input 0 is a sequence, expected a tensor"),
    "matmul_bomb": (bomb("MatMul", [[8192, 8192], [8192, 8192]]), "node 'n' (MatMul)"),
    "conv_bomb": (bomb("Conv", [[1, 16, 1024, 1024], [64, 16, 33, 33]]), "at most 274877906944 are allowed"),
    "einsum_bomb": (bomb("Einsum", [[4096, 512], [4096, 512], [4096, 512]], [attr_text("equation", "ab,cb,db->b")]), "node 'n' (Einsum)"),
    "pool_bomb": (bomb("MaxPool", [[1, 1, 8000, 8000]], [attr_ints("kernel_shape", [4000, 4000])]), "node 'n' (MaxPool)"),
    "resize_antialias_bomb": (one_op("Resize", [floats([1, 4]), lambda n: tensor(n, [0], FLOAT, raw=b""),
                                                lambda n: tensor(n, [0], FLOAT, raw=b""), ints(1, 1 << 25)],
                                     [attr_int("antialias", 1), attr_text("mode", "cubic")], version=18), "node 'n' (Resize)"),
    "resize_axes": (one_op("Resize", [floats([2, 2]), lambda n: tensor(n, [0], FLOAT, raw=b""), floats([1])],
                           [attr_ints("axes", [9])], version=18), "node 'n' (Resize)"),
    "resize_aspect": (one_op("Resize", [floats([2, 2]), lambda n: tensor(n, [0], FLOAT, raw=b""),
                                        lambda n: tensor(n, [0], FLOAT, raw=b""), ints(4, 4)],
                             [attr_text("keep_aspect_ratio_policy", "\x1b[31m")], version=18), "\\x1b[31m"),
    "dynamic_lstm_without_scales": (model(graph([node("DynamicQuantizeLSTM", ["x", "w", "r"], ["y"], name="n", domain="com.microsoft")], [],
                                                [value("y")], [t(k) for k, t in (("x", floats([1, 1, 2])), ("w", floats([1, 2, 12])), ("r", floats([1, 3, 12])))]),
                                          opsets=[opset(13), opset(1, "com.microsoft")]), "input 8 is missing"),
    "window_bomb": (one_op("HannWindow", [scalar(1 << 50)], version=17), "node 'n' (HannWindow)"),
    "dft_bomb": (one_op("DFT", [floats([1, 4, 1]), scalar(1 << 40)], version=17), "node 'n' (DFT)"),
}

# Models that must work: what standard output must say.
HARMLESS = {
    "external_weights": (external("weights.bin", offset=4, length=4), "y: f32[1] [2.0]"),
    "external_in_folder": (external("folder/weights.bin", length=4), "y: f32[1] [1.0]"),
    "int64_min_by_minus_1": (one_op("Div", [ints(MIN), ints(-1)]), "y: i64[1]"),
    "integers_by_zero": (one_op("Div", [ints(7), ints(0)]), "y: i64[1] [0]"),
    "mod_by_zero": (one_op("Mod", [ints(7), ints(0)]), "y: i64[1]"),
    "empty_tensor": (one_op("Relu", [floats([0, 1 << 40])]), "y: f32[0, 1099511627776] []"),
    "slice_beyond_the_end": (one_op("Slice", [floats([4]), ints(2), ints(MAX)]), "y: f32[2] [1.0, 1.0]"),
    "loop_of_0": (loop([node("Relu", ["a"], ["b"])], 0, [("a", "b")]), "o0: f32[2] [1.0, 1.0]"),
    "nested_graphs_20": (nested(20), "c: f32[] [1.0]"),
    "calls_60_deep": (calls(60, 1), "y: f32[1] [1.0]"),
}


IS_SANITIZED = "--sanitized" in sys.argv


def limit():
    if not IS_SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (1200, 1200))  # what hangs
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(program, path, *options):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Bytes that are no text in a message would be a bug: decoding is strict.
    done = subprocess.run([program, "run", path, *options], capture_output=True, preexec_fn=limit)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Without the kernel's part: what pages cost depends on the machine and on what else it runs.
    seconds = after.ru_utime - before.ru_utime
    return done.returncode, done.stdout.decode(), done.stderr.decode(), seconds


def write(folder, name, data):
    path = os.path.join(folder, name + ".onnx")
    with open(path, "wb") as out:
        out.write(data)
    return path


def seconds_of_runs(program, path, says, count, *options):
    """Of so many runs, none of which may fail."""
    runs = [run(program, path, *options) for _ in range(count)]
    for code, output, errors, _ in runs:
        if code != 0 or says not in output:
            raise SystemExit(f"{path}: exit code {code}, expected {says!r}: {output[:400]}{errors[:400]}")
    return [seconds for _, _, _, seconds in runs]


def complaint(program, folder, name, data, expected, is_hostile, most_seconds):
    code, output, errors, seconds = run(program, write(folder, name, data))
    said = errors if is_hostile else output
    if code != (2 if is_hostile else 0):
        return f"exit code {code}: {errors.strip()[:400]}"
    if expected not in said:
        return f"expected {expected!r}, got {said.strip()[:400]!r}"
    if is_hostile and name + ".onnx" not in errors:
        return f"the message does not name the file: {errors.strip()[:400]!r}"
    if is_hostile and ("internal" in errors or any(ord(c) < 32 and c != "\n" for c in errors)):
        return f"the message is not one for users: {errors.strip()[:400]!r}"
    if len(errors) > 4000:
        return f"the message has {len(errors)} characters"
    if seconds > most_seconds:
        return f"took {WORK * seconds / most_seconds:.0f} times as long as a chain of 20,000 nodes, expected at most {WORK}"
    return None


def seconds_of_chain(program, folder, length):
    path = write(folder, f"chain_{length}", chain(length))
    return min(seconds_of_runs(program, path, f"v{length}: f32[2] ", 3, "--random", "1", "--dim", "N=2"))


def make_files(folder):
    """What the models with external data find beside them."""
    path = pathlib.Path(folder)
    (path / "folder").mkdir()
    for name in ("weights.bin", "folder/weights.bin", "linked.bin"):
        (path / name).write_bytes(F + b"\0\0\0@")
    os.mkfifo(path / "fifo")
    os.symlink("weights.bin", path / "symlink")
    os.symlink("folder", path / "folder_link")
    os.link(path / "linked.bin", path / "hard_link")


def main():
    program, names = sys.argv[1], [name for name in sys.argv[2:] if name != "--sanitized"]
    unknown = [name for name in names if name not in HOSTILE and name not in HARMLESS]
    if unknown:
        print(f"there is no case {unknown[0]!r}")
        return 2
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        make_files(folder)
        length = 2_000 if IS_SANITIZED else 20_000
        chain_seconds = seconds_of_chain(program, folder, length)
        most_seconds = float("inf") if IS_SANITIZED else WORK * chain_seconds
        for cases, is_hostile in ((HOSTILE, True), (HARMLESS, False)):
            for name, (data, expected) in cases.items():
                why = None if names and name not in names else complaint(program, folder, name, data, expected, is_hostile, most_seconds)
                failures += why is not None
                if why:
                    print(f"{name}: {why}")
        # Chains are read, checked, compiled and run in time that grows as their length.
        growth = 0 if names else seconds_of_chain(program, folder, 10 * length) / chain_seconds
        if growth > GROWTH:
            failures += 1
            print(f"a chain of 10 times as many nodes took {growth:.1f} times as long, expected at most {GROWTH}")
    print(f"{len(HOSTILE)} hostile and {len(HARMLESS)} harmless files, {failures} failures")
    return 1 if failures else 0


sys.exit(main())
