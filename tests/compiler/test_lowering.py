"""Every tensor op of the table, and every rule lowered by it, against the interpreter."""

from __future__ import annotations

from functools import cache
from itertools import product
from random import Random

import numpy as np
import pytest
import torch
from torch import Tensor

from cases import UNMARKED
from g2n2.compiler import lowering
from g2n2.compiler.lowering import FUSED, lower, sums_over_nodes
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.rules import Rule
from g2n2.language.evaluation import evaluate
from g2n2.language.operations import BINDERS, FUNCTIONS, OPERATIONS, POINTWISE
from g2n2.language.sorts import SORTS, M, R, S, Sort, V
from g2n2.language.terms import Hole, Leaf, Term, apply, call, fill, holes

SIZES, PLACES, CHANNELS = (4, 1, 6), 6, 3
SHAPES = {S: (), V: (PLACES,), R: (PLACES,), M: (PLACES, PLACES)}


def memory(sort: Sort, channels: int, draw: torch.Generator) -> Tensor:
    """Random values of one sort for graphs of `SIZES`, zero at the padding."""
    value = torch.randn(len(SIZES), *SHAPES[sort], channels, generator=draw, dtype=torch.float64)
    for graph, n in enumerate(SIZES):
        for axis in range(len(SHAPES[sort])):
            value[graph].narrow(axis, n, PLACES - n).zero_()
    return value


def constants(draw: torch.Generator) -> dict[str, Tensor]:
    """What rules may name, made apart from the network."""
    ones = torch.zeros(len(SIZES), PLACES, 1, dtype=torch.float64)
    identity = torch.zeros(len(SIZES), PLACES, PLACES, 1, dtype=torch.float64)
    hollow = torch.zeros_like(identity)
    for graph, n in enumerate(SIZES):
        ones[graph, :n] = 1.0
        identity[graph, :n, :n, 0] = torch.eye(n, dtype=torch.float64)
        hollow[graph, :n, :n, 0] = 1 - torch.eye(n, dtype=torch.float64)
    named = {"1": ones, "I": identity, "J": hollow, "A": memory(M, 1, draw)}
    return named | {f"C_{k}": memory(M, 1, draw) for k in (1, 2, 3)} | {"C": memory(M, 1, draw)}


def cut(value: Tensor, sort: Sort, graph: int, channel: int) -> np.ndarray:
    """One graph's value in one channel, as the interpreter shapes it."""
    n = SIZES[graph]
    entries = value[graph, ..., channel].numpy()
    if sort == S:
        return entries.reshape(1, 1)
    if sort == M:
        return entries[:n, :n]
    return entries[:n].reshape(n, 1) if sort == V else entries[:n].reshape(1, n)


def check(body: Term, compute: lowering.Lowered | None = None, seed: int = 0) -> None:
    """Compare a lowered body with the interpreter, and see that padding stays zero."""
    draw = torch.Generator().manual_seed(seed)
    named = constants(draw)
    operands = [memory(sort, CHANNELS, draw) for sort in holes(body)]
    got = (compute or lower(body))(operands, named)
    leaves: list[Term] = [Leaf(f"h{k}", sort) for k, sort in enumerate(holes(body))]
    term = fill(body, list(leaves))
    for graph, channel in product(range(len(SIZES)), range(got.shape[-1])):
        values = {
            f"h{k}": cut(operand, sort, graph, channel)
            for k, (operand, sort) in enumerate(zip(operands, holes(body), strict=True))
        }
        values |= {name: cut(named[name], M, graph, 0) for name in named if name.startswith("C")}
        expected = evaluate(
            term, cut(named["A"], M, graph, 0), values, {"f": lambda x: np.maximum(x, 0.0)}
        )
        np.testing.assert_allclose(
            cut(got, body.sort, graph, channel), expected, rtol=1e-12, atol=1e-12, err_msg=str(body)
        )
        n = SIZES[graph]
        away = got[graph, ..., channel].clone()
        if body.sort != S:
            away[(slice(0, n),) * len(SHAPES[body.sort])] = 0.0
            assert not away.any(), f"{body} writes into the padding"


@pytest.mark.parametrize(
    "text",
    [
        "V_c → Σv. v",
        "M → Σv. A⊙((Av)(Av)ᵀ)⊙(A·diag(Av)·A)",
        "M → Σv. diag(v)MM",
        "V_c → A(Σv. diag(v)V_c)",
        "S → Σu. Σv. (uᵀMv)(uᵀMv)",
    ],
)
def test_sums_over_marks_without_variables_inside(text: str) -> None:
    """A node of padding is no mark, and both marks of a sum in a sum run over all nodes."""
    check(Rule.parse(text).body)


TYPED = [
    (op.name, sorts)
    for op in OPERATIONS.values()
    if op.name not in (*POINTWISE, *BINDERS, "one")
    for sorts in product(SORTS, repeat=op.arity)
    if op.typed(*sorts) is not None
]


@pytest.mark.parametrize(("op", "sorts"), TYPED, ids=lambda x: x if isinstance(x, str) else "")
def test_every_operation_on_every_sort(op: str, sorts: tuple[Sort, ...]) -> None:
    check(apply(op, *(Hole(sort) for sort in sorts)))


def test_the_table_has_nothing_else() -> None:
    assert set(lowering.OPERATIONS) == set(TYPED)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_on_every_sort(function: str) -> None:
    """Those with f(0) ≠ 0, such as exp and cos, must not write into the padding."""
    for sort in SORTS:
        check(call(function, Hole(sort)))


@pytest.mark.parametrize("text", FUSED)
def test_fused_bodies(text: str) -> None:
    """A fused body computes what its operations one by one compute."""
    head = "M" if text in ("M⊙I", "V_c1ᵀ", "1V_cᵀ") else "V_c"
    body = Rule.parse(f"{head} → {text}").body
    assert lower(body) is FUSED[text]
    position = iter(range(len(holes(body))))
    check(body, lowering._lower(body, lambda: next(position)))
    check(body)


@pytest.mark.parametrize("name", UNMARKED)
def test_catalogue(name: str) -> None:
    grammar = UNMARKED[name]
    for rule in grammar.all_rules:
        check(rule.body)
    for _, definition in grammar.supports:
        check(definition)


@cache
def exhaustive_rules() -> dict[Rule, str]:
    """Every rule of the exhaustive grammars of all operations and of random sets of them."""
    draw = Random(0)
    names = [name for name in OPERATIONS if name not in BINDERS]
    fragments = [Fragment(names), Fragment("L1"), Fragment("L3"), Fragment("L3 + Tr")]
    fragments += [Fragment(draw.sample(names, draw.randint(1, 7))) for _ in range(60)]
    return {
        rule: f"{fragment} ({typing})"
        for fragment in fragments
        for typing in ("paper", "full")
        for rule in fragment.exhaustive(typing).all_rules  # type: ignore[arg-type]
    }


def test_exhaustive_grammars() -> None:
    rules = exhaustive_rules()
    assert len(rules) == len(TYPED) + len(SORTS) + len(("V → 1", "S → 1", "M → A"))
    for rule in rules:
        check(rule.body)


def test_operands_of_one_channel() -> None:
    """A constant has one channel and meets operands of several, on either side."""
    for text in ("MA", "AM", "MC_1", "AM⊙M", "J⊙M", "M + I"):
        check(Rule.parse(f"M → {text}").body)
    for text in ("AV_c", "M1", "diag(A1)V_c", "1⊙V_c", "(Aᵀ)V_c", "M(A1)"):
        check(Rule.parse(f"V_c → {text}").body)
    for text in ("V_rA", "1ᵀM", "(A1)ᵀM"):
        check(Rule.parse(f"V_r → {text}").body)


@pytest.mark.parametrize(
    ("rule", "sums"),
    [
        ("M → MM", 1),
        ("M → MMM", 2),
        ("M → M⊙M", 0),
        ("M → M⊙I", 0),
        ("M → diag(V_c)", 0),
        ("M → (V_c)(V_r)", 0),
        ("V_c → MV_c", 1),
        ("V_c → diag(V_c)V_c", 0),
        ("V_r → V_rM", 1),
        ("S → V_rV_c", 1),
        ("S → Tr(M)", 1),
        ("S → 1ᵀM1", 2),
    ],
)
def test_sums_over_nodes(rule: str, sums: int) -> None:
    assert sums_over_nodes(Rule.parse(rule).body) == sums
