"""Outputs depend neither on node order, nor on padding, nor on batch mates."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import pytest
import torch

from cases import UNMARKED
from g2n2.compiler.grammar_to_plan import undefined_supports, unsupported
from g2n2.compiler.presets import Preset
from g2n2.data.batch import GraphBatch
from g2n2.grammars.grammar import Grammar
from g2n2.language.sorts import M
from g2n2.nn import GrammarGNN
from g2n2.testing import (
    assert_batch_independent,
    assert_padding_invariant,
    assert_permutation_equivariant,
)
from sample_batches import Powers, weighted_batch

GRAMMARS = UNMARKED
MIXED = {"nodes": "max", "diagonal": "mean", "off-diagonal": "sum", "rows": "mean"}
READOUTS: dict[str, str | Mapping[str, str]] = {
    "sum": "sum",
    "mean": "mean",
    "max": "max",
    "mixed": MIXED,
}
PRESETS = ("paper", "modern", "ppgn", "official")
NODE_FEATURES = 3


def holds_matrices(grammar: Grammar) -> bool:
    return any(rule.head == M for rule in grammar.rules)


def presets_of(name: str) -> tuple[str, ...]:
    return tuple(p for p in PRESETS if not unsupported(GRAMMARS[name], p, supports=True))


def made(
    name: str, preset: str, task: str, readout: str, directed: bool = False, context: bool = False
) -> tuple[GrammarGNN, GraphBatch]:
    """A small float64 network, and a batch for it with every feature its grammar takes."""
    grammar = GRAMMARS[name]
    edge_features = 2 if holds_matrices(grammar) else 0
    torch.manual_seed(0)
    model = GrammarGNN(
        grammar,
        NODE_FEATURES,
        edge_features,
        width={"M": 3, "V": 4} if {"M", "V"} <= {s.letter for s in grammar.variables} else 4,
        layers=2,
        out=2,
        task=task,  # type: ignore[arg-type]
        readout=READOUTS[readout],
        preset=preset,
        decision=(16,),
        context=context,
        directed=directed,
        supports=Powers() if undefined_supports(grammar) else None,
    ).double()
    return model, weighted_batch(NODE_FEATURES, edge_features, directed)


def assert_invariant(model: GrammarGNN, batch: GraphBatch) -> None:
    assert_permutation_equivariant(model, batch, trials=1)
    assert_padding_invariant(model, batch)
    assert_batch_independent(model, batch)


def assert_speaks(model: GrammarGNN, batch: GraphBatch) -> None:
    """Invariance of a network that always answers the same would show nothing."""
    output = model(batch)
    assert output.isfinite().all()
    assert not torch.allclose(output[2], output[3, : output.shape[1]], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "readout", "turn"),
    [
        (name, list(READOUTS)[(number + half) % 4], number // 4 + half)
        for number, name in enumerate(GRAMMARS)
        for half in (0, 2)
    ],
)
def test_graph_outputs(name: str, readout: str, turn: int) -> None:
    """Every grammar with two read-outs; training and evaluation take turns, and so do presets."""
    turns = presets_of(name)
    preset = turns[turn % len(turns)]
    model, batch = made(name, preset, "graph", readout)
    assert_invariant(model.train(turn % 2 == 0), batch)
    if preset != "ppgn":  # its ReLUs may all be off in a network this small
        assert_speaks(model, batch)


@pytest.mark.parametrize(
    ("name", "preset", "task"),
    list(zip(GRAMMARS, cycle(("paper", "modern")), cycle(("node", "node", "edge")))),
)
def test_node_and_edge_outputs(name: str, preset: str, task: str) -> None:
    model, batch = made(name, preset, task, "sum", context=task == "edge")
    assert_invariant(model, batch)


@pytest.mark.parametrize("name", ["G_L3", "r-G_L3", "2-IGN", "PPGN", "TriMul"])
def test_directed_graphs(name: str) -> None:
    model, batch = made(name, "modern", "node", "mean", directed=True, context=True)
    assert batch.directed
    assert_invariant(model, batch)


def test_padding_is_never_read() -> None:
    """What stands at the padding of a batch made by hand does not matter."""
    model, batch = made("G_L3", "modern", "graph", "sum")
    expected = model(batch)
    away = ~batch.mask
    batch.nodes[away] = 7.0
    for value in (batch.adjacency, batch.edges):
        value[away] = 7.0
        value.transpose(1, 2)[away] = 7.0
    torch.testing.assert_close(model(batch), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", ["reference", "packed"])
@pytest.mark.parametrize("pair_norm", ["graph", "none"])
def test_ways_to_normalise_pairs(pair_norm: str, backend: str) -> None:
    torch.manual_seed(0)
    model = GrammarGNN("r-G_L3", 3, 2, width=4, layers=2, pair_norm=pair_norm, backend=backend)
    assert_invariant(model.double(), weighted_batch(3, 2))


def test_supports_are_masked() -> None:
    """A module of supports need not know about padding, with no bias to mask after it either."""

    class Everywhere(Powers):
        def forward(self, adjacency: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return super().forward(adjacency, mask) + 1.0

    torch.manual_seed(0)
    plain = Preset("no bias", mixer_bias=False)
    model = GrammarGNN("GNNML3-3", 2, width=4, preset=plain, supports=Everywhere()).double()
    assert_padding_invariant(model, weighted_batch(2))
