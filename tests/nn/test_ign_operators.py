"""All fifteen basis operators of 2-IGN, computed by the compiled corrected grammar.

N enters as a weighted, directed A; the reference is the definition of the operators as order-4
tensors. Numbers are integers, so the network must hit them to the last bit of float64.
"""

from __future__ import annotations

import numpy as np
import torch

from g2n2.data.batch import GraphBatch
from g2n2.formulas.formula_plan import requirements
from g2n2.formulas.writing import write_formula
from g2n2.grammars.catalogue import find_grammar
from g2n2.language.terms import A, Term, substitute
from g2n2.nn.model import GrammarGNN
from ign_operators import PARTITIONS, basis_term, partition_operator

GRAMMAR = find_grammar("2-IGN")


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
