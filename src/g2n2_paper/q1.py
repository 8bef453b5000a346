"""Q1: is the reduction relevant and optimal?

All networks learn R² of QM9 with distances, three seeds each:

    train/GRAMMAR             width 32, as many epochs for every grammar, recipe of version 0.2
    equal-parameters/GRAMMAR  about as many weights as r-G_L3 at width 32, 40 epochs, the library's
                              present defaults
    equal-time/GRAMMAR        width 32, as many epochs as fit into the time of 40 of r-G_L3
    speed/grammars            the seconds per epoch that say how many those are, of 20,000 molecules

`exact/GRAMMAR/READOUT` counts the pairs of BREC that the words of a grammar tell apart, with its
own read-out and with the network's; nothing is trained, and `proved` is 1 if more layers provably
add nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

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
REDUCED, EXHAUSTIVE = "r-G_L3", "G_L3"
READOUTS: dict[str, str | None] = {"own": None, "network": "network"}
LAYERS, WIDTH, EPOCHS, SEEDS = 3, 32, 12, (0, 1, 2)
EQUAL_EPOCHS = 40
FAIR = {"equal-parameters": "about equal parameters", "equal-time": "equal time"}
"""Groups of cells to what is equal in them."""
EQUAL_WIDTHS = {
    "r-G_L3": 32,
    "G_L3": 18,
    "i-G_L3": 24,
    "r-G_L3+transpose": 28,
    "r-G_L3-hadamard": 38,
    "r-G_L3-product": 38,
    "r-G_L3-diagonal": 37,
    "r-G_L3-vector": 35,
    "four-rule": 47,
}
"""Widths at which networks have about as many weights as r-G_L3 at width 32."""


def cells(smoke: bool = False) -> list[Cell]:
    """One seed of every grammar first, then the others; the exact rows, which need no GPU, last."""
    grammars = ("r-G_L3", "four-rule") if smoke else tuple(GRAMMARS)
    trained = [
        training_cell("q1", f"train/{name}", config(name, seed, smoke))
        for seed in ((0,) if smoke else SEEDS)
        for name in grammars
    ]
    timed = {name: q2.few(equal_config(name, 0, smoke)) for name in grammars}
    speed = q2.timing_cell("q1", "speed/grammars", timed, 1)
    for seed in (0,) if smoke else SEEDS:
        for name in grammars:
            fair = equal_config(name, seed, smoke)
            width = 8 if smoke else EQUAL_WIDTHS[name]
            trained.append(
                training_cell("q1", f"equal-parameters/{name}", replace(fair, width=width))
            )
            if name != REDUCED:  # which is the measure of both
                ratio = f"{name} / {REDUCED}"
                epochs = partial(q2.equal_time_epochs, speed=speed, ratio=ratio)
                trained.append(training_cell("q1", f"equal-time/{name}", fair, epochs=epochs))
    trained.insert(0, speed)
    suite = "csl" if smoke else "brec"
    return trained + [exact_cell(name, suite, readout) for name in grammars for readout in READOUTS]


def equal_config(grammar: str, seed: int, smoke: bool = False) -> RunConfig:
    """The training run of one grammar with the present defaults, for as long as r-G_L3."""
    present = q2.config(f"single/r2/distance/G2N2/defaults/epochs-{EQUAL_EPOCHS}", smoke, seed)
    return replace(config(grammar, seed, smoke), recipe=present.recipe, epochs=present.epochs)


def config(grammar: str, seed: int, smoke: bool = False) -> RunConfig:
    """The training run of one grammar with the recipe of version 0.2."""
    return replace(
        q2.config(q2.single("r2"), smoke, seed),
        width=8 if smoke else WIDTH,
        grammar=GRAMMARS[grammar],
        readout="pooled-only" if grammar == "G_L3" else None,  # the paper's, without rules of S
        epochs=2 if smoke else EPOCHS,
    )


def fair_cell(group: str, grammar: str) -> str:
    """A cell of one of the groups in `FAIR`; r-G_L3 is the measure of both and is run once."""
    return f"{'equal-parameters' if grammar == REDUCED else group}/{grammar}"


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
