"""The command line as a user meets it: output, JSON, exit codes, and every kind of bad input."""

import json
import os
import subprocess
import sys

import networkx as nx
import pytest
from typer.testing import CliRunner

from g2n2 import cli
from g2n2.errors import G2N2Error


def run(*words: str, text: str | None = None) -> tuple[int, str]:
    """The exit code and everything printed, errors turned into exit 2 as `main` does."""
    result = CliRunner().invoke(cli.app, list(words), input=text)
    if isinstance(result.exception, G2N2Error):
        return 2, f"error: {result.exception}"
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout or result.output


R_G_L3 = ["V_c → MV_c", "V_c → 1", "M → (M⊙M)", "M → MM", "M → diag(V_c)", "M → A"]


@pytest.mark.parametrize(
    "fragment", ["L3", "matmul,transpose,one,diag,hadamard", "· ᵀ 1 diag ⊙", "{@, ^T, 1, diag, *}"]
)
def test_derive_json_has_the_whole_answer_for_every_spelling(fragment):
    code, printed = run("derive", fragment, "--json")
    answer = json.loads(printed)
    assert code == 0
    assert answer["reduced"] == R_G_L3
    assert len(answer["exhaustive"]) == 19
    assert answer["readout"] == ["S → 1ᵀV_c"]
    assert answer["assumptions"] == {"A": "symmetric", "level": "graph"}
    gone = {rule for step in answer["steps"] for rule in step["removed"]}
    assert gone == set(answer["exhaustive"]) - set(answer["reduced"])
    assert all(step["reason"] for step in answer["steps"])
    assert [kept["rule"] for kept in answer["kept"]] == R_G_L3
    assert all("witness" in kept for kept in answer["kept"])
    four = {"M → (M⊙M)", "M → MM", "M → diag(1)", "M → A"}
    assert any(set(other["rules"]) == four for other in answer["alternatives"])


def test_derive_prints_both_grammars_and_the_paper_order_names_the_step_between():
    _, printed = run("derive", "L3", "--order", "paper")
    assert "V_c → MV_c | 1" in printed
    assert "the remaining M rules preserve symmetry" in printed
    code, latex = run("derive", "L1", "--latex")
    assert code == 0
    assert latex.count(r"\begin{align*}") == 2


def test_fragment_without_sentences_is_an_answer_not_an_error():
    code, printed = run("derive", "matmul,one")
    assert code == 0
    assert "no sentences: tells nothing apart" in printed
    assert json.loads(run("derive", "matmul,one", "--json")[1])["readout"] == []


def test_a_fragment_without_sentences_has_a_reduction_at_node_level(tmp_path):
    path = tmp_path / "n.json"
    code, printed = run("derive", "· 1", "--level", "node", "--out", str(path))
    assert code == 0
    assert "no sentences" not in printed
    assert "V_c → AV_c | 1" in printed
    assert "as strong: 4 obligations" in printed
    assert run("check", str(path))[0] == 0


def test_compare_does_not_invent_a_read_out(tmp_path):
    path = tmp_path / "c.json"
    code, printed = run("compare", "V → AV | 1", "· 1", "--out", str(path))
    assert code == 0
    assert "words alone: {V_c → AV_c | 1} ⊋ G_{·, 1}" in printed
    assert "1ᵀA1 is 0 on 2·K1 and 2 on K2" in printed
    assert "proved: it has no sentences, so it tells nothing apart" in printed
    assert not (tmp_path / "c-1.json").exists()
    assert run("check", str(tmp_path / "c-2.json"))[0] == 0


@pytest.mark.parametrize(
    ("left", "right", "title"),
    [
        ("V → AV | 1", "V → V⊙V | AV | 1", "{V_c → AV_c | 1} ⊊ {V_c → (V_c⊙V_c) | AV_c | 1}"),
        ("r-G_L3 - M → MM", "r-G_L1", "r-G_L3 ∖ {MM} ⊇ r-G_L1"),
        ("r-G_L3", "G2N2", "r-G_L3 ≡ r-G_L3"),
        ("V → 1", "· 1", "{V_c → 1} ⊋ G_{·, 1}"),
    ],
)
def test_compare_names_both_grammars(left, right, title):
    assert f"words alone: {title}\n" in run("compare", left, right)[1]


def test_a_certificate_without_a_step_says_that_nothing_was_removed(tmp_path):
    path = tmp_path / "c.json"
    assert run("derive", "·", "--out", str(path))[0] == 0
    code, printed = run("check", str(path))
    assert code == 0
    assert printed.splitlines() == [
        "valid: there was nothing to check",
        "shows: no rule was removed, so nothing had to be proved",
    ]


def test_certificate_goes_round(tmp_path):
    path = tmp_path / "c.json"
    assert run("derive", "L1", "--out", str(path))[0] == 0
    code, printed = run("check", str(path))
    assert (code, "24 obligations checked" in printed) == (0, True)
    edited = json.loads(path.read_text())
    del edited["links"][0]["proof"]["obligations"][3]
    path.write_text(json.dumps(edited))
    code, printed = run("check", str(path))
    assert code == 1
    assert "V_c → MV_c" in printed
    assert "missing" in printed
    assert json.loads(run("check", str(path), "--json")[1])["valid"] is False


def test_eval_counts_triangles_and_reads_edge_lists(tmp_path):
    graph = nx.petersen_graph()
    graph.add_edge(0, 2)
    text = nx.to_graph6_bytes(graph, header=False).decode().strip()
    triangles = sum(nx.triangles(graph).values()) // 3
    assert run("eval", "1ᵀ(A²⊙A)1", "--graph6", text) == (0, f"{6 * triangles}\n")
    assert run("eval", "1^T (A^2 * A) 1", "--graph6", text, "--mod", "5")[1] == (
        f"{6 * triangles % 5}\n"
    )
    edges = tmp_path / "g.txt"
    edges.write_text("a b\nb c\nc a\n")
    assert run("eval", "Tr(A³)", str(edges))[1] == "6\n"
    assert json.loads(run("eval", "A1", str(edges), "--json")[1])["value"] == [[2.0]] * 3


@pytest.mark.parametrize(
    ("left", "right", "assume", "same"),
    [
        ("1ᵀ(A²⊙diag(1))1", "Tr(A²)", "none", True),
        ("Aᵀ", "A", "none", False),
        ("A²⊙I", "diag(A1)", "simple", True),
        ("A", "A1", "none", False),
    ],
)
def test_equal_decides_and_shows_why(left, right, assume, same):
    code, printed = run("equal", left, right, "--assume", assume)
    assert code == (0 if same else 1)
    assert printed.startswith("equal" if same else "not equal")
    answer = json.loads(run("equal", left, right, "--assume", assume, "--json")[1])
    assert answer["equal"] is same
    if not same and left != "A":
        assert answer["counterexample"]["left"] != answer["counterexample"]["right"]


def test_words_tree_grammars_and_compare():
    code, printed = run("words", "r-G_L1", "--size", "5")
    assert code == 0
    assert [line.split()[1] for line in printed.splitlines()] == [
        "1ᵀ1", "1ᵀA1", "1ᵀA²1", "1ᵀA³1",
    ]  # fmt: skip
    assert "V_r → V_cᵀ" in run("tree", "1ᵀA1", "--grammar", "G_L1")[1]
    assert run("tree", "1ᵀA1", "--grammar", "G_L1", "--dot")[1].startswith("digraph")
    names = [g["name"] for g in json.loads(run("grammars", "--json")[1])]
    assert {"G_L1", "r-G_L1", "G_L3", "i-G_L3", "r-G_L3", "PPGN", "2-IGN", "TriMul"} <= set(names)
    both = json.loads(run("compare", "GNNML1", "r-G_L1", "--json")[1])
    assert [c["relation"] for c in both] == ["≡", "≡"]


C6, TRIANGLES = "EhEG", "EJaG"
# One of each kind: test_bad_input.py has every message about a term, a fragment or a grammar.
BAD = [
    (("derive", "hadamar"), "did you mean hadamard"),
    (("eval", "1ᵀ(A²⊙A1", "--graph6", "Bw"), "⊙ is not defined here"),
    (("eval", "1ᵀA1", "--graph6", "!!"), "not graph6"),
    (("eval", "1ᵀA1"), "give one graph"),
    (("eval", "1ᵀM1", "--graph6", "Bw"), "M has no value here"),
    (("eval", "1ᵀrelu(A)1", "--graph6", "Bw", "--mod", "7"), "no exact value modulo a prime"),
    (("eval", "1ᵀA1", "--graph6", "Bw", "--mod", "8"), "8 is not a prime"),
    (("words", "V → MV"), "M never becomes a word"),
    (("words", "PPNG"), "did you mean PPGN"),
    (("words", "1WLL"), "did you mean 1-WL"),
    (("words", "1-WL"), "1-WL has no rules; r-G_L1 is a grammar of that power"),
    (("tree", "Tr(A)", "--grammar", "G_L3"), "Tr"),
    (("compare", "PPGN", "nothing"), "no grammar is called 'nothing'"),
    (("compare", "5-WL", "r-G_L1"), "5-WL cannot be run"),
    (("compare", "r-G_L3", "1-WL", "--out", "c.json"), "no certificate"),
    (("check", "no-such-file.json"), "no file"),
    (("power", "r-G_L3!!", "--suite", "cfi"), "did you mean r-G_L3"),
    (("power", "r-G_L3", "--suite", "brecc"), "did you mean"),
    (("compile", "missing.json"), "there is no file 'missing.json'"),
    (("separate", C6, TRIANGLES, "--grammar", ""), "no grammar is named"),
    (("separate", C6, TRIANGLES, "--readout", "nonsense"), "unknown 'nonsense'"),
    (("separate", C6, TRIANGLES, "--grammar", "GCN"), "C"),
    (("wl", C6, "no-such-file.txt"), "no-such-file.txt"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_input_exits_2_with_a_plain_message(words, message):
    code, printed = run(*words)
    assert code == 2
    assert message in printed
    assert "Traceback" not in printed


def test_check_takes_what_derive_prints(tmp_path):
    _, printed = run("derive", "L1", "--json")
    saved = tmp_path / "derived.json"
    saved.write_text(printed, encoding="utf-8")
    certificate = json.dumps(json.loads(printed)["certificate"])
    answers = {
        run("check", str(saved)),
        run("check", "-", text=printed),
        run("check", "-", text=certificate),
        run("check", "-", "--fragment", "L1", text=printed),
    }
    assert len(answers) == 1
    code, said = answers.pop()
    assert code == 0
    assert said.startswith("valid: ")
    assert run("check", "-", "--fragment", "L3", text=printed)[0] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "standard input is empty"),
        ("{", "standard input is not JSON"),
        ("[]", "standard input is neither a certificate"),
        ('{"certificate": {}}', "standard input is neither a certificate"),
    ],
)
def test_check_refuses_other_text(text, message):
    code, printed = run("check", "-", text=text)
    assert code == 2
    assert message in printed


@pytest.mark.parametrize("start", [[["x"]], [{}], 5, "abc", None])
def test_a_damaged_certificate_is_invalid_whatever_it_should_be_about(start, tmp_path):
    path = tmp_path / "c.json"
    run("derive", "L1", "--out", str(path))
    content = {**json.loads(path.read_text(encoding="utf-8")), "from": start}
    path.write_text(json.dumps(content), encoding="utf-8")
    code, printed = run("check", str(path), "--fragment", "L1")
    assert (code, printed.split(":")[0]) == (1, "invalid")


def test_main_turns_our_errors_into_exit_2(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["g2n2", "derive", "nonsense"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith("error: unknown operation 'nonsense'")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("L3Σ (full)", "; these are its own: g2n2 derive 'L3 Σ'"),
        ("r-G_L1", "; these are its own: g2n2 derive '{·, ᵀ, 1, diag}'"),
        ("PPGN", "\n"),
    ],
)
def test_derive_of_a_grammar_says_what_takes_it(name, advice):
    code, printed = run("derive", name)
    assert code == 2
    assert f"{name} is a grammar: give it to compile, compare or power" in printed
    assert f"derive takes operations{advice}" in f"{printed}\n"


def test_kept_rules_come_with_a_pair_and_a_sentence_or_the_plain_word():
    kept = {k["rule"]: k for k in json.loads(run("derive", "L3", "--json")[1])["kept"]}
    assert kept["M → (M⊙M)"]["witness"]["sentence"] == "1ᵀ(A²⊙A)1"
    assert kept["M → (M⊙M)"]["witness"]["values"] == ["0", "12"]
    assert kept["M → diag(V_c)"]["witness"] is None
    assert (
        kept["M → diag(V_c)"]["reason"]
        == "open: we found no proof that it can go, and no two graphs that need it"
    )


def test_words_says_what_would_give_sentences():
    code, printed = run("words", "·")
    assert code == 0
    assert "no sentences" in printed
    assert "add Tr" in printed
    assert "no rule for it" in run("words", "PPGN", "--sort", "V")[1]
    assert "raise --size" in run("words", "V → AV | 1; S → 1ᵀ(V⊙V)", "--size", "0")[1]


def test_our_warnings_are_notes():
    done = subprocess.run(
        [sys.executable, "-m", "g2n2", "separate", "CF", "Cr"],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr.startswith("note: 'CF' is read as graph6")
    assert "Warning" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_term_with_a_minus_is_said_to_go_behind_two():
    code, printed = run("eval", "-A", "K1")
    assert code == 2
    assert "if -A… is a term, write -- before it" in " ".join(printed.split())
    assert run("eval", "--", "-A", "K1") == (0, "0\n")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("train", "-x"), False),
        (("compile", "r-G_L1", "-A"), False),
        (("-x", "equal"), False),
        (("eval", "-A", "K4"), True),
        (("trace", "-A"), True),
    ],
)
def test_advice_about_terms_is_given_where_terms_are_taken(words, advice):
    code, printed = run(*words)
    assert code == 2
    assert f"No such option: {'-x' if '-x' in words else '-A'}" in printed
    assert ("is a term" in printed) is advice


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals here")
def test_words_as_json_show_on_a_terminal_that_they_are_looked_for():
    ours, theirs = os.openpty()
    words = [sys.executable, "-m", "g2n2", "words", "r-G_L3", "--size", "5", "--json"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=True)
    os.close(theirs)
    assert json.loads(done.stdout)["words"][0] == {"word": "1ᵀ1", "size": 2}
    assert "words of r-G_L3" in os.read(ours, 10**6).decode()
    os.close(ours)
    silent = subprocess.run(words, capture_output=True, timeout=60, check=True)
    assert silent.stdout == done.stdout
    assert silent.stderr == b""
