"""The two engines, their arithmetic and the naive twin: they must all say the same."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import GRAPHS
from g2n2.errors import DataError, GrammarError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.layered_grammar import LayeredGrammar
from g2n2.grammars.rules import parse_rules
from g2n2.graphs import adjacency
from g2n2.language.evaluation import evaluate_mod
from g2n2.language.modular import LARGEST_INNER, PRIMES, RowSpace, combined, product, reduced
from g2n2.language.parsing import parse_body
from g2n2.language.sorts import M, V
from g2n2.language.terms import holes, operation_count
from g2n2.power.closure import Functional, Place, _Descent, close, descend
from g2n2.power.random_probes import Schedule, check_schedule, probe_graphs, probe_pair
from g2n2.power.word_memory import Stack, pairing
from naive_separation import first_depth

P = PRIMES[0]
BOTH = (Place(0), Place(1))

GRAMMARS = {
    "r-G_L3": None,
    "G_L1": None,
    "r-G_L1": None,
    "r-G_L3 ∖ {MM}": "S → 1ᵀV | Tr(M) | 1ᵀM1",
    "r-G_L3 ∖ {diag(V_c)}": "S → VᵀV",
    "{·,ᵀ,1,Tr}": None,
    "{·,⊙,Tr}": None,
    "four-rule": None,
    "2-IGN": None,
    "V → A(V + 1) | 1": None,  # a sum: affine, not linear
    "M → (MM) + J | A": "S → Tr(M)",
    "{·,ᵀ,1,×}": None,
    "V → V + V | 1; S → 1ᵀAV − 1ᵀA1": None,  # 1 and 2×1 are two words, though one line
    "V → 1; S → 1ᵀA1 + 0×(1ᵀV)": None,  # the difference is in the constant part
    "V → CV | 1; C = A + 0.5×I": None,
}


def random_graph(nodes: int, seed: int) -> np.ndarray:
    return adjacency(nx.gnp_random_graph(nodes, 0.5, seed=seed))


def is_prime(number: int) -> bool:
    return all(number % d for d in range(2, int(number**0.5) + 1))


# -- arithmetic ----------------------------------------------------------------------------------


def test_primes_are_the_largest_below_2_to_the_26() -> None:
    found = [n for n in range(2**26, 2**26 - 60, -1) if is_prime(n)]
    assert tuple(found[:3]) == PRIMES


@given(st.lists(st.integers(0, 2**53), min_size=1, max_size=20), st.sampled_from(PRIMES))
def test_reduction_agrees_with_python(numbers: list[int], prime: int) -> None:
    values = np.array([float(n) for n in numbers])
    assert reduced(values, prime).tolist() == [float(n % prime) for n in numbers]


@pytest.mark.parametrize("prime", [*PRIMES, 103, 13])
def test_reduction_at_multiples_of_the_prime(prime: int) -> None:
    """There the rounded reciprocal can be off by one; for 103 and 13 it is, either way."""
    quotients = np.random.default_rng(0).integers(1, 2**53 // prime, size=5000)
    quotients = np.concatenate([quotients, np.arange(1, 5000)])
    for offset in (-1, 0, 1):
        numbers = quotients * prime + offset
        expected = (numbers % prime).astype(float)
        assert reduced(numbers.astype(float), prime).tolist() == expected.tolist()


@pytest.mark.parametrize("k", [1, 7, LARGEST_INNER, LARGEST_INNER + 1, 2 * LARGEST_INNER + 5])
def test_products_of_the_largest_residues_are_exact(k: int) -> None:
    left, right = np.full((1, k), P - 1.0), np.full((k, 2), P - 1.0)
    left[0, 0] = 12_345
    exact = ((k - 1) * (P - 1) ** 2 + 12_345 * (P - 1)) % P
    assert product(left, right, P).tolist() == [[exact, exact]]
    assert product(right.T, left.T, P).tolist() == [[exact], [exact]]  # the other operand is split


def test_products_agree_with_python_on_random_stacks() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, P, size=(3, 1, 4, 6)), rng.integers(0, P, size=(2, 6, 5))
    exact = (left.astype(object) @ right.astype(object)) % P
    assert product(left.astype(float), right.astype(float), P).tolist() == exact.tolist()
    rows = rng.integers(0, P, size=(2, 3))
    mixed = np.tensordot(rows.astype(object), left.astype(object), 1) % P
    assert combined(rows.astype(float), left.astype(float), P).tolist() == mixed.tolist()


def rank_by_fractions(rows: np.ndarray, prime: int) -> list[int]:
    """Which rows are independent of those before, one at a time with Python integers."""
    echelon: dict[int, list[int]] = {}
    kept = []
    for index, values in enumerate(rows.tolist()):
        row = [int(x) % prime for x in values]
        for pivot, other in echelon.items():
            row = [(x - row[pivot] * y) % prime for x, y in zip(row, other, strict=True)]
        places = [at for at, x in enumerate(row) if x]
        if places:
            inverse = pow(row[places[0]], -1, prime)
            echelon[places[0]] = [x * inverse % prime for x in row]
            kept.append(index)
    return kept


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 12), st.integers(1, 9))
def test_row_space_agrees_with_elimination_by_hand(
    seed: int, rank: int, count: int, columns: int
) -> None:
    rng = np.random.default_rng(seed)
    small = rng.integers(0, P, size=(rank, columns)).astype(float)
    rows = product(rng.integers(0, 3, size=(count, rank)).astype(float), small, P)
    cut = int(rng.integers(0, count + 1))
    space = RowSpace(columns, P)
    kept = space.insert(rows[:cut]) + [cut + index for index in space.insert(rows[cut:])]
    assert kept == rank_by_fractions(rows, P)
    assert space.dimension == len(kept)
    assert (space.basis[:, space.pivots] == np.eye(len(kept))).all()


BODIES = [
    ("MM", 2), ("V_r(M⊙A)V", 3), ("(S×M)⊙(AM)", 3), ("diag(V)Mᵀ", 2), ("S×V", 2), ("V_cV_r", 2),
    ("Tr(MA)×V_r", 2), ("diag(S)⊙S", 2), ("(S×V)V_rJ", 3), ("V_cS", 2), ("Tr(diag(V)M)", 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "count"), BODIES)
def test_pull_back_is_the_adjoint(text: str, count: int) -> None:
    """<dual, body(x, y)> = <pulled back, x> for every variable, whatever the others are."""
    body = parse_body(text)
    assert len(holes(body)) == count
    rng = np.random.default_rng(1)
    stack = Stack([random_graph(5, 3), random_graph(5, 4)], (), P)
    arguments = [
        rng.integers(0, P, size=(1, *stack.shape(sort))).astype(float) for sort in holes(body)
    ]
    value = stack.values(body, arguments)
    dual = rng.integers(0, P, size=value.shape).astype(float)
    expected = pairing(dual, value, P).tolist()
    assert expected != [0.0]
    for at, argument in enumerate(arguments):
        pulled = stack.pull_back(body, arguments, dual, at, ())
        assert pairing(pulled, argument, P).tolist() == expected


# -- engines against the twin and each other -----------------------------------------------------


@pytest.mark.parametrize("name", GRAMMARS)
def test_both_engines_find_the_depth_of_the_naive_twin(name: str) -> None:
    grammar, readout = find_grammar(name), GRAMMARS[name]
    layered = LayeredGrammar.of(grammar, readout)
    rules = None if readout is None else parse_rules(readout)
    for seed in range(6):
        graphs = [random_graph(4, 2 * seed), random_graph(4, 2 * seed + 1)]
        expected = first_depth(grammar, graphs, rules)
        for prime in PRIMES[:2]:
            found = close(layered, graphs, BOTH, prime).difference
            assert (found and found.layer) == expected, seed
            mixed = probe_pair(layered, graphs, BOTH, 5, prime=prime)
            assert (mixed and mixed.layer) == expected, seed


@pytest.mark.parametrize(
    ("name", "pair", "depth"),
    [
        ("{·,Tr}", ("K1,4", "C4 + K1"), None),
        ("r-G_L1", ("K1,4", "C4 + K1"), 2),
        ("r-G_L1", ("C6", "2·C3"), None),
        ("{·,Tr}", ("C6", "2·C3"), 2),
        ("PPGN", ("C6", "2·C3"), 2),
    ],
)
def test_the_twin_itself_finds_what_is_known(
    name: str, pair: tuple[str, str], depth: int | None
) -> None:
    graphs = [adjacency(GRAPHS[graph]) for graph in pair]
    assert first_depth(find_grammar(name), graphs) == depth
    found = close(LayeredGrammar.of(find_grammar(name)), graphs, BOTH).difference
    assert (found and found.layer) == depth


PAIRS = {
    "C6": ("C6", "2·C3"),
    "stars": ("K1,4", "C4 + K1"),
    "rings": ("decalin", "bicyclopentyl"),
    "srg": ("rook 4×4", "Shrikhande"),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    ("name", "readout"),
    [
        ("r-G_L3", None),
        ("r-G_L3", "network"),
        ("G_L3", "network"),
        ("G_L1", None),
        ("{·,Tr}", None),
        ("PPGN", "network"),
        ("2-IGN", None),
    ],
)
def test_engines_agree_on_hard_pairs(name: str, readout: str | None, pair: str) -> None:
    graphs = [adjacency(GRAPHS[graph]) for graph in PAIRS[pair]]
    layered = LayeredGrammar.of(find_grammar(name), readout)
    closed = close(layered, graphs, BOTH).difference
    mixed = probe_pair(layered, graphs, BOTH, 6, prime=PRIMES[1])
    assert (closed and closed.layer) == (mixed and mixed.layer)


@given(st.integers(0, 10_000), st.sampled_from(["r-G_L3", "G_L1", "{·,ᵀ,1,Tr}", "PPGN"]))
@settings(max_examples=25)
def test_engines_agree_on_regular_graphs(seed: int, name: str) -> None:
    graphs = [adjacency(nx.random_regular_graph(3, 10, seed=2 * seed + i)) for i in range(2)]
    layered = LayeredGrammar.of(find_grammar(name), "network")
    closed = close(layered, graphs, BOTH).difference
    mixed = probe_pair(layered, graphs, BOTH, 9)
    assert (closed and closed.layer) == (mixed and mixed.layer)


def test_closure_is_a_closed_basis() -> None:
    """Every product of two basis matrices is in the span: the randomised layers missed nothing."""
    graphs = [random_graph(6, 1), random_graph(6, 2)]
    closure = close(LayeredGrammar.of(find_grammar("r-G_L3"), "network"), graphs)
    memory = closure.memory
    rows = memory.rows(memory.values(M))
    space = RowSpace(rows.shape[1], P)
    assert len(space.insert(rows)) == len(rows) > 16  # 16 * 16 is the most done exhaustively
    (words,) = memory.values(M)
    for word in words:
        assert space.insert(product(word[None], words, P).reshape(len(words), -1)) == []


def test_a_layer_beyond_the_first_is_not_a_difference_of_the_first() -> None:
    """1ᵀ(A²⊙A)1 needs three layers with 1ᵀV and two with the network read-out."""
    graphs = [adjacency(nx.cycle_graph(6)), adjacency(nx.disjoint_union(*[nx.cycle_graph(3)] * 2))]
    grammar = find_grammar("r-G_L3")
    for readout, layer in ((None, 3), ("network", 2), ("S → 1ᵀM1", 2), ("VᵀV", 3)):
        found = close(LayeredGrammar.of(grammar, readout), graphs, BOTH).difference
        assert found is not None
        assert found.layer == layer, readout


@pytest.mark.parametrize("engine", ["closure", "random_probes"])
@pytest.mark.parametrize("name", GRAMMARS)
def test_descent_ends_in_a_word_that_differs_at_that_depth(name: str, engine: str) -> None:
    grammar, readout = find_grammar(name), GRAMMARS[name]
    layered = LayeredGrammar.of(grammar, readout)
    for seed in range(4):
        graphs = [random_graph(7, 2 * seed), random_graph(7, 2 * seed + 1)]
        if engine == "closure":
            found = close(layered, graphs, BOTH).difference
        else:
            found = probe_pair(layered, graphs, BOTH)
        if found is None:
            continue
        word = descend(found)
        values = [int(word.values[s][0, g, i, j]) for s, g, i, j in found.places]
        assert values[0] != values[1]
        assert word.depth == found.layer  # no shallower word differs, or the layer were smaller
        assert word.size == operation_count(word.term)
        supports = dict(grammar.supports)
        if not supports:
            exact = [int(evaluate_mod(word.term, graph, P)[0, 0]) for graph in graphs]
            assert exact == values


def test_a_word_is_used_again_only_where_it_is_shallow_enough() -> None:
    """Otherwise a sentence could be deeper than the layer it was found at."""
    graphs = [adjacency(nx.path_graph(4)), adjacency(nx.cycle_graph(4))]
    memory = close(LayeredGrammar.of(find_grammar("r-G_L1")), graphs).memory
    search = _Descent(memory)
    (one,) = search.settled[V]
    deep = replace(one, depth=3)
    search.settled[V] = [deep]
    goal = Functional([np.ones((1, *stack.shape(V))) for stack in memory.stacks], 0)
    assert search._chosen(V, 1, goal, 3) is deep
    assert search._chosen(V, 1, goal, 2) is not deep


def test_mixing_keeps_sums_apart_from_multiples() -> None:
    """Modulo linear combination 2×1 is 1, and 1ᵀAV − 1ᵀA1 would differ a layer too early."""
    grammar = find_grammar("V → V + V | 1; S → 1ᵀAV − 1ᵀA1")
    mixing = probe_graphs(grammar, [nx.path_graph(4), nx.cycle_graph(4)], 2)
    assert mixing.separated_at(0, 1) == 1


def test_mixing_classes_of_a_family_are_those_of_its_pairs() -> None:
    graphs = [adjacency(nx.random_regular_graph(3, 8, seed=seed)) for seed in range(12)]
    graphs += [adjacency(nx.cycle_graph(n)) for n in (5, 8, 5)]
    mixing = probe_graphs(find_grammar("r-G_L3"), graphs, 5, "network")
    layered = LayeredGrammar.of(find_grammar("r-G_L3"), "network")
    for i in range(len(graphs)):
        for j in range(i):
            found = close(layered, (graphs[i], graphs[j]), BOTH).difference
            assert mixing.separated_at(i, j) == (found and found.layer), (i, j)
    pairs = [(0, 1), (12, 13), (12, 14)]
    at = [mixing.separated_at(*pair) for pair in pairs]
    assert at[2] is None


def test_an_unlucky_first_prime_is_overruled_by_the_second() -> None:
    """Weights that are a multiple of the first prime vanish there; classes of other graphs stay."""
    heavy = np.array([[0.0, P], [P, 0.0]])
    edge = np.array([[0.0, 1.0], [1.0, 0.0]])
    empty = np.zeros((2, 2))
    mixing = probe_graphs(
        find_grammar("r-G_L3"), [heavy, empty, edge], 2, "network", primes=PRIMES[:1]
    )
    assert mixing.separated_at(0, 1) is None
    mixing = probe_graphs(find_grammar("r-G_L3"), [heavy, empty, edge], 2, "network")
    assert mixing.separated_at(0, 1) == 0
    assert mixing.separated_at(1, 2) == 0
    assert mixing.primes == PRIMES[:2]


def test_progress_counts_every_graph() -> None:
    graphs = [nx.path_graph(n % 5 + 1) for n in range(23)]
    done: list[int] = []
    probe_graphs(find_grammar("r-G_L3"), graphs, 2, progress=done.append)
    assert sum(done) == 23


# -- what is refused -----------------------------------------------------------------------------


def test_a_large_graph_is_refused_before_anything_is_allocated() -> None:
    layered = LayeredGrammar.of(find_grammar("r-G_L3"))
    schedule = Schedule.draw(layered, 8, 2, P)
    with pytest.raises(DataError) as refused:
        check_schedule(schedule, [5000, 5000], 8 * 2**30)
    message = str(refused.value)
    assert "'random_probes' with 8 layers of width 2" in message
    assert "5,000 and 5,000 nodes" in message
    assert "2 layers of width 2 would fit" in message
    check_schedule(Schedule.draw(layered, 2, 2, P), [5000, 5000], 8 * 2**30)
    with pytest.raises(DataError, match="not even the constants fit"):
        check_schedule(schedule, [5000, 5000], 2**20)


@pytest.mark.parametrize("name", ["r-G_L3", "r-G_L1"])
def test_a_run_takes_no_more_memory_than_announced(name: str) -> None:
    layered = LayeredGrammar.of(find_grammar(name))
    graph = adjacency(nx.cycle_graph(700))
    tracemalloc.start()
    probe_pair(layered, [graph, graph], BOTH, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= Schedule.draw(layered, 2, 2, P).needed([700, 700])


def test_large_graphs_are_run_word_by_word_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graphs = [adjacency(GRAPHS[name]) for name in ("decalin", "bicyclopentyl")]
    layered = LayeredGrammar.of(find_grammar("r-G_L3"))
    usual = [close(layered, graphs, BOTH).difference, probe_pair(layered, graphs, BOTH)]
    monkeypatch.setattr("g2n2.power.word_memory.BATCH_ENTRIES", 10)  # each graph is large now
    small = [close(layered, graphs, BOTH).difference, probe_pair(layered, graphs, BOTH)]
    for before, after in zip(usual, small, strict=True):
        assert before is not None
        assert after is not None
        assert after.memory.batch_size == 1 < before.memory.batch_size
        assert len(after.memory.stacks) == 2
        assert after.layer == before.layer == 4
        assert descend(after).depth == 4


def test_a_basis_that_outgrows_the_memory_is_refused() -> None:
    layered = LayeredGrammar.of(find_grammar("r-G_L3"))
    graphs = [random_graph(9, 1), random_graph(9, 2)]
    with pytest.raises(DataError, match="engine='random_probes'"):
        close(layered, graphs, memory_limit=100_000)


@pytest.mark.parametrize(
    ("grammar", "readout", "message"),
    [
        ("GCN", None, "support C = .* applies inv"),
        ("MPNN-2", None, "support C_1 has no definition"),
        ("r-G_L3+D", None, "D, the squared distances .* leave out the rules that name it"),
        ("C = D + I; V → CV | 1", None, "D, the squared distances .* leave out the rules"),
        ("V → f(V) | 1", None, "V_c → f.V_c. applies f"),
        ("r-G_L3", "S → 1ᵀf(V)", "applies f"),
        ("r-G_L3", "V → AV", "no read-out"),
        ("r-G_L3", " ", "empty"),
        ("r-G_L3", "S → V_rV", "needs V_r"),
        ("four-rule", "1ᵀV", "needs V_c"),
    ],
)
def test_grammars_that_have_no_exact_value_are_refused(
    grammar: str, readout: str | None, message: str
) -> None:
    with pytest.raises(GrammarError, match=message):
        LayeredGrammar.of(find_grammar(grammar), readout)


def test_levels_need_their_variable() -> None:
    with pytest.raises(GrammarError, match=r"pair \(i, i\)"):
        LayeredGrammar.of(find_grammar("four-rule"), level="node")
    with pytest.raises(GrammarError, match="no M"):
        LayeredGrammar.of(find_grammar("r-G_L1"), level="pair")


def test_a_support_without_functions_is_evaluated() -> None:
    """C = A + I has the power of A with I: both see the number of edges."""
    grammar = find_grammar("V → CV | 1; C = A + I")
    graphs = [adjacency(nx.path_graph(4)), adjacency(nx.cycle_graph(4))]
    found = close(LayeredGrammar.of(grammar), graphs, BOTH).difference
    assert found is not None
    assert str(descend(found).term) == "1ᵀ(C1)"


@pytest.mark.parametrize(("layers", "width"), [(-1, 2), (3, 0)])
def test_senseless_schedules_are_refused(layers: int, width: int) -> None:
    with pytest.raises(DataError, match="expected 0 or more layers"):
        probe_graphs(find_grammar("r-G_L3"), ["A_"], layers, width=width)
