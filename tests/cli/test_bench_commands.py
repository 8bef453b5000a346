"""bench on the command line: the table, exit codes, what is refused."""

import pytest
import torch
from test_commands import run

from g2n2.ops import packed_mlp

QUICK = ("bench", "--quick", "--device", "cpu", "--threads", "1")


def test_the_table_has_speeds_and_errors():
    code, printed = run(*QUICK)
    assert code == 0
    assert "training, 32, batch 4" in printed
    assert "inference, 32, batch 4" in printed
    assert "these figures say nothing about speed" in printed


def test_other_numbers_end_with_1_and_show_no_speed(monkeypatch):
    real = packed_mlp.mix
    monkeypatch.setattr(packed_mlp, "mix", lambda *a, **k: 1.5 * real(*a, **k))
    code, printed = run(*QUICK)
    assert code == 1
    assert "differs from the reference: outputs are off by" in " ".join(printed.split())


def test_a_gpu_that_is_not_there():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    code, printed = run("bench", "--device", "cuda")
    assert code == 2
    assert "there is no GPU here; leave --device out" in printed
