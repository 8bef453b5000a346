"""Q1: is the reduction relevant and optimal?

`train/GRAMMAR` learns R² of QM9 with distances, width 32, the same epochs and recipe for every
grammar, three seeds. `exact/GRAMMAR/READOUT` counts the pairs of BREC that the words of a grammar
tell apart, with its own read-out and with the network's; nothing is trained, and `proved` is 1 if
more layers provably add nothing.
"""

from __future__ import annotations

from dataclasses import replace

from g2n2.data.suites import load_suite
from g2n2.grammars.catalogue import find_grammar
from g2n2.power.table import power_row
from g2n2.training.config import RunConfig

from . import q2
from .contenders import suite_checksum
from .runner import Cell, Job, Measurement
from .runs import training_cell

GRAMMARS = {
    "r-G_L3": "r-G_L3",
    "G_L3": "G_L3",
    "i-G_L3": "i-G_L3",
    "r-G_L3+transpose": "r-G_L3 ∪ {Mᵀ}",
    "r-G_L3-hadamard": "r-G_L3 ∖ {M⊙M}",
    "r-G_L3-product": "r-G_L3 ∖ {MM}",
    "r-G_L3-diagonal": "r-G_L3 ∖ {diag(V_c)}",
    "r-G_L3-vector": "r-G_L3 ∖ {MV_c}",
    "four-rule": "four-rule",
}
"""Name in a cell to name of the grammar."""
READOUTS: dict[str, str | None] = {"own": None, "network": "network"}
LAYERS, WIDTH, EPOCHS, SEEDS = 3, 32, 12, (0, 1, 2)


def cells(smoke: bool = False) -> list[Cell]:
    """One seed of every grammar first, then the others; the exact rows, which need no GPU, last."""
    grammars = ("r-G_L3", "four-rule") if smoke else tuple(GRAMMARS)
    trained = [
        training_cell("q1", f"train/{name}", config(name, seed, smoke))
        for seed in ((0,) if smoke else SEEDS)
        for name in grammars
    ]
    suite = "csl" if smoke else "brec"
    return trained + [exact_cell(name, suite, readout) for name in grammars for readout in READOUTS]


def config(grammar: str, seed: int, smoke: bool = False) -> RunConfig:
    """The training run of one grammar."""
    return replace(
        q2.config(q2.single("r2"), smoke, seed),
        width=8 if smoke else WIDTH,
        grammar=GRAMMARS[grammar],
        readout="pooled-only" if grammar == "G_L3" else None,  # the paper's, without rules of S
        epochs=2 if smoke else EPOCHS,
    )


def exact_cell(name: str, suite: str, readout: str) -> Cell:
    """A row of the power table."""

    def run(job: Job) -> Measurement:
        loaded = load_suite(suite, job.data)
        row = power_row(find_grammar(GRAMMARS[name]), loaded, READOUTS[readout])
        metrics = {
            "pairs separated": row.separated,
            f"pairs separated, {LAYERS} layers": row.by_layer[min(LAYERS, len(row.by_layer) - 1)],
            "pairs": len(loaded.pairs),
            "layers needed": row.depth,
            "proved": int(row.exact),
        }
        data = {suite: suite_checksum(loaded)}
        config = {"readout": row.readout}
        return Measurement(len(loaded.pairs), "pairs", metrics, data, config, row.to_json())

    settings = {"grammar": GRAMMARS[name], "suite": suite}
    return Cell("q1", f"exact/{name}/{readout}", run, settings)
