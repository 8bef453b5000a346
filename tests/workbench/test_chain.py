"""The proof the page draws: the paper's rules, and graphs that really are isomorphic."""

from collections import Counter

import pytest

from g2n2.workbench import views
from g2n2.workbench.chain import derive_chain
from g2n2.workbench.languages import read_language
from g2n2.workbench.network import plan


def quiet(share, text):
    """No progress."""


def chain_of(text):
    return derive_chain(read_language(text).grammar, quiet)


@pytest.fixture(scope="module")
def l3():
    return chain_of("L3")


def test_l3_is_the_papers_reduction(l3):
    assert len(l3.exhaustive.all_rules) == 19
    kept = ["V_c → MV_c", "V_c → 1", "M → (M⊙M)", "M → MM", "M → diag(V_c)", "M → A"]
    assert sorted(map(str, l3.reduced.rules)) == sorted(kept)
    assert [str(rule) for rule in l3.added] == ["S → 1ᵀV_c"]
    assert len(l3.removals) == 13 == len(l3.after(13))
    assert l3.checked == f"checked independently: {len(l3.cases)} obligations hold"
    assert (l3.shown_step(-1), l3.shown_step(0), l3.shown_step(99)) == (1, 0, 13)


@pytest.mark.parametrize("text", ["L1", "L3", "2-IGN", "TriMul", "· ᵀ 1 ⊙ Tr + f"])
def test_every_drawn_bijection_is_an_isomorphism(text):
    chain = chain_of(text)
    assert chain.cases
    for case in chain.cases:
        assert sorted(case.bijection) == list(range(case.right.vertices))
        moved = Counter(_edge(edge, case.bijection) for edge in case.left.edges)
        assert moved == Counter(_edge(edge, range(99)) for edge in case.right.edges)
        assert tuple(case.bijection[v] for v in case.left.boundary) == case.right.boundary


def test_every_removed_rule_inside_a_mark_has_its_obligation():
    chain = chain_of("L3Σ")
    inside = [r for r in chain.removals if r.rule.head.scope and r.step.title != "outside"]
    assert len(inside) > 10
    for removal in inside:
        assert {case.rule for case in removal.cases} == {str(removal.rule)}
    shown = views.proof(chain, [str(r.rule) for r in chain.removals].index("V_c → 1") + 1, 0)
    assert "No sentence uses this rule" not in shown
    assert "Σ<i>z</i>" in shown, "the law that brings words from outside into the sum"


def _edge(edge, place):
    ends = tuple(place[v] for v in edge.ends)
    return edge.label, tuple(sorted(ends)) if edge.symmetric else ends


def test_shares_add_up(l3):
    made = plan(l3.reduced, nodes=17, width=24, layers=3)
    for part in ("parameters", "flops", "activations"):
        total = sum(getattr(share.cost, part) for share in made.shares)
        assert total == getattr(made.total, part)
    assert {share.rule for share in made.shares if share.rule} == {
        str(rule) for rule in l3.reduced.rules if rule.holes
    }
    assert set(made.selectors) == {share.rule for share in made.shares if share.rule}
