"""The rows of a batch out of those of all graphs."""

import pytest
import torch

from kernel_checks import DEVICE

pytest.importorskip("triton", reason="the kernels need triton")
from g2n2.ops import gathering

SIZES = [3, 1, 29, 7, 2, 12]


def table(widths, targets=2):
    torch.manual_seed(2)
    sizes = torch.tensor(SIZES, device=DEVICE)
    lengths = {"M": sizes**2, "V": sizes}
    return gathering.PackedTable(
        sizes,
        {letter: length.cumsum(0) - length for letter, length in lengths.items()},
        {
            letter: torch.randn(int(lengths[letter].sum()), width, device=DEVICE).bfloat16()
            for letter, width in widths.items()
        },
        torch.randn(len(SIZES), targets, device=DEVICE),
        max(SIZES),
    )


@pytest.mark.parametrize(
    ("chosen", "count"), [([2, 0, 2, 5, 1], 3), ([4], 1), ([1, 3, 0], 3), ([3, 2], 0)], ids=str
)
@pytest.mark.parametrize("widths", [{"M": 48, "V": 5}, {"M": 3}, {"V": 16}], ids=str)
def test_one_graph_after_the_other(chosen, count, widths, monkeypatch, poisoned):
    monkeypatch.setattr(gathering, "GRAPHS", 2)  # places are carried from one sum to the next
    monkeypatch.setattr(gathering, "block", lambda width: max(2, 1 << (width - 1).bit_length()))
    whole, rooms = table(widths), {"V": 90, "M": 2048}
    found, targets, index = gathering.gather(
        whole,
        torch.tensor(chosen, device=DEVICE),
        torch.tensor(count, device=DEVICE),
        rooms["V"],
        rooms["M"],
    )
    there = chosen[:count]
    sizes = [SIZES[g] for g in there]
    assert index.sizes.tolist() == sizes + [0] * (len(chosen) - count)
    ends = {"V": sum(sizes), "M": sum(n * n for n in sizes)}
    assert [int(total) for total in index.totals] == [ends["V"], ends["M"]]
    starts = [sum(sizes[:g]) for g in range(len(chosen))]
    assert index.node_starts.tolist() == starts
    assert index.pair_starts.tolist() == [sum(n * n for n in sizes[:g]) for g in range(len(chosen))]
    owners = [g for g, n in enumerate(sizes) for _ in range(n)]
    assert index.owners.tolist() == owners + [-1] * (rooms["V"] - len(owners))
    torch.testing.assert_close(index.scale, index.sizes.clamp(min=1).float().rsqrt())
    assert found.keys() == widths.keys()
    for letter, rows in found.items():
        lengths = [n * n if letter == "M" else n for n in SIZES]
        pieces = whole.memories[letter].split(lengths)
        expected = torch.cat([pieces[0][:0], *(pieces[g] for g in there)])
        assert len(rows) == rooms[letter]
        assert torch.equal(rows[: ends[letter]], expected)
        assert not rows[ends[letter] :].any()
    assert torch.equal(targets[:count], whole.targets[there])
    assert targets[count:].isnan().all()
