"""separate, power and wl on the command line."""

import json

import networkx as nx
import pytest
from test_commands import C6, TRIANGLES, run


def test_separate_names_the_sentence_its_values_and_its_depth():
    code, printed = run("separate", C6, TRIANGLES, "--json")
    answer = json.loads(printed)
    assert code == 0
    assert answer["verdict"] == "different"
    assert answer["sentence"] == "1ᵀ(A²⊙A)1"
    assert answer["values"] == [0, 12]
    assert (answer["depth"], answer["readout"], answer["shortest"]) == (3, "1ᵀV_c", True)
    network = json.loads(run("separate", C6, TRIANGLES, "--readout", "network", "--json")[1])
    assert network["depth"] == 2
    assert "is 0 on C6 (EhEG) and 12 on 2·C3 (EJaG)" in run("separate", C6, TRIANGLES)[1]


def test_a_suite_in_the_place_of_a_grammar_is_named():
    code, printed = run("power", "r-G_L1", "--suite", "csl", "cfi")
    assert code == 2
    assert "cfi is a suite and no grammar; write: --suite cfi" in printed


def test_a_large_graph_is_called_as_it_was_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graphs = [nx.random_regular_graph(3, 60, seed=seed) for seed in (1, 2)]
    for name, graph in zip("ab", graphs, strict=True):
        nx.write_graph6(graph, f"{name}.g6", header=False)
    first, second = (2 * sum(nx.triangles(graph).values()) for graph in graphs)
    assert first != second
    words = ("separate", "--grammar", "S → Tr(AAA); V → 1")
    assert f"is {first} on a.g6 and {second} on b.g6" in run(*words, "a.g6", "b.g6")[1]
    texts = [(tmp_path / f"{name}.g6").read_text().strip() for name in "ab"]
    shown = f"is {first} on the first graph and {second} on the second"
    assert shown in run(*words, *texts)[1]


def test_weights_are_part_of_what_a_graph_is_called(tmp_path):
    (tmp_path / "a.txt").write_text("0 1 2")
    (tmp_path / "b.txt").write_text("0 1 3")
    printed = run("separate", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"))[1]
    assert "is 4 on arcs 0→1:2 1→0:2 and 6 on arcs 0→1:3 1→0:3" in printed


def test_with_f_tells_apart_what_words_of_walks_do_not():
    words = ("separate", "FhoW?", "Fg?hg", "--grammar", "V → AV | 1", "--json")
    verdicts = [json.loads(run(*words, *more)[1])["verdict"] for more in ((), ("--with-f",))]
    assert verdicts == ["same", "different"]


def test_a_grammar_without_sentences_tells_nothing_apart_with_f_either():
    for name in ("· 1", "·"):
        answer = run("separate", "A?", "A_", "--grammar", name, "--with-f", "--json")[1]
        assert (json.loads(answer)["verdict"], json.loads(answer)["readout"]) == ("same", "none")
    (row,) = json.loads(run("power", "· 1", "--with-f", "--suite", "cfi", "--json")[1])
    assert (row["readout"], row["separated"]) == ("none", 0)


@pytest.mark.parametrize("engine", ["closure", "random_probes"])
def test_a_sentence_without_variables_is_one_too(engine):
    words = ("separate", "A?", "A_", "--engine", engine, "--json", "--grammar")
    found = json.loads(run(*words, "S → 1ᵀA1; V → 1")[1])
    assert (found["sentence"], found["values"]) == ("1ᵀA1", [0, 2])
    assert json.loads(run(*words, "S → 1.0; V → 1")[1])["verdict"].startswith("same")
    (row,) = json.loads(run("power", "S → 1ᵀA1; V → 1", "--suite", "csl", "--json")[1])
    assert row["separated"] == 0


def test_separate_names_a_grammar_changed_where_it_is_named():
    printed = run("separate", "A?", "A_", "--grammar", "r-G_L3 ∪ M → Aᵀ")[1]
    assert printed.startswith("different (r-G_L3 ∪ {Aᵀ}, read-out 1ᵀV_c)")


def test_power_prints_a_table_json_and_markdown(tmp_path):
    code, printed = run("power", "r-G_L3", "r-G_L1", "--suite", "cfi", "--json")
    rows = json.loads(printed)
    assert code == 0
    assert [(r["grammar"], r["separated"], r["equals_2fwl"]) for r in rows] == [
        ("r-G_L3", 3, True),
        ("r-G_L1", 0, False),
    ]
    assert {"readout", "suite", "pairs", "seconds"} <= set(rows[0])
    assert "K2,3: 1 of 1" in run("power", "r-G_L3", "--suite", "cfi")[1]
    assert run("power", "r-G_L3", "--suite", "cfi", "--markdown")[1].startswith("| grammar |")
    family = tmp_path / "mine.g6"
    family.write_text(f"{C6}\n{TRIANGLES}\n")
    mine = json.loads(run("power", "r-G_L3", "--suite", str(family), "--pairs", "--json")[1])
    assert (mine[0]["pairs"], mine[0]["separated"]) == (1, 1)


def test_separate_tries_no_more_layers_than_asked_for():
    pair = ("decalin", "bicyclopentyl", "--grammar", "r-G_L3")
    printed = run("separate", *pair, "--layers", "1")[1]
    assert printed.startswith("same up to 1 layer (r-G_L3")
    assert "all words of so many layers were compared" in printed
    assert "more layers may do so too" in printed
    assert run("separate", *pair, "--layers", "4")[1].startswith("different")


def test_layers_without_a_suite_are_said_to_count_nothing():
    note = "--layers counts layers on a suite"
    assert note in run("power", "r-G_L1", "--layers", "2")[1]
    assert note not in run("power", "r-G_L1", "--layers", "2", "--suite", "cfi")[1]


def test_statements_about_all_graphs_are_for_the_grammars_own_read_out():
    words = ("power", "r-G_L1", "--suite", "cfi", "--json")
    (own,), (other,) = (json.loads(run(*words, *x)[1]) for x in ((), ("--readout", "network")))
    measured = {"r-G_L1 on cfi"}
    assert {s["about"] for s in own["verdict"]["statements"]} > measured
    assert {s["about"] for s in other["verdict"]["statements"]} == measured


def test_wl():
    answer = json.loads(run("wl", C6, TRIANGLES, "--k", "1", "--json")[1])
    assert answer["separated"] is False
    two = json.loads(run("wl", C6, TRIANGLES, "--k", "2", "--variant", "fwl", "--json")[1])
    assert two["separated"] is True
    assert two["rounds"] >= 1


def test_compare_settles_what_proof_alone_leaves_open():
    words, with_f = json.loads(run("compare", "PPGN", "r-G_L3", "--json")[1])
    assert (words["relation"], with_f["relation"]) == ("⊊", "≡")
    assert len(words["right_in_left"]["witness"]["graphs"]) == 2
    both = json.loads(run("compare", "M → MM | A; S → Tr(M)", "r-G_L1", "--json")[1])
    assert both[0]["relation"] == "incomparable"


def test_compare_of_directed_graphs_finds_digraphs():
    words = ("compare", "V → AV | AᵀV | 1", "V → AV | 1")
    code, printed = run(*words, "--assume", "none")
    assert code == 0
    first, second = "{V_c → AV_c | AᵀV_c | 1}", "{V_c → AV_c | 1}"
    assert f"words alone: {first} ⊋ {second}" in printed
    assert f"{first} as words, on directed graphs\n  strictly above {second}" in printed
    assert f"words alone: {first} ≡ {second}" in run(*words)[1]


def test_grammars_given_as_rules_are_told_apart_by_them():
    long = "V → MV | 1; M → MM | M⊙M | diag(V) | A"
    texts = ("V → AV | 1", "V → 1", long, f"{long} | Mᵀ", "r-G_L1")
    rows = json.loads(run("power", *texts, "--suite", "csl", "--json")[1])
    names = [row["grammar"] for row in rows]
    cut = "{V_c → MV_c | 1; M → MM | (M⊙M) | …}"
    shown = ["{V_c → AV_c | 1}", "{V_c → 1}", f"{cut} (1)", f"{cut} (2)", "r-G_L1"]
    assert names == shown
    for row in rows:
        about = {s["about"] for s in row["verdict"]["statements"]}
        assert f"{row['grammar']} on csl" in about
        assert f"{row['grammar']} as words" in about
    printed = run("power", *texts[:2])[1]
    assert "{V_c → AV_c | 1} as words\n" in printed
    assert "{V_c → 1} as words\n" in printed
    assert "given" not in printed


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    files = [tmp_path / folder / "mine.txt" for folder in ("x", "z")]
    for file, rules in zip(files, ("V → AV | 1", "V → 1"), strict=True):
        file.parent.mkdir()
        file.write_text(rules, encoding="utf-8")
    x, z = map(str, files)
    assert "words alone: x/mine ⊋ z/mine" in run("compare", x, z)[1]
    rows = json.loads(run("power", z, x, z, "r-G_L1", "--suite", "csl", "--json")[1])
    assert {row["grammar"] for row in rows} == {"z/mine", "x/mine", "r-G_L1"}
    other = tmp_path / "y" / "x" / "mine.txt"
    other.parent.mkdir(parents=True)
    other.write_text("V → AV | diag(V)V | 1", encoding="utf-8")
    assert "words alone: mine (1) ⊊ mine (2)" in run("compare", x, str(other))[1]
