"""Text typed in the workbench: what it stands for, or the exact characters at fault."""

import pytest

from g2n2.grammars.catalogue import find_grammar
from g2n2.workbench.languages import (
    EXAMPLES,
    MOST_CHARACTERS,
    OWN,
    Fault,
    Language,
    fragment_text,
    read_language,
)

# The fault is marked «so».
FAULTS = [
    ("V_c → MV_c | 1\nM → «(»M⊙M | A", "bracket is never closed"),
    ("L3 + «Trr»", "unknown operation 'Trr'"),
    ("· ᵀ «times2» 1", "unknown operation"),
    ("M → MM | «1»", "1 is a column vector, but M is a matrix"),
    ("«X» → A", "not a variable"),
    ("{«X» → A}", "not a variable"),
    ("M → MM |« »| A", "empty"),
    ("M → A1 «A»", "inner sizes must agree"),
    ("V → A«+»1 | 1", "same sort"),
    ("V → AV | 1\n «M A»", "no arrow"),
    ("# a comment\nV → AV | «?»V", "unknown '?'"),
    ("V → AV | 1; M → A | M«^»", "unknown '^'"),
    ("«V_c → V_c»", "applies no operation"),
    ("«M» → MM", "never becomes a word: every rule"),
    ("S → Tr(M); «M» → MM", "never becomes a word: every rule"),
    ("V_c → 1\nS → Tr(«M»)", "M never becomes a word: it has no rule"),
    ("M → MM | A\nS → 1ᵀM«V»", "V_c never becomes a word: it has no rule"),
    ("· Tr «(» ⊙", "'(' is never closed"),
    ("· Tr ⊙«}»", "'}' is never opened"),
    ("«<script>alert»(1)</script>", "unknown operation"),
]


@pytest.mark.parametrize(("marked", "message"), FAULTS)
def test_a_fault_is_placed_at_its_characters(marked, message):
    start, end = marked.index("«"), marked.index("»") - 1
    found = read_language(marked.replace("«", "").replace("»", ""))
    assert isinstance(found, Fault)
    assert message in found.message
    assert (found.start, found.end) == (start, end)


def test_what_can_be_typed():
    texts = [text for text, _ in EXAMPLES.values()]
    for text in [*texts, OWN, "· ᵀ 1 ⊙", "r-G_L3 ∪ M → Mᵀ", "r-G_{·, Tr}", "G_L3"]:
        assert isinstance(read_language(text), Language), text
    assert read_language("PPGN").grammar == find_grammar("PPGN")
    assert read_language("{V → AV | 1}").grammar == find_grammar("V → AV | 1")
    assert read_language("· ᵀ 1 diag ⊙").fragment.operations == read_language("L3").operations


def test_no_file_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").write_text("V → AV | 1", encoding="utf-8")
    assert isinstance(read_language("rules"), Fault)


def test_size_is_limited():
    assert "2,000" in read_language("L3 " * MOST_CHARACTERS).message
    many = "V → 1" + "".join(f" | C_{k}V" for k in range(1, 70))
    assert read_language(many).message == "this grammar has 71 rules; the workbench takes 60"


def test_ticks_become_text():
    assert fragment_text(read_language("diag 1 ᵀ ·").operations) == "L1"
    assert fragment_text(frozenset({"hadamard", "matmul"})) == "· ⊙"
    assert fragment_text(read_language("L3 Σ_S").operations) == "L3Σ"
    assert fragment_text(read_language("L3 Σ").operations) == "· ᵀ 1 diag ⊙ Σ_S Σ_V Σ_M"
