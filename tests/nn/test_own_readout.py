"""The rules of S as the network's read-out: what it sees, and that nothing else changes."""

from __future__ import annotations

from itertools import product

import networkx as nx
import pytest
import torch

from g2n2.data.batch import GraphBatch
from g2n2.errors import LoweringError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.nn import GrammarGNN
from g2n2.nn.exporting import export_program
from g2n2.testing import (
    assert_batch_independent,
    assert_padding_invariant,
    assert_permutation_equivariant,
)
from sample_batches import weighted_batch

TRIANGLES = "M → A ; S → Tr(MMM)"
SENTENCES = "M → MM | A ; V_c → MV_c | 1 ; V_r → V_rM | 1ᵀA ; S → V_rV_c | Tr(MM) | 1ᵀA1 | 1ᵀV_c"
FEEDING_BACK = "S → SS | Tr(M) | 1ᵀA1 ; M → S×M | MM | A"
C6 = nx.cycle_graph(6)
TWO_C3 = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
STAR = nx.star_graph(4)
C4_K1 = nx.disjoint_union(nx.cycle_graph(4), nx.empty_graph(1))


def features(model: GrammarGNN, graphs: list[nx.Graph]) -> torch.Tensor:
    """What the decision layers read."""
    batch = GraphBatch.of(graphs).to("cpu", torch.float64)
    with torch.no_grad():
        memories, constants = model.final(*model.checked(batch))
        return model.readout.features(memories, batch.mask, constants)


def gap(grammar: str | Grammar, left: nx.Graph, right: nx.Graph, **options: object) -> float:
    """The largest relative difference of two graphs' features in a few random networks."""
    found = 0.0
    for seed in range(4):
        torch.manual_seed(seed)
        model = GrammarGNN(grammar, width=8, **{"layers": 2, **options}).double()
        one, other = features(model, [left, right])
        found = max(found, float((one - other).abs().max() / one.abs().max()))
    return found


@pytest.mark.parametrize("preset", ["paper", "modern"])
def test_triangles_are_counted_by_the_rule_of_s(preset: str) -> None:
    for readout in ("grammar", "pooled", None):
        assert gap(TRIANGLES, C6, TWO_C3, preset=preset, readout=readout) > 1e-7
    assert gap(TRIANGLES, C6, TWO_C3, preset=preset, readout="pooled-only") < 1e-13


@pytest.mark.parametrize("preset", ["paper", "modern", "ppgn"])
@pytest.mark.parametrize("reduced", [False, True])
def test_free_functions_and_own_read_out_see_what_words_see(preset: str, reduced: bool) -> None:
    """Tr(Aᵏ) is the same on K1,4 and on C4 + K1; functions of M, or pooling, tell them apart."""
    grammar = Fragment.parse("· Tr").exhaustive()
    grammar = grammar.reduce().reduced if reduced else grammar
    options = {"preset": preset, "readout": "grammar", "functions": "free"}
    assert gap(grammar, STAR, C4_K1, **options) < 1e-13
    assert gap(grammar, STAR, C4_K1, **{**options, "functions": "mlp"}) > 1e-7
    assert gap(grammar, STAR, C4_K1, **{**options, "readout": "pooled"}) > 1e-7


def test_a_grammar_without_sentences_is_refused_for_graphs_and_pooled_where_asked() -> None:
    grammar = Fragment.parse("·").exhaustive()
    with pytest.raises(LoweringError, match=r'no sentences.*Tr \(S → Tr\(M\)\).*"pooled"'):
        GrammarGNN(grammar, readout="grammar")
    with pytest.raises(LoweringError, match="no sentences"):
        GrammarGNN(grammar, readout="grammar", task="edge", context=True)
    GrammarGNN(grammar, readout="grammar", task="edge")
    assert gap(grammar, STAR, C4_K1) > 1e-7


@pytest.mark.parametrize(
    ("grammar", "task", "needed"),
    [("PPGN", "node", "V_c"), ("GNNML1", "edge", "M")],
)
def test_outputs_of_nodes_and_edges_need_words_of_that_kind(
    grammar: str, task: str, needed: str
) -> None:
    with pytest.raises(LoweringError, match=f"no words of {needed}"):
        GrammarGNN(grammar, readout="grammar", task=task)  # type: ignore[arg-type]


def test_nodes_read_their_words_and_edges_theirs() -> None:
    model = GrammarGNN("r-G_L3", width=4, layers=2, readout="grammar", task="node").double()
    batch = GraphBatch.of([C6]).to("cpu", torch.float64)
    memories, constants = model.final(*model.checked(batch))
    read = model.readout.features(memories, batch.mask, constants)
    torch.testing.assert_close(read, memories["V"])
    edge = GrammarGNN("r-G_L3", width=4, readout="grammar", task="edge", context=True)
    assert edge.plan.readout.local == ("C",)
    assert [str(step.rule) for step in edge.plan.readout.steps] == ["S → 1ᵀV_c"]


def test_rules_of_s_are_what_they_say_on_the_memories() -> None:
    """Each rule by its definition on the last memories, unit weights in the selectors."""
    model = GrammarGNN(SENTENCES, width=3, layers=2, preset="paper", readout="grammar").double()
    batch = weighted_batch(0, 0).to(torch.float64)
    memories, constants = model.final(*model.checked(batch))
    with torch.no_grad():
        for rule in model.readout.rules:
            for select in rule.selectors:
                select.maps[0].weight.copy_(torch.eye(3))
    got = model.readout.features(memories, batch.mask, constants)
    c, h, r = memories["M"], memories["V"], memories["R"]
    expected = {
        "S → (V_r)(V_c)": (r * h).sum(1),
        "S → Tr(MM)": torch.einsum("bijc,bjic->bc", c, c),
        "S → 1ᵀA1": batch.adjacency.sum((1, 2))[:, None],
        "S → 1ᵀV_c": h.sum(1),
    }
    assert {str(step.rule) for step in model.plan.readout.steps} == set(expected)
    wanted = torch.cat([expected[str(step.rule)] for step in model.plan.readout.steps], dim=1)
    torch.testing.assert_close(got, wanted)


def test_sums_are_divided_by_the_typical_size_and_not_by_the_own() -> None:
    """`modern`: one division for each sum over nodes, by the same number for all graphs."""
    options = {"width": 3, "layers": 1, "readout": "grammar", "typical_size": 5.0}
    model = GrammarGNN(SENTENCES, preset="modern", **options).double()
    batch = GraphBatch.of([STAR]).to("cpu", torch.float64)
    memories, constants = model.final(*model.checked(batch))
    read = model.readout.features(memories, batch.mask, constants)
    model.readout.unit = 1.0
    for rule in model.readout.rules:
        rule.size = 1.0
    raw = model.readout.features(memories, batch.mask, constants)
    start = 0
    sums = {"S → (V_r)(V_c)": 1, "S → Tr(MM)": 2, "S → 1ᵀA1": 2, "S → 1ᵀV_c": 1}
    for step in model.plan.readout.steps:
        part = slice(start, start + step.copies)
        torch.testing.assert_close(read[:, part] * 5.0 ** sums[str(step.rule)], raw[:, part])
        start += step.copies


@pytest.mark.parametrize(
    ("turn", "grammar"),
    list(enumerate([TRIANGLES, SENTENCES, FEEDING_BACK, "G_L1", "r-G_L3"])),
)
def test_invariance_and_gradients(turn: int, grammar: str) -> None:
    """The presets take turns."""
    for readout, functions in product(("grammar", "pooled"), ("mlp", "free")):
        turn, preset = turn + 1, ("paper", "modern", "ppgn")[turn % 3]
        torch.manual_seed(0)
        model = GrammarGNN(
            grammar, 2, width=4, layers=2, preset=preset, readout=readout, functions=functions
        ).double()
        batch = weighted_batch(2, 0).to(torch.float64)
        assert_permutation_equivariant(model, batch, trials=1)
        assert_padding_invariant(model, batch)
        assert_batch_independent(model, batch)
        model(batch).square().sum().backward()
        for rule in model.readout.rules:
            for weight in rule.parameters():
                assert weight.grad is not None
                assert weight.grad.abs().max() > 0


@pytest.mark.parametrize("grammar", [TRIANGLES, SENTENCES, FEEDING_BACK])
@pytest.mark.parametrize("preset", ["paper", "modern"])
def test_plain_is_the_reference(grammar: str, preset: str) -> None:
    for functions, pair_bias in product(("mlp", "free"), (True, False)):
        options = {"functions": functions, "pair_bias": pair_bias, "readout": "grammar"}
        model = GrammarGNN(grammar, 2, 2, width=4, layers=2, preset=preset, **options).double()
        batch = weighted_batch(2, 2).to(torch.float64)
        model.backend = "plain"
        fast = model(batch)
        model.backend = "reference"
        torch.testing.assert_close(fast, model(batch), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("grammar", [SENTENCES, FEEDING_BACK])
def test_one_graph_for_the_compiler_and_for_export(grammar: str) -> None:
    torch.compiler.reset()
    model = GrammarGNN(grammar, width=3, layers=1, readout="grammar", preset="paper")
    data = GraphBatch.of([C6, STAR])
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(data), model(data))
    program = export_program(model)
    tensors = data.adjacency, data.nodes, data.edges, data.mask
    torch.testing.assert_close(program.module()(*tensors), model(data))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_half_precision_sums_in_full(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = GrammarGNN(SENTENCES, width=4, layers=1, readout="grammar").to(dtype)
    batch = GraphBatch.of([C6, STAR]).to("cpu", dtype)
    memories, constants = model.final(*model.checked(batch))
    assert model.readout.features(memories, batch.mask, constants).dtype == torch.float32
    assert model(batch).dtype == dtype


def test_the_old_spelling_is_pooling() -> None:
    grammar = find_grammar("r-G_L3")
    for way in ("sum", "mean", {"diagonal": "max"}):
        torch.manual_seed(0)
        old = GrammarGNN(grammar, width=3, readout=way)
        torch.manual_seed(0)
        new = GrammarGNN(grammar, width=3, pooling=way)
        assert old.plan == new.plan
        assert all(map(torch.equal, old.parameters(), new.parameters()))
    with pytest.raises(LoweringError, match="old spelling"):
        GrammarGNN(grammar, readout="sum", pooling="max")


def test_a_mean_is_joined_by_the_sum_the_grammar_has() -> None:
    steps = GrammarGNN("r-G_L3", pooling="mean").plan.readout.steps
    assert [str(step.rule) for step in steps] == ["S → 1ᵀV_c"]
    only_c = {"diagonal": "mean", "off-diagonal": "max"}
    assert not GrammarGNN("r-G_L3", pooling=only_c).plan.readout.steps


@pytest.mark.parametrize("readout", ["grammar", "pooled"])
@pytest.mark.parametrize("rules", ["S → 1ᵀ(A⊙A)1", "S → 1ᵀA1 | SS", "S → 1ᵀ1"])
def test_sentences_alone_make_a_network(rules: str, readout: str) -> None:
    model = GrammarGNN(rules, width=4, layers=2, readout=readout).eval()
    batch = GraphBatch.of([nx.path_graph(3), nx.cycle_graph(4)])
    first, second = model(batch)
    assert not torch.equal(first, second)
