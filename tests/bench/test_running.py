"""Whole cases on tiny sizes: what a result holds, and what becomes of cases that cannot run."""

import itertools
from dataclasses import replace

import pytest
import torch

from g2n2.bench import running, work
from g2n2.bench.cases import TABLE_SECONDS, Case, cases_for
from g2n2.bench.networks import Setting
from g2n2.bench.products import Operands, check_product, our_product
from g2n2.bench.running import Bench
from g2n2.ops.mixing import plain

CPU = torch.device("cpu")
TINY = Case("tiny", "nodes", batch=2, nodes=6, width=4, layers=1, precision="32", batches=1)


@pytest.fixture(scope="module")
def bench():
    """One for all tests: peaks are measured once, and no table's time is spent."""
    torch.set_num_threads(1)
    return Bench(CPU, quick=True, clock=lambda: 0.0)


@pytest.mark.parametrize("name", ["cpu-train-32", "cpu-infer-32"])
def test_a_case_is_measured_beside_its_peers(bench, name, monkeypatch):
    (case,) = cases_for("cpu", [name])
    in_turns = []

    def slower(ours, theirs, device, rounds):
        ours()
        theirs()
        in_turns.append((ours, theirs))
        return 7.0 + len(in_turns)

    monkeypatch.setattr(running, "times_slower", slower)
    result = bench.run(case)
    assert result.status == "measured", result.reason
    assert set(result.peers) == {"reference", "ppgn", "block-diagonal"}
    assert [peer["ratio"] for peer in result.peers.values()] == [8.0, 9.0, 10.0]
    assert len({ours for ours, _ in in_turns}) == 1
    assert len({theirs for _, theirs in in_turns} - {in_turns[0][0]}) == 3
    assert all(peer["graphs_per_second"] > 0 for peer in result.peers.values())
    assert result.check["outputs"] <= result.check["outputs_allowed"]
    assert result.figures["share_of_peak"] == pytest.approx(
        result.figures["tflops"] / result.made_with["peak_tflops"]["32"]
    )
    assert result.figures["peak_bytes"] > 2**26
    assert result.made_with["device"] == "cpu"
    assert result.settings["graphs"] == "drawn at QM9's sizes"


def test_speed_and_work_belong_together(bench):
    result = bench.run(TINY)
    sizes = Setting.of(TINY.quick(), CPU).graphs.sizes
    seconds = len(sizes) / result.figures["graphs_per_second"]
    flops = work.useful_flops(sizes, 4, 1, training=True)
    assert result.figures["tflops"] == pytest.approx(flops / seconds / 1e12)


def test_other_numbers_have_no_speed(bench, monkeypatch):
    real = plain.mix
    monkeypatch.setattr(plain, "mix", lambda *a, **k: 1.5 * real(*a, **k))
    result = bench.run(TINY)
    assert result.status == "differs"
    assert not result.figures
    assert "outputs are off by" in result.reason
    assert result.check["outputs"] > result.check["outputs_allowed"]


def test_a_case_that_breaks_does_not_take_the_others_with_it(bench, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(running, "check", lambda *_: 1 / 0)
        broken = bench.run(TINY)
    assert broken.status == "failed"
    assert broken.reason == "ZeroDivisionError: division by zero"
    assert "Traceback" in capsys.readouterr().err
    assert bench.run(TINY).status == "measured"


def test_a_peer_that_breaks_says_why(bench, monkeypatch):
    def broken(*_):
        raise RuntimeError("no such\nthing")

    monkeypatch.setattr(running, "peer_pass", broken)
    result = bench.run(replace(TINY, peers=("ppgn",)))
    assert result.status == "measured"
    assert result.peers["ppgn"] == {"skipped": "RuntimeError: no such"}


def test_what_does_not_fit_is_skipped_before_it_is_made(monkeypatch):
    monkeypatch.setattr(running, "bandwidth", lambda *_: 1e9)
    monkeypatch.setattr(running, "peak_tflops", lambda *_: 0.1)
    monkeypatch.setattr(running, "device_memory", lambda _: 2**30)
    now = itertools.count(0.0, TABLE_SECONDS / 3)
    bench = Bench(CPU, clock=lambda: next(now))
    large = bench.run(replace(TINY, nodes=4000, width=64, layers=3))
    assert (large.status, large.reason.split(",")[0]) == ("skipped", "needs about 275 GiB")
    monkeypatch.setattr(running, "device_memory", lambda _: 2**50)
    long = bench.run(replace(TINY, nodes=4000, width=64, layers=3))
    assert (long.status, long.reason.split()[:2]) == ("skipped", ["would", "take"])
    for _ in range(2):
        assert "were spent" not in bench.run(replace(TINY, nodes=4000)).reason
    assert "were spent" in bench.run(TINY).reason


def test_the_baseline_is_left_out_where_it_does_not_fit(bench, monkeypatch):
    monkeypatch.setattr(running.work, "block_diagonal_bytes", lambda *_: 2.0**50)
    result = bench.run(replace(TINY, nodes=0, peers=("block-diagonal",)))
    assert result.peers["block-diagonal"] == {"skipped": "needs about 1048576 GiB"}


def test_out_of_memory_is_a_reason_and_no_failure(bench, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(running, "our_pass", full)
    result = bench.run(TINY)
    assert (result.status, result.reason) == ("skipped", "memory does not suffice")


def test_an_epoch_needs_qm9(bench):
    (case,) = cases_for("cuda", ["qm9-epoch"])
    assert "--option cache=PATH" in bench.run(replace(case, precision="32")).reason


def test_the_product_is_measured_beside_the_batched_product(bench):
    (case,) = cases_for("cuda", ["product-64"])
    result = bench.run(replace(case, precision="32"))
    assert result.status == "measured", result.reason
    assert result.peers["bmm"]["ratio"] == pytest.approx(
        result.figures["tflops"] / result.peers["bmm"]["tflops"]
    )


def test_a_wrong_product_is_found():
    case = Case("x", "product", "product", batch=2, nodes=5, width=3, precision="32")
    operands, product = Operands.of(case, CPU), our_product(CPU)
    assert check_product(operands, product, case).passed
    assert not check_product(operands, lambda x, y: product(y, x), case).passed


@pytest.mark.gpu
def test_a_gpu_measures_graphed_steps_and_products():
    bench = Bench(torch.device("cuda"), quick=True)
    for case in cases_for("cuda", ["train-32-bf16", "infer-2048-bf16", "product-18", "batch-4"]):
        result = bench.run(case)
        assert result.status == "measured", result.reason
