"""Reductions of grammars with marks: what is found, what the checker refuses, what has no proof."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import networkx as nx
import pytest

from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.grammars.rules import Rule
from g2n2.graphs.families import cfi, rook_graph, shrikhande_graph
from g2n2.language.operations import Operation
from g2n2.language.registry import registered
from g2n2.pipeline import compare
from g2n2.power.random_probes import probe_graphs
from g2n2.power.separation import separate
from g2n2.reduction.certificates import certificate, digest
from g2n2.reduction.checker import check
from g2n2.reduction.explain import steps
from g2n2.reduction.marks import MarkedProof
from g2n2.reduction.reduce import Reduction, include, link, reduce

Json = dict[str, Any]


@cache
def reduction(fragment: str) -> Reduction:
    return reduce(Fragment(fragment).exhaustive())


@cache
def written(fragment: str) -> str:
    found = reduction(fragment)
    return json.dumps(certificate(found.original, found.reduced, found.links))


@pytest.mark.parametrize("fragment", ["L1Σ", "L3Σ", "L1ΣΣ"])
def test_the_reduced_grammar_is_found_and_certified(fragment: str) -> None:
    found = reduction(fragment)
    assert found.reduced.name == f"r-G_{fragment}"
    assert found.reduced == find_grammar(f"r-G_{fragment}")
    verdict = check(json.loads(written(fragment)))
    assert verdict.valid, verdict.failure
    assert verdict.cited == ()
    assert verdict.claims == ("equal power, symmetric A, graph level",)


@pytest.mark.parametrize("fragment", ["L1Σ", "L3Σ", "L1ΣΣ", "L3 Σ"])
def test_the_papers_order_has_no_marks_and_is_the_direct_one(fragment: str) -> None:
    by_rows = reduce(Fragment.parse(fragment).exhaustive(), order="paper")
    assert by_rows.links == reduce(Fragment.parse(fragment).exhaustive()).links
    assert len(by_rows.links) == 1


@pytest.mark.filterwarnings("error")
def test_scalars_may_be_multiplied_entry_by_entry() -> None:
    """Search and checker agree on what a product of sentences is: without · it is S⊙S."""
    found = reduction("1 diag Tr ⊙ mark_S")
    assert found.reduced == Grammar.parse(
        "S′ → Tr(M′) | (S′⊙S′); V′ → (V′⊙V′) | 1 | v; M′ → (M′⊙M′) | diag(V′) | A; S → Σv. S′"
    )
    assert check(json.loads(written("1 diag Tr ⊙ mark_S"))).valid


@pytest.mark.filterwarnings("error")
def test_rows_without_the_mark_need_not_be_rerooted() -> None:
    with registered(Operation("cs", "cs", "ab->1b")):
        found = reduce(Fragment("1 ⊙ × cs mark_S").exhaustive())
        assert found.reduced == Grammar.parse("V′ → (V′⊙V′) | 1 | v; S → Σv. cs(V′)")
        verdict = check(certificate(found.original, found.reduced, found.links))
    assert verdict.valid, verdict.failure


def test_the_steps_name_every_removed_rule_once() -> None:
    found = reduction("L3Σ")
    told = [rule for step in steps(found.links) for rule in step.removed]
    assert sorted(map(str, told)) == sorted(map(str, found.removed))
    identities = {text for step in steps(found.links) for text in step.identities}
    assert "1ᵀv0 = Σz. 1ᵀ(diag(v0)z)" in identities
    assert "v9ᵀ(m0v1) = (m0ᵀv9)ᵀv1" in identities, "a step of the re-rooting lemma"


@pytest.mark.parametrize(
    "rule", ["V′ → v", "V′ → M′V′", "M′ → M′⊙M′", "M′ → M′M′", "M′ → diag(V′)", "M′ → A"]
)
def test_no_rule_that_stays_has_a_proof_of_removal(rule: str) -> None:
    grammar = find_grammar("r-G_L3Σ")
    assert include(grammar, grammar - rule, "symmetric", "graph") is None


def test_products_between_two_pools_stay() -> None:
    grammar = find_grammar("r-G_L1ΣΣ")
    flat = Grammar.parse("V″ → diag(V″)V″ | AV″ | 1 | u | v; S → Σu. Σv. 1ᵀV″")
    for weaker in (grammar - "S′ → S′S′", flat):
        assert include(grammar, weaker, "symmetric", "graph") is None


def test_the_outer_mark_is_needed_where_sums_leave_it() -> None:
    grammar = find_grammar("r-G_L1ΣΣ")
    assert include(grammar - "V″ → u", grammar - "V″ → u", "symmetric", "graph") is None


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [("r-G_L1", "r-G_L1Σ"), ("r-G_L3", "r-G_L3Σ"), ("r-G_L1Σ", "r-G_L1ΣΣ"), ("r-G_L1Σ", "r-G_L3Σ")],
)
def test_marks_add_power_by_proof(smaller: str, larger: str) -> None:
    assert link(find_grammar(smaller), find_grammar(larger), "symmetric", "graph") is None
    proof = include(find_grammar(smaller), find_grammar(larger), "symmetric", "graph")
    assert proof is not None
    content = certificate(proof.claim.larger, proof.claim.smaller, [proof])
    verdict = check(content)
    assert verdict.valid, verdict.failure
    assert verdict.claims == ("no more power than the second, symmetric A, graph level",)


def test_compare_has_a_witness_for_the_rest() -> None:
    found = compare("r-G_L1", "r-G_L1Σ")
    assert found.relation == "⊊"
    assert found.backward.witness is not None
    assert found.backward.witness["names"] == ["C6", "2·C3"]


FULL = "L3 Σ"
"""Sums over the mark of scalars, columns and matrices."""


def test_sums_of_all_sorts_are_reduced_and_certified() -> None:
    found = reduction(FULL)
    assert (found.original.rule_count, len(found.reduced.all_rules)) == ("47 rules", 12)
    for rule in ("V_c → Σv. V_c′", "M → Σv. V_c′V_c′ᵀ", "M′ → M", "V_c′ → v", "S → 1ᵀV_c"):
        assert rule in map(str, found.reduced.all_rules)
    verdict = check(json.loads(written(FULL)))
    assert verdict.valid, verdict.failure
    assert (verdict.cited, verdict.claims) == ((), ("equal power, symmetric A, graph level",))
    told = [rule for step in steps(found.links) for rule in step.removed]
    assert sorted(map(str, told)) == sorted(map(str, found.removed))
    identities = {text for step in steps(found.links) for text in step.identities}
    assert {"1 = Σz. z", "m0 = Σz. diag(z)m0", "(Σz. m0)ᵀ = Σz. m0ᵀ"} <= identities


def test_the_reduced_grammar_of_full_marks_sees_what_the_exhaustive_one_sees() -> None:
    """By random words of both; 3-WL merges the first two pairs, and no test may split the last."""
    rook, tree = rook_graph(4), nx.to_numpy_array(nx.random_labeled_tree(9, seed=1))
    pairs = [(rook, shrikhande_graph()), cfi(nx.complete_graph(4)), (tree, tree[::-1, ::-1])]
    found = reduction(FULL)
    for grammar in (found.original, found.reduced):
        classes = [probe_graphs(grammar, pair, 9).graph_colours for pair in pairs]
        assert [first != second for first, second in classes] == [True, True, False]


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [(FULL, "L3Σ (full)"), ("L3Σ (full)", FULL), ("r-G_L3Σ", "L3Σ (full)"), ("r-G_L3Σ", FULL)],
)
def test_full_marks_include(larger: str, smaller: str) -> None:
    big, small = (
        Fragment(name).exhaustive() if name == FULL else find_grammar(name)
        for name in (larger, smaller)
    )
    proof = include(big, small, "symmetric", "graph")
    assert isinstance(proof, MarkedProof)
    assert check(certificate(big, small, [proof])).valid


@pytest.mark.parametrize(
    "lost",
    ["V_c → Σv. V_c′", "M → Σv. M′", "M → Σv. V_c′V_c′ᵀ", "V_c′ → V_c", "M′ → M", "V_c′ → v",
     "V_c′ → M′V_c′", "M′ → M′⊙M′", "M′ → M′M′", "M′ → diag(V_c′)", "M′ → A"],
)  # fmt: skip
def test_no_rule_of_full_marks_can_go_and_no_forged_proof_helps(lost: str) -> None:
    content = json.loads(written(FULL))
    rule = str(Rule.parse(lost))
    for part in (content, content["links"][0]):
        assert rule in part["to"]
        part["to"] = [text for text in part["to"] if text != rule]
    assert not check(sealed(content)).valid


@pytest.mark.parametrize(
    "added",
    ["M → V_cV_cᵀ", "M → 1V_cᵀ", "V_c′ → M′v", "S → 1ᵀV_c⊙1ᵀV_c", "V_r′ → vᵀ", "M → Σv. diag(V_c′)",
     "S → (1ᵀV_c)(1ᵀV_c)", "V_c → AV_c", "M′ → V_c′V_c′ᵀ"],
)  # fmt: skip
def test_rules_that_no_law_covers_are_refused(added: str) -> None:
    """Of the smaller grammar: not closed under ᵀ, the mark beside a variable, two sentences …"""
    content = json.loads(written(FULL))
    (only,) = content["links"]
    only["kind"] = "marked inclusion"
    del only["converse"]
    assert check(sealed(content)).valid, "one direction by itself"
    for part in (content, only):
        part["to"] = [*part["to"], str(Rule.parse(added))]
    assert not check(sealed(content)).valid


def test_every_law_of_full_marks_edited_is_refused() -> None:
    count = len(json.loads(written(FULL))["links"][0]["proof"]["laws"])
    assert count > 20
    names = list(EDITS)
    for number in range(count):
        for name in (names[number % len(names)], names[(number + 5) % len(names)]):
            content = json.loads(written(FULL))
            laws = content["links"][0]["proof"]["laws"]
            shown = str(laws[number])
            EDITS[name](laws, number)
            assert not check(sealed(content)).valid, f"{name}: {shown}"


def sealed(content: Json) -> Json:
    return {**content, "digest": digest(content)}


def entries(content: Json) -> Iterator[tuple[list[Json], int]]:
    """Every obligation of a certificate: its list and its place there."""
    for direction in ("proof", "converse"):
        proof = content["links"][0][direction]
        for listed in (proof["inside"]["obligations"], proof["laws"]):
            yield from ((listed, i) for i in range(len(listed)))


Edit = Callable[[list[Json], int], object]
EDITS: dict[str, Edit] = {
    "left out": lambda listed, i: listed.pop(i),
    "twice": lambda listed, i: listed.append(listed[i]),
    "kind": lambda listed, i: listed[i].update(
        kind="sum" if listed[i]["kind"] != "sum" else "merge"
    ),
    "rule": lambda listed, i: listed[i].update(rule="V_c → A1"),
    "choice": lambda listed, i: listed[i].update(choice=[*listed[i]["choice"], "0"]),
    "term": lambda listed, i: listed[i].update(term=f"2×({listed[i]['term']})"),
    "one more factor": lambda listed, i: listed[i]["factors"].append("1ᵀ(A1)"),
    "one more word": lambda listed, i: listed[i]["words"].append("v0"),
    "no such word": lambda listed, i: listed[i].update(
        words=["A" if w != "A" else "J" for w in listed[i]["words"]] or ["A"]
    ),
    "bijection": lambda listed, i: listed[i].update(bijection=[*listed[i]["bijection"], 0]),
    "bijection repeats": lambda listed, i: listed[i].update(
        bijection=[0] * max(2, len(listed[i]["bijection"]))
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_every_obligation_edited_is_refused(edit: str) -> None:
    """With the digest made to fit, in all obligations of both directions."""
    count = sum(1 for _ in entries(json.loads(written("L1ΣΣ"))))
    assert count > 30
    for number in range(count):
        content = json.loads(written("L1ΣΣ"))
        listed, i = list(entries(content))[number]
        shown = str(listed[i])
        EDITS[edit](listed, i)
        assert not check(sealed(content)).valid, f"{edit}: {shown}"


@pytest.mark.parametrize(
    ("place", "new"),
    [
        (("links", 0, "kind"), "simulation"),
        (("links", 0, "kind"), "marked inclusion"),
        (("links", 0, "status"), "cited"),
        (("links", 0, "assume"), "none"),
        (("links", 0, "level"), "node"),
        (("links", 0, "proof", "inside", "form"), "exact"),
        (("links", 0, "proof", "inside", "form"), "diagonal"),
        (("links", 0, "proof", "inside", "transpose_lemma"), False),
        (("links", 0, "proof", "laws"), []),
        (("links", 0, "converse", "laws"), []),
        (("to",), ["V_c′ → AV_c′", "V_c′ → 1", "V_c′ → v", "S → Σv. 1ᵀV_c′"]),
    ],
)
def test_other_fields_edited_are_refused(place: tuple[str | int, ...], new: Any) -> None:
    content = json.loads(written("L3Σ"))
    at: Any = content
    for key in place[:-1]:
        at = at[key]
    assert at[place[-1]] != new
    at[place[-1]] = new
    assert not check(content).valid, "the digest tells"
    assert not check(sealed(content)).valid


@pytest.mark.parametrize("end", ["from", "to"])
@pytest.mark.parametrize(
    "rules",
    [
        lambda rules: [*rules, "V_c → Σv. V_c′"],  # a sum of columns
        lambda rules: [*rules, "S → Σu. 1ᵀV_c′"],  # another name for the mark
        lambda rules: [*rules, "V_c′ → w"],  # a mark that is none
        lambda rules: [*rules, "S → 1ᵀV_c′"],  # a variable outside its mark
        lambda rules: [r for r in rules if r != "V_c′ → v"],
        lambda rules: [r for r in rules if r != "M′ → M′M′"],
    ],
)
def test_other_grammars_are_refused(end: str, rules: Callable[[list[str]], list[str]]) -> None:
    content = json.loads(written("L3Σ"))
    for part in (content, content["links"][0]):
        part[end] = rules(part[end])
    assert not check(sealed(content)).valid


def test_the_laws_of_one_grammar_do_not_serve_another() -> None:
    """The proof of one mark with the rules of two: the outer mark has no rule inside."""
    content, other = json.loads(written("L1ΣΣ")), json.loads(written("L1Σ"))
    content["links"][0]["proof"] = other["links"][0]["proof"]
    assert not check(sealed(content)).valid


FEW = "V′ → A1 | diag(v)V′ | v | 1"
"""Inside the mark: degrees, which only products of scalars bring together."""
PRODUCTS = Grammar.parse(f"S → Σv. S′; S′ → S′S′ | 1ᵀV′ | 1ᵀ1; {FEW}")
OTHER_SCALARS = Grammar.parse(f"S → Σv. 1ᵀV′ | Σv. S′S′ | Σv. 1ᵀ1; S′ → 1ᵀ1; {FEW}")
"""It sums products too, but of another scalar than those it sums."""


def test_products_that_are_summed_are_not_products_of_all_that_is_summed() -> None:
    """The degrees of K1,3 and P4 have equal sums, and their squares do not."""
    assert separate(PRODUCTS, "K1,3", "P4").different
    assert not separate(OTHER_SCALARS, "K1,3", "P4").different
    assert include(PRODUCTS, OTHER_SCALARS, "symmetric", "graph") is None
    assert compare(PRODUCTS, OTHER_SCALARS).relation == "⊋"
    itself = link(PRODUCTS, PRODUCTS, "symmetric", "graph")
    assert itself is not None
    content = certificate(PRODUCTS, PRODUCTS, [itself])
    assert check(content).valid
    for part in (content, content["links"][0]):
        part["to"] = [str(rule) for rule in OTHER_SCALARS.all_rules]
    assert not check(sealed(content)).valid


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        (  # a sentence that names the mark
            "S → Σv. vᵀAV′; V′ → AV′ | diag(V′)V′ | v | 1",
            "S → Σv. 1ᵀV′ | Σv. vᵀV′; V′ → AV′ | diag(V′)V′ | v | 1",
        ),
        (  # a scalar that is not summed
            "S → Σv. 1ᵀV′; S′ → 1ᵀV′ | 1ᵀv; V′ → V | diag(v)V′ | 1 | V′⊙V′; V → 1",
            "S → Σv. 1ᵀV′; S′ → 1ᵀV′ | 1ᵀv; V′ → V | diag(v)V′ | 1 | V′⊙V′; V → 1 | A1",
        ),
        ("S → Σv. S | 1ᵀV; V → AV | 1", "S → Σv. S′ | 1ᵀV; S′ → S; V → AV | 1"),  # lifted first
        ("S → 1ᵀV; V → AV | 1; V′ → v", "S → 1ᵀV; V → AV | 1; V′ → v | diag(v)V′"),  # not summed
    ],
)
def test_unusual_sums_are_compared(larger: str, smaller: str) -> None:
    assert compare(Grammar.parse(larger), Grammar.parse(smaller)).forward.status == "proved"


def test_sentences_that_name_the_mark_are_not_read_outside_it() -> None:
    text = "V′ → V′⊙V′ | 1; S′ → 1ᵀv | V′ᵀV′; S → 1ᵀV | Σv. vᵀV′ | Σv. S′S′; V → AV | 1; "
    text += "M → MM | diag(V) | M⊙M | Σv. V′V′ᵀ"
    grammar = Grammar.parse(text)
    assert reduce(grammar).reduced == grammar
