"""Reduced grammars go on: they generate, read back from their own text, and become networks."""

from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from g2n2 import Fragment, Grammar, find_grammar
from g2n2.errors import GrammarError
from g2n2.grammars.grammar import Rule
from g2n2.language.sorts import M, S, V
from g2n2.reduction.invariants import OUTPUTS
from g2n2.reduction.reduce import reduce

OPERATIONS = ("·", "ᵀ", "1", "diag", "⊙", "Tr", "+", "×", "f")
SUBSETS = [s for size in range(1, 10) for s in combinations(OPERATIONS, size)]
NESTED = ("M → M(MᵀM)", "M → diag(M1)", "V → (M⊙M)1", "V → diag(V)MV", "S → Tr(MMM)", "S → VᵀMV", "S → 1ᵀ(A⊙A)1", "M → VVᵀ", "V → A(AV)", "S → 1ᵀf(V)", "M → (M⊙I)", "V → relu(AV)")  # fmt: skip


def random_grammars(count: int) -> list[Grammar]:
    """Rules drawn from exhaustive grammars and a few nested ones, those that generate."""
    rng = Random(20)
    pool = [*Fragment(OPERATIONS).exhaustive("full").all_rules, *map(Rule.parse, NESTED)]
    found: list[Grammar] = []
    while len(found) < count:
        rules = [*rng.sample(pool, rng.randint(1, 6)), Rule.parse("M → A")]
        rules += [Rule.parse(t) for t in ("V → 1", "S → 1ᵀV", "S → Tr(M)") if rng.random() < 0.6]
        try:
            grammar = Grammar.of(rules, default_readout=rng.random() < 0.5)
            grammar.check()
        except GrammarError:
            continue
        found.append(grammar)
    return found


def assert_well_formed(grammar: Grammar, level: str = "graph") -> None:
    grammar.check()
    assert Grammar.parse(str(grammar)) == grammar
    assert Grammar.parse("\n".join(grammar.lines("ascii"))) == grammar
    if grammar.sentence_rules or level != "graph":
        assert not grammar.unreachable(OUTPUTS[level])


@pytest.mark.parametrize(
    "part", [slice(0, None, 12), pytest.param(slice(3, None, 8), marks=pytest.mark.slow)]
)
def test_reduced_grammars_of_fragments(part: slice) -> None:
    for subset in SUBSETS[part]:
        assert_well_formed(reduce(Fragment(subset).exhaustive(), alternatives=False).reduced)


GIVEN = random_grammars(250)


@pytest.mark.parametrize("level", ["graph", "node", "pair"])
def test_reduced_grammars_of_random_grammars(level: str) -> None:
    for grammar in GIVEN[:40]:
        if level == "graph" or grammar.of_sort(V) or grammar.of_sort(M):
            assert_well_formed(reduce(grammar, level=level, alternatives=False).reduced, level)


@pytest.mark.slow
def test_reduced_grammars_of_more_random_grammars() -> None:
    for grammar in GIVEN[40::2]:
        assert_well_formed(reduce(grammar, alternatives=False).reduced)


def test_the_grammar_that_could_not_be_read_again() -> None:
    reduced = reduce(Fragment("· Tr 1 f").exhaustive()).reduced
    assert not reduced.of_sort(V)
    assert str(reduced) == "S → SS | Tr(M) | f(S)\nM → MM | f(M) | A"


@pytest.mark.parametrize("every", [pytest.param(10, id="some"), pytest.param(2, marks=pytest.mark.slow, id="more")])  # fmt: skip
def test_reduced_grammars_become_networks(every: int, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    import networkx as nx

    from g2n2 import GrammarGNN, GraphBatch

    batch = GraphBatch.of([nx.path_graph(3), nx.cycle_graph(5)])
    given = [Fragment(s).exhaustive() for s in SUBSETS[::20]] + GIVEN[:60]
    for grammar in given[::every]:
        reduced = reduce(grammar, alternatives=False).reduced
        torch.manual_seed(0)
        model = GrammarGNN(reduced, width=2, layers=2, decision=(3,)).eval()
        model.save(tmp_path / "network.safetensors")
        again = GrammarGNN.load(tmp_path / "network.safetensors")
        assert again.plan.grammar == reduced
        assert torch.equal(again(batch), model(batch))


def test_no_sentences_is_written_and_read() -> None:
    silent = Fragment("·").exhaustive()
    assert str(silent) == "M → MM | A\nS → ∅"
    assert silent.lines("ascii")[-1] == "S -> none"
    assert not Grammar.parse("M → MM | A ; S → ∅").sentence_rules
    assert Grammar.parse("M → MM | A").sentence_rules
    assert find_grammar("M -> MM | A; S -> none") == silent
    with pytest.raises(GrammarError, match="S → ∅ says that there are no sentences"):
        Grammar.parse("M → MM | A ; S → ∅ ; S → Tr(M)")
    assert all(S not in r.holes for r in silent.rules)
