"""Normalise and select, with the three gradients of the memory added up by one kernel."""

import pytest
import torch

from g2n2.ops import reference
from g2n2.ops.precision import float32_products
from kernel_checks import LOW, assert_near, assert_twins, drawn

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops import selecting

SMALL = 0.1
SHAPES = [(1, 1, 1, 1), (2, 7, 7, 5), (3, 29, 16), (2, 17, 9)]


def op(select, used=(0, 1, 2)):
    """Those of the three outputs somebody reads, side by side."""

    def run(memory, gain, weight):
        found = select(memory, gain, SMALL, weight)
        return torch.cat([found[k] for k in used], dim=-1)

    return run


def leaves(shape, operands, dtype, normalised=True):
    torch.manual_seed(6)
    gain = drawn(shape[-1], dtype=dtype) if normalised else None
    return drawn(*shape, dtype=dtype), gain, drawn(operands, shape[-1], dtype=dtype)


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_kernels_give_what_the_reference_gives(shape, dtype, launches, poisoned):
    given = leaves(shape, 11, dtype)
    assert_twins(op(selecting.select), op(reference.select), given, dtype)
    front = "selecting.normalise" if dtype == torch.float32 else "selecting.select"
    back = ("selecting.normalise_gradient", "sums.column_sums")
    assert launches == {f"{name}_kernel": 1 for name in (front, *back)}


def test_more_blocks_than_partial_sums(monkeypatch, poisoned):
    monkeypatch.setattr(selecting, "MOST_SUMS", 2)
    given = leaves((5 * selecting.ROWS + 1, 6), 3, torch.float32)
    assert_twins(op(selecting.select), op(reference.select), given, torch.float32)


def test_tensor_cores_take_float32_in_tf32(launches, poisoned):
    """Whose operands the interpreter rounds too, to ten bits."""
    given = leaves((2, 17, 9), 70, torch.float32)
    with float32_products(tf32=True):
        loose = 1e3
        assert_twins(op(selecting.select), op(reference.select), given, torch.float32, loose)
    assert "selecting.select_kernel" in launches


@pytest.mark.parametrize("used", [(1,), (0, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("normalised", [True, False])
def test_outputs_nobody_reads(normalised, used, poisoned):
    given = leaves((2, 7, 7, 5), 8, torch.float32, normalised)
    assert_twins(op(selecting.select, used), op(reference.select, used), given, torch.float32)


@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_a_memory_that_is_read_as_it_is(dtype, launches, poisoned):
    given = leaves((2, 7, 7, 5), 8, dtype, normalised=False)
    assert_twins(op(selecting.select), op(reference.select), given, dtype)
    assert not launches, "library products alone"


@pytest.mark.parametrize("normalised", [True, False])
def test_a_memory_that_needs_no_gradient(normalised, poisoned):
    """That of the first layer, where nothing is embedded."""
    memory, gain, weight = leaves((2, 7, 5), 8, torch.float32, normalised)
    memory = memory.detach()
    used = [leaf for leaf in (gain, weight) if leaf is not None]
    found = []
    for select in (selecting.select, reference.select):
        read, selected, _ = select(memory, gain, SMALL, weight)
        found.append(torch.autograd.grad(selected.square().sum() + read.sum(), used))
    for number, (got, expected) in enumerate(zip(*found, strict=True)):
        assert_near(f"gradient {number}", got, expected, torch.float32)


def test_strides_of_any_kind(poisoned):
    torch.manual_seed(7)
    _, gain, weight = leaves((4, 6, 5), 8, torch.float32)
    wide = drawn(4, 6, 12, dtype=torch.float32)

    def strided(select):
        run = op(select)
        return lambda wide, gain, weight: run(wide[..., 3:8].transpose(0, 1), gain, weight)

    assert_twins(
        strided(selecting.select), strided(reference.select), (wide, gain, weight), torch.float32
    )


def test_gradients_without_strides():
    memory, gain, weight = leaves((2, 7, 5), 8, torch.float32)
    found = []
    for select in (selecting.select, reference.select):
        total = sum(x.sum() for x in select(memory, gain, SMALL, weight))
        found.append(torch.autograd.grad(total, (memory, gain, weight)))
    for number, (got, expected) in enumerate(zip(*found, strict=True)):
        assert_near(f"gradient {number}", got, expected, torch.float32)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", LOW, ids=str)
def test_qm9_sizes_on_a_gpu(dtype, launches, poisoned):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    given = leaves((128, 29, 29, 64), 320, dtype)
    assert_twins(op(selecting.select), op(reference.select), given, dtype, factor=3.0)
    assert sum(launches.values()) == 3
