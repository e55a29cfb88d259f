"""Ops that take or give indices: gathers, scatters, sorting."""
import torch

from .call import Call, Sample, Skip
from .elementwise import as_tensor


def gather_elements(card, sample):
    sample.only("sparse_grad")
    dim, index = sample.args
    return Call([sample.input, index], {"axis": dim})


def gather_samples(dtype):
    """torch's own need larger tensors than ours."""
    for shape, dim, index_shape in [((4, 3), 0, (3, 3)), ((4, 3), 1, (4, 5)), ((4, 3), -1, (2, 1)), ((5,), 0, (7,)),
                                    ((2, 3, 4), 1, (2, 6, 4)), ((2, 3, 4), 2, (1, 2, 3)), ((3, 2), 0, (0, 2)),
                                    ((3, 2), 1, (3, 0)), ((), 0, ())]:
        x = torch.testing.make_tensor(shape, dtype=dtype, device="cpu")
        size = shape[dim] if shape else 1
        yield Sample(x, (dim, torch.randint(0, size, index_shape)))
    x = torch.testing.make_tensor((3, 4), dtype=dtype, device="cpu").t()
    yield Sample(x, (0, torch.randint(0, 4, (5, 3))))


def part_like(src, index):
    """torch takes the first updates of a tensor that may be larger."""
    if src.dim() != index.dim() or any(n < wanted for n, wanted in zip(src.shape, index.shape)):
        return src
    return src[tuple(slice(0, n) for n in index.shape)]


REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}


def names_twice(index, dim):
    ordered = index.sort(dim)[0]
    return bool((ordered.diff(dim=dim) == 0).any())


def scatter(reduction):
    """`reduction` is what the op of torch does, if it has no argument for it."""
    def mapper(card, sample):
        sample.only("reduce", "include_self", "src", "value")
        dim, index = sample.args[:2]
        src = sample.argument(2, "src", sample.kwargs.get("value"))
        wanted = sample.argument(3, "reduce", reduction)
        if not sample.kwargs.get("include_self", True):
            raise Skip("without the element itself")
        if wanted == "mean":
            raise Skip("a mean of updates")
        if not isinstance(src, torch.Tensor):
            src = as_tensor(src, sample.input.dtype).expand(index.shape).contiguous()
        if wanted == "none" and index.dim() == sample.input.dim() and index.numel() > 0 and names_twice(index, dim):
            raise Skip("torch does not say which update stays")
        # A reduction that torch does not know is no sample of ours: it has other names.
        name = wanted if wanted in ("none", "nonsense") else REDUCTIONS[wanted]
        return Call([sample.input, index, part_like(src, index)], {"axis": dim, "reduction": name})
    return mapper


def one_hot(card, sample):
    """torch takes a depth of -1 for the greatest index and one."""
    sample.only("num_classes")
    indices, depth = sample.input, sample.argument(0, "num_classes", -1)
    if depth == -1:
        depth = int(indices.max()) + 1
    return Call([indices, as_tensor(1, torch.int64), as_tensor(0, torch.int64)], {"depth": depth})


def sort(card, sample):
    sample.only("dim", "descending", "stable")
    dim, descending = sample.argument(0, "dim", -1), sample.argument(1, "descending", False)
    return Call([sample.input], {"axis": dim, "descending": descending},
                lambda s: torch.sort(s.input, dim=dim, descending=descending, stable=True))


def topk(card, sample):
    """Equal elements have no order in torch's topk, so the indices are those of its stable sort."""
    sample.only("k", "dim", "largest", "sorted")
    k, dim = sample.argument(0, "k"), sample.argument(1, "dim", -1)
    largest, in_order = sample.argument(2, "largest", True), sample.argument(3, "sorted", True)

    def run(s):
        found = torch.topk(s.input, k, dim, largest, True)[0]
        if s.input.dim() == 0:
            return torch.topk(s.input, k, dim, largest, True)
        values, indices = (t.narrow(dim, 0, k) for t in torch.sort(s.input, dim=dim, descending=largest, stable=True))
        assert torch.equal(found, values)
        if not in_order:
            indices = indices.sort(dim)[0]
        return s.input.gather(dim, indices), indices
    return Call([sample.input], {"k": k, "axis": dim, "largest": largest, "sorted": in_order}, run)


TABLE = {"gather_elements": gather_elements, "one_hot": one_hot, "sort": sort, "topk": topk}
SOURCES = {"scatter_elements": [("scatter", "", scatter("none")), ("scatter_add", "", scatter("add")),
                                *(("scatter_reduce", name, scatter(name)) for name in ("sum", "prod", "amax", "amin"))]}
# Samples that are made here, for ops whose own need more elements than we store.
MADE = {("gather", ""): gather_samples}
