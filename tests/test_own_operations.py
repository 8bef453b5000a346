"""Operations of a user's own, through the whole chain: from text to a network that is loaded again."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
import torch

import g2n2
from g2n2.compiler.costs import kept, rule_flops
from g2n2.compiler.lowering import sums_over_nodes
from g2n2.data.batch import GraphBatch
from g2n2.errors import DataError, GrammarError, ReductionError
from g2n2.formulas.formula_plan import requirements
from g2n2.formulas.writing import write_formula
from g2n2.grammars.fragments import Fragment
from g2n2.grammars.grammar import Grammar
from g2n2.language.evaluation import evaluate
from g2n2.language.operations import OPERATIONS, Operation
from g2n2.language.parsing import parse
from g2n2.nn.files import load
from g2n2.nn.model import GrammarGNN
from g2n2.power.separation import separate
from g2n2.power.wl_tests import bounded_by_2fwl
from g2n2.reduction.certificates import certificate, digest, read_certificate, write_certificate
from g2n2.reduction.checker import check
from g2n2.reduction.reduce import include, reduce
from g2n2.testing import (
    assert_padding_invariant,
    assert_permutation_equivariant,
    registered,
)

Loops = Callable[[np.ndarray], int]


class Case(NamedTuple):
    """An operation, what to do with it, and a sentence whose value is counted by loops."""

    operation: Operation
    fragment: str
    sentence: str
    loops: Loops
    graphs: tuple[nx.Graph, nx.Graph]
    grammar: str


def closed_walks(a: np.ndarray) -> int:
    """1ᵀ dg(A·A·A): the entries (i, i) of A³, one by one."""
    n = len(a)
    return sum(a[i, j] * a[j, k] * a[k, i] for i in range(n) for j in range(n) for k in range(n))


def walks(a: np.ndarray) -> int:
    """1ᵀ rs(A·A)."""
    n = len(a)
    return sum(a[i, j] * a[j, k] for i in range(n) for j in range(n) for k in range(n))


def triangles_at_edges(a: np.ndarray) -> int:
    """Tr(A·tri(A, A, A)): for each edge (i, j) the triangles through it."""
    n = len(a)
    return sum(
        a[j, i] * a[i, j] * a[j, k] * a[k, i] for i in range(n) for j in range(n) for k in range(n)
    )


HEXAGON = nx.cycle_graph(6)
TWO_TRIANGLES = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
CASES = [
    Case(
        Operation("dg", "dg", "aa->a1"), "· ᵀ 1 dg", "1ᵀdg(A³)", closed_walks,
        (HEXAGON, TWO_TRIANGLES), "V → dg(M) | 1; M → MM | A; S → 1ᵀV",
    ),
    Case(
        Operation("rs", "rs", "ab->a1"), "· ᵀ 1 rs ⊙", "1ᵀrs(A²)", walks,
        (nx.path_graph(4), nx.star_graph(3)), "V → rs(M) | 1; M → MM | A; S → 1ᵀV",
    ),
    Case(
        Operation("tri", "△", "ab,bc,ca->ab"), "· Tr tri", "Tr(A△(A, A, A))", triangles_at_edges,
        (HEXAGON, TWO_TRIANGLES), "M → △(M, M, M) | MM | A; S → Tr(M)",
    ),
]  # fmt: skip
GRAPHS = [nx.cycle_graph(5), nx.path_graph(4), nx.complete_graph(4), TWO_TRIANGLES, HEXAGON]


@pytest.fixture(params=CASES, ids=lambda case: case.operation.name)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    with registered(request.param.operation):
        yield request.param


def test_proofs_are_checked_and_tampering_is_refused(case: Case, tmp_path: Path) -> None:
    reduction = reduce(Fragment(case.fragment).exhaustive())
    assert len(reduction.reduced.all_rules) < len(reduction.original.all_rules)
    content = certificate(reduction.original, reduction.reduced, reduction.links)
    verdict = check(content)
    assert verdict.valid, verdict.failure
    assert verdict.operations == (f"{case.operation.name} {case.operation.signature}",)
    for change in ("drop", "redefine", "built in", "bijection"):
        forged = tampered(content, change)
        assert not check(forged).valid, change
    # About another operation the proof may hold too; then that one is what it declares.
    other = check(tampered(content, "other signature"))
    assert not other.valid or other.operations != verdict.operations
    if case.operation.name != "tri":
        return
    path = tmp_path / "proof.json"
    write_certificate(content, path)
    done = command("check", str(path), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"declares: {case.operation.name} {case.operation.signature}" in done.stdout


def tampered(content: dict[str, Any], change: str) -> dict[str, Any]:
    """The certificate with one thing changed, and a digest that fits."""
    forged = copy.deepcopy(content)
    (entry,) = forged["operations"]
    if change == "drop":
        del forged["operations"]
    elif change == "redefine":
        forged["operations"].append({"name": "trace", "symbol": "Tr", "signature": "ab->11"})
    elif change == "other signature":  # another one of the same typing
        other = {"aa->a1": "ab->a1", "ab->a1": "aa->a1", "ab,bc,ca->ab": "ab,bc,ca->ba"}
        entry["signature"] = other[entry["signature"]]
    elif change == "built in":
        entry["name"] = "diag"
    else:
        for obligation in forged["links"][0]["proof"]["obligations"]:
            obligation["bijection"] = [v + 1 for v in obligation["bijection"]] or [0]
    return {**forged, "digest": digest(forged)}


def test_another_meaning_does_not_pass_the_checker() -> None:
    """A certificate for row sums, declared as the diagonal: in a process that knows neither."""
    with registered(Operation("rs", "rs", "ab->a1")):
        larger = Grammar.parse("V → rs(M) | 1; M → MM | A; S → 1ᵀV")
        smaller = Grammar.parse("V → MV | 1; M → A; S → 1ᵀV")
        proved = include(larger, smaller, "symmetric", "graph")
        assert proved is not None
        content = certificate(larger, smaller, [proved])
    assert check(content).valid
    content["operations"][0]["signature"] = "aa->a1"
    verdict = check({**content, "digest": digest(content)})
    assert not verdict.valid
    assert "bijection" in verdict.failure


def test_a_certificate_and_a_table_that_disagree(tmp_path: Path) -> None:
    with registered(Operation("dg", "dg", "aa->a1")):
        reduction = reduce(Fragment("· ᵀ 1 dg").exhaustive())
        content = certificate(reduction.original, reduction.reduced, reduction.links)
        write_certificate(content, tmp_path / "proof.json")
    with registered():
        read_certificate(tmp_path / "proof.json", register_operations=True)
        assert OPERATIONS["dg"].signature == "aa->a1"
        assert Grammar.parse("; ".join(content["to"])) == reduction.reduced
    other = Operation("dg", "dg", "ab->a1")
    with registered(other):
        for _ in range(2):  # the second time, parsed rules are known
            verdict = check(content)
            assert verdict.valid, verdict.failure
            assert verdict.operations == ("dg aa->a1",)
            assert g2n2.check(tmp_path / "proof.json") == verdict
            assert OPERATIONS["dg"] == other
        forged = copy.deepcopy(content)
        forged["operations"][0]["signature"] = "ab->a1"
        assert not check({**forged, "digest": digest(forged)}).valid
        with pytest.raises(ReductionError, match="cannot be used here: the name dg is taken by dg"):
            read_certificate(tmp_path / "proof.json", register_operations=True)
    with registered(Operation("other", "other", "ab->a1", ("dg",))):
        assert check(content).valid
    assert "dg" not in OPERATIONS


def test_a_certificate_redefines_nothing_built_in() -> None:
    content = g2n2.derive("L1", witnesses=False).certificate
    content["operations"] = [{"name": "diag", "symbol": "diag", "signature": "aa->a1"}]
    verdict = check({**content, "digest": digest(content)})
    assert not verdict.valid
    assert "built in" in verdict.failure


def test_graphs_are_told_apart_by_a_sentence(case: Case) -> None:
    found = separate(Fragment(case.fragment).exhaustive(), *case.graphs)
    assert found.verdict == "different"
    assert found.sentence is not None
    values = [evaluate(found.sentence, graph).item() for graph in case.graphs]
    assert values == [float(value) for value in found.values]
    assert values[0] != values[1]


def test_words_are_written_into_networks(case: Case) -> None:
    grammar = Grammar.parse(case.grammar)
    term = parse(case.sentence)
    needed = requirements(grammar, term)
    model = GrammarGNN(
        grammar, width=dict(needed.width), layers=needed.depth, decision=(2,), preset="paper"
    ).double()
    write_formula(model, term)
    batch = GraphBatch.of(GRAPHS, dtype=torch.float64)
    wanted = [[evaluate(term, graph).item()] for graph in GRAPHS]
    np.testing.assert_allclose(model(batch).detach().numpy(), wanted, rtol=1e-9)


def test_networks_train_and_are_loaded_in_a_fresh_process(tmp_path: Path) -> None:
    batch = GraphBatch.of(GRAPHS)
    for case, preset in product(CASES, ("paper", "modern")):
        with registered(case.operation):
            torch.manual_seed(0)
            reduced = reduce(Fragment(case.fragment).exhaustive()).reduced
            model = GrammarGNN(reduced, width=8, layers=2, preset=preset)
            target = torch.tensor([[float(case.loops(nx.to_numpy_array(g)))] for g in GRAPHS]) / 100
            optimiser = torch.optim.Adam(model.parameters(), lr=0.001)
            losses = []
            for _ in range(15):
                loss = ((model(batch) - target) ** 2).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses.append(loss.item())
            assert min(losses) < losses[0]
            name = f"{case.operation.name}-{preset}"
            model.save(tmp_path / f"{name}.safetensors")
            np.save(tmp_path / f"{name}.npy", model(batch).detach().numpy())
    program = (
        "import numpy, torch, networkx as nx\n"
        "from pathlib import Path\n"
        "from g2n2.nn.files import load\n"
        "from g2n2.data.batch import GraphBatch\n"
        "two = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))\n"
        "graphs = [nx.cycle_graph(5), nx.path_graph(4), nx.complete_graph(4), two]\n"
        "batch = GraphBatch.of([*graphs, nx.cycle_graph(6)])\n"
        "for path in Path().glob('*.safetensors'):\n"
        "    got, wanted = load(path)(batch).detach().numpy(), numpy.load(path.with_suffix('.npy'))\n"
        "    numpy.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6, err_msg=path.stem)\n"
        "    print(path.stem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 6


OTHERS = [
    "ab,ab->11", "ab,cb->ac", "->aa", "->1a", "aa->aa", "ab->b1", "ab,bc,cd->ad", "ab->cd",
    "a1,a1,b1->ab", "ab,ac,bc->11",
]  # fmt: skip


@pytest.mark.parametrize("backend", ["reference", "packed"])
@pytest.mark.parametrize(("ours", "built_in"), [("zz(M, A)", "MA"), ("zz(A, M)", "AM")])
def test_a_constant_may_be_any_operand(ours: str, built_in: str, backend: str) -> None:
    outputs = []
    with registered(Operation("zz", "zz", "ab,bc->ac")):
        for body in (ours, built_in):
            torch.manual_seed(0)
            text = f"M → {body} | A; S → Tr(M)"
            model = GrammarGNN(text, width=3, layers=2, preset="paper", backend=backend).double()
            outputs.append(model(GraphBatch.of(GRAPHS).to(torch.float64)))
    torch.testing.assert_close(*outputs)


@pytest.mark.parametrize("signature", OTHERS)
def test_other_operations_go_all_the_way(signature: str, tmp_path: Path) -> None:
    """Derive, check, separate, and a network that keeps to the nodes, is saved and loaded."""
    batch = GraphBatch.of(GRAPHS)
    with registered(Operation("zz", "zz", signature)):
        for fragment, preset in (("· zz Tr", "paper"), ("1 zz", "modern")):
            reduction = reduce(Fragment(fragment).exhaustive("full"), alternatives=False)
            content = certificate(reduction.original, reduction.reduced, reduction.links)
            verdict = check(json.loads(json.dumps(content)))
            assert verdict.valid, verdict.failure
            if reduction.original.sentence_rules:
                whole, less = (
                    separate(grammar, HEXAGON, nx.complete_graph(6)).verdict
                    for grammar in (reduction.original, reduction.reduced)
                )
                assert whole == less
            torch.manual_seed(1)
            model = GrammarGNN(reduction.original, width=4, layers=2, preset=preset)
            assert_permutation_equivariant(model, batch)
            assert_padding_invariant(model, batch)
            out = model(batch)
            out.sum().backward()
            model.save(tmp_path / "model.safetensors")
            assert torch.equal(load(tmp_path / "model.safetensors")(batch), out)


def test_costs_of_an_operation_follow_its_steps() -> None:
    """tri multiplies two matrices, 2n³, and the result with the third, n²; it keeps all four."""
    with registered(Operation("tri", "tri", "ab,bc,ca->ab"), Operation("all", "all", "ab->11")):
        body = Grammar.parse("M → tri(M, M, M) | A").rules[0].body
        assert rule_flops(body, 7) == 2 * 7**3 + 7**2
        assert kept(body, 7) == 4 * 7**2
        assert sums_over_nodes(body) == 1
        total = Grammar.parse("M → MM | A; S → all(M)").readout[0].body
        assert (rule_flops(total, 7), kept(total, 7), sums_over_nodes(total)) == (49, 0, 2)


def test_a_file_and_a_table_that_disagree(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with registered(Operation("dg", "dg", "aa->a1")):
        GrammarGNN(Grammar.parse("V → dg(M) | 1; M → MM | A"), width=4).save(path)
    with registered(Operation("dg", "dg", "ab->a1")), pytest.raises(DataError, match="taken by dg"):
        load(path)
    with registered():
        load(path)
        assert OPERATIONS["dg"].signature == "aa->a1"


def test_what_2fwl_bounds() -> None:
    with registered(
        Operation("tri", "tri", "ab,bc,ca->ab"),
        Operation("path3", "path3", "ab,bc,cd->ad"),
        Operation("clique", "clique", "ab,ac,ad,bc,bd,cd->11"),
        Operation("diamond", "diamond", "ab,ac,ad,bd,cd->bc"),
    ):
        assert bounded_by_2fwl(["matmul", "hadamard", "trace", "one", "tri", "path3"])
        assert not bounded_by_2fwl(["matmul", "clique"])
        assert not bounded_by_2fwl(["diamond"])
        assert not bounded_by_2fwl(["matmul", "f_M"])


def command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "g2n2", *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    (tmp_path / "my_operations.py").write_text(
        "import g2n2\ng2n2.register(g2n2.Operation('dg', 'dg', 'aa->a1'))\n"
    )
    (tmp_path / "crashes.py").write_text("raise RuntimeError('boom')\n")
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "clashes.py").write_text(
        "import g2n2\ng2n2.register(g2n2.Operation('diag', 'diag', 'aa->a1'))\n"
    )
    return tmp_path


@pytest.mark.parametrize("name", ["my_operations", "my_operations.py"])
def test_plugins(plugins: Path, name: str) -> None:
    done = command("--plugin", name, "words", "V → dg(M); M → MM | A", folder=plugins)
    assert done.returncode == 0, done.stderr
    assert "1ᵀdg(A)" in done.stdout
    without = command("words", "V → dg(M); M → MM | A", folder=plugins)
    assert without.returncode == 2
    assert "--plugin" in without.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("crashes", "RuntimeError: boom"),
        ("leaves", "SystemExit"),
        ("clashes", "taken by diag"),
        ("nowhere", "no module is called 'nowhere'"),
        ("nowhere.py", "there is no file 'nowhere.py'"),
    ],
)
def test_plugins_that_cannot_be_used(plugins: Path, name: str, message: str) -> None:
    done = command("--plugin", name, "words", "L1", folder=plugins)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["PPGN", "ppgn", "GNNML1", "G_L3", "TriMul", "G2N2", "MPNN"])
def test_names_of_grammars_are_taken(name: str) -> None:
    with registered(), pytest.raises(GrammarError, match="is a grammar of the catalogue"):
        g2n2.register(Operation(name, name, "aa->a1"))


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (Operation("mm", "mm", "ab,bc->ac"), "the name 'mm' is already an alias of ·; choose"),
        (Operation("dg", "Tr", "aa->a1"), "the spelling 'Tr' is already the symbol of Tr; choose"),
        (Operation("dg", "dg", "aa->a1", ("trace",)), "'trace' is already the name of Tr; choose"),
    ],
)
def test_taken_spellings(operation: Operation, message: str) -> None:
    with registered(), pytest.raises(GrammarError, match=message):
        g2n2.register(operation)


def test_the_public_names() -> None:
    with registered():
        made = g2n2.register(g2n2.Operation("dg", "dg", "aa->a1"))
        assert g2n2.parse("dg(A)").sort == g2n2.parse("A1").sort
        assert json.loads(json.dumps(made.signature)) == "aa->a1"
    with pytest.raises(GrammarError, match="an operation was expected"):
        g2n2.register("aa->a1")


def test_the_checker_hides_nothing_from_other_threads() -> None:
    """It works with a table of its own; parsing goes on beside it."""
    reduction = reduce(Fragment("· ᵀ 1").exhaustive(), alternatives=False)
    content = certificate(reduction.original, reduction.reduced, reduction.links)
    g2n2.register(Operation("dg", "dg", "aa->a1"))
    try:
        with ThreadPoolExecutor(2) as pool:
            checks = [pool.submit(check, content) for _ in range(30)]
            while not all(done.done() for done in checks):
                assert str(parse("1ᵀdg(A²)")) == "1ᵀdg(A²)"
        assert all(done.result().valid for done in checks)
    finally:
        del OPERATIONS["dg"]
