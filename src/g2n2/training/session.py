"""Training: `train` takes plain arguments, `train_config` a `RunConfig`; both fill a run folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ..atomic_files import check_folder, sole_writer
from ..data.graph_set import GraphSet
from ..data.reading import read_with
from ..described import Described
from ..errors import DataError
from ..grammars.coercion import GrammarLike, as_network_grammar
from ..ops.precision import float32_products
from .calibration import Calibration, Reliability
from .config import CHANGEABLE, RunConfig, rooted, rules_of, with_rules
from .cuda_graphs import Recorded
from .display import Display
from .evaluate import constant_guess
from .loop import Loop
from .loop import Watch as Watch
from .plots import TensorBoardCurves, draw
from .precompute import precompute_supports
from .processes import first_process, launch
from .run import Run
from .run_folder import PARTS, RunFolder, new_run_folder, provenance
from .setup import (
    Parts,
    chosen_graphs,
    graphs_of_run,
    load_graphs,
    make_model,
    make_store,
    prepare,
    reads_positions,
    refuse_one_class,
    refuse_unknown_names,
    refuse_unread_directions,
    takes_edges,
)
from .task import Scores, for_json
from .trained_on import checksum

if TYPE_CHECKING:
    from .fine_tuning import Start

OTHER_FOLDER = "wait for it to end, or name another folder: g2n2 train … --out FOLDER"


def train(
    dataset: str | Path | GraphSet | Iterable[Any],
    target: str | Sequence[str] = (),
    *,
    out: str | Path | None = None,
    grammar: GrammarLike = "r-G_L3",
    baseline: str | None = None,
    start: str | Path | Run | None = None,
    freeze: int = 0,
    preset: str | None = None,
    width: int | None = None,
    layers: int = 3,
    readout: str | None = None,
    pooling: str | None = None,
    functions: str = "mlp",
    pair_bias: bool | None = None,
    pair_norm: str | None = None,
    marks: str = "all",
    trunk: int = 0,
    decision: Sequence[int] | None = None,
    context: bool = False,
    distance: Sequence[str] | None = None,
    recipe: str = "modern",
    batch: int | None = None,
    epochs: int | None = None,
    passes: int = 1,
    window: int = 0,
    rate: float | None = None,
    decay: float | None = None,
    ema: float | None = None,
    dropout: float | None = None,
    minutes: float = 0.0,
    split: str = "auto",
    limit: int = 0,
    references: bool = False,
    extent: bool = False,
    preprocess: str = "auto",
    options: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    seed: int = 0,
    device: str = "auto",
    devices: int = 1,
    precision: str = "32",
    threads: int = 0,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    progress: bool = False,
    pictures: bool = True,
) -> Run:
    """Train a network on graphs and return the run: its model, its scores, its predictions.

    >>> import tempfile
    >>> import networkx as nx
    >>> from g2n2 import train
    >>> graphs = [nx.cycle_graph(3 + i % 4) for i in range(20)]
    >>> for graph in graphs:
    ...     graph.graph["y"] = float(len(graph))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = train(graphs, out=f"{folder}/run", grammar="GNNML1", width=4, layers=1, epochs=1,
    ...                 device="cpu", pictures=False)
    ...     sorted(run.scores), run.predict(["C~", "Bw"]).values.shape
    (['all', 'y'], (2, 1))

    All other arguments are settings: see `help(g2n2.training.RunConfig)`.

    Args:
        dataset: A CSV with SMILES or any other file `g2n2.read_graphs` reads, a name of
            `g2n2 datasets`, a `GraphSet`, or a list of networkx graphs or PyG `Data`.
        target: What to predict, one name or several; all targets if empty.
        out: The run folder; by default `runs/DATASET-TARGET-NNN` with the next free number.
        grammar: A grammar, its name, its rules, a file of them or a certificate, or a fragment,
            which stands for its reduced grammar.
        start: What to start from, in place of a grammar: a run or its folder, a network's file, or
            the name of a network that comes with g2n2 (`qm9`).
        freeze: So many of its first layers stay as they are.
        minutes: Train for at most so many minutes, in which the learning rate comes down; 0 for no
            limit.
        options: Of the data set (`track`, `features`) or of reading (`smiles`, `id`, `task` …).
        resume: Continue the run in `out`, with the settings it was started with.
        progress: Show what `g2n2 train` shows.
        pictures: Draw learning curves and predictions if matplotlib is installed.

    Raises:
        DataError: Bad settings or data, or a folder that holds another run.
        TrainingError: The run cannot continue.
    """
    arguments = dict(locals())
    if out is not None:
        check_folder(Path(out))
    if not isinstance(target, Iterable):
        raise DataError(f"target in train should be a name, or a list of names, got {target!r}")
    targets = (target,) if isinstance(target, str) else tuple(target)
    settings = {f.name: arguments[f.name] for f in fields(RunConfig) if f.name in arguments}
    if baseline or (start and grammar == RunConfig.grammar):
        del settings["grammar"]
    else:  # before the data is read
        chosen = as_network_grammar(grammar)
        unnamed = chosen.name in ("", chosen.in_short)
        name = "; ".join(chosen.lines()) if unnamed else chosen.name
        settings |= {"grammar": name, "rules": rules_of(chosen), "baseline": None}
    graphs: GraphSet | None = None
    if isinstance(dataset, GraphSet):
        if options:
            raise DataError(f"options are of reading, and a GraphSet is read: {', '.join(options)}")
        graphs = dataset
    elif not isinstance(dataset, str | Path):
        graphs = read_with(dataset, {**({"target": targets} if targets else {}), **(options or {})})
    settings |= {
        "dataset": str(dataset) if graphs is None else graphs.name,
        "target": targets,
        "data": None if data is None else str(data),
        "start": None if start is None else str(getattr(start, "folder", start)),
        "options": dict(options or {}) if graphs is None else {},
        "decision": decision and list(decision),
        "distance": distance and list(distance),
    }
    config = RunConfig.from_dict(settings, "train")
    if resume and out is None:
        raise DataError("resume goes on with a run: name its folder with out=")
    if graphs is None:
        config = rooted(config)
    else:
        graphs = chosen_graphs(config, graphs)
    folder = new_run_folder(config) if out is None else Path(out)
    if resume and (files := RunFolder(folder)).started:  # what is not given stays
        before = files.config()
        unset = [name for name in CHANGEABLE if getattr(config, name) == getattr(RunConfig, name)]
        if before.device == "cuda" and "device" in unset and not torch.cuda.is_available():
            unset.remove("device")  # it goes on with what is here
        config = replace(config, **{name: getattr(before, name) for name in unset})
    with Display() if progress else nullcontext() as display:
        watch = display.watch() if display else None
        train_config(config, folder, resume=resume, graphs=graphs, watch=watch, pictures=pictures)
    return Run(folder, device, graphs)


@dataclass(frozen=True, eq=False, repr=False)
class Result(Described):
    """How a run ended."""

    folder: Path  # its files
    parts: Parts  # its graphs, splits, task and scaling
    scores: Scores  # of the best weights on the test graphs, by target; empty if there are none
    guesses: Scores  # the same for a constant guess: the mean, or the most frequent class
    reliability: Reliability  # of intervals or probabilities on the test graphs, by target
    history: list[dict[str, float]]  # one row for each epoch
    best_epoch: int  # counted from 1
    # done, and planned at most; fewer are done if the minutes are over before
    epochs: tuple[int, int]

    def facts(self) -> dict[str, str]:
        done, planned = self.epochs
        return {
            "folder": str(self.folder),
            "epochs": f"{done:,} of {planned:,}",
            "best_epoch": f"{self.best_epoch:,}",
            **{name: f"{value:.4g}" for name, value in self.scores.get("all", {}).items()},
        }


def train_config(
    config: RunConfig,
    folder: str | Path,
    *,
    resume: bool = False,
    graphs: GraphSet | None = None,
    watch: Watch | None = None,
    pictures: bool = True,
    recorded: Recorded | None = None,
) -> Result:
    """Run a config from data to test scores.

    Args:
        config: Settings; when resuming, those of the folder are used.
        folder: The run folder; created if it does not exist.
        resume: Continue from the last checkpoint in the folder.
        graphs: Graphs already in memory, in place of the config's data set.
        watch: Callbacks.
        pictures: Whether learning curves and predictions are drawn.
        recorded: Shared by several runs on the same graphs, it saves recording CUDA graphs again.

    Raises:
        DataError: Bad settings or data, or a folder that holds another run.
        TrainingError: The run cannot continue.
        KeyboardInterrupt: Ctrl-C or SIGTERM; a checkpoint is left.
    """
    watch, recorded = watch or Watch(), recorded or Recorded()
    files, first, loop = RunFolder(folder), first_process(), None
    with ExitStack() as stack:
        if first:  # the others start later, when the folder is already in use
            files.refuse_wrong_use(resume=resume)  # before anything is made there
            stack.enter_context(sole_writer(files.path, OTHER_FOLDER))
            files.refuse_wrong_use(resume=resume)  # another process may have been here just before
        try:
            config, start = _settled(config, files, resume=resume)
            # With bfloat16, float32 products may be TF32 too; after the run they are as before.
            tf32 = config.checked().precision in ("tf32", "bf16")
            stack.enter_context(float32_products(tf32=tf32))
            processes = launch(config)
            files = RunFolder(processes.gathered(str(folder))[0])
            stack.enter_context(processes.ending_together(files.path))
            given = graphs
            graphs = processes.in_turn(lambda: _graphs(config, files, given, resume=resume))
            if not resume:
                refuse_one_class(graphs)
            if start:
                parts = processes.in_turn(partial(_fresh_parts, config, graphs, start))
            else:
                parts = prepare(config, graphs, files.splits() if resume else None)
            if resume:
                trained_on = files.trained_on
                trained_on.refuse_other(parts.graphs, files.path)
                before = trained_on.trained_before
                parts = replace(parts, scaling=trained_on.scaling, trained_before=before)
            on_cpu = processes.device.type == "cpu"
            costly = on_cpu and not config.baseline and takes_edges(config)
            config = config.sized(len(parts.splits["train"]), costly=costly)
            scaled = replace(parts.graphs, targets=parts.scaling.scale(parts.task, parts.graphs))
            store = make_store(config, scaled, processes.device)
            parts, model = _network(config, parts, files, start)
            refuse_unread_directions(model, parts.graphs)
            model = model.to(store.dtype)
            if getattr(model, "supports", None) is not None:
                precompute_supports(model, store, recorded)
            watch.summary(config, parts, model)
            curves: TensorBoardCurves | None = None
            with processes.all_or_none():
                if first:
                    files.drop_unfinished()
                    if not resume:
                        files.describe(config, parts, model if start else None)
                    elif files.checksum_note:
                        watch.note(f"{files.checksum_note}; from here on it is")
                        files.add_checksums()
                    curves = TensorBoardCurves(files.path / "tensorboard")
                    if curves.missing:
                        watch.note(curves.missing)
            loop = Loop(config, processes, model, store, parts, files, curves, watch, recorded)
            if resume:
                loop.restore()
            watch.start(loop)
            loop.run()
        except BaseException as fault:
            # A run that failed before its first step cannot be resumed: the name is free again.
            begun = resume or (loop is not None and loop.progress.steps > 0)
            if first and not (begun if isinstance(fault, Exception) else files.started):
                files.forget()
            raise
        if curves is not None:
            curves.close()
        return _end(loop, pictures=pictures)


def _graphs(
    config: RunConfig, files: RunFolder, given: GraphSet | None, *, resume: bool
) -> GraphSet:
    if given is not None:
        return given.check()
    return graphs_of_run(config, files.path) if resume else load_graphs(config)


def _fresh_parts(config: RunConfig, graphs: GraphSet, start: Start) -> Parts:
    """Parts that hold out, if it can be, no graph the network to start from was trained on."""
    from .trained_before import TrainedBefore

    return TrainedBefore.of(start, graphs).parts(config, graphs)


def _settled(
    config: RunConfig, files: RunFolder, *, resume: bool
) -> tuple[RunConfig, Start | None]:
    """The settings of the run, and the network it starts from, if it is a new one."""
    start: Start | None = None
    if resume:
        changeable = {name: getattr(config, name) for name in CHANGEABLE}
        config = replace(files.config(), **changeable)
    if config.freeze and not config.start:
        raise DataError("freeze keeps layers of the network to start from: name one (--from)")
    if config.start and not resume:
        from .fine_tuning import Start

        start = Start.find(config.start)
        config = start.settings(config)
    config = with_rules(config)
    refuse_unknown_names(config, resume=resume)
    return config, start


def _network(
    config: RunConfig, parts: Parts, files: RunFolder, start: Start | None
) -> tuple[Parts, nn.Module]:
    """The network before its first step, and the parts with what there is to say about it."""
    if not config.start:
        return parts, make_model(config, parts)
    from .fine_tuning import freeze

    model, sentences = start.network(config, parts) if start else (files.load_start(), [])
    model.readout.dropout = config.effective_recipe().dropout
    freeze(model, config.freeze)
    return replace(parts, notes=(*parts.notes, *sentences)), model


def _end(loop: Loop, *, pictures: bool) -> Result:
    """Calibrate and test the best weights, and write that."""
    files, parts, task, progress = loop.files, loop.parts, loop.task, loop.progress
    course = (progress.history, loop.best_epoch, (progress.epoch, loop.recipe.epochs))
    loop.processes.largest(0.0)  # all wait for the best weights
    model = files.load_best(loop.config, parts).to(loop.processes.device)
    train, validation, test = (loop.predict(part, model) for part in PARTS)
    distances = reads_positions(loop.config, parts.graphs)
    calibration = Calibration.fit(parts, train, validation, distances=distances)
    test = replace(test, calibration=calibration)
    for sentence in calibration.lacking():
        loop.watch.note(sentence)
    scores, guesses = test.scores, constant_guess(parts, test)
    result = Result(files.path, parts, scores, guesses, test.reliability, *course)
    if loop.curves is None:  # only the first process writes
        return result
    if pictures and not draw(files.path, task, progress.history, test, loop.best_epoch):
        loop.watch.note(
            'matplotlib is not installed, so nothing is drawn: pip install "g2n2[plot]"'
        )
    test.to_csv(files.path / "test.csv", truth=True)
    files.write_ending(
        calibration,
        {
            "data": parts.graphs.name,
            "test": for_json(scores),
            "test_of_constant_guess": for_json(guesses),
            "test_reliability": for_json(result.reliability),
            "units": {column.name: column.unit for column in task.columns},
            "best_epoch": loop.best_epoch,
            "epochs": progress.epoch,
            "seconds": round(progress.seconds, 3),
            "parameters": sum(p.numel() for p in loop.model.parameters()),
            "graphs": {part: len(members) for part, members in parts.splits.items()},
            "data_sha256": checksum(parts.graphs),
            "made_with": provenance(loop.processes.device),
            "config": loop.config.as_dict(),
        },
    )
    return result
