"""What a call of the flat surface is given: refused by name where it is not what is taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import g2n2
from g2n2.errors import DataError, G2N2Error, GrammarError, ReductionError
from g2n2.language.operations import OPERATIONS

R_G_L1 = g2n2.find_grammar("r-G_L1")
HEXAGON, TRIANGLES = "EhEG", "EJaG"


@pytest.mark.parametrize(
    ("call", "option", "given", "allowed"),
    [
        (lambda **o: g2n2.compare("PPGN", "r-G_L3", **o), "mode", "foo", ["words", "with f"]),
        (lambda **o: g2n2.compare("PPGN", "r-G_L3", **o), "assume", "foo", ["none", "simple"]),
        (lambda **o: g2n2.compare("PPGN", "3-WL", **o), "mode", None, ["words", "with f"]),
        (lambda **o: g2n2.compare("1-WL", "3-WL", **o), "assume", 3, ["symmetric"]),
        (lambda **o: g2n2.derive("L1", **o), "assume", "foo", ["none", "symmetric", "simple"]),
        (lambda **o: g2n2.derive("L1", **o), "level", "foo", ["graph", "node", "pair"]),
        (lambda **o: g2n2.derive("L1", **o), "order", "foo", ["direct", "paper"]),
        (lambda **o: g2n2.derive("L1", **o), "typing", "foo", ["paper", "full"]),
        (lambda **o: R_G_L1.reduce(**o), "assume", "foo", ["none", "symmetric", "simple"]),
        (lambda **o: R_G_L1.reduce(**o), "level", "foo", ["graph", "node", "pair"]),
        (lambda **o: R_G_L1.reduce(**o), "order", "foo", ["direct", "paper"]),
        (lambda **o: g2n2.enumerate_words("r-G_L1", **o), "assume", "foo", ["symmetric"]),
        (lambda **o: g2n2.equal("A", "A", **o), "assume", "foo", ["none", "symmetric", "simple"]),
        (
            lambda **o: g2n2.separate("r-G_L3", HEXAGON, TRIANGLES, **o),
            "engine",
            "foo",
            ["random_probes"],
        ),
        (lambda **o: g2n2.separate("r-G_L3", HEXAGON, TRIANGLES, **o), "level", "foo", ["pair"]),
        (lambda **o: g2n2.separate("3-WL", HEXAGON, TRIANGLES, **o), "level", "foo", ["pair"]),
        (lambda **o: g2n2.separate("3-WL", HEXAGON, TRIANGLES, **o), "engine", "foo", ["auto"]),
    ],
)
def test_an_option_takes_what_it_says(
    call: Callable[..., Any], option: str, given: object, allowed: list[str]
) -> None:
    with pytest.raises(G2N2Error) as fault:
        call(**{option: given})
    message = str(fault.value)
    assert message.startswith(f"{option}: got {given!r}, expected one of ")
    assert all(repr(word) in message for word in allowed)


@pytest.mark.parametrize(
    "operations",
    [["matmul", "trace"], {"matmul", "trace"}, ("·", "Tr"), [OPERATIONS["matmul"], "Tr"]],
)
def test_derive_takes_names_of_operations(operations: Any) -> None:
    made = g2n2.derive(operations, witnesses=False)
    assert made.exhaustive == g2n2.derive("· Tr", witnesses=False).exhaustive


@pytest.mark.parametrize(
    "wrong", [None, 3, [1, 2], b"L3", {"matmul": 1}, g2n2.find_grammar("PPGN")]
)
def test_derive_refuses_the_rest(wrong: Any) -> None:
    with pytest.raises(GrammarError, match="expected a fragment"):
        g2n2.derive(wrong)


def test_a_path_is_a_file_of_a_grammar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rules, proof = Path("PPGN"), tmp_path / "c.json"
    rules.write_text("V → AV | 1", encoding="utf-8")
    made = g2n2.derive("L1", witnesses=False)
    proof.write_text(json.dumps(made.certificate), encoding="utf-8")
    assert g2n2.compile(proof, width=2, layers=1).plan.grammar == made.reduced
    # A file named as a grammar of the catalogue is still the file.
    assert g2n2.separate(rules, HEXAGON, TRIANGLES).verdict == "same"
    assert g2n2.compare(rules, "V → AV | 1").relation == "≡"
    with pytest.raises(GrammarError, match=r"there is no file 'none\.json'"):
        g2n2.compile(Path("none.json"))


def test_explain_takes_one_graph() -> None:
    model = g2n2.compile("r-G_L3", width=2, layers=1, task="node")
    path = nx.path_graph(4)
    whole = g2n2.explain(model, [path], size=2)
    for same in (path, nx.to_numpy_array(path), g2n2.adjacency(path), "Ch"):
        assert g2n2.explain(model, same, size=2).values == whole.values == 4
    assert g2n2.explain(model, (graph for graph in [path, "Bw"]), size=2).values == 7


@pytest.mark.parametrize("wrong", [3, None, {0: [1]}])
def test_explain_refuses_what_is_no_graph(wrong: Any) -> None:
    with pytest.raises(DataError, match=r"graphs: got .*expected a list of graphs"):
        g2n2.explain(g2n2.compile("GNNML1", width=2, layers=1), wrong)


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2)], [(0, 1, 2.0), (1, 2, 1.0), (0, 2, 1.0)]])
def test_edges_are_no_matrix(edges: Any) -> None:
    with pytest.raises(DataError, match=r"is an edge.*networkx\.Graph\(edges\)"):
        g2n2.separate("r-G_L3", edges, HEXAGON)


def test_a_list_of_lists_is_a_matrix() -> None:
    assert np.array_equal(g2n2.adjacency([[0, 1], [1, 2]]), [[0, 1], [1, 2]])


def test_check_takes_a_derivation_in_any_form(tmp_path: Path) -> None:
    made = g2n2.derive("L1", witnesses=False)
    saved = tmp_path / "derived.json"
    saved.write_text(json.dumps(made.to_json()), encoding="utf-8")
    wanted = g2n2.check(made)
    assert wanted.valid
    for form in (made.certificate, made.to_json(), saved, str(saved)):
        assert g2n2.check(form) == wanted
    with pytest.raises(ReductionError, match="was changed"):
        g2n2.check({**made.to_json(), "readout": []})
