"""`g2n2 compile` and `g2n2 trace` as a user meets them."""

import json
import subprocess
import sys
from math import comb, factorial
from xml.etree import ElementTree

import networkx as nx
import pytest
from test_commands import run

from g2n2.nn.memory_budget import copies_at_once
from g2n2.nn.model import GrammarGNN

QM9 = ("--node-features", "11", "--edge-features", "4")


def test_compile_prints_the_plan_and_its_costs():
    code, printed = run("compile", "r-G_L3", "--preset", "paper", "--layers", "3", *QM9)
    assert code == 0
    assert "parameters  844,685" in printed
    assert "here B = 32, N = 29" in printed
    assert "C⁰ = I ‖ A ‖ E" in printed


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (("--preset", "paper", "--width", "32", *QM9), 339_085),
        (("--preset", "official", "--node-features", "11", "--edge-features", "5"), 1_174_270),
    ],
)
def test_compile_as_json(options, parameters):
    code, printed = run("compile", "r-G_L3", *options, "--nodes", "9", "--batch", "4", "--json")
    content = json.loads(printed)
    assert code == 0
    assert content["total"]["parameters"] == parameters
    assert (content["batch"], content["nodes"]) == (4, 9)


def test_every_option_reaches_the_plan():
    options = ("--task", "node", "--readout", "mean", "--out", "3", "--directed", "--context")
    code, printed = run("compile", "r-G_L3", *options)
    assert code == 0
    assert "C⁰ = I ‖ A ‖ Aᵀ" in printed
    assert "H ‖ mean row C ‖ mean H" in printed
    assert "[B, N, 3]" in printed


def test_read_out_functions_and_biases_reach_the_plan():
    options = ("--readout", "grammar", "--functions", "free", "--layers", "2")
    code, printed = run("compile", "M → MM | A ; S → Tr(MMM)", *options)
    assert code == 0
    assert "read-out    grammar: S → Tr(MMM)" in printed
    assert "functions   one linear map on M" in printed
    assert "add nothing" in printed
    code, printed = run("compile", "r-G_L3", "--pooling", "max", "--no-pair-bias")
    assert code == 0
    assert "pooled: max H, max diag C, max offdiag C, joined by S → 1ᵀV_c" in printed
    assert "MLP without biases on M; MLP with biases on V_c" in printed


@pytest.mark.parametrize(
    ("figure", "title"),
    [
        ("layer", "r-G_L3, layer 3 of 3"),
        ("architecture", "r-G_L3: the whole network"),
        ("overview", "From {·, ᵀ, 1, diag, ⊙} to a network layer"),
    ],
)
def test_diagrams_are_written(tmp_path, figure, title):
    path = tmp_path / "out.svg"
    code, printed = run("compile", "r-G_L3", "--diagram", str(path), "--figure", figure)
    assert (code, f"{figure} drawn in {path}" in printed) == (0, True)
    root = ElementTree.parse(path).getroot()
    assert root.find("{http://www.w3.org/2000/svg}title").text == title


@pytest.mark.parametrize("options", [("--trunk", "1"), ("--marks", "4"), ("--width", "8")])
def test_marked_copies_are_computed_some_at_a_time(options):
    options = ("r-G_L3Σ", "--nodes", "80", "--batch", "32", "--width", "32", *options)
    content = json.loads(run("compile", *options, "--json")[1])
    chunk = content["copies_at_once"]
    settings = {
        key.removeprefix("--"): int(value)
        for key, value in zip(options[1::2], options[2::2], strict=True)
    }
    chosen = {key: settings[key] for key in ("marks", "trunk", "width") if key in settings}
    model = GrammarGNN("r-G_L3Σ", **{"layers": 3, **chosen})
    assert chunk["copies"] == copies_at_once(model, 80) < 32 * 80
    total = content["total"]["activation_bytes"]
    assert chunk["activation_bytes"] < 1.5 * 2**30 < total
    printed = run("compile", *options)[1]
    assert f"A training step computes {chunk['copies']:,} at a time" in printed
    assert "copies_at_once" not in run("compile", "r-G_L3Σ", "--width", "4", "--json")[1]
    assert "at a time" not in run("compile", "r-G_L3", "--nodes", "300")[1]


def test_supports_without_a_definition_are_named():
    assert "C_1, C_2, C_3: not defined here" in run("compile", "MPNN-3")[1]


@pytest.mark.parametrize(
    ("name", "graph", "count"),
    [
        ("C5", nx.complete_graph(40), comb(40, 5) * 12),
        ("K4", nx.complete_graph(50), comb(50, 4)),
        ("P7", nx.complete_graph(60), comb(60, 7) * factorial(7) // 2),
        ("star 6", nx.star_graph(300), comb(300, 6)),
    ],
)
def test_counts_are_printed_in_full(name, graph, count):
    text = nx.to_graph6_bytes(graph, header=False).decode().strip()
    code, printed = run("formula", name, "--graph6", text)
    assert (code, printed.splitlines()[-1]) == (0, f"value: {count}")
    assert json.loads(run("formula", name, "--graph6", text, "--json")[1])["value"] == count


def test_the_laplacian_of_a_graph_is_printed_as_a_matrix():
    printed = run("formula", "Laplacian", "--graph6", "A_")[1]
    assert printed.split("value:")[1].split() == ["1", "\N{MINUS SIGN}1", "\N{MINUS SIGN}1", "1"]


def test_values_of_a_trace_are_printed_in_full():
    graph = nx.to_graph6_bytes(nx.complete_graph(40), header=False).decode().strip()
    assert str(39**5 * 40) in run("trace", "1ᵀAAAAA1", "--graph6", graph)[1]


@pytest.mark.parametrize(
    ("name", "grammar", "said"),
    [
        ("K4", "r-G_L3", "r-G_L3 merges rook 4×4 and Shrikhande graph, where the count is 8 and 0"),
        ("C3", "r-G_L1", "r-G_L1 merges C6 and 2·C3, where the count is 0 and 2"),
        ("K5", "r-G_L1ΣΣ", "no sentence with two marks over L1"),
        ("K4", "r-G_L1ΣΣ", "\nr-G_L1ΣΣ: depth 5"),
        ("K5", "r-G_L3ΣΣ", "\nr-G_L3ΣΣ: depth 7"),
        ("C6", "r-G_L3Σ", "\nr-G_L3Σ: depth"),
        ("K4", "L3Σ", "\nr-G_L3Σ: depth 5"),
    ],
)
def test_a_formula_is_about_the_grammar_that_is_asked_for(name, grammar, said):
    code, printed = run("formula", name, "--grammar", grammar)
    assert (code, said in printed) == (0 if "depth" in said else 2, True), printed


@pytest.mark.parametrize(
    ("name", "graph", "count"),
    [("2K2", "EhEG", 9), ("induced 2K2", "EhEG", 3), ("induced 3K1", "EhEG", 2)],
)
def test_counts_in_several_parts_are_products_that_no_weights_hold(name, graph, count):
    code, printed = run("formula", name, "--graph6", graph)
    assert (code, printed.splitlines()[-1]) == (0, f"value: {count}")
    assert "no weights: " in printed
    assert "multiplies sentences" in printed
    assert "multiplies sentences" in run("formula", name, "--grammar", "r-G_L3Σ")[1]


def test_formulas_have_the_names_of_graph_theory_too():
    code, printed = run("formula", "induced diamond")
    assert code == 0
    assert printed == run("formula", "induced chordal cycle")[1]
    assert "counts of graphs that have a name" in run("formula", "induced gnu")[1]


def test_trace_prints_the_steps_and_evaluates_them(tmp_path):
    path = tmp_path / "t.svg"
    code, printed = run("trace", "1ᵀ(A²⊙A)1", "--graph6", "C~", "--diagram", str(path))
    assert code == 0
    assert printed.startswith("1ᵀ(A²⊙A)1 in r-G_L3: 3 layers")
    assert "\n               24\n" in printed  # four triangles, six times each
    assert ElementTree.parse(path).getroot().tag.endswith("svg")
    content = json.loads(run("trace", "A⁴", "--grammar", "PPGN", "--json")[1])
    assert (content["depth"], len(content["steps"])) == (2, 2)


BAD = [
    (("compile", "PPGN", "--preset", "official"), "use another preset"),
    (("compile", "GNNML1", "--edge-features", "3"), "no matrix variable"),
    (("compile", "r-G_L3", "--width", "0"), "Invalid value for '--width'"),
    (("compile", "r-G_L3", "--preset", "nonsense"), "Invalid value for '--preset'"),
    (("compile", "r-G_L3", "--diagram", "out.png"), "name it for instance out.svg"),
    (("compile", "r-G_L3", "--diagram", "../no/such/out.svg"), "make it first"),
    (("trace", "AᵀA"), "no variable derives Aᵀ"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_bad_input_ends_with_2_and_says_what_to_do(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, printed = run(*words)
    assert code == 2
    assert said in printed
    assert not list(tmp_path.iterdir())


def test_compile_needs_no_torch():
    program = (
        "import sys; sys.modules['torch'] = None; sys.argv[1:] = ['compile', 'G_L3']\n"
        "from g2n2.cli import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8")
    assert ended.returncode == 0, ended.stderr
    assert "parameters" in ended.stdout
