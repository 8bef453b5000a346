"""choose_grammar: a name, rules, files, certificates, derivations, fragments and a pipe."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from g2n2.errors import GrammarError, ReductionError
from g2n2.grammars.catalogue import find_grammar
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.pipeline import FragmentWarning, choose_grammar, derive, network_grammar
from g2n2.reduction.certificates import certificate, digest
from g2n2.reduction.compare import compare as prove_comparison

TRACE = Grammar.parse("M → MM | A; S → Tr(M)")
DERIVED = derive("· Tr", witnesses=False)


def chosen(text: str, **options: bool) -> Grammar:
    return choose_grammar(text, **{"reduce": True, **options}).grammar


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("r-G_L3", "r-G_L3"),
        ("g2n2", "r-G_L3"),
        ("r-G_{·, Tr}", "r-G_{·, Tr}"),
        ("r-G_{matmul,trace}", "r-G_{·, Tr}"),
        ("G_{·,Tr}", "G_{·, Tr}"),
        ("· Tr", "r-G_{·, Tr}"),
        ("L3", "r-G_L3"),
        ("L1", "r-G_L1"),
        ("V → AV | 1", "{V_c → AV_c | 1}"),
        (" {V → AV | 1} ", "{V_c → AV_c | 1}"),
        ("{V_c → AV_c | 1; S → V_cᵀV_c}", "{V_c → AV_c | 1; S → V_cᵀV_c}"),
        ("r-G_{·, Tr} ∪ {M → Mᵀ}", "r-G_{·, Tr} ∪ {Mᵀ}"),
    ],
)
def test_what_a_text_stands_for_where_a_network_is_built(text: str, name: str) -> None:
    assert chosen(text).name == name


def test_a_fragment_is_reduced_or_exhaustive_as_is_asked_and_says_so() -> None:
    reduced = choose_grammar("· Tr", reduce=True)
    assert reduced.grammar == TRACE
    assert reduced.other == Fragment("· Tr").exhaustive()
    assert (
        "r-G_{·, Tr} with 2 rules and 1 read-out rule; exhaustive is G_{·, Tr} with 5 rules"
        in reduced.note
    )
    for options in ({"reduce": False}, {"reduce": True, "exhaustive": True}):
        other = choose_grammar("· Tr", **options)
        assert other.grammar == Fragment("· Tr").exhaustive()
        assert "exhaustive grammar, G_{·, Tr} with 5 rules" in other.note
    assert "no rule of it can be removed" in choose_grammar("·", reduce=True).note
    assert choose_grammar("r-G_L3", reduce=True).note == ""


@pytest.mark.parametrize("fragment", ["L1", "L3"])
def test_the_papers_reductions_need_no_derivation(fragment: str) -> None:
    assert chosen(fragment) == derive(fragment, witnesses=False).reduced


def test_a_network_of_a_fragment_warns() -> None:
    with pytest.warns(FragmentWarning, match="the other is called G_{·, Tr}"):
        assert network_grammar("· Tr") == TRACE


def test_a_model_of_a_fragment_says_both_numbers_of_weights() -> None:
    pytest.importorskip("torch")
    from g2n2 import compile as build
    from g2n2.nn.model import GrammarGNN

    with pytest.warns(FragmentWarning) as caught:
        small = GrammarGNN("· Tr", width=2)
    large = GrammarGNN("G_{·, Tr}", width=2)
    assert small.plan.grammar == TRACE
    assert large.plan.grammar == Fragment("· Tr").exhaustive()
    said = str(caught[0].message)
    assert f"{small.parameter_count:,} weights" in said
    assert f"would have {large.parameter_count:,}" in said
    with pytest.warns(FragmentWarning):
        assert build("· Tr", width=2).plan.grammar == TRACE


def test_python_takes_certificates_and_wl_tests_too(tmp_path: Path) -> None:
    from g2n2 import power, separate

    file = tmp_path / "mine.json"
    file.write_text(CONTENTS["certificate"], encoding="utf-8")
    assert separate(str(file), "EhEG", "EJaG").different
    table = power(["3-WL", str(file)], suite="cfi")
    assert [(row.grammar, row.separated) for row in table] == [("3-WL", 3), ("r-G_{·, Tr}", 1)]


CONTENTS = {
    "certificate": json.dumps(DERIVED.certificate),
    "derivation": json.dumps(DERIVED.to_json()),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=list(CONTENTS))
def test_files_and_pipes_hold_certificates_or_derivations(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "derived.json"
    file.write_text(content, encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO(content))
    for text in (str(file), "-"):
        found = choose_grammar(text, reduce=False)
        assert found.grammar == TRACE
        assert found.grammar.name == "r-G_{·, Tr}"
        assert found.note.endswith("r-G_{·, Tr} with 2 rules and 1 read-out rule")
    assert chosen(str(file), exhaustive=True) == Fragment("· Tr").exhaustive()


def test_a_pipe_may_hold_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("V → AV | 1\n"))
    assert chosen("-") == Grammar.parse("V → AV | 1")
    monkeypatch.setattr("sys.stdin", io.StringIO("V → AV | 1\n"))
    assert chosen("-").name == "{V_c → AV_c | 1}"


def test_the_name_that_stands_for_rules_is_read_as_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = Grammar.parse("V → AV | 1")
    file = tmp_path / "mine.txt"
    file.write_text(f"{rules.in_short}\n", encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO(rules.in_short))
    for text in (rules.in_short, str(file), "-"):
        assert chosen(text) == rules
    assert find_grammar(str(file)) == rules
    assert find_grammar(rules.in_short).name == rules.in_short
    long = Grammar.parse("V → MV | 1; M → M⊙M | MM | diag(V) | A").in_short
    with pytest.raises(GrammarError, match="ends in …, where the name of a grammar leaves out"):
        find_grammar(long)
    for text in ("{V → AV | 1", "{{V → AV | 1}}", "{V → AV} | 1"):
        with pytest.raises(GrammarError):
            find_grammar(text)


def test_a_certificate_of_other_grammars_is_named_after_its_file(tmp_path: Path) -> None:
    reduction = find_grammar("i-G_L3").reduce()
    file = tmp_path / "mine.json"
    content = certificate(reduction.original, reduction.reduced, reduction.links)
    file.write_text(json.dumps(content), encoding="utf-8")
    found = chosen(str(file))
    assert found == find_grammar("r-G_L3")
    assert found.name == "r-mine"


def tampered(**changes: object) -> str:
    content = {**DERIVED.certificate, **changes}
    return json.dumps({**content, "digest": digest(content)})


BAD = [
    ("", GrammarError, "is empty; pipe a derivation in"),
    ("  \n", GrammarError, "is empty"),
    ('{"a": ', GrammarError, "is not JSON"),
    ("[1, 2]", GrammarError, "holds neither a certificate"),
    ('{"format": "g2n2 certificate 0"}', GrammarError, "holds neither a certificate"),
    ('{"certificate": 3}', GrammarError, "holds neither a certificate"),
    ("[" * 100_000, GrammarError, "is not JSON"),
    (tampered(to=["M → A", "S → Tr(M)"]), ReductionError, "the checker refuses"),
    (tampered(links=[]), ReductionError, "the checker refuses"),
    (tampered(links=3), ReductionError, "the checker refuses"),
    (json.dumps({**DERIVED.certificate, "digest": "sha256:0"}), ReductionError, "refuses"),
    (
        json.dumps({**DERIVED.to_json(), "reduced": ["M → A"]}),
        ReductionError,
        "its rules are not those of its certificate",
    ),
    (json.dumps({**DERIVED.to_json(), "readout": None}), ReductionError, "was changed"),
    ("V → MV", GrammarError, "M never becomes a word"),
]


@pytest.mark.parametrize(("content", "error", "message"), BAD)
def test_what_is_damaged_is_refused(
    content: str, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(content))
    with pytest.raises(error, match=message):
        choose_grammar("-", reduce=True)


@pytest.mark.parametrize(("small", "large"), [("r-G_L1", "r-G_L3"), ("r-G_L1Σ", "r-G_L3Σ")])
def test_a_certificate_of_an_inclusion_is_no_reduction(
    small: str, large: str, tmp_path: Path
) -> None:
    proof = prove_comparison(find_grammar(small), find_grammar(large)).forward.proof
    assert proof is not None
    file = tmp_path / "inclusion.json"
    content = certificate(proof.claim.larger, proof.claim.smaller, [proof])
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ReductionError, match="certifies an inclusion"):
        chosen(str(file))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1-WL", "1-WL has no rules; r-G_L1 is a grammar of that power"),
        ("2-FWL", "2-FWL has no rules; r-G_L3 is a grammar of that power"),
        ("4-WL", "no grammar over · ᵀ 1 diag ⊙ Tr has its power"),
        ("nothing.json", "there is no file 'nothing.json'"),
        ("r-G_{·, Foo}", "unknown operation 'Foo'"),
    ],
)
def test_what_stands_for_no_grammar(text: str, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        chosen(text)
    assert message in str(caught.value)
