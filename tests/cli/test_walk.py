"""One walk on the command line: derive, and go on with what was derived, nothing typed twice."""

import json
import subprocess
import sys

import pytest
from test_commands import C6, TRIANGLES, run


def shell(line: str) -> tuple[int, str]:
    """A line of a real shell, with its pipes."""
    line = line.replace("g2n2 ", f"{sys.executable} -m g2n2 ")
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def derived(tmp_path_factory):
    """A certificate and the JSON of {·, Tr}."""
    folder = tmp_path_factory.mktemp("derived")
    certificate, derivation = folder / "certificate.json", folder / "derivation.json"
    code, printed = run("derive", "· Tr", "--json", "--out", str(certificate))
    assert code == 0
    derivation.write_text(printed, encoding="utf-8")
    return certificate, derivation


def test_a_derivation_is_piped_into_a_network():
    code, printed = shell("g2n2 derive '· Tr' --json | g2n2 compile - --json")
    assert code == 0
    content = json.loads(printed)
    assert content["grammar"] == "r-G_{·, Tr}"
    assert content["note"].startswith(
        "standard input: r-G_{·, Tr} with 2 rules and 1 read-out rule"
    )
    assert content["verdict"]["statements"]


COMMANDS = [
    ("compile", "{}"),
    ("power", "{}", "--suite", "cfi", "--json"),
    ("separate", C6, TRIANGLES, "--grammar", "{}"),
    ("words", "{}", "--size", "3"),
    ("trace", "Tr(A³)", "--grammar", "{}"),
    ("tree", "Tr(A³)", "--grammar", "{}"),
    ("compare", "{}", "r-G_L3"),
    ("grammars", "{}"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=[words[0] for words in COMMANDS])
def test_every_command_takes_what_derive_gave(derived, words):
    """Its JSON on standard input, and one of the other ways to name a grammar in turn."""
    certificate, derivation = derived
    texts = [str(certificate), str(derivation), "r-G_{·, Tr}", "M → MM | A; S → Tr(M)"]
    text = texts[COMMANDS.index(words) % len(texts)]
    code, printed = run(*(word.format(text) if word == "{}" else word for word in words))
    assert code == 0, printed
    code, printed = run(
        *(w.format("-") for w in words), text=derivation.read_text(encoding="utf-8")
    )
    assert code == 0, printed


@pytest.mark.parametrize("words", [c for c in COMMANDS if c[0] not in ("compile", "grammars")])
def test_words_of_a_fragment_are_those_of_its_exhaustive_grammar_unless_reduced(words):
    asked = [word.format("· Tr") for word in words]
    assert run(*asked)[0] == 0
    code, printed = run(*asked, "--reduce")
    assert code == 0
    if "--json" not in words and words[0] != "tree":
        assert "stands for its exhaustive grammar, G_{·, Tr} with 5 rules" in run(*asked)[1]
        assert (
            "stands for its reduced grammar, r-G_{·, Tr} with 2 rules and 1 read-out rule"
            in printed
        )


def test_compile_and_train_agree_on_the_preset():
    pytest.importorskip("torch")
    from g2n2.training.config import RunConfig

    preset = RunConfig("any").effective_recipe().preset
    assert f"preset {preset}" in run("compile", "r-G_L3")[1]


WL = [
    (("compare", "r-G_L3", "1-WL"), "r-G_L3 as words\n  strictly above 1-WL"),
    (("compare", "PPGN", "3-WL"), "PPGN with functions, in the limit\n  equals 3-WL"),
    (("compare", "·", "1-WL"), "G_{·} has no sentences"),
    (("separate", C6, TRIANGLES, "--grammar", "3-WL"), "different (3-WL, from round 1 on)"),
    (("power", "3-WL", "PPGN", "--suite", "cfi"), "3-WL on cfi\n"),
]


@pytest.mark.parametrize(("words", "line"), WL)
def test_wl_tests_stand_where_grammars_can(words, line):
    code, printed = run(*words)
    assert code == 0
    assert line.lower() in printed.lower()


def test_power_lists_what_stays_merged():
    (row,) = json.loads(run("power", "PPGN", "--suite", "cfi", "--json")[1])
    assert [(m["pair"], m["category"]) for m in row["merged"]] == [
        (1, "K4-e"),
        (2, "K2,3"),
        (3, "K4"),
    ]
    assert row["merged_total"] == 3
    assert row["merged"][0]["names"] == ["CFI(K4−e)", "twisted CFI(K4−e)"]
    assert row["against"] == {"1-WL": [1, 0], "3-WL": [0, 2]}
    about = {(s["about"], s["against"]): s["relation"] for s in row["verdict"]["statements"]}
    assert about["PPGN on cfi", "3-WL"] == "does not reach"
    assert about["PPGN as words", "3-WL"] == "strictly below"


def test_the_verdict_ends_all_four_commands():
    for words in (
        ("derive", "L1"),
        ("compile", "r-G_L1"),
        ("compare", "r-G_L1", "r-G_L3"),
        ("power", "r-G_L1", "--suite", "cfi"),
        ("power", "r-G_L1"),
    ):
        printed = run(*words)[1]
        assert "Verdict, for simple undirected graphs" in printed
        assert "  equals 1-WL\n" in printed
