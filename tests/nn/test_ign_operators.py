"""All fifteen basis operators of 2-IGN, computed by the compiled corrected grammar.

N enters as a weighted, directed A; the reference is the definition of the operators as order-4
tensors. Numbers are integers, so the network must hit them to the last bit of float64.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from g2n2.compiler.formula_plan import requirements
from g2n2.data.batch import GraphBatch
from g2n2.errors import LoweringError
from g2n2.grammars.catalogue import find_grammar
from g2n2.language.terms import A, Term, substitute
from g2n2.nn.model import GrammarGNN
from g2n2.nn.writing import write_formula
from ign_operators import PARTITIONS, basis_term, partition_operator

GRAMMAR = find_grammar("2-IGN")
PRINTED = find_grammar("2-IGN (as printed)")
DEPTHS = {
    1: 1,
    2: 4,
    3: 5,
    4: 5,
    5: 4,
    6: 5,
    7: 4,
    8: 5,
    9: 4,
    10: 5,
    11: 5,
    12: 5,
    13: 1,
    14: 2,
    15: 5,
}
"""Layers each operator takes; K = N⊙J, Kv, v1ᵀ and ⊙J one after the other are four."""
BEYOND_PRINTED = {3, 4, 8, 9, 10, 14}
"""THEORY.md §4a: what needs 1vᵀ or Nᵀ."""


def operator(p: int) -> Term:
    return substitute(basis_term(p), {"N": A})


def matrices() -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.integers(-5, 6, (n, n)).astype(float) for n in (1, 2, 3, 5, 6)]


def test_one_network_computes_all_fifteen_operators() -> None:
    terms = [operator(p) for p in PARTITIONS]
    needed = requirements(GRAMMAR, terms)
    model = GrammarGNN(
        GRAMMAR,
        width=dict(needed.width),
        layers=needed.depth,
        out=15,
        task="edge",
        preset="paper",
        decision=(32,),
    ).double()
    write_formula(model, terms)
    batch = GraphBatch.of(matrices(), dtype=torch.float64)
    with torch.no_grad():
        outputs = model(batch).numpy()
    for graph, n in enumerate(matrices()):
        for p in PARTITIONS:
            got = outputs[graph, : len(n), : len(n), p - 1]
            np.testing.assert_array_equal(got, partition_operator(p, n), err_msg=f"B{p}")
    assert not outputs[0, 1:].any(), "padding stays zero"


@pytest.mark.parametrize("p", DEPTHS)
def test_depth_of_each_operator(p: int) -> None:
    assert requirements(GRAMMAR, operator(p)).depth == DEPTHS[p]


@pytest.mark.parametrize("p", PARTITIONS)
def test_printed_grammar_lacks_the_operators_of_columns_and_transposes(p: int) -> None:
    """B6, B11 and B15 are built from missing ones, and so missing too."""
    if p in BEYOND_PRINTED | {6, 11, 15}:
        with pytest.raises(LoweringError, match=r"into a network of 2-IGN \(as printed\)"):
            requirements(PRINTED, operator(p), symmetric=False)
    else:
        assert requirements(PRINTED, operator(p), symmetric=False).depth == DEPTHS[p]
