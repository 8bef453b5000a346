"""From a run on QM9 to the network that comes with g2n2: `g2n2-paper ship RUN`.

Checkpoints, curves and the split stay behind; the ranges of the training molecules are measured
anew; some test molecules with their SMILES and true values go along, and a card with the scores.
"""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from g2n2.data.graph_set import GraphSet, Ints
from g2n2.data.qm9 import QM9_TARGETS, load_qm9
from g2n2.data.qm9_build import find_source
from g2n2.errors import DataError
from g2n2.training.checkpoint import sha256, write_manifest
from g2n2.training.run import HELD_OUT, Run
from g2n2.training.run_folder import BEST, CALIBRATION
from g2n2.training.training_range import TrainingRange

CARD = "card.md"
KEPT = 300
"""Test molecules that go along."""
DIGITS = 6
"""Of the validation errors that intervals are made of."""


def ship(source: Path, cache: Path, out: Path) -> None:
    """Write the files of a pretrained network.

    Args:
        source: The run folder, which has ended.
        cache: QM9's cache file.
        out: `src/g2n2/pretrained_networks/qm9`; its `training.toml` stays.

    Raises:
        DataError: It is no finished run on QM9 with the features of a SMILES.
    """
    run = Run(source, "cpu")
    if run.config.options.get("features") != "smiles" or run.calibration is None:
        raise DataError(f"{source} is no finished run on QM9 with --features smiles")
    graphs = load_qm9("smiles", run.config.options.get("track", "bonds"), cache=cache)
    run.trained_on.refuse_other(graphs, run.folder)
    splits = run.files.splits()
    training = TrainingRange.of(graphs.select(splits["train"]), distances=False)
    calibration = replace(run.calibration, training=training).as_dict()
    calibration["errors"] = [
        [float(f"{error:.{DIGITS}g}") for error in errors] for errors in calibration["errors"]
    ]
    options = {k: v for k, v in run.config.options.items() if k != "cache"}
    config = replace(run.config, options=options, data=None, device="auto", threads=0)
    data = run.files.read_json("data.json")
    data["source"].pop("cache", None)
    result = run.files.read_json("result.json")
    result["config"] = config.as_dict()
    contents: dict[str, Any] = {
        "config.json": config.as_dict(),
        "data.json": data,
        CALIBRATION: calibration,
    }
    out.mkdir(parents=True, exist_ok=True)
    written = {}
    for name, content in contents.items():
        written[name] = _json(content)
        (out / name).write_bytes(written[name])
    shutil.copyfile(source / BEST, out / BEST)
    written[BEST] = (out / BEST).read_bytes()
    write_manifest(out, {name: [sha256(content)] for name, content in written.items()})
    (out / "result.json").write_bytes(json.dumps(result, ensure_ascii=False, indent=1).encode())
    chosen = np.random.default_rng(0).permutation(splits["test"])[:KEPT]
    _write_held_out(out / HELD_OUT, graphs, np.sort(chosen))
    (out / CARD).write_text(_card(result, run, written[BEST]), encoding="utf-8")


def _json(content: Any) -> bytes:
    """Lists of numbers on one line: there are twelve thousand errors."""
    return json.dumps(content, ensure_ascii=False).encode()


def _write_held_out(path: Path, graphs: GraphSet, chosen: Ints) -> None:
    wanted = {int(graphs.ids[index].removeprefix("gdb_")): index for index in chosen}
    rows = []
    for part in find_source():
        with part.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if (index := wanted.pop(int(row["Index"]), None)) is not None:
                    targets = [f"{value:.10g}" for value in graphs.targets[index]]
                    rows.append([graphs.ids[index], row["SMILES"], *targets])
                if not wanted:
                    break
    names = [column.name for column in graphs.columns]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerows([["id", "smiles", *names], *rows])


def _card(result: dict[str, Any], run: Run, weights: bytes) -> str:
    """What the network is, how it was made, how good it is and where it is not to be used."""
    lines = []
    for target in QM9_TARGETS:
        scores, guess = result["test"][target.name], result["test_of_constant_guess"][target.name]
        reliability = result["test_reliability"][target.name]
        cells = (
            f"{target.symbol} ({target.name})",
            target.unit,
            f"{scores['mae']:.3g}",
            f"{guess['mae']:.3g}",
            f"± {reliability['width'] / 2:.3g}",
            f"{100 * reliability['coverage']:.1f} %",
        )
        lines.append(f"| {' | '.join(cells)} |")
    made, parts = result["made_with"], result["graphs"]
    table = "\n".join(lines)
    return f"""# qm9: twelve quantum-chemical properties from SMILES

The network of `{run.config.grammar}`, width {run.config.width}, {run.config.layers} layers,
{result["parameters"]:,} weights. It reads the molecular graph with its hydrogens: no geometry, no
stereochemistry. A value is that of the conformer in QM9, which the network does not see.

Trained on {parts["train"]:,} molecules of QM9 (Ramakrishnan et al. 2014, B3LYP/6-31G(2df,p)),
chosen and calibrated on {parts["validation"]:,}, tested on {parts["test"]:,}; {result["epochs"]}
epochs, {result["seconds"]:.0f} s on {made["device"]}, torch {made["torch"]}:

    g2n2 train --config training.toml --out runs/qm9
    g2n2-paper ship runs/qm9

| property | unit | test MAE | guessing the mean | 90 % interval | holds of the test |
|:---|:---|---:|---:|---:|---:|
{table}

Energies are totals: per-element values, fitted on the training molecules, are added to what the
network gives. Not for other elements, charged molecules or more than 9 heavy atoms; predictions say
so in their note, and intervals do not hold there.

`{BEST}` sha256 {sha256(weights)}
"""
