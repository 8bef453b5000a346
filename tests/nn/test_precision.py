"""bfloat16: sums are made in float32, and no network turns its output into NaN."""

import warnings
from itertools import cycle

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor

from cases import UNMARKED
from g2n2.compiler.grammar_to_plan import undefined_supports, unsupported
from g2n2.compiler.presets import PRESETS
from g2n2.data.batch import GraphBatch
from g2n2.formulas.writing import write_formula
from g2n2.nn import GrammarGNN
from g2n2.nn.readout import pool
from g2n2.nn.supports import SpectralSupports
from g2n2.ops import reference as ops

N = 512
"""Added one by one in bfloat16, 512 ones make 256: 256 + 1 rounds to 256."""

MATRIX, COLUMN = torch.ones(1, N, N, 2), torch.ones(1, N, 2)
SUMS = {
    "MM": lambda: ops.matrix_matrix(MATRIX, MATRIX),
    "AM": lambda: ops.matrix_matrix(MATRIX[..., :1], MATRIX),
    "MV_c": lambda: ops.matrix_column(MATRIX, COLUMN),
    "AV_c": lambda: ops.matrix_column(MATRIX[..., :1], COLUMN),
    "V_rM": lambda: ops.row_matrix(COLUMN, MATRIX),
    "V_rV_c": lambda: ops.row_column(COLUMN, COLUMN),
    "Tr(M)": lambda: ops.trace(MATRIX),
}


@pytest.mark.parametrize("rule", SUMS)
def test_products_accumulate_in_float32_under_autocast(rule: str) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert bool((SUMS[rule]() == N).all())


@pytest.mark.parametrize("rule", SUMS)
def test_products_of_bfloat16_accumulate_in_float32(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "MATRIX", MATRIX.bfloat16())
    monkeypatch.setitem(globals(), "COLUMN", COLUMN.bfloat16())
    value: Tensor = SUMS[rule]()
    assert value.dtype == torch.bfloat16
    assert bool((value == N).all())


@pytest.mark.parametrize("how", ["sum", "mean"])
def test_the_read_out_sums_in_float32(how: str) -> None:
    values = torch.full((1, N * N + 1, 1), 1.0, dtype=torch.bfloat16)
    total = pool(values, torch.ones(1, N * N + 1, dtype=torch.bool), how)
    assert total.dtype == torch.float32
    assert total.item() == (N * N + 1 if how == "sum" else 1.0)  # 262,145 has no bfloat16


@pytest.mark.parametrize("backend", ["reference", "plain"])
def test_a_whole_network_multiplies_512_nodes_exactly(backend: str) -> None:
    model = GrammarGNN(
        "PPGN", width=2, layers=1, task="edge", preset="paper", decision=(), backend=backend
    )
    write_formula(model, "A²")
    batch = GraphBatch.of([np.ones((N, N))])
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert bool((model(batch) == N).all())
    with torch.no_grad():
        assert bool((model.bfloat16()(batch.to(torch.bfloat16)) == N).all())


def assert_bfloat16_is_near(grammar: str, preset: str, sizes: tuple[int, ...]) -> None:
    torch.manual_seed(6)
    named = undefined_supports(UNMARKED[grammar])
    supports = SpectralSupports(len(named)) if named else None
    model = GrammarGNN(grammar, 3, width=4, preset=preset, supports=supports, decision=(16,))
    rng = np.random.default_rng(7)
    batch = GraphBatch.of(
        [nx.gnp_random_graph(n, min(1.0, 4 / n), seed=n) for n in sizes],
        [rng.normal(size=(n, 3)) for n in sizes],
    )
    expected = model(batch).detach()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning tells of a slow path
        with torch.autocast("cpu", torch.bfloat16):
            got = model(batch)
        got.float().sum().backward()
    near = 0.25 * expected.norm()  # three layers of 8-bit numbers
    assert (got - expected).norm() <= near
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.dtype == torch.float32
        assert bool(torch.isfinite(parameter.grad).all()), name
    whole = model.bfloat16()(batch.to(torch.bfloat16))
    assert whole.dtype == torch.bfloat16
    assert (whole - expected).norm() <= near


MOLECULES, LARGE = (1, 9, 18, 29), (200,)
OTHERS = [
    (name, preset)
    for name, grammar in UNMARKED.items()
    for preset in PRESETS
    if not unsupported(grammar, preset, supports=True)
]


@pytest.mark.parametrize("sizes", [MOLECULES, LARGE], ids=["molecules", "200 nodes"])
@pytest.mark.parametrize("preset", PRESETS)
def test_bfloat16_gives_numbers_near_those_of_float32(preset: str, sizes: tuple[int, ...]) -> None:
    assert_bfloat16_is_near("r-G_L3", preset, sizes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grammar", "preset", "sizes"),
    [(*pair, sizes) for pair, sizes in zip(OTHERS[::13], cycle([MOLECULES, LARGE]), strict=False)],
)
def test_bfloat16_for_every_grammar(grammar: str, preset: str, sizes: tuple[int, ...]) -> None:
    assert_bfloat16_is_near(grammar, preset, sizes)


@pytest.mark.parametrize("task", ["node", "edge"])
def test_autocast_for_nodes_and_edges(task: str) -> None:
    torch.manual_seed(8)
    model = GrammarGNN("r-G_L3", width=8, task=task, context=True)
    batch = GraphBatch.of([nx.gnp_random_graph(n, 0.3, seed=n) for n in (1, 9, 29)])
    expected = model(batch).detach()
    with torch.autocast("cpu", torch.bfloat16):
        got = model(batch)
    assert (got - expected).norm() <= 0.1 * expected.norm()
    assert not got[0, 1:].any(), "padding stays zero"
