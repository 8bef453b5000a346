"""Three fast twins of the matrix-memory update against the paper's way of writing it."""

from dataclasses import dataclass

import pytest
import torch

from g2n2.nn.fast import _mix_rows
from g2n2.ops import packed_mlp
from g2n2.ops.pair_mlp import reference
from g2n2.ops.pair_mlp.layout import covered
from g2n2.ops.pair_mlp.parts import Diagonal, Hadamard, Pairs
from kernel_checks import DEVICE, LOW, SIZES, assert_twins, drawn, pairs_of, unequal_mask

KERNELS = {
    "triton": {"pair_mlp.forward_kernel", "pair_mlp.inputs_kernel", "pair_mlp.weights_kernel"},
    "streamed": {"pair_mlp.join_kernel", "pair_mlp.back_kernel"},
}


@dataclass(frozen=True)
class Case:
    """What is mixed: p a tensor of that many channels, h a Hadamard product, d a diagonal."""

    parts: str
    hidden: int = 32
    out: int = 8
    bias: bool = True
    residual: bool = False
    activation: str = "relu"

    def __str__(self):
        extras = [self.activation, *["bias"] * self.bias, *["residual"] * self.residual]
        return f"{self.parts.replace(' ', '+')}-{'-'.join(extras)}"

    def leaves(self, mask, dtype):
        """Inputs, weights, biases and residual, in that order, None where there is none."""
        torch.manual_seed(5)
        batch, n = mask.shape
        made, total = [], 0
        for word in self.parts.split():
            kind, width = word[0], int(word[1:])
            total += width
            if kind == "d":
                made.append(drawn(batch, n, width, dtype=dtype, mask=mask[..., None]))
                continue
            for _ in range(2 if kind == "h" else 1):
                made.append(drawn(batch, n, n, width, dtype=dtype, mask=pairs_of(mask)))
        made += [drawn(self.hidden, total, dtype=dtype), drawn(self.out, self.hidden, dtype=dtype)]
        made += [drawn(n, dtype=dtype) if self.bias else None for n in (self.hidden, self.out)]
        shape = (batch, n, n, self.out)
        return [*made, drawn(*shape, dtype=dtype) if self.residual else None]

    def op(self, mix, mask):
        """The op as a function of the leaves."""

        def run(*leaves):
            *inputs, w1, w2, b1, b2, residual = leaves
            given = iter(inputs)
            parts = []
            for word in self.parts.split():
                kind = {"p": Pairs, "h": Hadamard, "d": Diagonal}[word[0]]
                parts.append(kind(*(next(given) for _ in range(2 if word[0] == "h" else 1))))
            return mix(parts, (w1, b1), (w2, b2), mask, self.activation, residual)

        return run


CASES = [
    Case("p8 p8 h8 d8"),
    Case("p5 d3 h9 p7", out=7, hidden=48, residual=True),
    Case("p16", bias=False),
    Case("p6 p8 p10 d4", out=33, bias=False, residual=True),
    Case("h6 p3 d5", activation="silu", residual=True),
    Case("p8 h8 p8", activation="silu", bias=False, hidden=16),
]


def kernels(backend):
    pytest.importorskip("triton", reason="the kernels need triton")
    from g2n2.ops.pair_mlp import streamed, triton

    return {"triton": triton.mix, "streamed": streamed.mix}[backend]


BOTH = [
    (backend, case)
    for backend in KERNELS
    for case in CASES
    if backend == "triton" or case.activation == "relu"  # streamed reads ReLU's slope
]


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize(("backend", "case"), BOTH, ids=str)
def test_kernels_give_what_the_reference_gives(backend, case, dtype, launches, poisoned):
    mask = unequal_mask(7)
    value = assert_twins(
        case.op(kernels(backend), mask),
        case.op(reference.mix, mask),
        case.leaves(mask, dtype),
        dtype,
    )
    assert KERNELS[backend] <= set(launches), "the kernels were really launched"
    assert not value[~pairs_of(mask).expand_as(value)].any(), "padding is zero"


@pytest.mark.parametrize("nodes", SIZES[:-1])
@pytest.mark.parametrize("backend", KERNELS)
def test_kernels_take_odd_sizes(backend, nodes, poisoned):
    """To these kernels all pairs are one long row: 33² of them end inside many a tile."""
    case, mask = CASES[1], unequal_mask(nodes)
    ops = case.op(kernels(backend), mask), case.op(reference.mix, mask)
    assert_twins(*ops, case.leaves(mask, torch.float32), torch.float32)


@pytest.mark.parametrize("backend", ["triton", "streamed", "plain"])
def test_slices_of_a_wider_tensor_are_read_where_they_are(backend, poisoned):
    mask = unequal_mask(7)
    case = Case("p5 h4 d3")
    wide = drawn(2, 7, 7, 20, dtype=torch.float32, mask=pairs_of(mask))
    column = drawn(2, 7, 6, dtype=torch.float32, mask=mask[..., None])
    _, _, _, _, *weights = case.leaves(mask, torch.float32)

    def sliced(mix):
        run = case.op(mix, mask)
        return lambda x, v, *rest: run(
            x[..., 2:7].transpose(1, 2), x[..., 9:13], x[..., 13:17], v[..., 1:4], *rest
        )

    mix = _mix_rows if backend == "plain" else kernels(backend)
    leaves = [wide, column, *weights]
    assert_twins(sliced(mix), sliced(reference.mix), leaves, torch.float32)


def test_what_the_kernels_cover():
    def part(width):
        return Pairs(torch.zeros(1, 1, 1, width))

    diagonal = Diagonal(torch.zeros(1, 1, 4))
    assert covered([part(4), part(128), part(1), diagonal], 32, 8)
    assert not covered([part(4)] * 4, 32, 8), "four tensors"
    assert not covered([part(129)], 32, 8), "a tensor too wide for a tile"
    assert not covered([part(4)], 32, 129), "a result too wide"
    assert not covered([part(4)], 40, 8), "a hidden layer no tile divides"
    assert not covered([diagonal], 32, 8), "no tensor at all"
    assert not covered([part(4), diagonal, diagonal], 32, 8), "two diagonals"


# --- rows in chunks ---

ROWS = [*CASES, Case("p4 h4 h3 d2 d3 p2 p1 p2", hidden=20, activation="silu")]


@pytest.mark.parametrize("dtype", [torch.float64, *LOW], ids=str)
@pytest.mark.parametrize("case", ROWS, ids=str)
def test_rows_gives_what_the_reference_gives(case, dtype, poisoned):
    mask = unequal_mask(7, "cpu")
    leaves = [
        None if x is None else x.detach().cpu().requires_grad_()
        for x in case.leaves(mask.to(DEVICE), dtype)
    ]
    value = assert_twins(case.op(_mix_rows, mask), case.op(reference.mix, mask), leaves, dtype)
    assert not value[~pairs_of(mask).expand_as(value)].any(), "padding is zero"


@pytest.mark.parametrize("rows", [1, 3, 10, 1000])
@pytest.mark.parametrize("kept", [0, 10**9])
@pytest.mark.parametrize("nodes", [1, 2, 7])
def test_rows_in_chunks_of_any_length(nodes, kept, rows, monkeypatch, poisoned):
    monkeypatch.setattr(packed_mlp, "KEPT_BYTES", kept)
    monkeypatch.setattr(packed_mlp, "CHUNK_BYTES", {DEVICE.type: rows * 32 * 8})
    mask = unequal_mask(nodes)
    for case in (CASES[1], CASES[4]):
        ops = case.op(_mix_rows, mask), case.op(reference.mix, mask)
        assert_twins(*ops, case.leaves(mask, torch.float64), torch.float64)


@pytest.mark.parametrize("kept", [0, 10**9])
@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_rows_has_the_gradients_of_its_values(activation, kept, monkeypatch):
    monkeypatch.setattr(packed_mlp, "KEPT_BYTES", kept)
    monkeypatch.setattr(packed_mlp, "CHUNK_BYTES", {DEVICE.type: 5 * 6 * 8})
    mask = unequal_mask(3)
    case = Case("p2 h2 d2", hidden=6, out=2, residual=True, activation=activation)
    assert torch.autograd.gradcheck(case.op(_mix_rows, mask), case.leaves(mask, torch.float64))


def test_the_backward_pass_can_be_taken_twice():
    mask = unequal_mask(5)
    leaves = CASES[0].leaves(mask, torch.float32)
    total = CASES[0].op(_mix_rows, mask)(*leaves).sum()
    used = [x for x in leaves if x is not None]
    once = torch.autograd.grad(total, used, retain_graph=True)
    for x, y in zip(once, torch.autograd.grad(total, used), strict=True):
        assert bool((x == y).all())


def saved_bytes(run):
    """Bytes autograd keeps for the backward pass, each storage counted once."""
    kept = {}

    def keep(x):
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        value = run()
    assert value.requires_grad
    return sum(kept.values())


def test_a_large_graph_keeps_no_hidden_layer(monkeypatch):
    n, width, hidden = 300, 4, 64
    mask = torch.ones(1, n, dtype=torch.bool)
    x = torch.randn(1, n, n, width, requires_grad=True)
    w1, w2 = torch.randn(hidden, width), torch.randn(width, hidden)

    def bytes_of(mix):
        return saved_bytes(lambda: mix([Pairs(x)], (w1, None), (w2, None), mask, "relu"))

    one_layer = n * n * hidden * 4
    monkeypatch.setattr(packed_mlp, "KEPT_BYTES", one_layer - 1)
    assert bytes_of(_mix_rows) < x.nbytes + one_layer / 8, "the input and little else"
    monkeypatch.setattr(packed_mlp, "KEPT_BYTES", one_layer)
    assert one_layer <= bytes_of(_mix_rows) < x.nbytes + 1.2 * one_layer, "one hidden layer"
    assert bytes_of(reference.mix) > one_layer, "the count sees a hidden layer"


# --- on a GPU, at the sizes of QM9 ---


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize(
    ("backend", "activation"), [("triton", "relu"), ("triton", "silu"), ("streamed", "relu")]
)
def test_kernels_at_qm9_sizes_on_a_gpu(backend, activation, dtype, launches, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    case = Case("p64 p64 h64 d64", 512, 64, residual=True, activation=activation)
    sizes = torch.randint(4, 30, (32,), device="cuda")
    mask = torch.arange(29, device="cuda") < sizes[:, None]
    ops = case.op(kernels(backend), mask), case.op(reference.mix, mask)
    assert_twins(*ops, case.leaves(mask, dtype), dtype, factor=3.0)
    assert KERNELS[backend] <= set(launches)
