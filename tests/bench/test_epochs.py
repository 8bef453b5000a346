"""An epoch through `train`, on the first molecules of QM9."""

import importlib.util

import pytest

from g2n2.bench.cases import Case
from g2n2.bench.epochs import find_cache, time_epochs
from g2n2.errors import DataError

pytest.importorskip("lightning.fabric", reason="training needs lightning")
pytest.importorskip("rdkit", reason="QM9 is read with RDKit")


def test_epochs_are_timed_from_line_to_line(tmp_path):
    if importlib.util.find_spec("qm9pack") is None:
        pytest.skip("qm9pack is not installed")
    from g2n2.data.qm9 import build_qm9

    cache = tmp_path / "first.cache"
    build_qm9(cache, rows=120, processes=1, progress=False)
    case = Case("x", "epoch", "epoch", batch=32, width=4, layers=1, precision="32")
    figures = time_epochs(case, cache, "cpu", quick=True)
    assert figures["molecules"] == 96
    assert 0 < figures["steps_seconds"] <= figures["epoch_seconds"]
    assert figures["epoch_seconds_least"] <= figures["epoch_seconds_most"]
    assert figures["graphs_per_second"] == pytest.approx(96 / figures["epoch_seconds"])


def test_the_cache_is_the_one_named_or_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_cache({}) is None
    (tmp_path / "g2n2").mkdir()
    (tmp_path / "g2n2" / "qm9.cache").touch()
    assert find_cache({}) == tmp_path / "g2n2" / "qm9.cache"
    named = tmp_path / "other"
    with pytest.raises(DataError, match=r"other: there is no such file"):
        find_cache({"cache": str(named)})
    named.touch()
    assert find_cache({"cache": str(named)}) == named


def test_another_option_is_refused():
    with pytest.raises(DataError, match=r"no option 'cash'; the only one: cache=PATH"):
        find_cache({"cash": "x"})
