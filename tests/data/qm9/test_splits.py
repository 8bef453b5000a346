"""The two splits of QM9: sizes, no overlap, the same on every machine."""

import numpy as np
import pytest

from g2n2.data.qm9.splits import qm9_splits
from g2n2.errors import DataError


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [("80/10/10", (104_664, 13_083, 13_084)), ("110k/10k/rest", (110_000, 10_000, 10_831))],
)
def test_sizes_and_no_molecule_twice(kind: str, sizes: tuple[int, ...]) -> None:
    splits = qm9_splits(130_831, kind, seed=3)  # type: ignore[arg-type]
    assert list(splits) == ["train", "validation", "test"]
    assert tuple(len(part) for part in splits.values()) == sizes
    together = np.concatenate(list(splits.values()))
    np.testing.assert_array_equal(np.sort(together), np.arange(130_831))


def test_a_split_is_a_pure_function_of_the_seed() -> None:
    # The frozen permutation of ten with seed 0, as numpy's documentation promises it forever.
    splits = qm9_splits(10, seed=0)
    assert splits["train"].tolist() == [2, 8, 4, 9, 1, 6, 7, 3]
    assert splits["validation"].tolist() == [0]
    assert splits["test"].tolist() == [5]
    assert qm9_splits(10, seed=1)["train"].tolist() != splits["train"].tolist()


@pytest.mark.parametrize(
    ("count", "kind", "complaint"),
    [
        (9, "80/10/10", "more than 9 molecules"),
        (120_000, "110k/10k/rest", "more than 120,000 molecules"),
        (100, "50/50", "no split '50/50'; choose '80/10/10' or '110k/10k/rest'"),
    ],
)
def test_what_cannot_be_split_is_refused(count: int, kind: str, complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        qm9_splits(count, kind)  # type: ignore[arg-type]
    assert complaint in str(caught.value)
