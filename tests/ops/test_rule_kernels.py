"""The rules of a layer on small graphs against plain PyTorch: outputs and gradients of operands."""

import numpy as np
import pytest
import torch

from g2n2.ops.graph_index import packed_index
from g2n2.ops.rule_kernels import reference
from g2n2.ops.rule_kernels.spec import KernelRule, rounds
from kernel_checks import DEVICE, LOW, assert_near, assert_twins, drawn, pairs_of, unequal_mask

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops.rule_kernels import triton

NODES = [1, 7, 17, 32, *(pytest.param(n, marks=pytest.mark.slow) for n in (16, 29))]
"""On both sides of the edges of tiles."""


def laid(text, kept=0):
    """Rules written as `kind:width^power`, operands and outputs one after the other."""
    matrices = vectors = columns = 0
    to, rules = kept, []
    for word in text.split():
        kind, _, rest = word.partition(":")
        width, _, power = rest.partition("^")
        width, operands = int(width), []
        for vector in reference.VECTORS[kind]:
            operands.append(vectors if vector else matrices)
            vectors, matrices = vectors + vector * width, matrices + (not vector) * width
        place = columns if kind == "column" else to
        rules.append(KernelRule(kind, tuple(operands), place, width, int(power or 0)))
        columns, to = columns + (kind == "column") * width, to + (kind != "column") * width
    return rules, matrices, vectors


ALL = "product:{0}^1 hadamard:{0} diagonal:{0} column:{0}^1"
CASES = {
    "r-G_L3": (ALL.format(16), 16),
    "no multiple of 16": (ALL.format(5), 5),
    "wider than one program": (ALL.format(33), 33),
    "one channel": (ALL.format(1), 1),
    "the memory is wider": (ALL.format(8), 11),
    "the memory is narrower": (ALL.format(8), 3),
    "the memory is no input": (ALL.format(8), 0),
    "no vectors": ("product:8 hadamard:8", 8),
    "several of a kind": (
        "product:4 product:4^2 hadamard:4 product:4^1 hadamard:4 diagonal:4 diagonal:4 "
        "column:4^2 column:4",
        4,
    ),
    "two widths": ("product:3 hadamard:7 diagonal:7^0 product:7^1 column:3 column:7^3", 7),
    "the narrow ones first": ("column:3^1 product:3 product:9", 9),
    "a product alone": ("product:6^1", 6),
    "entries alone": ("hadamard:6", 0),
    "columns alone": ("column:6^1", 0),
    "diagonals and columns": ("diagonal:6 column:6", 6),
}


def leaves(mask, kept, matrices, vectors, dtype):
    """What is read, the matrices and the vectors; None for no channels."""
    torch.manual_seed(3)
    batch, nodes = mask.shape
    pairs = pairs_of(mask)
    shapes = ((nodes, nodes, kept), (nodes, nodes, matrices), (nodes, vectors))
    return [
        drawn(batch, *shape, dtype=dtype, mask=pairs if len(shape) == 3 else mask[..., None])
        if shape[-1]
        else None
        for shape in shapes
    ]


TAIL = 5
"""Rows that belong to no graph."""


def plainly(rules, scale, mask):
    """All outputs of the reference, where there are nodes, as one row of numbers."""
    pairs = mask[:, :, None] & mask[:, None]

    def run(read, matrices, vectors):
        wide = scale.to(torch.float64) if matrices.dtype == torch.float64 else scale
        joined, column = reference.apply(read, matrices, vectors, wide, rules)
        return torch.cat([joined[pairs].flatten(), column[mask].flatten()])

    return run


def on_rows(rules, scale, mask):
    """The same by kernels: packed rows, and rubbish after the last."""
    pairs = mask[:, :, None] & mask[:, None]
    sizes = mask.sum(1)
    counts = int(sizes.sum()), int(sizes.square().sum())
    index = packed_index(sizes, mask.shape[1], *(count + TAIL for count in counts))

    def run(read, matrices, vectors):
        given = [
            None if x is None else torch.cat([x[where], x.new_full((TAIL, x.shape[-1]), 7.0)])
            for x, where in ((read, pairs), (matrices, pairs), (vectors, mask))
        ]
        joined, column = triton.apply(*given, scale, rules, index)
        nodes, rows = counts
        assert not joined[rows:, 0 if read is None else read.shape[-1] :].any()
        assert not column[nodes:].any()
        return torch.cat([joined[:rows].flatten(), column[:nodes].flatten()])

    return run


def check(case, nodes, dtype, launches, factor=1.0):
    text, kept = CASES[case]
    rules, matrices, vectors = laid(text, kept)
    mask = unequal_mask(nodes)
    scale = torch.tensor([0.5, -0.7], device=DEVICE)
    assert_twins(
        on_rows(rules, scale, mask),
        plainly(rules, scale, mask),
        leaves(mask, kept, matrices, vectors, dtype),
        dtype,
        factor,
    )
    products = sum(rule.kind == "product" for rule in rules)
    others = [bool(set(together) - {"product"}) for together in list(rounds(rules))[:-1]]
    for way in ("", "_back"):
        assert launches[f"rule_kernels.product{way}_kernel"] == products
        assert launches[f"rule_kernels.entries{way}_kernel"] == sum(others) + 1, "the last clears"


@pytest.mark.parametrize("case", CASES)
def test_kernels_give_what_the_reference_gives(case, launches, poisoned):
    check(case, 7, torch.float32, launches)


@pytest.mark.parametrize("dtype", LOW[1:], ids=str)
@pytest.mark.parametrize("case", ["r-G_L3", "two widths", "several of a kind"])
def test_half_precision(case, dtype, launches, poisoned):
    check(case, 7, dtype, launches)


@pytest.mark.parametrize("nodes", NODES)
def test_odd_sizes(nodes, launches, poisoned):
    check("two widths", nodes, torch.float32, launches)


def test_one_by_one():
    """Written out: graph by graph, channel by channel, with matrices of numpy."""
    rules, matrices, vectors = laid("product:2^2 column:2^1 diagonal:2 hadamard:2", 2)
    mask = unequal_mask(5)
    read, z, v = leaves(mask, 2, matrices, vectors, torch.float32)
    scale = torch.tensor([0.5, 3.0], device=DEVICE)
    found = on_rows(rules, scale, mask)(read, z, v).detach().double().cpu()
    rows, nodes = [25, 9], [5, 3]
    joined, column = found.split([sum(rows) * 8, sum(nodes) * 2])
    joined, column = joined.view(-1, 8).split(rows), column.view(-1, 2).split(nodes)
    read, z, v = (x.detach().double().cpu().numpy() for x in (read, z, v))
    for g, (s, n) in enumerate(zip((0.5, 3.0), nodes, strict=True)):
        x, u = z[g, :n, :n], v[g, :n]
        for c in range(2):
            expected = {
                c: read[g, :n, :n, c],
                2 + c: s * s * x[..., c] @ x[..., 2 + c],
                4 + c: np.diag(u[:, 2 + c]),
                6 + c: x[..., 6 + c] * x[..., 8 + c],
            }
            for place, value in expected.items():
                torch.testing.assert_close(
                    joined[g][:, place].view(n, n), torch.as_tensor(value), rtol=1e-5, atol=1e-5
                )
            product = torch.as_tensor(s * x[..., 4 + c] @ u[:, c])
            torch.testing.assert_close(column[g][:, c], product, rtol=1e-5, atol=1e-5)


def test_slices_of_wider_tensors_are_read_where_they_are(launches, poisoned):
    rules, matrices, vectors = laid(ALL.format(5), 5)
    torch.manual_seed(4)
    sizes = torch.tensor([7, 3], device=DEVICE)
    index = packed_index(sizes, 7, 10, 58, has_tail=False)
    x = drawn(58, matrices + 9, dtype=torch.float32)
    v = drawn(10, vectors + 3, dtype=torch.float32)
    scale = torch.tensor([0.5, 2.0], device=DEVICE)

    def sliced(whole):
        def run(x, v):
            given = x[:, 1:6], x[:, 8 : 8 + matrices], v[:, 2 : 2 + vectors]
            given = [part.contiguous() if whole else part for part in given]
            outputs = triton.apply(*given, scale.to(torch.float32), rules, index)
            return torch.cat([output.flatten() for output in outputs])

        return run

    found = [
        torch.autograd.grad(sliced(whole)(x, v).sin().sum(), (x, v)) for whole in (True, False)
    ]
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_an_output_nobody_uses_sends_back_nothing(poisoned):
    rules, matrices, vectors = laid(ALL.format(4), 4)
    mask = unequal_mask(5)
    given = leaves(mask, 4, matrices, vectors, torch.float32)
    pairs = 4 * 4 * int(mask.sum(1).square().sum())
    found = []
    for apply in (on_rows, plainly):
        values = apply(rules, torch.ones(2, device=DEVICE), mask)(*given)[:pairs]
        found.append(torch.autograd.grad(values.square().sum(), given))
    for number, (got, expected) in enumerate(zip(*found, strict=True)):
        assert_near(f"gradient {number}", got, expected, torch.float32)


def test_rounds_hold_one_rule_of_a_kind_and_one_width():
    rules, _, _ = laid("product:4 product:4 hadamard:4 diagonal:2 column:4")
    found = list(rounds(rules))
    assert [sorted(together) for together in found] == [
        ["column", "hadamard", "product"],
        ["product"],
        ["diagonal"],
    ]
    assert sorted(map(id, rules)) == sorted(id(r) for t in found for r in t.values())


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("nodes", [9, 29])
def test_width_64_on_a_gpu(nodes, dtype, launches, poisoned, monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    monkeypatch.setitem(CASES, "wide", (ALL.format(64), 64))
    check("wide", nodes, dtype, launches, factor=3.0)


@pytest.mark.gpu
@pytest.mark.parametrize("nodes", [9, 29])
def test_unscaled_products_in_full_precision_on_a_gpu(nodes, launches, poisoned, monkeypatch):
    """As the paper writes them: batched products in `ieee` were wrong here, and only here."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    monkeypatch.setitem(CASES, "wide", ("product:64 hadamard:64 diagonal:64 column:64", 64))
    check("wide", nodes, torch.float32, launches, factor=3.0)


def test_outputs_are_written_beside_what_was_read_where_it_has_room():
    """A slice of a wider tensor is not copied: the rules fill the rest of that tensor."""
    rule = KernelRule("hadamard", (0, 8), 8, 8)
    index = packed_index(torch.tensor([5, 5], device=DEVICE), 5, 10, 50, has_tail=False)
    torch.manual_seed(0)
    wide = torch.randn(50, 16, device=DEVICE)
    kept = wide[:, :8].clone()
    operands = torch.randn(50, 16, device=DEVICE, requires_grad=True)
    scale = torch.ones(2, device=DEVICE)
    out, _ = triton.apply(wide[:, :8], operands, None, scale, [rule], index)
    assert out.data_ptr() == wide.data_ptr(), "no second tensor"
    torch.testing.assert_close(out[:, :8], kept, rtol=0.0, atol=0.0)
    torch.testing.assert_close(out[:, 8:], operands[:, :8] * operands[:, 8:])
    narrow, _ = triton.apply(kept, operands, None, scale, [rule], index)
    assert narrow.data_ptr() != kept.data_ptr(), "a tensor without room is left alone"
    torch.testing.assert_close(narrow, out)
