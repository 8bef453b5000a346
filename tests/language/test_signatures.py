"""Signatures: what is read, what is refused, and everything that follows, against plain loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random

import numpy as np
import pytest
import torch

from g2n2.compiler import lowering
from g2n2.errors import G2N2Error, GrammarError, ParseError, SortError
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.registry import register
from g2n2.language.evaluation import PRIME, _Float, evaluate, evaluate_mod
from g2n2.language.modular import PRIMES
from g2n2.language.operations import BUILT_IN, OPERATIONS, Operation
from g2n2.language.parsing import parse
from g2n2.language.patterns import equal, normal_form
from g2n2.language.printing import to_ascii, to_latex, to_text
from g2n2.language.signatures import Signature
from g2n2.language.sorts import SORTS, M, R, S, Sort, V
from g2n2.language.terms import Hole, Leaf, apply
from g2n2.power.word_memory import Stack
from g2n2.reduction.checker_patterns import SIGNATURES, SlotGraph
from g2n2.testing import registered

NAMED = [
    "ab,ab->11", "ab,cb->ac", "a1,b1->ab", "->aa", "->ab", "->1a", "->11", "ab->aa", "aa->aa",
    "ab->11", "ab->b1", "ab,bc,cd->ad", "1a->aa", "ab->1b", "aa->a1", "ab->a1", "ab,bc,ca->ab",
    "ab->ac", "ab->cd", "a1,a1,b1->ab", "ab,ab,ab->ba", "11,1a->aa", "ab,cd->ad", "aa,bb->ab",
]  # fmt: skip


def random_signature(rng: Random) -> str:
    """Up to three operands with two axes each; the output may hold letters of its own."""
    letters = "abcd"[: rng.randint(1, 4)] + "1"
    inputs = [rng.choice(letters) + rng.choice(letters) for _ in range(rng.randint(0, 3))]
    return ",".join(inputs) + "->" + rng.choice(letters) + rng.choice(letters)


SIGNATURES_TRIED = [*NAMED, *(random_signature(Random(seed)) for seed in range(60))]


def typed_on(signature: str) -> list[tuple[tuple[Sort, ...], Sort]]:
    """All operands it takes and what it makes of them, letter by letter."""
    inputs, output = halves(signature)
    letters = sorted({*"".join(inputs)} - {"1"})
    found = []
    for sizes in product("1n", repeat=len(letters)):
        size = {"1": "1", **dict(zip(letters, sizes, strict=True))}
        sorts = tuple(Sort(tuple(size[x] for x in axes)) for axes in inputs)
        found.append((sorts, Sort(tuple(size.get(x, "n") for x in output))))
    return found


def halves(signature: str) -> tuple[list[str], str]:
    left, output = signature.split("->")
    return (left.split(",") if left else []), output


def by_loops(signature: str, values: Sequence[np.ndarray], n: int) -> np.ndarray:
    """Every assignment of indices to letters, one product each."""
    inputs, output = halves(signature)
    size = {"1": 1}
    for axes, value in zip(inputs, values, strict=True):
        size.update(zip(axes, value.shape, strict=True))
    letters = sorted({*"".join(inputs), *output} - {"1"})
    result = np.zeros([size.get(x, n) for x in output], dtype=object)
    for indices in product(*(range(size.get(x, n)) for x in letters)):
        at = {"1": 0, **dict(zip(letters, indices, strict=True))}
        term = 1
        for axes, value in zip(inputs, values, strict=True):
            term *= int(value[tuple(at[x] for x in axes)])
        result[tuple(at[x] for x in output)] += term
    return result


def numbers(sort: Sort, n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(-3, 4, [n if axis == "n" else 1 for axis in sort.axes])


@pytest.mark.parametrize("signature", SIGNATURES_TRIED)
def test_values_patterns_tensors_and_residues_follow_a_signature(signature: str) -> None:
    rng = np.random.default_rng(7)
    with registered(Operation("zz", "zz", signature)):
        for sorts, result in typed_on(signature):
            assert OPERATIONS["zz"].typed(*sorts) == result
            leaves = [Leaf(f"h{i}", sort) for i, sort in enumerate(sorts)]
            term = apply("zz", *leaves)
            for n in (1, 3):
                values = {f"h{i}": numbers(sort, n, rng) for i, sort in enumerate(sorts)}
                wanted = by_loops(signature, list(values.values()), n)
                graph = np.zeros((n, n))
                assert (evaluate(term, graph, values) == wanted).all()
                assert (evaluate_mod(term, graph, variables=values) == wanted % PRIME).all()
                tensors_agree(sorts, wanted, list(values.values()), n)
                residues_agree(sorts, wanted, list(values.values()), n)
        others = set(product(SORTS, repeat=OPERATIONS["zz"].arity))
        for sorts in others - {sorts for sorts, _ in typed_on(signature)}:
            assert OPERATIONS["zz"].typed(*sorts) is None


def tensors_agree(
    sorts: Sequence[Sort], wanted: np.ndarray, values: list[np.ndarray], n: int
) -> None:
    """Two graphs of a batch, the second one all zeros but for a node, with two places of padding."""
    body = apply("zz", *map(Hole, sorts))
    ones = torch.zeros(2, n + 2, 1, dtype=torch.float64)
    ones[0, :n], ones[1, :1] = 1.0, 1.0
    operands = []
    for sort, value in zip(sorts, values, strict=True):
        memory = torch.zeros(2, *(n + 2,) * sort.boundary, 3, dtype=torch.float64)
        kept = torch.tensor(value, dtype=torch.float64).reshape(*(n,) * sort.boundary, 1)
        memory[(0, *(slice(0, n),) * sort.boundary)] = kept
        operands.append(memory.requires_grad_())
    got = lowering.lower(body)(operands, {"1": ones}).expand(
        2, *(n + 2,) * body.sort.boundary, 3 if sorts else 1
    )
    inside = (0, *(slice(0, n),) * body.sort.boundary)
    flat = wanted.astype(float).reshape((n,) * body.sort.boundary)
    for channel in range(got.shape[-1]):
        np.testing.assert_array_equal(got[inside][..., channel].detach().numpy(), flat)
    away = got.detach().clone()
    away[inside] = 0.0
    assert not away[0].any(), "written into the padding"
    if sorts:
        got.sum().backward()
        assert all(operand.grad is not None for operand in operands)


def residues_agree(
    sorts: Sequence[Sort], wanted: np.ndarray, values: list[np.ndarray], n: int
) -> None:
    """Values modulo a prime, and every pull-back by adjointness: ⟨d, F(x)⟩ = ⟨F*(d), x⟩."""
    prime = PRIMES[0]
    stack = Stack([np.zeros((n, n))] * 2, (), prime)
    body = apply("zz", *map(Hole, sorts))
    arguments = [
        np.broadcast_to(np.remainder(v, prime).astype(float), (1, 2, *v.shape)) for v in values
    ]
    got = stack.values(body, arguments)
    assert got.shape == (1, *stack.shape(body.sort))
    assert (got == (wanted % prime).astype(float)).all()
    rng = np.random.default_rng(3)
    dual = rng.integers(0, prime, (1, *stack.shape(body.sort))).astype(float)

    def paired(a: np.ndarray, b: np.ndarray) -> int:
        return sum(int(x) * int(y) for x, y in zip(a.ravel(), b.ravel(), strict=True)) % prime

    for target, sort in enumerate(sorts):
        pulled = stack.pull_back(body, arguments, dual, target, ())
        assert pulled.shape == (1, *stack.shape(sort))
        assert paired(pulled, arguments[target]) == paired(dual, got)


@pytest.mark.parametrize("seed", range(12))
def test_terms_are_equal_exactly_if_their_values_are(seed: int) -> None:
    """Random terms over two random operations and built-in ones, on random integer matrices."""
    rng = Random(seed)
    draw = np.random.default_rng(seed)
    made = [Operation(f"z{k}z", f"z{k}z", random_signature(rng)) for k in range(2)]
    with registered(*made):
        words = {sort: [leaf] for sort, leaf in FREE.items()}
        names = ["z0z", "z1z", "matmul", "hadamard", "transpose", "diag", "trace"]
        for _ in range(150):
            operation = OPERATIONS[rng.choice(names)]
            sorts = [rng.choice(SORTS) for _ in range(operation.arity)]
            if (result := operation.typed(*sorts)) is not None:
                term = apply(operation.name, *(rng.choice(words[sort]) for sort in sorts))
                if term.size < 12:
                    words[result].append(term)
        for sort, terms in words.items():
            chosen = terms[:25]
            inputs = [
                (n, {leaf.name: numbers(leaf.sort, n, draw) for leaf in FREE.values()})
                for n in (2, 3, 3)
            ]
            values = {
                term: tuple(
                    tuple(evaluate_mod(term, np.zeros((n, n)), variables=given).ravel())
                    for n, given in inputs
                )
                for term in chosen
            }
            for a, b in product(chosen, repeat=2):
                assert equal(a, b, "none") == (values[a] == values[b]), f"{a} and {b}, {sort}"


FREE = {S: Leaf("s", S), V: Leaf("v", V), R: Leaf("r", R), M: Leaf("M", M)}


@pytest.mark.parametrize("name", [n for n in BUILT_IN if OPERATIONS[n].multilinear and n != "one"])
def test_short_ways_of_built_in_operations_are_their_signatures(name: str) -> None:
    """The interpreter's, and the tensor table's, against the general ones."""
    rng = np.random.default_rng(1)
    operation = OPERATIONS[name]
    interpreter = _Float(np.zeros((3, 3)), None, None)
    for sorts in product(SORTS, repeat=operation.arity):
        if operation.typed(*sorts) is None:
            continue
        values = [numbers(sort, 3, rng).astype(float) for sort in sorts]
        general = interpreter.interpreted(operation.signature, values)
        np.testing.assert_array_equal(interpreter.operation(name, values), general)
        memories = [torch.randn(2, *(3,) * sort.boundary, 4) for sort in sorts]
        fast = lowering.OPERATIONS[name, sorts](*memories)
        slow = lowering.contraction(name, sorts)(*memories, torch.ones(2, 3, 1))
        torch.testing.assert_close(fast, slow)


def test_the_checker_has_the_same_built_in_signatures() -> None:
    multilinear = {n: OPERATIONS[n].signature for n in BUILT_IN if OPERATIONS[n].multilinear}
    assert multilinear == {**SIGNATURES, "one": "->a1"}


@pytest.mark.parametrize("signature", SIGNATURES_TRIED[::3])
def test_the_checker_glues_as_patterns_do(signature: str) -> None:
    with registered(Operation("zz", "zz", signature)):
        for sorts, _ in typed_on(signature):
            term = apply("zz", *(Leaf(f"m{i}", sort) for i, sort in enumerate(sorts)))
            ((pattern, _),) = normal_form(term, "none").items()
            graph = SlotGraph("none", {"zz": OPERATIONS["zz"].signature})
            graph.boundary = graph.build(term)
            assert len(graph.vertices()) == pattern.vertices
            place = {
                graph.find(b): v for b, v in zip(graph.boundary, pattern.boundary, strict=True)
            }
            assert [place[graph.find(b)] for b in graph.boundary] == list(pattern.boundary)
            assert len(graph.edges) == len(pattern.edges)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("aa->a", "a column is a1"),
        ("ab", "one arrow"),
        ("ab->a1->a1", "one arrow"),
        ("a2->a1", "'2' is no axis"),
        ("a,b->ab", "'a' has 1 axes"),
        ("ab,->ab", "'' has 0 axes"),
        ("->", "'' has 0 axes"),
        ("ab..->ab", "is no axis"),
        (7, "a signature is text"),
    ],
)
def test_malformed_signatures(signature: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        Operation("zz", "zz", signature)


def test_letters_have_no_names_of_their_own() -> None:
    assert str(Signature.parse(" xy , yz → xz ")) == "ab,bc->ac"
    with registered(Operation("zz", "zz", "xy->x1")):
        assert register(Operation("zz", "zz", "ab->a1")) is OPERATIONS["zz"]


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("M", "M"), ("uv", "uv"), ("V_c", "V_c"), ("m0", "m0"), ("x", "x"), ("1", "1"), ("", ""),
        ("2x", "2x"), ("relu", "relu"), ("f", "f"), ("L3", "L3"), ("sum", "sum"), ("T", "T"),
        ("a b", "a b"), ("ok", "·"), ("ok", "ᵀ"), ("ok", "a|b"), ("ok", "Σ("), ("diag", "diag"),
        ("matmul", "matmul"), ("Mdiag", "Mdiag"), ("one", "one"), ("ok", "x²"), ("ok", "→"),
    ],
)  # fmt: skip
def test_names_that_cannot_be_told_from_other_text(name: str, symbol: str) -> None:
    before = dict(OPERATIONS)
    with pytest.raises(GrammarError):
        register(Operation(name, symbol, "aa->a1"))
    assert before == OPERATIONS


def test_a_name_is_taken_once() -> None:
    with registered(Operation("dg", "dg", "aa->a1")):
        register(Operation("dg", "dg", "aa->a1", aliases=("diagonal",)))
        assert parse("diagonal(A)") == parse("dg(A)")
        with pytest.raises(GrammarError, match="taken by dg 'aa->a1'"):
            register(Operation("dg", "dg", "ab->a1"))
        with pytest.raises(GrammarError, match="already the name of dg"):
            register(Operation("other", "dg", "ab->a1"))
        with pytest.raises(GrammarError, match="would also read as A·dg"):
            register(Operation("Adg", "Adg", "ab->a1"))
        with pytest.raises(GrammarError, match="built-in operations"):
            register(Operation("plus2", "plus2", "ab,ab->ab", kind="sum"))
    assert "dg" not in OPERATIONS
    with pytest.raises(ParseError, match=r"register.*--plugin"):
        parse("dg(A)")
    with pytest.raises(GrammarError, match=r"unknown operation 'dg'.*--plugin"):
        Fragment("· dg")


@pytest.mark.parametrize(
    "text", ["1ᵀdg(A²)", "△(A, Aᵀ, A⊙A)", "dg(A)dg(A)ᵀ", "e()A", "2×△(A, e(), A)"]
)
def test_printed_calls_read_back(text: str) -> None:
    with registered(
        Operation("dg", "dg", "aa->a1"),
        Operation("tri", "△", "ab,bc,ca->ab"),
        Operation("e", "e", "->aa"),
    ):
        term = parse(text)
        assert to_text(term) == text
        assert parse(to_text(term)) == parse(to_ascii(term)) == term
        assert to_ascii(term).isascii()
        assert to_latex(term).isascii()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("tri(A, A)", ParseError, "tri takes 3 operands, got 2"),
        ("tri(A, A, A, A)", ParseError, "takes 3 operands, and here is one more"),
        ("dg(A, A)", ParseError, "takes 1 operand, and here is one more"),
        ("dg(1)", SortError, "its signature is aa->a1"),
        ("e(A)", SortError, "takes 0 operands"),
        ("dg()", ParseError, "where a term should be"),
        ("dg(A", ParseError, "never closed"),
    ],
)
def test_wrong_calls(text: str, error: type[Exception], message: str) -> None:
    with (
        registered(
            Operation("dg", "dg", "aa->a1"),
            Operation("tri", "tri", "ab,bc,ca->ab"),
            Operation("e", "e", "->aa"),
        ),
        pytest.raises(error, match=message),
    ):
        parse(text)


def test_tensors_of_order_three() -> None:
    """They stand inside terms and bodies; a grammar has no variable for them, and says so."""
    made = Operation("join", "join", "ab,bc->abc"), Operation("middle", "middle", "abc->ac")
    with registered(*made):
        assert equal(parse("middle(join(A, A))"), parse("A²"))
        assert parse("join(A, A)").sort == Sort(("n", "n", "n"))
        value = evaluate(parse("join(A, A)"), "C~")
        assert (value == np.einsum("ab,bc->abc", *[1 - np.eye(4)] * 2)).all()
        body = Grammar.parse("M → middle(join(M, M)) | A").rules[0].body
        memory = torch.randn(2, 3, 3, 4, dtype=torch.float64)
        got = lowering.lower(body)([memory, memory], {"1": torch.ones(2, 3, 1)})
        torch.testing.assert_close(got, torch.einsum("bikc,bkjc->bijc", memory, memory))
        for fragment in ("· join", "· middle"):
            with pytest.raises(GrammarError, match=r"(join|middle) .*order 3"):
                Fragment(fragment).exhaustive()
        with pytest.raises(G2N2Error, match="order 3"):
            parse("relu(join(A, A))")
        with pytest.raises(SortError, match="order 3"):
            parse("join(A, A)A")
