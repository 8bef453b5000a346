"""Training on real molecules: 1,000 of QM9, on a CPU."""

import pytest

from g2n2.training.config import RunConfig
from g2n2.training.session import train_config

pytest.importorskip("lightning.fabric", reason="training needs lightning")


@pytest.mark.slow
def test_r2_of_1000_molecules_is_learned(tmp_path, built_qm9):
    """The error on unseen molecules is below a third of what guessing the mean gives."""
    config = RunConfig(
        "qm9",
        target=("r2",),
        options={"track": "distance", "cache": str(built_qm9.cache)},
        limit=1000,
        width=32,
        layers=2,
        batch=32,
        epochs=10,
        rate=2e-3,
        threads=1,  # a second thread gains little here and loses much on a busy machine
        device="cpu",
    )
    result = train_config(config, tmp_path / "run")
    error, guess = result.scores["r2"]["mae"], result.guesses["r2"]["mae"]
    print(f"R² of QM9: MAE {error:.1f} a₀², guessing the mean {guess:.1f} a₀²")
    assert len(result.parts.graphs) == 1000
    assert result.parts.graphs.name == "QM9 (distance)"
    assert guess > 150  # the spread of R² over QM9 is about 280 a₀²
    assert error < guess / 3
