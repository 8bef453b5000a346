"""Sentences with one or two marks as weights: interpreter against network, counts, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from itertools import combinations
from random import Random

import networkx as nx
import numpy as np
import pytest
import torch

from g2n2.compiler.marks import inside
from g2n2.data.batch import GraphBatch
from g2n2.errors import LoweringError
from g2n2.formulas.formula_plan import requirements
from g2n2.formulas.writing import write_formula
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.subgraph_counts import formula
from g2n2.language.evaluation import evaluate
from g2n2.language.parsing import parse
from g2n2.language.sorts import Sort, V
from g2n2.language.terms import Leaf, MarkSum, Number, Term, apply, fill, substitute
from g2n2.nn.model import GrammarGNN

SIZES = (1, 2, 7, 4)
K4 = "Σv. (Av)ᵀ(A·diag(Av)·A⊙A)(Av)"


def network(terms: list[Term], grammar: str = "r-G_L3Σ", **options: object) -> GrammarGNN:
    """A network just large enough, with the terms written into it."""
    readout = str(options.get("readout", "pooled"))
    needed = requirements(grammar, terms, readout=readout)
    width = {x: max(size, len(terms)) for x, size in needed.width.items()}
    settings: dict[str, object] = {
        "width": width,
        "layers": needed.depth,
        "out": len(terms),
        "decision": (2 * len(terms),),
        "preset": "paper",
    }
    model = GrammarGNN(grammar, **(settings | options)).double()  # type: ignore[arg-type]
    write_formula(model, terms)
    return model


def word(grammar: Grammar, sort: Sort, depth: int, rng: Random) -> Term:
    """A random word, derived in at most so many steps."""
    rules = [rule for rule in grammar.of_sort(sort) if depth or not rule.holes]
    rule = rng.choice([rule for rule in rules if rule.holes] or rules)
    parts = [word(grammar, hole, rng.randrange(depth), rng) for hole in rule.holes]
    return fill(rule.body, parts)


def sentence(grammar: str, rng: Random) -> Term:
    """A combination of sums over marks of several names, and of sentences with fewer marks."""
    marks = find_grammar(grammar).marks
    words = inside(find_grammar(grammar))
    parts: list[Term] = []
    for names in (marks, "vu"[: len(marks)], "xw"):
        inner = apply("matmul", apply("transpose", parse("1")), word(words, V, 5, rng))
        summed = substitute(inner, {m: Leaf(n, V) for m, n in zip(marks, names, strict=False)})
        for name in reversed(names[: len(marks)]):
            summed = MarkSum(name, summed)
        parts.append(summed)
    parts.append(substitute(inner, dict.fromkeys(marks, parse("A1"))))
    parts.append(MarkSum("w", Number(Fraction(rng.randrange(3)))))
    if len(marks) > 1:
        fewer = substitute(inner, {marks[0]: parse("1"), marks[1]: Leaf("w", V)})
        parts.append(MarkSum("w", fewer))
    parts = [apply("scale", Number(Fraction(rng.choice((-3, -1, 2, 5)), 2)), p) for p in parts]
    rng.shuffle(parts)
    return reduce(lambda x, y: apply("add", x, y), parts)


@pytest.mark.parametrize("readout", ["pooled", "grammar"])
@pytest.mark.parametrize("grammar", ["r-G_L3Σ", "r-G_L1Σ", "r-G_L1ΣΣ", "r-G_L3ΣΣ"])
def test_random_sentences_in_networks(grammar: str, readout: str) -> None:
    rng, draw = Random(7), np.random.default_rng(7)
    terms = [sentence(grammar, rng) for _ in range(12)]
    model = network(terms, grammar, readout=readout, marks="orbits")
    upper = [np.triu(draw.choice([0, 0, 1, 2, -1], (n, n)), 1).astype(float) for n in SIZES]
    graphs = [a + a.T for a in upper]
    with torch.no_grad():
        outputs = model(GraphBatch.of(graphs, dtype=torch.float64)).numpy()
    for k, term in enumerate(terms):
        expected = [float(evaluate(term, graph).item()) for graph in graphs]
        np.testing.assert_allclose(outputs[:, k], expected, rtol=1e-9, atol=1e-7, err_msg=str(term))
    assert len({str(term) for term in terms}) == len(terms)


def test_k4_and_induced_counts_are_exact_from_the_start() -> None:
    graphs = [nx.path_graph(3), nx.gnp_random_graph(8, 0.6, seed=8), nx.petersen_graph()]
    names = ["K4", "induced C4", "induced star 3"]
    model = network([formula(name) for name in names])
    shapes = (nx.complete_graph(4), nx.cycle_graph(4), nx.star_graph(3))
    induced = [[g.subgraph(four) for four in combinations(g, 4)] for g in graphs]
    counted = [[sum(nx.is_isomorphic(h, s) for h in found) for s in shapes] for found in induced]
    got = model(GraphBatch.of(graphs, dtype=torch.float64)).detach().numpy()
    np.testing.assert_allclose(got, counted, atol=1e-8)
    assert np.all(np.sum(counted, axis=0))


def test_two_marks_count_k4_without_a_matrix() -> None:
    """At two adjacent nodes u and v: pairs of adjacent common neighbours."""
    k4 = parse("Σu. Σv. 1ᵀdiag(u)diag(Av)Adiag(Au)diag(Av)Adiag(Au)Av")
    model = network([k4], "r-G_L1ΣΣ", marks="all")
    graphs = [nx.complete_graph(5), nx.gnp_random_graph(8, 0.6, seed=8), nx.cycle_graph(6)]
    got = model(GraphBatch.of(graphs, dtype=torch.float64)).flatten().tolist()
    cliques = [sum(len(c) == 4 for c in nx.enumerate_all_cliques(graph)) for graph in graphs]
    assert got == [24 * count for count in cliques]
    assert cliques[0] == 5
    assert cliques[1] > 0


@pytest.mark.slow
def test_eight_cycles_of_a_network_against_networkx() -> None:
    graphs = [nx.gnp_random_graph(n, 0.6, seed=n) for n in (4, 8, 9)]
    counted = [sum(len(c) == 8 for c in nx.simple_cycles(g, length_bound=8)) for g in graphs]
    model = network([formula("C8")])
    got = model(GraphBatch.of(graphs, dtype=torch.float64)).detach().numpy()
    np.testing.assert_allclose(got[:, 0], counted, atol=1e-6)
    assert counted[-1] > 0


@pytest.mark.slow
@pytest.mark.parametrize("vertices", [9, 10])
def test_long_paths_of_a_network_against_networkx(vertices: int) -> None:
    """Their counts have hundreds of summands: more than a term written by hand may have."""
    graphs = [nx.gnp_random_graph(n, 0.4, seed=n) for n in (8, 10)]
    counted = [
        sum(
            len(path) == vertices
            for a, b in combinations(graph, 2)
            for path in nx.all_simple_paths(graph, a, b, cutoff=vertices - 1)
        )
        for graph in graphs
    ]
    model = network([formula(f"P{vertices}")])
    with torch.no_grad():
        got = model(GraphBatch.of(graphs, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(got[:, 0], counted, atol=1e-4)
    assert counted[-1] > 0


@pytest.mark.parametrize(
    ("grammar", "term", "options", "message"),
    [
        ("r-G_L3", K4, {}, "take a grammar with a mark"),
        ("r-G_L3Σ", K4, {"marks": "heavy"}, "leaves vertices out"),
        ("r-G_L3Σ", K4, {"trunk": 1}, "trunk=0"),
        ("r-G_L3Σ", K4, {"layers": 2}, "too small"),
        ("r-G_L3Σ", K4, {"preset": "modern"}, 'preset="paper"'),
        ("r-G_L3Σ", f"({K4})×({K4})", {}, "does more with a sum over marks"),
        ("r-G_L3Σ", "(1ᵀA1)²", {}, "multiplies sentences"),
        ("r-G_L3Σ", "Σv. 1ᵀv(vᵀA1)", {}, "multiplies sentences"),
        ("r-G_L3Σ", "Σu. Σv. uᵀAv", {}, "one mark"),
        ("r-G_L3Σ", "1ᵀAv", {}, "v has no value"),
        ("r-G_L3Σ", "Σu. uᵀAv", {}, "v has no value"),
        ("r-G_L1ΣΣ", "Σu. Σv. Σw. 1ᵀdiag(Au)diag(Av)Aw", {}, "with 2 marks"),
        ("r-G_L1ΣΣ", "Σu. (Σv. uᵀAv)(Σv. uᵀAv)", {}, "does more with a sum over marks"),
        ("r-G_L1ΣΣ", "Σw. Σv. wᵀAu", {}, "u has no value"),
    ],
)
def test_what_cannot_be_written_is_said(
    grammar: str, term: str, options: dict[str, object], message: str
) -> None:
    settings: dict[str, object] = {"width": 4, "layers": 5, "preset": "paper"}
    model = GrammarGNN(grammar, **(settings | options))  # type: ignore[arg-type]
    with pytest.raises(LoweringError, match=message):
        write_formula(model, term)


def test_refusals_show_the_sums_of_the_formula_and_the_rules_with_their_marks() -> None:
    def refusal(grammar: str, term: str | Term) -> str:
        with pytest.raises(LoweringError) as caught:
            requirements(grammar, term)
        return str(caught.value)

    assert refusal("r-G_L3Σ", formula("induced 2K1")).startswith("(1ᵀ1)² multiplies")
    assert refusal("r-G_L3Σ", "1ᵀA1 + Σw. 1ᵀw(wᵀA1)").startswith("Σw. 1ᵀw(wᵀA1) multiplies")
    poor = "V′ → AV′ | v; S → Σv. 1ᵀV′"
    assert refusal(poor, "(Σw. 1ᵀA³w) + (Σw. 1ᵀdiag(w)A1)").endswith(
        ": nothing makes Σv. 1ᵀdiag(v)A1 for the summand Σw. 1ᵀdiag(w)A1; the rules are "
        "S → Σv. 1ᵀV_c′"
    )
    assert refusal(poor, "Σv. 1ᵀdiag(v)A1").endswith(
        "nothing makes Σv. 1ᵀdiag(v)A1; the rules are S → Σv. 1ᵀV_c′"
    )
    nested = refusal("V″ → AV″ | u | v; S → Σu. Σv. 1ᵀV″", "Σu. Σv. uᵀA1")
    assert "Σu. Σv. " in nested
    assert "S → Σu. Σv. 1ᵀV_c″" in nested
