"""Weights of formulas: networks against brute force, and what is refused."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from cases import CASES, GRAPHS
from g2n2.data.batch import GraphBatch
from g2n2.errors import LoweringError
from g2n2.formulas.formula_plan import requirements
from g2n2.formulas.writing import TASKS, write_formula
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.subgraph_counts import FORMULAS, formula
from g2n2.grammars.words import parse_word
from g2n2.language.evaluation import evaluate
from g2n2.language.parsing import parse
from g2n2.language.terms import Term
from g2n2.nn.model import G2N2, GrammarGNN

GRAMMAR = find_grammar("r-G_L3")
SIMPLE = [nx.to_numpy_array(nx.gnp_random_graph(n, 0.6, seed=n)) for n in (3, 6, 9)]
BATCH = GraphBatch.of(list(GRAPHS.values()), dtype=torch.float64)


def network(term: Term | list[Term], domain: range | None = None, **options: object) -> G2N2:
    """A network just large enough, with the term written into it."""
    terms = term if isinstance(term, list) else [term]
    needed = requirements(GRAMMAR, terms, domain=domain)
    settings: dict[str, object] = {
        "width": dict(needed.width),
        "layers": needed.depth,
        "out": len(terms),
        "task": TASKS[terms[0].sort.letter],
        "decision": (2 * len(terms),),
        "preset": "paper",
    }
    model = G2N2(**(settings | options)).double()
    write_formula(model, terms, domain=domain)
    return model


def outputs(model: GrammarGNN, batch: GraphBatch = BATCH) -> np.ndarray:
    with torch.no_grad():
        return model(batch).numpy()


@pytest.mark.parametrize("sort", ["S", "V", "M"])
def test_table_of_cases(sort: str) -> None:
    """Counted by networkx on every graph of the table, all in one batch."""
    kept = [c for c in CASES if parse(c.term).sort.letter == sort and "·1ᵀ" not in c.term]
    terms = list(dict.fromkeys(c.term for c in kept))
    values = outputs(network([parse(term) for term in terms]))
    for case in kept:
        graph = list(GRAPHS).index(case.graph)
        nodes = slice(len(GRAPHS[case.graph]))
        entries = (nodes,) * parse(case.term).sort.boundary
        got = values[graph, ..., terms.index(case.term)][entries]
        np.testing.assert_allclose(got, case.value.reshape(got.shape), atol=1e-9)


def test_one_network_of_all_counts() -> None:
    """The interpreter is compared with brute force in the tests of the formulas themselves."""
    counts = [formula(name) for name in FORMULAS if "Laplacian" not in name]
    values = outputs(network(counts))
    for k, term in enumerate(counts):
        expected = [evaluate(term, graph)[0, 0] for graph in GRAPHS.values()]
        np.testing.assert_allclose(values[:, k], np.rint(expected), rtol=1e-9, atol=1e-6)


def test_seven_cycles_of_a_network_against_networkx() -> None:
    graphs = [nx.gnp_random_graph(n, 0.5, seed=n) for n in (1, 2, 7, 9)]
    counted = [sum(len(c) == 7 for c in nx.simple_cycles(g, length_bound=7)) for g in graphs]
    values = outputs(network(formula("C7")), GraphBatch.of(graphs, dtype=torch.float64))
    np.testing.assert_allclose(values[:, 0], counted, atol=1e-6)
    assert counted[-1] > 0


@pytest.mark.parametrize("name", ["Laplacian^3", "normalised Laplacian", "normalised Laplacian^4"])
def test_laplacian_powers(name: str) -> None:
    values = outputs(network(formula(name), domain=range(17)))
    for got, graph in zip(values[..., 0], GRAPHS.values(), strict=True):
        n = len(graph)
        np.testing.assert_allclose(got[:n, :n], evaluate(formula(name), graph), atol=1e-10)
        assert not got[n:].any()


def test_relu_and_abs_are_exact_and_may_be_nested() -> None:
    term = parse("abs(relu(A²1 − 3×1) − A1)")
    values = outputs(network(term))
    for got, graph in zip(values[..., 0], GRAPHS.values(), strict=True):
        expected = evaluate(term, graph)[:, 0]
        np.testing.assert_array_equal(got[: len(graph)], expected)


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ("2-IGN", "A + I"),
        ("2-IGN (as printed)", "J"),
        ("G_L3", "Tr(A²)×Tr(A³)"),
        ("G_L3", "Tr(A⁴)×A"),
        ("r-G_L1", "Tr(diag(A1⊙A1))"),
        ("r-G_L3", "diag(1ᵀA1)"),
        ("PPGN", "Tr(Tr(A²))"),
    ],
)
def test_equal_terms_the_rules_make(grammar: str, text: str) -> None:
    """I is (1·1ᵀ)⊙I, Tr(M) is 1ᵀ(M⊙I)1, Tr(diag(v)) is 1ᵀv, and diag of a number the number."""
    term = parse(text)
    needed = requirements(grammar, term)
    task, width = TASKS[term.sort.letter], dict(needed.width)
    model = GrammarGNN(grammar, width=width, layers=needed.depth, task=task, preset="paper")
    write_formula(model.double(), term)
    for got, graph in zip(outputs(model)[..., 0], GRAPHS.values(), strict=True):
        expected = evaluate(term, graph)
        real = got[: len(graph), : len(graph)] if term.sort.letter == "M" else got.reshape(1, 1)
        np.testing.assert_allclose(real, expected, rtol=1e-9)


@pytest.mark.parametrize("readout", ["pooled", "grammar"])
def test_closed_walks_are_traces_where_a_grammar_has_no_entrywise_product(readout: str) -> None:
    """1ᵀ(A⊙A²)1 = Tr(A³), which is six times the triangles."""
    grammar = find_grammar("r-G_{·, Tr}")
    needed = requirements(grammar, formula("C3"), readout=readout)
    model = GrammarGNN(
        grammar, width=dict(needed.width), layers=needed.depth, preset="paper", readout=readout
    )
    write_formula(model.double(), formula("C3"))
    triangles = [sum(nx.triangles(nx.from_numpy_array(g)).values()) / 3 for g in SIMPLE]
    got = outputs(model, GraphBatch.of(SIMPLE, dtype=torch.float64))
    np.testing.assert_allclose(got[:, 0], triangles)
    with pytest.raises(LoweringError, match="nothing makes A⊙A²"):
        requirements(grammar, formula("diamond"))


def test_a_deeper_and_wider_network_carries_the_formula_on() -> None:
    model = network(parse("A² − 2×A"), layers=4, width=5, decision=(9, 7, 6))
    values = outputs(model)
    for got, graph in zip(values[..., 0], GRAPHS.values(), strict=True):
        n = len(graph)
        np.testing.assert_array_equal(got[:n, :n], evaluate(parse("A² − 2×A"), graph))


def test_numbers_and_other_outputs() -> None:
    model = G2N2(width=2, layers=2, out=3, preset="paper").double()
    write_formula(model, "1ᵀA1", output=1)
    values = outputs(model)
    edges = [graph.number_of_edges() for graph in GRAPHS.values()]
    np.testing.assert_array_equal(values, np.outer(edges, [0, 2, 0]))
    assert model.formula == "1ᵀA1"


def test_features_by_name() -> None:
    rng = np.random.default_rng(0)
    graph = nx.path_graph(4)
    x, e = rng.normal(size=(4, 3)), rng.normal(size=(4, 4, 2))
    batch = GraphBatch.of([graph], [x], [e], dtype=torch.float64)
    model = G2N2(3, 2, width=3, layers=2, task="node", preset="paper").double()
    write_formula(model, "(A⊙N)v + u", names={"N": 1, "v": 2, "u": 0})
    matrix = nx.to_numpy_array(graph) * e[..., 1]
    np.testing.assert_allclose(outputs(model, batch)[0, :, 0], matrix @ x[:, 2] + x[:, 0])
    with pytest.raises(LoweringError, match="v is channel 3 of X, of 3"):
        write_formula(model, "Av", names={"v": 3})


def test_an_output_that_is_not_there() -> None:
    for output in (-1, 2):
        with pytest.raises(LoweringError, match=f"outputs 0 to 1, got output={output}"):
            write_formula(G2N2(out=2, width=2, preset="paper"), "1ᵀA1", output=output)


def test_directed_graphs_read_both_directions() -> None:
    matrix = np.array([[0, 2, 0], [0, 0, -3], [1, 0, 0.5]])
    model = G2N2(width=2, layers=2, task="edge", preset="paper", directed=True).double()
    write_formula(model, "(A²)ᵀA")
    got = outputs(model, GraphBatch.of([matrix], dtype=torch.float64))[0, ..., 0]
    np.testing.assert_allclose(got, (matrix @ matrix).T @ matrix)


@pytest.mark.parametrize(
    ("preset", "reason"),
    [
        ("official", "it divides operands by the width; its MLPs have no bias"),
        ("ppgn", "its selectors end in ReLU"),
        ("modern", "it normalises every memory"),
    ],
)
def test_other_presets_are_refused(preset: str, reason: str) -> None:
    grammar = "PPGN" if preset == "ppgn" else "r-G_L3"
    with pytest.raises(LoweringError, match="cannot be written into the preset") as caught:
        write_formula(GrammarGNN(grammar, preset=preset, width=4), "Tr(A³)")
    assert reason in str(caught.value)
    assert 'preset="paper"' in str(caught.value)


@pytest.mark.parametrize(
    ("term", "options", "message"),
    [
        (
            "A²",
            {},
            "A² is a matrix, which the task 'edge' gives; this network has the task 'graph'",
        ),
        (
            "Tr(A⁵)",
            {"layers": 2},
            "too small (2 layers); the formula needs depth 3; width V 1, M 2",
        ),
        ("1ᵀ(A²⊙A)1", {"width": 1}, "(width M 1); the formula needs depth 2; width V 1, M 2"),
        ("Tr(A³)", {"readout": "max"}, "sums over diagonal, the network's read-out takes max"),
        (["Tr(A)", "1ᵀ1"], {}, "2 terms from output 0 on need out=2, the network has out=1"),
        ("Tr(A³)", {"decision": (1,)}, "a decision layer 1 wide, 2 needed: decision=(2,)"),
        ([], {}, "no formula is given"),
    ],
)
def test_what_does_not_fit(term: str, options: dict[str, object], message: str) -> None:
    settings: dict[str, object] = {"width": 2, "layers": 3, "preset": "paper"}
    with pytest.raises(LoweringError) as caught:
        write_formula(G2N2(**(settings | options)), term)
    assert message in str(caught.value)


def test_a_refused_formula_leaves_the_weights_alone() -> None:
    model = G2N2(width=2, layers=1, preset="paper")
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(LoweringError):
        write_formula(model, "Tr(A⁹)")
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


OWN = [
    ("r-G_L3", "1ᵀ(A²⊙A)1"),
    ("M → A ; S → Tr(MMM)", "Tr(AAA)"),
    ("M → MM | A ; S → Tr(MMM)", "Tr(A⁶)"),
    ("M → MM | A ; S → Tr(MM) | 1ᵀA1", "2×Tr(AA) + 1ᵀA1"),
    ("PPGN", "1ᵀA³1"),
    ("G_L1", "1ᵀA1"),
    ("S → SS | Tr(M) ; M → S×M | MM | A", "Tr(A²)×Tr(A³)"),
]


@pytest.mark.parametrize(("grammar", "text"), OWN)
@pytest.mark.parametrize("functions", ["mlp", "free"])
@pytest.mark.parametrize("readout", ["grammar", "pooled"])
def test_a_formula_through_the_rules_of_s(grammar, text, functions, readout):
    needed = requirements(grammar, text, readout=readout)
    model = GrammarGNN(
        grammar,
        width=dict(needed.width),
        layers=needed.depth,
        preset="paper",
        decision=(2,),
        readout=readout,
        functions=functions,
    ).double()
    assert write_formula(model, text) == needed
    graphs = [nx.cycle_graph(6), nx.star_graph(4), nx.gnp_random_graph(7, 0.5, seed=1)]
    term = parse_word(find_grammar(grammar), text)
    expected = torch.tensor([float(evaluate(term, graph).sum()) for graph in graphs])
    got = model(GraphBatch.of(graphs).to("cpu", torch.float64))[:, 0].detach()
    torch.testing.assert_close(got, expected.double(), rtol=1e-12, atol=1e-9)


def test_an_own_read_out_takes_a_layer_more_and_gives_no_other_sentence():
    text = "1ᵀ(A²⊙A)1"
    assert requirements("r-G_L3", text).depth == 2
    assert requirements("r-G_L3", text, readout="grammar").depth == 3
    with pytest.raises(LoweringError, match="cannot be written into a network of"):
        requirements("r-G_L3 ∖ {MV_c}", text, readout="grammar")


def test_what_linear_maps_and_missing_biases_cannot_hold():
    linear = GrammarGNN("PPGN", preset="paper", functions="free", width=4, layers=2).double()
    with pytest.raises(LoweringError, match="one linear map, which computes no function"):
        write_formula(linear, "1ᵀrelu(A²)1")
    unbiased = GrammarGNN("r-G_L3", preset="paper", pair_bias=False, width=8, layers=3).double()
    write_formula(unbiased, "1ᵀrelu(A²)1")
    with pytest.raises(LoweringError, match="no biases"):
        write_formula(unbiased, "1ᵀexp(A²)1", domain=range(8))
