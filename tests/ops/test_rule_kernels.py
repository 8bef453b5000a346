"""The rules of a layer on small graphs against plain PyTorch: outputs and gradients of operands."""

import pytest
import torch

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


def op(apply, rules, scale):
    """Both outputs as one row of numbers."""

    def run(read, matrices, vectors):
        wide = scale.to(torch.float64) if matrices.dtype == torch.float64 else scale
        pairs, column = apply(read, matrices, vectors, wide, rules)
        return torch.cat([pairs.flatten(1), column.flatten(1)], dim=1)

    return run


def check(case, nodes, dtype, launches, factor=1.0):
    text, kept = CASES[case]
    rules, matrices, vectors = laid(text, kept)
    mask = unequal_mask(nodes)
    scale = torch.tensor([0.5, -0.7], device=DEVICE)
    assert_twins(
        op(triton.apply, rules, scale),
        op(reference.apply, rules, scale),
        leaves(mask, kept, matrices, vectors, dtype),
        dtype,
        factor,
    )
    products = sum(rule.kind == "product" for rule in rules)
    others = sum(bool(set(together) - {"product"}) for together in rounds(rules))
    for way in ("", "_back"):
        assert launches[f"rule_kernels.product{way}_kernel"] == products
        assert launches[f"rule_kernels.entries{way}_kernel"] == others


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
    pairs, column = triton.apply(read, z, v, scale, rules)
    z, v = z.detach().double().cpu().numpy(), v.detach().double().cpu().numpy()
    for g, s in enumerate((0.5, 3.0)):
        for c in range(2):
            expected = {
                c: read[g, ..., c].detach().double().cpu().numpy(),
                2 + c: s * s * z[g, ..., c] @ z[g, ..., 2 + c],
                4 + c: v[g, :, 2 + c] * torch.eye(5).double().numpy(),
                6 + c: z[g, ..., 6 + c] * z[g, ..., 8 + c],
            }
            for place, value in expected.items():
                assert_near(
                    f"{place}",
                    pairs[g, ..., place],
                    torch.as_tensor(value, device=DEVICE),
                    torch.float32,
                )
            product = torch.as_tensor(s * z[g, ..., 4 + c] @ v[g, :, c], device=DEVICE)
            assert_near("column", column[g, :, c], product, torch.float32)


def test_slices_of_wider_tensors_are_read_where_they_are(launches, poisoned):
    rules, matrices, vectors = laid(ALL.format(5), 5)
    torch.manual_seed(4)
    x = drawn(2, 7, 7, matrices + 9, dtype=torch.float32)
    v = drawn(2, 7, vectors + 3, dtype=torch.float32)
    scale = torch.tensor([0.5, 2.0], device=DEVICE)

    def sliced(apply):
        run = op(apply, rules, scale)
        return lambda x, v: run(
            x[..., 1:6], x[..., 8 : 8 + matrices].transpose(1, 2), v[..., 2 : 2 + vectors]
        )

    assert_twins(sliced(triton.apply), sliced(reference.apply), (x, v), torch.float32)


def test_summed_results_send_back_gradients_without_strides():
    rules, matrices, vectors = laid(ALL.format(4), 4)
    given = leaves(unequal_mask(5), 4, matrices, vectors, torch.float32)
    found = []
    for apply in (triton.apply, reference.apply):
        pairs, column = apply(*given, torch.ones(2, device=DEVICE), rules)
        found.append(torch.autograd.grad(pairs.sum() + column.sum(), given))
    for number, (got, expected) in enumerate(zip(*found, strict=True)):
        assert_near(f"gradient {number}", got, expected, torch.float32)


def test_an_output_nobody_uses_sends_back_nothing(poisoned):
    rules, matrices, vectors = laid(ALL.format(4), 4)
    given = leaves(unequal_mask(5), 4, matrices, vectors, torch.float32)
    found = []
    for apply in (triton.apply, reference.apply):
        pairs, _ = apply(*given, torch.ones(2, device=DEVICE), rules)
        found.append(torch.autograd.grad(pairs.square().sum(), given))
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
    torch.manual_seed(0)
    wide = torch.randn(2, 5, 5, 16, device=DEVICE)
    kept = wide[..., :8].clone()
    operands = torch.randn(2, 5, 5, 16, device=DEVICE, requires_grad=True)
    scale = torch.ones(2, device=DEVICE)
    out, _ = triton.apply(wide[..., :8], operands, None, scale, [rule])
    assert out.data_ptr() == wide.data_ptr(), "no second tensor"
    torch.testing.assert_close(out[..., :8], kept, rtol=0.0, atol=0.0)
    torch.testing.assert_close(out[..., 8:], operands[..., :8] * operands[..., 8:])
    narrow, _ = triton.apply(kept, operands, None, scale, [rule])
    assert narrow.data_ptr() != kept.data_ptr(), "a tensor without room is left alone"
    torch.testing.assert_close(narrow, out)
