"""The flat surface: every name is there, has real parameters and an example that runs."""

from __future__ import annotations

import doctest
import inspect
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import g2n2
from g2n2.errors import DataError, G2N2Error, GrammarError, ParseError, ReductionError
from g2n2.testing import registered

VERBS = (
    "derive", "check", "compare", "power", "separate", "compile", "train", "predict", "load",
    "explain", "export",
)  # fmt: skip
NAMES = sorted(set(g2n2.__all__) - {"__version__"})
PLAIN = {"G2N2Error"}
"""Names without an example."""


def in_fresh_process(code: str) -> str:
    """What code prints in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_verbs_are_there() -> None:
    assert set(VERBS) <= set(g2n2.__all__)
    assert set(dir(g2n2)) == set(g2n2.__all__)


def called(name: str) -> Any:
    """What has the parameters and the docstring of a public name."""
    value = getattr(g2n2, name)
    return type(value).__call__ if inspect.ismodule(value) else value


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_real_parameters(name: str) -> None:
    value = called(name)
    assert callable(value)
    if name == "G2N2Error":
        return
    kinds = {parameter.kind for parameter in inspect.signature(value).parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


@pytest.mark.parametrize("name", sorted(set(NAMES) - PLAIN))
def test_every_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    value = called(name)
    assert inspect.getdoc(value), f"{name} has no docstring"
    tests = doctest.DocTestFinder(recurse=False).find(value, name, globs={})
    assert sum(len(test.examples) for test in tests) > 0, f"{name} has no example"
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    with registered():  # what an example registers is gone after it
        for test in tests:
            runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


# Modules whose import makes an attribute of g2n2 of that name, before or after the verb is asked.
SUBMODULES = (
    "g2n2.power.refinement", "g2n2.training.session", "g2n2.compiler.trace", "g2n2.nn.exporting",
    "g2n2.reduction.compare", "g2n2.reduction.checker", "g2n2.cli.train_commands",
)  # fmt: skip


@pytest.mark.parametrize("first", ["modules", "verbs"])
def test_no_module_takes_the_place_of_a_verb(first: str) -> None:
    verbs = f"from g2n2 import {', '.join(VERBS)}"
    others = f"import {', '.join(SUBMODULES)}"
    lines = [others, verbs] if first == "modules" else [verbs, others]
    check = "\n".join(
        [
            *lines,
            "import inspect, g2n2",
            f"for name in {VERBS!r}:",
            "    value = getattr(g2n2, name)",
            "    assert value is globals()[name], name",
            "    assert callable(value) and inspect.signature(value).parameters, name",
            "    assert name == 'power' or inspect.isfunction(value), name",
            "from g2n2.training import train as train_of_training",
            "assert train_of_training is train",
            "print(g2n2.power.refinement.refine(['Bw', 'Bw'], k=1).separated())",
        ]
    )
    assert in_fresh_process(check).split() == ["False"]


def test_every_setting_of_a_run_is_a_parameter_of_train() -> None:
    from dataclasses import fields

    from g2n2.training.config import RunConfig

    # The rules of a run are those of its grammar, written down.
    settings = {f.name: f.default for f in fields(RunConfig) if f.name != "rules"}
    parameters = inspect.signature(g2n2.train).parameters
    assert set(settings) <= set(parameters)
    for name in set(settings) - {"dataset", "options"}:
        assert parameters[name].default == settings[name], name


@pytest.mark.parametrize("other", ["compile", "G2N2"])
def test_networks_are_made_with_the_same_options(other: str) -> None:
    expected = inspect.signature(g2n2.GrammarGNN).parameters
    got = inspect.signature(getattr(g2n2, other)).parameters
    named = {name: value.default for name, value in expected.items()}
    if other == "G2N2":  # its grammar is r-G_L3, which has no marks
        del named["grammar"], named["marks"], named["trunk"]
    assert {name: value.default for name, value in got.items()} == named


# --- strings


def test_strings_go_where_objects_go() -> None:
    c6, triangles = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    grammar = g2n2.find_grammar("r-G_L3")
    assert (
        g2n2.compare("PPGN", "r-G_L3").relation
        == g2n2.compare(g2n2.find_grammar("PPGN"), grammar).relation
    )
    assert g2n2.equal("1ᵀAA1", g2n2.parse("1^T A^2 1"))
    found = g2n2.separate("r-G_L3", c6, triangles)
    assert (found.verdict, str(found.sentence)) == ("different", "1ᵀ(A²⊙A)1")
    assert g2n2.evaluate("1ᵀA1", c6) == [[12.0]]
    assert g2n2.evaluate_mod("1ᵀA1", c6, prime=7) == [[5]]
    assert g2n2.evaluate("1ᵀC1", c6, variables={"C": 2 * np.eye(6)}) == [[12.0]]
    assert g2n2.refine([c6, triangles], k=2, variant="fwl").separated()
    assert g2n2.trace("r-G_L3", "1ᵀA1", c6).steps[-1].value == [[12.0]]
    assert g2n2.requirements("r-G_L3", "1ᵀA1") == g2n2.requirements(grammar, g2n2.parse("1ᵀA1"))
    words = list(g2n2.enumerate_words("r-G_L3", "M", max_size=2))
    assert words == list(g2n2.enumerate_words(grammar, g2n2.parse("A").sort, max_size=2))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: g2n2.equal("A", 3), ParseError, "got int, expected a term or its text"),
        (lambda: g2n2.evaluate(None, "Bw"), ParseError, "got NoneType, expected a term"),
        (lambda: g2n2.compare("r-G_L3", 7), GrammarError, "got int, expected a grammar, its name"),
        (lambda: g2n2.separate("r-G_L9", "Bw", "Bg"), GrammarError, "no grammar is called"),
        (lambda: g2n2.separate("r-G_L3", "Bw", 3), DataError, "got shape []"),
        (lambda: g2n2.enumerate_words("r-G_L3", "Q").__next__(), GrammarError, "'Q' is not a variable"),
        (lambda: g2n2.power([], suite="csl"), DataError, "nothing to measure"),
        (lambda: g2n2.power("r-G_L3", suite="cls"), DataError, "did you mean csl"),
        (lambda: g2n2.check(7), ReductionError, "got int, expected a certificate"),
        (lambda: g2n2.compile("r-G_L3", width=0), G2N2Error, "a width must be a whole number"),
        (lambda: g2n2.load("no/such/place"), DataError, "no file or folder"),
        (lambda: g2n2.export("no/such/place", "a.onnx"), DataError, "no file or folder"),
        (lambda: g2n2.export(3, "a.onnx"), DataError, "got int, expected a network"),
        (lambda: g2n2.export(3, "a.txt"), DataError, "end the name in .onnx"),
        (lambda: g2n2.predict(3, ["Bw"]), DataError, "got int, expected a network"),
    ],
)  # fmt: skip
def test_a_users_mistake_is_told_in_words(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)


def test_a_derivation_and_its_certificate_go_straight_on(tmp_path: Path) -> None:
    derivation = g2n2.derive("· Tr", witnesses=False)
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(derivation.certificate), encoding="utf-8")
    for source in (derivation, derivation.reduced, str(path), "r-G_{·, Tr}"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nothing was chosen that the source does not say
            made = g2n2.compile(source, width=4, layers=1)
        assert made.plan.grammar == derivation.reduced
        assert g2n2.separate(source, "C~", "Cl").verdict == "different"
        assert g2n2.power(source, "csl", layers=1)[0].pairs == 45
        assert g2n2.compare(source, derivation.reduced).relation == "≡"
    with pytest.warns(UserWarning, match="stands for its reduced grammar"):
        layer = g2n2.GrammarLayer("· Tr", 0, 4)
    assert layer.network.plan.grammar == derivation.reduced
    with pytest.raises(GrammarError, match="no grammar is called '-'"):
        g2n2.compile("-")  # standard input is for the command line


def test_power_goes_as_deep_as_asked_and_allows_functions(tmp_path: Path) -> None:
    for layers in (1, 3):
        (row,) = g2n2.power("r-G_L3", "csl", layers=layers)
        assert len(row.by_layer) == layers + 1  # before the first layer and after each
    path = tmp_path / "walks.g6"  # as many walks of every length, other degrees
    path.write_text("FCc`G\nFk_G_\n", encoding="utf-8")
    by_functions = [g2n2.power("V → AV | 1; S → 1ᵀV", path, with_f=f)[0] for f in (False, True)]
    assert [row.separated for row in by_functions] == [0, 1]


def test_a_wl_test_stands_where_a_grammar_does() -> None:
    c6, triangles = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    assert g2n2.separate("1-WL", c6, triangles).verdict == "same"
    assert g2n2.separate("3-WL", c6, triangles).different
    with pytest.raises(GrammarError, match="no words to compare at a node"):
        g2n2.separate("3-WL", c6, triangles, level="node", at=(0, 0))
    rows = g2n2.power(["1-WL", "r-G_L1", "2-FWL"], suite="csl")
    assert [(row.grammar, row.separated) for row in rows] == [
        ("1-WL", 0),
        ("r-G_L1", 0),
        ("2-FWL", 45),
    ]
    assert g2n2.compare("r-G_L3", "3-WL").relation == "≡"
    assert g2n2.compare("1-WL", "r-G_L3").relation == "⊊"
    assert g2n2.compare("2-FWL", "3-WL").relation == "≡"
    assert g2n2.compare("2-FWL", "1-WL").relation == "⊋"
    assert g2n2.compare(g2n2.derive("·", witnesses=False).reduced, "1-WL").relation == "⊊"
    assert "equals 1-WL" in str(g2n2.compare("r-G_L1", "1-WL"))


# --- files


def test_load_says_what_it_is(tmp_path: Path) -> None:
    for name, content, said in (
        ("a.csv", "smiles,y", "graphs: g2n2.read_graphs"),
        ("a.g6.gz", "", "graphs"),
        ("a.onnx", "", "an ONNX network"),
        ("a.pt2", "", "a torch.export program"),
        ("a.json", "{}", "JSON, and no network"),
        ("b.json", '{"format": "g2n2 certificate 1"}', "a certificate: g2n2.check"),
        ("c.json", "{", "JSON that cannot be read"),
        ("a.bin", "nothing", "no whole safetensors file"),
    ):
        path = tmp_path / name
        path.write_text(content)
        with pytest.raises(DataError, match=said):
            g2n2.load(path)
    with pytest.raises(DataError, match="is no run folder"):
        g2n2.load(tmp_path)


def test_a_network_goes_out_and_comes_back(tmp_path: Path) -> None:
    import torch

    model = g2n2.compile("r-G_L1", width=4, layers=1).double()
    model.save(tmp_path / "model.safetensors")
    batch = g2n2.GraphBatch.of(["C~", "Bw"], dtype=torch.float64)
    expected = model(batch)
    again = g2n2.load(tmp_path / "model.safetensors")
    assert torch.equal(again(batch), expected)
    path = g2n2.export(tmp_path / "model.safetensors", tmp_path / "model.pt2")
    program = torch.export.load(path).module()
    got = program(batch.adjacency, batch.nodes, batch.edges, batch.mask)
    assert (got - expected).abs().max() < 1e-12
    with pytest.raises(DataError, match="make the folder first"):
        g2n2.export(model, tmp_path / "none" / "model.pt2")


@pytest.mark.parametrize("task", ["graph", "node", "edge"])
def test_predict_gives_what_the_network_gives(task: Any) -> None:
    import torch

    model = g2n2.compile("r-G_L3", width=4, layers=1, out=2, task=task).double().train()
    graphs = [nx.path_graph(4), nx.cycle_graph(3), nx.star_graph(5)]
    got = g2n2.predict(model, graphs)
    assert model.training, "the mode is given back"
    batch = g2n2.GraphBatch.of(graphs, dtype=torch.float64)
    values = model.eval()(batch).detach()
    if task == "graph":
        expected = values.numpy()
    elif task == "node":
        expected = values[batch.mask].numpy()
    else:
        pairs = zip(values, map(g2n2.adjacency, graphs), strict=True)
        expected = np.concatenate([v[np.nonzero(a)].numpy() for v, a in pairs])
        turned = np.concatenate(
            [v.transpose(0, 1)[np.nonzero(a)].numpy() for v, a in
             zip(values, map(g2n2.adjacency, graphs), strict=True)]
        )  # fmt: skip
        expected = (expected + turned) / 2
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() < 1e-12
    if task == "graph":
        for one in (graphs[0], nx.to_numpy_array(graphs[0])):
            assert np.abs(g2n2.predict(model, one) - got[:1]).max() < 1e-12
        with pytest.raises(DataError, match="got int; expected a path or a list of graphs"):
            g2n2.predict(model, 7)
        with pytest.raises(DataError, match="the list holds no graph"):
            g2n2.predict(model, [])
        assert np.array_equal(g2n2.predict(model, batch), values.numpy())
        texts = [nx.to_graph6_bytes(graph).decode() for graph in graphs]
        assert np.array_equal(g2n2.predict(model, texts), got)


def test_the_page_about_python_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[1] / "docs" / "python.md"
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {}, "python.md", str(page), 0)
    runner = doctest.DocTestRunner()
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
    assert runner.tries > 30
    table = text.split("|-|-|")[1].split("##")[0]
    assert {name for name in VERBS if f"`{name}(" not in table} == set()
