"""Exported programs and ONNX files give what the network gives, for any number of graphs and nodes."""

from collections.abc import Iterator
from io import BytesIO
from itertools import cycle
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch._dynamo.exc import UserError, UserErrorType

from cases import UNMARKED
from g2n2.compiler.grammar_to_plan import unsupported
from g2n2.compiler.presets import PRESETS
from g2n2.data.batch import GraphBatch
from g2n2.errors import DataError, G2N2Error, LoweringError
from g2n2.nn import GrammarGNN
from g2n2.nn import exporting as under_test
from g2n2.nn.exporting import INPUTS, export_onnx, export_program
from sample_batches import catalogue_network

BATCHES = ((1, 2, 7), (9,), (1,), (3, 29))
"""Sizes of the graphs of each batch; none is the one the network is traced with."""


def network(grammar: str, **options: object) -> GrammarGNN:
    return catalogue_network(grammar, **options).eval()


def batches(model: GrammarGNN, *sizes: tuple[int, ...]) -> Iterator[GraphBatch]:
    rng = np.random.default_rng(4)
    inputs, weight = model.plan.inputs, next(model.parameters())
    for batch in sizes or BATCHES:
        yield GraphBatch.of(
            [nx.gnp_random_graph(n, 0.4, seed=n) for n in batch],
            [rng.normal(size=(n, inputs.node_features)) for n in batch],
            [rng.normal(size=(n, n, inputs.edge_features)) for n in batch],
            dtype=weight.dtype,
        )


def assert_program_agrees(model: GrammarGNN) -> None:
    """The program that comes back from a file, since that is where programs go."""
    file = BytesIO()
    torch.export.save(export_program(model), file)
    file.seek(0)
    program = torch.export.load(file).module()
    for batch in batches(model):
        torch.testing.assert_close(program(*model.checked(batch)), model(batch))


def assert_onnx_agrees(model: GrammarGNN, path: Path, **options: object) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    export_onnx(model, path, **options)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert tuple(x.name for x in session.get_inputs()) == INPUTS
    sizes = [options["sizes"]] if not options.get("dynamic", True) else None
    chosen = [(n,) * count for count, n in sizes] if sizes else BATCHES
    for batch in batches(model, *chosen):
        tensors = model.checked(batch)
        feed = {name: value.numpy() for name, value in zip(INPUTS, tensors, strict=True)}
        got = torch.from_numpy(session.run(None, feed)[0])
        expected = model(batch).detach()
        scale = max(1.0, expected.abs().max().item())
        rtol, atol = (1e-12, 1e-12) if expected.dtype == torch.float64 else (1e-4, 1e-5)
        torch.testing.assert_close(got, expected, rtol=rtol, atol=atol * scale)


@pytest.mark.parametrize(
    ("grammar", "options"),
    [
        ("r-G_L3", {"task": "node", "preset": "modern"}),
        ("PPGN", {"preset": "ppgn"}),
    ],
    ids=str,
)
def test_a_program_takes_any_sizes(grammar: str, options: dict[str, object]) -> None:
    assert_program_agrees(network(grammar, **options))


def test_a_fixed_program_takes_only_its_own_sizes() -> None:
    model = network("GNNML1")
    (example,) = batches(model, (4, 2))
    program = export_program(model, example, dynamic=False).module()
    torch.testing.assert_close(program(*model.checked(example)), model(example))
    (other,) = batches(model, (4, 2, 3))
    with pytest.raises((RuntimeError, AssertionError), match=r"(?i)guard|shape|size"):
        program(*model.checked(other))


def test_an_example_of_size_one_does_not_fix_the_size() -> None:
    model = network("GNNML1")
    program = export_program(model, (1, 1)).module()
    for batch in batches(model):
        torch.testing.assert_close(program(*model.checked(batch)), model(batch))


def test_onnx_agrees_and_its_axes_have_names(tmp_path: Path) -> None:
    """Neither the normalisation's epsilon nor the typical size is a number of float32."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    model = network("GNNML1", preset="modern", typical_size=17.3).double()
    assert_onnx_agrees(model, tmp_path / "x.onnx")
    first = onnx.load(tmp_path / "x.onnx").graph.input[0]
    named = [axis.dim_param for axis in first.type.tensor_type.shape.dim]
    assert named == ["graphs", "nodes", "nodes"]


@pytest.mark.slow
def test_onnx_of_a_fixed_size(tmp_path: Path) -> None:
    assert_onnx_agrees(network("GNNML1"), tmp_path / "x.onnx", sizes=(3, 5), dynamic=False)


ALL = [
    (name, preset)
    for name, grammar in UNMARKED.items()
    for preset in PRESETS
    if not unsupported(grammar, preset, supports=True)
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grammar", "preset", "task"),
    [
        (*pair, task)
        for pair, task in zip(ALL[::30], cycle(["graph", "node", "edge"]), strict=False)
    ],
)
def test_programs_of_all_kinds(grammar: str, preset: str, task: str) -> None:
    assert_program_agrees(network(grammar, preset=preset, task=task))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grammar", "preset", "task", "readout"),
    [
        ("G_L3", "modern", "graph", "max"),
        ("2-IGN", "ppgn", "node", "mean"),
        ("r-G_L3", "paper", "edge", "sum"),
    ],
)
def test_onnx_of_grammars_presets_and_read_outs(
    grammar: str, preset: str, task: str, readout: str, tmp_path: Path
) -> None:
    options = {"preset": preset, "task": task, "readout": readout, "context": True, "layers": 1}
    assert_onnx_agrees(network(grammar, **options), tmp_path / "x.onnx")


@pytest.mark.slow
def test_onnx_in_float64_of_the_released_preset(tmp_path: Path) -> None:
    assert_onnx_agrees(network("r-G_L3", preset="official").double(), tmp_path / "x.onnx")


def test_onnx_missing_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "find_spec", lambda name: None)
    with pytest.raises(G2N2Error, match=r"onnx and onnxscript: pip install 'g2n2\[export\]'"):
        export_onnx(network("GNNML1"), tmp_path / "x.onnx")


@pytest.mark.slow
def test_eigenvectors_have_no_onnx_operator(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    with pytest.raises(LoweringError, match=r"no operator for aten\._linalg_eigh"):
        export_onnx(network("GNNML3-3"), tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_network_with_marks_as_program_and_onnx(tmp_path: Path) -> None:
    torch.manual_seed(2)
    options = {"width": 3, "layers": 1, "decision": (4,), "trunk": 1}
    model = GrammarGNN("r-G_L1ΣΣ", 2, marks="orbits", **options).eval()
    assert_program_agrees(model)
    assert_onnx_agrees(model, tmp_path / "model.onnx")


def test_a_program_of_marked_matrices_takes_any_sizes() -> None:
    torch.manual_seed(2)
    model = GrammarGNN("r-G_L3Σ", width=3, layers=1, decision=(4,)).eval()
    program = export_program(model).module()
    for batch in batches(model):
        torch.testing.assert_close(program(*model.checked(batch)), model(batch))
    batch = GraphBatch.of(["C~", "Bw"])
    program = export_program(model, batch, dynamic=False).module()
    torch.testing.assert_close(program(*model.checked(batch)), model(batch))


@pytest.mark.slow
@pytest.mark.parametrize("grammar", ["r-G_L3Σ", "r-G_L3ΣΣ", "L3Σ (full)"])
def test_marked_matrices_as_program_and_onnx(grammar: str, tmp_path: Path) -> None:
    torch.manual_seed(2)
    width, layers = (3, 2) if grammar == "r-G_L3Σ" else (2, 1)
    model = GrammarGNN(grammar, 2, 1, width=width, layers=layers, decision=(4,)).eval()
    assert_program_agrees(model)
    assert_onnx_agrees(model, tmp_path / "model.onnx")


def test_what_torch_cannot_trace_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise UserError(UserErrorType.CONSTRAINT_VIOLATION, "nodes")

    monkeypatch.setattr(torch.export, "export", refused)
    with pytest.raises(LoweringError, match="say dynamic=False and give sizes"):
        export_program(GrammarGNN("r-G_L3Σ", width=2, layers=1))
    with pytest.raises(UserError, match="nodes"):
        export_program(GrammarGNN("r-G_L3", width=2, layers=1))


def test_half_precision_is_refused_for_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    with pytest.raises(LoweringError, match=r"not torch\.bfloat16: use model\.float\(\)"):
        export_onnx(network("GNNML1").bfloat16(), tmp_path / "x.onnx")


def test_sizes_below_one_and_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="at least 1 graph of 1 node, got 0 of 5"):
        export_program(network("GNNML1"), (0, 5))
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    with pytest.raises(DataError, match=r"no folder.* make the folder first"):
        export_onnx(network("GNNML1"), tmp_path / "no folder" / "x.onnx")
