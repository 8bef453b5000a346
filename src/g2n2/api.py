"""Public functions that join several parts: check, compare, compile, export, load, predict.

`from g2n2 import …` gives them; nothing here imports torch before it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from .errors import DataError, GrammarError, ReductionError
from .grammars.coercion import GrammarLike, as_grammar, told_apart
from .grammars.grammar import Grammar
from .input_files import parse_json, read_text_file
from .language.patterns import ASSUMPTIONS, Assumption
from .pipeline import Derivation
from .pipeline import compare as compare_grammars
from .placement import SYMBOLS, Statement, against_test, compared_tests, turned
from .power.suites import Suite
from .power.table import PowerTable, power_row, wl_row
from .power.wl_tests import WLTest
from .reduction.certificates import certificate_in, read_certificate
from .reduction.checker import CheckResult
from .reduction.checker import check as verify
from .reduction.compare import MODES, Comparison, Mode, with_functions
from .validation import check_option
from .verdict import Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import nn

    from .compiler.marks import Marks
    from .compiler.presets import Preset
    from .compiler.readout_plan import Task
    from .data.graph_set import GraphSet
    from .nn.model import GrammarGNN
    from .training.evaluate import Outcome
    from .training.run import Run


def check(certificate: str | Path | Mapping[str, Any] | Derivation) -> CheckResult:
    """Check a certificate with the checker that shares no code with the search.

    >>> from g2n2 import check, derive
    >>> verdict = check(derive("L1", witnesses=False))
    >>> verdict.valid, verdict.claims
    (True, ('equal power, symmetric A, graph level',))

    Args:
        certificate: A file that `g2n2 derive` wrote, with `--out` or by `--json`, the content of
            either, or a derivation. The operations it declares are its own: others of this process
            do not matter.

    Returns:
        Whether every link holds, how many obligations were checked, and what fails if one does.

    Raises:
        ReductionError: The file cannot be read or is no certificate.
    """
    if isinstance(certificate, str | os.PathLike):
        return verify(read_certificate(Path(certificate), register_operations=False))
    content = getattr(certificate, "certificate", certificate)
    if not isinstance(content, Mapping):
        raise ReductionError(
            f"got {type(certificate).__name__}, expected a certificate: a path, its content, or "
            "what derive gives"
        )
    given = dict(content)
    return verify(certificate_in(given, "what was given") if "certificate" in given else given)


@dataclass(frozen=True)
class WLComparison:
    """A WL test set against a grammar or another test, on simple undirected graphs."""

    left: str  # the name of the one side
    right: str  # the name of the other
    statement: Statement  # how the left stands to the right, and why

    @property
    def relation(self) -> str:
        """≡, ⊊, ⊋, `incomparable`, or as much of it as is settled, as of a `Comparison`."""
        return SYMBOLS[self.statement.relation]

    def __str__(self) -> str:
        return str(Verdict((self.statement,)))


def compare(
    left: GrammarLike, right: GrammarLike, mode: Mode = "words", assume: Assumption = "symmetric"
) -> Comparison | WLComparison:
    """Which of two grammars tells more graphs apart: by proof, or by a pair that refutes it.

    >>> from g2n2 import compare
    >>> compare("PPGN", "r-G_L3").relation, compare("r-G_L3", "1-WL").relation
    ('⊊', '⊋')

    Args:
        left: A grammar, what `derive` gives, text as `g2n2.separate` takes it, or a WL test:
            `1-WL`, `3-WL`, `2-FWL` ….
        right: Another.
        mode: As `words` alone, or `with f`: sums and pointwise functions added.
        assume: What is known of A; a WL test is compared on simple undirected graphs.

    Raises:
        GrammarError: There is no such grammar or test, or an option is none of those above.
    """
    check_option("mode", mode, MODES, GrammarError)
    check_option("assume", assume, ASSUMPTIONS, GrammarError)
    first, second = told_apart([_test_or_grammar(left), _test_or_grammar(right)], [left, right])
    if isinstance(first, WLTest) or isinstance(second, WLTest):
        return compare_with_test(first, second, mode)
    return compare_grammars(first, second, mode, assume)


def compare_with_test(
    first: WLTest | Grammar, second: WLTest | Grammar, mode: Mode
) -> WLComparison:
    """A WL test on one side, or on both: theorems, simulations and pairs of graphs decide."""
    if isinstance(first, WLTest) and isinstance(second, WLTest):
        return WLComparison(first.name, second.name, compared_tests(first, second))
    test, grammar = (first, second) if isinstance(first, WLTest) else (second, first)
    assert isinstance(test, WLTest)
    assert not isinstance(grammar, WLTest)
    how = "as words" if mode == "words" else "with functions, in the limit"
    about = f"{grammar.name} {how}"
    if grammar.sentence_rules:
        statement = against_test(grammar, test, mode != "words", about)
    else:
        silent = "it has no sentences, so it tells nothing apart"
        statement = Statement(about, "strictly below", test.name, (silent,))
    return WLComparison(
        first.name,
        second.name,
        statement if first is grammar else turned(statement, test.name, how),
    )


def measure_power(
    grammars: GrammarLike | Sequence[GrammarLike],
    suite: str | Path | Suite | Sequence[str | Path | Suite],
    readout: str | None,
    layers: int | None,
    with_f: bool,
    pairs: bool,
    data: str | Path | None,
) -> PowerTable:
    """Every grammar on every suite; `g2n2.power` says what the arguments mean."""
    from .data.suites import find_suite

    given = list(grammars) if isinstance(grammars, list | tuple) else [cast(GrammarLike, grammars)]
    suites = [suite] if isinstance(suite, str | Path | Suite) else list(suite)
    if not given or not suites:
        raise DataError("nothing to measure: give at least one grammar and one suite")
    chosen = told_apart([_test_or_grammar(grammar) for grammar in given], given)
    rows = []
    for loaded in [find_suite(suite, pairs, data) for suite in suites]:
        for one in chosen:
            if isinstance(one, WLTest):
                rows.append(wl_row(one, loaded))
                continue
            grammar = with_functions(one) if with_f else one
            rows.append(power_row(grammar, loaded, readout, layers))
    return PowerTable(tuple(rows))


def _test_or_grammar(grammar: GrammarLike) -> WLTest | Grammar:
    test = WLTest.find(grammar) if isinstance(grammar, str) else None
    return test or as_grammar(grammar)


def compile(
    grammar: GrammarLike = "r-G_L3",
    node_features: int = 0,
    edge_features: int = 0,
    width: int | Mapping[str, int] = 64,
    layers: int = 3,
    out: int = 1,
    task: Task = "graph",
    readout: str | Mapping[str, str] | None = None,
    preset: str | Preset = "modern",
    pooling: str | Mapping[str, str] | None = None,
    functions: str = "mlp",
    pair_bias: bool | None = None,
    pair_norm: str | None = None,
    marks: Marks = "all",
    trunk: int = 0,
    decision: tuple[int, ...] | None = None,
    context: bool = False,
    directed: bool = False,
    supports: nn.Module | None = None,
    typical_size: float = 16.0,
    memory_budget: int | None = None,
    backend: str = "auto",
) -> GrammarGNN:
    """The network of a grammar; the arguments are those of `GrammarGNN`.

    A fragment stands for its reduced grammar, and a warning says so.

    >>> from g2n2 import compile
    >>> model = compile("r-G_L3", node_features=5, width=8, layers=2)
    >>> model.plan.grammar.name, len(model.layers)
    ('r-G_L3', 2)

    Raises:
        GrammarError: There is no such grammar.
        LoweringError: The grammar cannot be compiled as asked.
    """
    options = dict(locals())  # before any other name is bound here
    from .nn.model import GrammarGNN

    return GrammarGNN(**options)


def load(path: str | Path, device: str = "auto") -> GrammarGNN | Run:
    """What a file or folder of ours holds: a network, or a run with its network and scores.

    >>> import tempfile
    >>> from g2n2 import compile, load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     compile("GNNML1", width=4, layers=1).save(f"{folder}/model.safetensors")
    ...     load(f"{folder}/model.safetensors").plan.grammar.name
    'GNNML1'

    Args:
        path: A run folder, a network's file (`model.save`, a run's `best.safetensors`), or the name
            of a network of `g2n2.pretrained`.
        device: `auto`, `cpu` or `cuda`; `auto` is the CPU for a network, and for a run a GPU where
            there is one.

    Raises:
        DataError: It is neither; the message says what it is and what reads it.
    """
    from .training.run import Run, pretrained, pretrained_names

    file = Path(path)
    if os.path.isdir(file):
        return Run(file, device)
    if not os.path.exists(file):
        if str(path) in pretrained_names():
            return pretrained(str(path), device)
        raise DataError(f"no file or folder {str(path)!r}: check the path")
    if other := _other_content(file):
        raise DataError(f"{path} holds {other}")
    from .nn.files import load as load_network

    return load_network(file, "cpu" if device == "auto" else device)


_ELSEWHERE = {
    ".onnx": "an ONNX network: onnxruntime.InferenceSession(path) runs it",
    ".pt2": "a torch.export program: torch.export.load(path).module() runs it",
    ".toml": "settings: g2n2 train --config runs them",
    **dict.fromkeys(
        (".csv", ".tsv", ".smi", ".sdf", ".mol", ".xyz", ".g6", ".graph6", ".npz"),
        "graphs: g2n2.read_graphs(path) reads them",
    ),
}


def _other_content(path: Path) -> str:
    """What a file that is no network holds and what reads it; empty where it may be a network."""
    ending = path.name.lower().removesuffix(".gz")
    for suffix, content in _ELSEWHERE.items():
        if ending.endswith(suffix):
            return content
    if not ending.endswith(".json"):
        return ""
    try:
        content = parse_json(read_text_file(path, "expected JSON"))
    except ValueError:
        return "JSON that cannot be read; a network is a .safetensors file"
    if isinstance(content, dict) and str(content.get("format", "")).startswith("g2n2 certificate"):
        return "a certificate: g2n2.check(path) checks it"
    return "JSON, and no network; name the run folder, or a .safetensors file"


def export(
    model: GrammarGNN | Run | str | Path,
    path: str | Path,
    *,
    sizes: tuple[int, int] = (2, 8),
    dynamic: bool = True,
) -> Path:
    """Write a network for other programs: `.onnx` for ONNX, `.pt2` for `torch.export`.

    >>> import tempfile, torch
    >>> from g2n2 import compile, export
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = export(compile("GNNML1", width=4, layers=1), f"{folder}/model.pt2")
    ...     torch.export.load(path).module()(*[torch.ones(1, 3, 3), torch.ones(1, 3, 0),
    ...         torch.ones(1, 3, 3, 0), torch.ones(1, 3, dtype=torch.bool)]).shape
    torch.Size([1, 1])

    Args:
        model: A network, a run, or the path of either.
        path: Where it goes; the ending says as what.
        sizes: How many graphs of how many nodes it takes; means nothing where dynamic.
        dynamic: Whether it takes any number of graphs and of nodes.

    Returns:
        The path.

    Raises:
        DataError: Another ending, or the file cannot be written.
        LoweringError: The network uses something the format has no operator for.
    """
    target = Path(path)
    if target.suffix not in (".onnx", ".pt2"):
        raise DataError(
            f"cannot export to {target.name!r}: end the name in .onnx (ONNX) or .pt2 "
            "(torch.export); model.save writes .safetensors"
        )
    from .nn.exporting import export_onnx, export_program

    network = network_of(model)
    if target.suffix == ".onnx":
        export_onnx(network, target, sizes, dynamic)
        return target
    if not target.parent.is_dir():
        raise DataError(f"cannot write {str(path)!r}: make the folder first")
    import torch

    try:
        torch.export.save(export_program(network, sizes, dynamic), target)
    except OSError as fault:
        raise DataError(f"cannot write {str(path)!r}: {fault.strerror or fault}") from fault
    return target


def network_of(model: GrammarGNN | Run | str | Path) -> GrammarGNN:
    """The network of a model, of a run, or of a path to either."""
    from .nn.model import GrammarGNN

    held = load(model) if isinstance(model, str | os.PathLike) else model
    network = held if isinstance(held, GrammarGNN) else getattr(held, "model", None)
    if not isinstance(network, GrammarGNN):
        got = f"got {type(model if network is None else network).__name__}"
        if baseline := getattr(getattr(held, "config", None), "baseline", None):
            got = f"{held.folder} is a run of the baseline {baseline}"
        raise DataError(
            f"{got}, expected a network of a grammar, a run of one, or the path of either"
        )
    return network


@overload
def predict(
    model: GrammarGNN,
    graphs: Any,
    *,
    options: Mapping[str, Any] | None = None,
    device: str = "auto",
) -> NDArray[np.float64]: ...
@overload
def predict(
    model: Run | str | Path,
    graphs: Any,
    *,
    options: Mapping[str, Any] | None = None,
    device: str = "auto",
) -> Outcome: ...
def predict(
    model: GrammarGNN | Run | str | Path,
    graphs: Any,
    *,
    options: Mapping[str, Any] | None = None,
    device: str = "auto",
) -> Outcome | NDArray[np.float64]:
    """Predictions of a run, or outputs of a network, for new graphs in their order.

    >>> from g2n2 import compile, predict
    >>> model = compile("GNNML1", width=4, layers=1)
    >>> predict(model, ["C~", "Bw"]).shape
    (2, 1)

    Args:
        model: A run or its folder; or a network or its file, whose bare outputs are given.
        graphs: A file, a folder, a data set's name, a `GraphSet`, or graphs in memory: a list of
            networkx graphs or PyG `Data`, of SMILES or RDKit molecules for a run on molecules (or
            one of them), of anything `g2n2.graphs.adjacency` takes where there are no features; a
            `GraphBatch` or PyG `Batch` for a network.
        options: Of reading a file, as `g2n2.read_graphs` has them.
        device: `auto`, `cpu` or `cuda`, where a path is given; what is loaded stays where it is.

    Returns:
        For a run an `Outcome`: `.values`, `.rows()` with ids and units, `.to_csv(path)`. For a
        network an array `[rows, out]`, one row for each graph, node or edge.

    Raises:
        DataError: The graphs cannot be read, or do not fit.
    """
    from .training.run import Run

    held = load(model, device) if isinstance(model, str | os.PathLike) else model
    if isinstance(held, Run):
        return held.predict(graphs, options)
    return _outputs(network_of(held), graphs, options)


def _outputs(
    model: GrammarGNN, graphs: Any, options: Mapping[str, Any] | None
) -> NDArray[np.float64]:
    """Bare outputs of a network, one row for each graph, node or edge."""
    import numpy as np
    import torch

    from .data.batch import GraphBatch
    from .data.store import GraphStore
    from .training.evaluate import outputs

    weight, training = next(model.parameters()), model.training
    model.eval()
    try:
        if isinstance(graphs, GraphBatch) or hasattr(graphs, "edge_index"):
            with torch.no_grad():
                values: NDArray[np.float64] = model(graphs).double().cpu().numpy()
            return values
        graph_set = _fitting(model, _graph_set(model, graphs, options))
        store = GraphStore(graph_set, weight.device, (), weight.dtype, model.columns_only)
        values_by_batch, rows = outputs(model, store, np.arange(len(graph_set)))
        return values_by_batch[np.argsort(rows)]
    finally:
        model.train(training)


def _graph_set(model: GrammarGNN, graphs: Any, options: Mapping[str, Any] | None) -> GraphSet:
    """Graphs from a path, a data set's name, or memory, without targets."""
    from .data.graph_set import GraphSet
    from .data.readers import Options
    from .data.readers.objects import read_matrices
    from .data.reading import graphs_in_memory, read_with
    from .training.setup import read_source

    if isinstance(graphs, GraphSet):
        return graphs
    if isinstance(graphs, str | os.PathLike):
        return read_source(str(graphs), None, {"target": (), **(options or {})})
    inputs = model.plan.inputs
    if inputs.node_features or inputs.edge_features or options:
        return read_with(graphs, {"target": (), **(options or {})})
    return read_matrices(graphs_in_memory(graphs), Options())


def _fitting(model: GrammarGNN, graphs: GraphSet) -> GraphSet:
    """The graphs with a row for each output, and no features for a network that reads none."""
    import numpy as np

    inputs, task = model.plan.inputs, model.plan.readout.task
    rows = replace(graphs, level=task).row_offsets[-1]
    nodes, edges = graphs.node_features, graphs.edge_features
    return replace(
        graphs,
        node_features=nodes if inputs.node_features else nodes[:, :0],
        edge_features=edges if inputs.edge_features else edges[:, :0],
        targets=np.zeros((rows, 0)),
        columns=(),
        level=task,
    )
