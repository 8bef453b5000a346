"""The full benchmarks: cases, peers, what becomes of cases that cannot run, kept figures."""

import ast
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import g2n2
from g2n2 import bench as library
from g2n2.bench import Effort, Workload, drawn_molecules
from g2n2.errors import DataError
from g2n2.ops import packed, packed_mlp
from g2n2_paper.bench import block_diagonal, cases, measures, run
from g2n2_paper.bench.block_diagonal import Blocks
from g2n2_paper.bench.cases import Case, cases_for
from g2n2_paper.bench.run import (
    Bench,
    hidden_layers,
    keep_result,
    read_results,
    read_rows,
    sized_graphs,
)
from g2n2_paper.cli import app
from g2n2_paper.report import performance
from g2n2_paper.report.performance import cell, is_met, number

ROOT = Path(__file__).parents[3]
CPU = torch.device("cpu")
TINY = Case(
    "tiny",
    "nodes",
    batch=2,
    nodes=6,
    width=4,
    layers=1,
    precision="32",
    batches=1,
    devices=("cpu",),
)


@pytest.fixture(scope="module")
def bench():
    """One for all tests: peaks are measured once."""
    torch.set_num_threads(1)
    return Bench(CPU, quick=True)


def test_blocks_are_the_matrices_of_the_graphs():
    mask = torch.tensor([[True, True, False], [True, True, True]])
    blocks = Blocks.of(mask)
    pairs = torch.arange(1.0, 14.0)[:, None]
    whole = blocks.matrix(pairs)[0]
    expected = torch.block_diag(
        torch.arange(1.0, 5.0).view(2, 2), torch.arange(5.0, 14.0).view(3, 3)
    )
    assert torch.equal(whole, expected)
    assert torch.equal(blocks.pairs(whole[None]), pairs)


@pytest.mark.parametrize("layers", [1, 3])
def test_the_released_algorithm_computes_what_the_reference_does(layers):
    work = Workload.of(drawn_molecules(5), 5, CPU, "paper", width=6, layers=layers)
    model = work.network().double()
    model.backend = "reference"
    batch = work.batch(work.batches[0]).to(torch.float64)
    gradients = []
    for forward in (model, block_diagonal.forward_of(model)):
        model.zero_grad()
        outputs = forward(batch)
        (outputs * torch.arange(1.0, 6.0)[:, None]).sum().backward()
        gradients.append([outputs.detach(), *(p.grad.clone() for p in model.parameters())])
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_case_is_measured_beside_its_peers(bench, monkeypatch):
    (case,) = cases_for("cpu", ["cpu-train-32"])
    ratios = iter([8.0, 9.0, 10.0])
    monkeypatch.setattr(library, "times_slower", lambda *_: next(ratios))
    result = bench.run(case)
    assert result["status"] == "measured", result["reason"]
    found = {peer: row["ratio"] for peer, row in result["peers"].items()}
    assert found == {"reference": 8.0, "ppgn": 9.0, "block-diagonal": 10.0}
    assert result["check"]["outputs"] <= result["check"]["outputs_allowed"]
    share = result["figures"]["tflops"] / result["made_with"]["peak_tflops"]["32"]
    assert result["figures"]["share_of_peak"] == pytest.approx(share)
    seconds = 8 / result["figures"]["graphs_per_second"]  # two batches of four in a quick run
    sizes = drawn_molecules(8).sizes
    flops = measures.useful_flops(replace(TINY, width=8, layers=2), sizes)
    assert result["figures"]["tflops"] == pytest.approx(flops / seconds / 1e12)


def test_arithmetic_of_a_pair_by_hand():
    # selectors 5·2², MLP 6·16 + 16·2, product 3·2; two FLOP each
    assert measures.pair_flops(2, 3) == 2 * (20 + 96 + 32 + 6)
    infer = replace(TINY, kind="infer", width=2)
    assert measures.useful_flops(infer, np.array([3, 3])) == 2 * 9 * 2 * 154
    # the page: 0.31 MFLOP a pair at S = 64 and n = 18, 298 for each byte
    assert measures.pair_flops(64, 18) == pytest.approx(0.31e6, rel=0.02)
    molecules = replace(TINY, width=64, precision="bf16")
    assert measures.flops_per_byte(molecules, np.array([18])) == pytest.approx(298, abs=1)


def test_what_goes_wrong_is_part_of_the_result(bench, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(library, "compare", lambda *_: 1 / 0)
        broken = bench.run(TINY)
    assert (broken["status"], broken["reason"]) == ("failed", "ZeroDivisionError: division by zero")
    assert "Traceback" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        real = packed_mlp.mix_sums
        patch.setattr(packed_mlp, "mix_sums", lambda *a: [1.5 * x for x in real(*a)])
        other = bench.run(TINY)
    assert (other["status"], other["figures"]) == ("differs", {})
    assert "outputs are off by" in other["reason"]

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Bench, "_compared", lambda *_: {})  # checked above
    with monkeypatch.context() as patch:
        patch.setattr(library, "fast_pass", full)
        assert bench.run(TINY)["reason"] == "memory does not suffice"
    with monkeypatch.context() as patch:
        patch.setattr(Bench, "_peer_pass", full)
        row = bench.run(replace(TINY, peers=("ppgn",)))
    assert row["peers"]["ppgn"] == {"skipped": "memory does not suffice"}
    assert bench.run(TINY)["status"] == "measured", "the others still count"


def test_an_epoch_needs_qm9(bench):
    (epoch,) = cases_for("cuda", ["qm9-epoch"])
    assert "--cache" in bench.run(replace(epoch, precision="32"))["reason"]


def test_equality_is_checked_with_hidden_layers_kept_and_not_kept(bench, monkeypatch):
    case = replace(TINY, nodes=0, width=8, layers=2, batch=1, batches=40)
    assert bench._compared(case)
    real = packed_mlp.mix
    kept = packed.KEPT_BYTES
    wrong = lambda *a, **k: (1.0 if kept["cpu"] else 1.5) * real(*a, **k)  # noqa: E731
    monkeypatch.setattr(packed_mlp, "mix", wrong)
    with pytest.raises(run.DiffersError):
        bench._compared(case)
    before = dict(kept)
    with pytest.raises(ZeroDivisionError), hidden_layers(False, CPU):
        _ = 1 / kept["cpu"]
    assert before == kept


def test_the_product_beside_the_batched_product(bench):
    (case,) = cases_for("cuda", ["product-64"])
    result = bench.run(replace(case, precision="32"))
    assert result["status"] == "measured", result["reason"]
    x, y = measures.operands(replace(TINY, kind="product", nodes=5), CPU)
    product = measures.our_product(CPU)
    assert measures.compare_product(x, y, product, "32").holds
    assert not measures.compare_product(x, y, lambda a, b: product(b, a), "32").holds


def test_shares_of_kernels_and_peaks():
    kernels = [("nvjet_hsh_64", 6.0), ("product_kernel", 3.0), ("unheard_of", 1.0)]
    shares = measures.kernel_shares(kernels)
    assert shares["library products"] == 0.6
    assert shares["rules: products and entries"] == pytest.approx(0.3)
    assert shares[measures.REST] == pytest.approx(0.1)
    brief = Effort(repeats=2, seconds=0.0)
    assert 0 < measures.peak_tflops("32", CPU, 128, brief) < 100
    assert 1e8 < measures.bandwidth(CPU, 8, brief) < 1e13
    memory = measures.PeakMemory(CPU)
    before = memory.bytes()
    large = np.ones(256 * 2**20 // 8)
    del large
    assert memory.bytes() - before > 200 * 2**20


def test_graphs_of_given_sizes():
    grid = sized_graphs("grid", 2, 10).check()
    assert (grid.sizes.tolist(), grid.edge_counts.tolist()) == ([9, 9], [24, 24])
    graph = sized_graphs("random", 2, 50).check()
    for index in range(2):
        matrix = graph.adjacency(index)
        assert (matrix == matrix.T).all()
        assert matrix.trace() == 0
        assert 100 < matrix.sum() / 2 <= 150


def test_unknown_cases_and_devices_are_told():
    with pytest.raises(DataError, match="did you mean training"):
        cases_for("cpu", ["trainig"])
    with pytest.raises(DataError, match="qm9-epoch runs on cuda, and this is cpu"):
        cases_for("cpu", ["qm9-epoch"])


def test_kept_figures_are_read_judged_and_replaced(tmp_path):
    row = {
        "case": "a", "group": "training", "status": "measured", "reason": "", "peers": {},
        "figures": {"graphs_per_second": 51_234.0, "share_of_peak": 0.0481},
        "settings": {"floor": {"metric": "graphs_per_second", "value": 50_000, "at_most": False}},
        "made_with": {"device": "NVIDIA H200"},
    }  # fmt: skip
    path = keep_result(tmp_path, row)
    keep_result(tmp_path, {**row, "case": "b"})
    keep_result(tmp_path, {**row, "figures": {"graphs_per_second": 49_999.0}})
    assert path.name == "training.nvidia-h200.json"
    first, second = read_results(tmp_path)
    assert (first["case"], is_met(first), is_met(second)) == ("a", False, True)
    assert [cell(second, h) for h in ("graphs/s", "of peak", "floor", "met", "× PPGN")] == [
        "51,200", "4.8 %", "≥ 50,000 graphs/s", "yes", "–",
    ]  # fmt: skip
    assert [number(v) for v in (0.0844, 8.46, 732.4, 39_412.0)] == [
        "0.0844",
        "8.46",
        "732",
        "39,400",
    ]
    path.write_text("[")
    with pytest.raises(DataError, match="is damaged"):
        read_results(tmp_path)
    with pytest.raises(DataError, match="is damaged"):
        keep_result(tmp_path, row)
    with pytest.raises(DataError, match="Not a directory"):
        keep_result(path / "under", row)


@pytest.mark.filterwarnings("ignore:.*waiting for it")
def test_results_kept_at_once_are_all_there(tmp_path, monkeypatch):
    def slowly(path):
        rows = read_rows(path)
        time.sleep(0.2)
        return rows

    made_with = {"device": "cpu"}
    rows = [{"case": name, "group": "training", "made_with": made_with} for name in "abc"]
    path = keep_result(tmp_path, rows[0])
    monkeypatch.setattr(run, "read_rows", slowly)
    with ThreadPoolExecutor() as pool:
        assert [*pool.map(lambda row: keep_result(tmp_path, row), rows[1:])] == [path, path]
    assert {row["case"] for row in read_rows(path)} == {*"abc"}
    assert [*tmp_path.iterdir()] == [path]


def test_the_command_keeps_what_it_measures(tmp_path, monkeypatch):
    monkeypatch.setattr(cases, "CASES", (TINY,))
    monkeypatch.setattr(library, "Effort", lambda **_: Effort(repeats=1, seconds=0.0))
    monkeypatch.setattr(measures, "peak_tflops", lambda *_: 0.1)
    monkeypatch.setattr(measures, "bandwidth", lambda *_: 1e10)
    words = ["bench", "--device", "cpu", "--threads", "1", "--out", str(tmp_path / "kept")]
    quick = CliRunner().invoke(app, [*words, "--quick"])
    assert (quick.exit_code, (tmp_path / "kept").exists()) == (0, False)
    kept = CliRunner().invoke(app, words)
    assert kept.exit_code == 0, kept.output
    (row,) = read_results(tmp_path / "kept")
    assert {"cpu", "torch", "commit", "peak_tflops", "threads"} <= set(row["made_with"])
    assert "graphs/s" in kept.output


def test_what_a_step_loses_without_a_kernel_is_a_table(tmp_path):
    assert "Not measured yet" in performance.kernel_table(tmp_path)
    steps = [
        {"batch": 128, "without": "", "by": "", "times": 1.0},
        {"batch": 128, "without": "rules", "by": "plain", "times": 1.517, "equal": True},
        {"batch": 512, "without": "rules", "by": "plain", "failed": "why"},
    ]
    (tmp_path / "plain.json").write_text(json.dumps({"steps": steps}))
    other = [{"batch": 128, "without": "rules", "by": "compiled", "times": 1.2, "equal": False}]
    (tmp_path / "compiled.json").write_text(json.dumps({"steps": other}))
    head, _, line = performance.kernel_table(tmp_path).splitlines()
    words = [cell.strip() for cell in head.split("|")][1:-1]
    assert words == ["without", "plain, batch 128", "plain, batch 512", "compiled, batch 128"]
    assert [cell.strip() for cell in line.split("|")][2:-1] == ["1.52", "failed", "1.20 (differs)"]


def test_a_table_of_other_kernels_says_so(bench, monkeypatch):
    """The committed page is compared with this text, so a changed kernel cannot go unnoticed."""
    row = bench.run(TINY)
    assert performance.OLDER not in performance.group_tables([row], row["group"])
    monkeypatch.setattr(performance, "kernel_digest", lambda: "another")
    assert performance.OLDER in performance.group_tables([row], row["group"])
    monkeypatch.undo()
    del row["made_with"]["kernels"]
    assert performance.OLDER in performance.group_tables([row], row["group"])


def test_the_page_says_below_a_table_why_a_case_has_no_speed():
    made = {"device": "a GPU", "cpu": "", "threads": 1, "kernels": ""}
    row = {
        "group": "training",
        "case": "odd",
        "status": "differs",
        "reason": "outputs are off by 2",
    }
    row |= {"made_with": made, "figures": {}, "peers": {}, "settings": {"floor": None}}
    table, why = performance.group_tables([row], "training").split("\n\n")[1:]
    assert "differs |" in table
    assert "off by" not in table
    assert why == "odd differs from the reference: outputs are off by 2."


def test_the_digest_leaves_out_only_what_no_step_imports():
    """A module left out that one of the others imports would change speeds unseen."""
    sources = measures.step_sources()
    package = Path(g2n2.__file__).parent
    assert not {name for name in measures.OUTSIDE_STEPS if not (package / name).is_file()}
    left_out = {Path(name).stem for name in measures.OUTSIDE_STEPS}
    assert {"nn/model.py", "nn/packed.py", "ops/packed_mlp.py"} <= set(sources)
    for name, path in sources.items():
        if name == "nn/__init__.py":
            continue
        for node in ast.parse(path.read_text("utf-8")).body:  # imports in functions are asked for
            if isinstance(node, ast.ImportFrom):
                parts = {*(node.module or "").split("."), *(alias.name for alias in node.names)}
                assert not parts & left_out, name
