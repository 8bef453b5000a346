"""Molecules as users bring them: the library's defaults beside what a user would pick instead.

Cells are `SET/SPLIT/CONTENDER`, three seeds each. All contenders of a set, split and seed have the
same training, validation and test molecules; the record has a digest of them. A seed is that of the
random split and of the contender; a scaffold split and the official one are the same for all seeds.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from g2n2.atomic_files import replace_file
from g2n2.data.graph_set import GraphSet
from g2n2.data.splits import random_subset, smiles_of
from g2n2.errors import DataError
from g2n2.training.config import RunConfig
from g2n2.training.run_folder import RunFolder
from g2n2.training.task import Task, Values, metrics
from g2n2.training.trained_on import checksum

from .molecule_sets import SETS, MoleculeSet, digests, parts_of
from .runner import Cell, Job, Measurement
from .runs import described, run_settings, train

SEEDS = (0, 1, 2)
CPU, GPU = "CPU seconds", "GPU seconds"
FORESTS = {"forest-morgan": "Morgan fingerprints", "forest-descriptors": "RDKit descriptors"}
NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "GINE": {"baseline": "GINE", "width": 128, "layers": 5},
    "G2N2": {"precision": "bf16"},  # else the defaults of `g2n2 train`; a CPU computes in 32 bits
}
SHORTER = {"molhiv": 40}
"""Epochs of networks on sets so large that the recipe's take too long."""
CONTENDERS = (*FORESTS, "Chemprop", *NETWORKS)
CITED = {("molhiv", "Chemprop")}
"""Sets and contenders that are not run, since hours of a CPU would say what is published."""
CHEMPROP_VARIABLE = "G2N2_CHEMPROP"

Result = TypeVar("Result")


@dataclass(frozen=True)
class TrainingBudget:
    """How much each contender does."""

    trees: int = 500
    chemprop_epochs: int = 50  # its default
    epochs: int | None = None  # of the networks: the recipe's
    limit: int = 0  # molecules of a set; 0 for all


SMOKE = TrainingBudget(trees=5, chemprop_epochs=3, epochs=2, limit=150)


@dataclass(frozen=True)
class Problem:
    """One set and split, for one seed."""

    molecules: MoleculeSet
    split: str
    seed: int
    effort: TrainingBudget = TrainingBudget()

    def read(self, job: Job) -> GraphSet:
        """The graphs, with the parts of this split."""
        graphs = random_subset(self.molecules.read(job.data), self.effort.limit, seed=0)
        return replace(graphs, splits=parts_of(graphs, self.split, self.seed))

    def metrics(self, scores: Mapping[str, float]) -> dict[str, float | None]:
        """The metric of the set, from scores by the library's names."""
        name = self.molecules.metric
        return {f"test {name}": scores["rmse" if name == "RMSE" else "roc_auc"]}

    def score(self, graphs: GraphSet, predicted: Values) -> dict[str, float | None]:
        """The same from predictions for the test molecules; several targets are averaged."""
        truth = graphs.targets[graphs.splits["test"]]
        return self.metrics(metrics(Task.of(graphs), predicted, truth)["all"])


def cells(smoke: bool = False) -> list[Cell]:
    """All cells, those of a set and a contender after each other, since they share features."""
    effort = SMOKE if smoke else TrainingBudget()
    everything = []
    for molecules in SETS:
        for contender in CONTENDERS:
            if (molecules.name, contender) in CITED:
                continue
            for how in molecules.splits:
                problems = (Problem(molecules, how, seed, effort) for seed in SEEDS)
                everything += [contender_cell(contender, problem) for problem in problems]
    return [c for c in everything if not smoke or (c.name.startswith("BACE/") and not c.seed)]


def contender_cell(contender: str, problem: Problem) -> Cell:
    """The cell of a contender; all of them get the same molecules."""
    molecules, effort = problem.molecules, problem.effort
    measure: Callable[[GraphSet, Job], Measurement]
    if contender in NETWORKS:
        config = RunConfig(
            molecules.name,
            split="stored",
            seed=problem.seed,
            epochs=effort.epochs or SHORTER.get(molecules.name),
            **NETWORKS[contender],
        )
        settings, measure = run_settings(config), partial(train_network, problem, config)
    elif contender == "Chemprop":
        settings, measure = {"epochs": effort.chemprop_epochs}, partial(run_chemprop, problem)
    else:
        settings = {"features": FORESTS[contender], "trees": effort.trees}
        measure = partial(run_forests, problem, FORESTS[contender])
    settings["limit"] = effort.limit

    def run(job: Job) -> Measurement:
        if reason := missing_tool(contender):
            raise DataError(reason)
        graphs = problem.read(job)
        measured = measure(graphs, job)
        return replace(measured, data=digests(molecules, graphs) | dict(measured.data))

    name = f"{molecules.name}/{problem.split}/{contender}"
    return Cell("molecules", name, run, settings, problem.seed, {"limit": 0})


def missing_tool(contender: str) -> str:
    """What a contender lacks here; empty if nothing."""
    of_networks = {"GINE": ("torch_geometric",), "G2N2": ()}
    needs = of_networks.get(contender, ("rdkit", "sklearn"))
    if absent := [name for name in needs if not find_spec(name)]:
        return f"{contender} needs {' and '.join(absent)}, which is not installed"
    if contender == "Chemprop" and not chemprop_command():
        return f"no command chemprop: pip install chemprop, or set ${CHEMPROP_VARIABLE} to its path"
    return ""


def train_network(problem: Problem, config: RunConfig, graphs: GraphSet, job: Job) -> Measurement:
    """A network of the library, trained as `g2n2 train` does."""
    folder, label = job.work / "run", GPU if job.torch_device().type == "cuda" else CPU
    trained, seconds = timed(job, label, partial(train, config, folder, job, graphs))
    metrics, files = problem.metrics(trained.scores["all"]), RunFolder(folder)
    size = {"parameters": files.read_json("result.json")["parameters"]}
    return Measurement(
        len(trained.history),
        "epochs",
        metrics | {label: seconds} | size,
        data={"graphs": checksum(graphs)},
        config=described(files.config()),
        detail={name: [row[name] for row in trained.history] for name in trained.history[0]},
    )


def run_forests(problem: Problem, kind: str, graphs: GraphSet, job: Job) -> Measurement:
    """A random forest for each target, on the training molecules whose target is known."""
    trees = problem.effort.trees
    features, before = featurise(kind, tuple(smiles_of(graphs) or ()))
    fit = partial(fit_forests, graphs, features, trees, problem.seed)
    predicted, seconds = timed(job, CPU, fit)
    metrics = problem.score(graphs, predicted) | {CPU: before + seconds}
    versions = {name: version(name) for name in ("scikit-learn", "rdkit")}
    return Measurement(trees, "trees", metrics, {}, versions)


@lru_cache(maxsize=1)
def featurise(kind: str, smiles: tuple[str, ...]) -> tuple[NDArray[np.float32], float]:
    """Features of each molecule, and the CPU seconds they took.

    Morgan fingerprints have radius 2 and 2048 bits. A descriptor that RDKit cannot compute is NaN,
    which the forest takes.
    """
    from rdkit import Chem
    from rdkit.Chem import Descriptors, rdFingerprintGenerator

    start = cpu_seconds()
    molecules = [Chem.MolFromSmiles(text) for text in smiles]
    if kind == FORESTS["forest-morgan"]:
        generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
        rows = [generator.GetFingerprintAsNumPy(molecule) for molecule in molecules]
    else:
        describe: Any = Descriptors.CalcMolDescriptors  # part of RDKit's Python code has no types
        rows = [list(describe(molecule).values()) for molecule in molecules]
    largest = np.finfo(np.float32).max
    features = np.clip(np.array(rows, dtype=np.float64), -largest, largest).astype(np.float32)
    return features, cpu_seconds() - start


def fit_forests(graphs: GraphSet, features: NDArray[Any], trees: int, seed: int) -> Values:
    """Predictions for the test molecules `[rows, T]`; probabilities of class 1 where it is one."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    training, test = graphs.splits["train"], graphs.splits["test"]
    classes = Task.of(graphs).kind == "binary"
    kind = RandomForestClassifier if classes else RandomForestRegressor
    predicted = []
    for targets in graphs.targets.T:
        known = training[np.isfinite(targets[training])]
        forest = kind(trees, random_state=seed).fit(features[known], targets[known])
        rows = features[test]
        predicted.append(forest.predict_proba(rows)[:, 1] if classes else forest.predict(rows))
    return np.stack(predicted, axis=1)


def run_chemprop(problem: Problem, graphs: GraphSet, job: Job) -> Measurement:
    """Chemprop by its own command, which may belong to another Python environment."""
    command, epochs = chemprop_command(), problem.effort.chemprop_epochs
    assert command is not None, "`missing_tool` has looked for it"
    fit = partial(train_chemprop, command, graphs, epochs, problem.seed, job.work)
    predicted, seconds = timed(job, CPU, fit)
    metrics = problem.score(graphs, predicted) | {CPU: seconds}
    return Measurement(epochs, "epochs", metrics, {}, {"chemprop": _chemprop_version(command)})


def chemprop_command() -> str | None:
    return os.environ.get(CHEMPROP_VARIABLE) or shutil.which("chemprop")


def _chemprop_version(command: str) -> str:
    asked = "from importlib.metadata import version; print(version('chemprop'))"
    python = Path(command).with_name("python")
    if not python.exists():
        return "unknown"
    return subprocess.run([python, "-c", asked], capture_output=True, text=True).stdout.strip()


def train_chemprop(command: str, graphs: GraphSet, epochs: int, seed: int, folder: Path) -> Values:
    """Predictions of `chemprop train` for the test molecules."""
    names, smiles = [column.name for column in graphs.columns], smiles_of(graphs) or []
    part_of = {int(i): part for part, members in graphs.splits.items() for i in members}
    data, out = folder / "molecules.csv", folder / "chemprop"
    with data.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["smiles", *names, "split"])
        for i, (text, targets) in enumerate(zip(smiles, graphs.targets.tolist(), strict=True)):
            known = ["" if target != target else target for target in targets]
            table.writerow([text, *known, part_of.get(i, "").replace("validation", "val")])
    shutil.rmtree(out, ignore_errors=True)
    task = "classification" if Task.of(graphs).kind == "binary" else "regression"
    words = (
        f"train --smiles-columns smiles --splits-column split --task-type {task} --accelerator cpu"
    )
    words += f" --num-workers 0 --devices 1 --epochs {epochs} --pytorch-seed {seed}"
    paths = ["--data-path", str(data), "--output-dir", str(out), "--target-columns", *names]
    done = subprocess.run([command, *words.split(), *paths], capture_output=True, text=True)
    predictions = out / "model_0" / "test_predictions.csv"
    if done.returncode or not predictions.is_file():
        raise DataError(f"{command} failed: {done.stderr.strip()[-500:]}")
    with predictions.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if [row["smiles"] for row in rows] != [smiles[i] for i in graphs.splits["test"]]:
        raise DataError(f"{predictions} has other molecules than the test part")
    return np.array([[float(row[name]) for name in names] for row in rows])


def timed(job: Job, label: str, compute: Callable[[], Result]) -> tuple[Result, float]:
    """A result, and the seconds it took, those of attempts that were stopped included.

    They are CPU seconds of this process and those it started, or wall time for a GPU.
    """
    path, clock = job.work / f"{label}.json", time.monotonic if label == GPU else cpu_seconds
    seconds: float = json.loads(path.read_text("utf-8")) if path.exists() else 0.0
    start = clock()
    try:
        return compute(), seconds + clock() - start
    finally:
        with suppress(OSError):  # a full disk; what else is raised is what counts
            replace_file(path, json.dumps(seconds + clock() - start).encode())


def cpu_seconds() -> float:
    return sum(os.times()[:4])
