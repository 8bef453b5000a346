"""From a run on QM9 to the network that comes with g2n2: `g2n2-paper ship RUN`.

Checkpoints, curves and the split stay behind; the ranges of the training molecules are measured
anew; some test molecules with their SMILES and true values go along, and a card with the scores.
"""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Template

from g2n2.data.graph_set import GraphSet, Ints
from g2n2.data.qm9 import QM9_TARGETS, load_qm9
from g2n2.data.qm9_build import find_source
from g2n2.errors import DataError
from g2n2.training.checkpoint import sha256, write_manifest
from g2n2.training.run import HELD_OUT, Run
from g2n2.training.run_folder import BEST, CALIBRATION
from g2n2.training.trained_on import TrainingRange

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
        written[name] = json.dumps(content, ensure_ascii=False).encode()
        (out / name).write_bytes(written[name])
    shutil.copyfile(source / BEST, out / BEST)
    written[BEST] = (out / BEST).read_bytes()
    write_manifest(out, {name: [sha256(content)] for name, content in written.items()})
    (out / "result.json").write_bytes(json.dumps(result, ensure_ascii=False, indent=1).encode())
    chosen = np.random.default_rng(0).permutation(splits["test"])[:KEPT]
    _write_held_out(out / HELD_OUT, graphs, np.sort(chosen))
    template = files(__package__).joinpath("card.md").read_text(encoding="utf-8")
    facts = {"result": result, "config": config, "targets": QM9_TARGETS, "best": BEST}
    card = Template(template, keep_trailing_newline=True)
    (out / CARD).write_text(card.render(**facts, digest=sha256(written[BEST])), encoding="utf-8")


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
