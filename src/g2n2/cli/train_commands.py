"""train, sweep: from graphs to a run folder."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..atomic_files import check_folder
from ..described import counted
from ..errors import DataError
from . import show
from .options import (
    HELP,
    DataFolder,
    FunctionsOption,
    Id,
    MarksOption,
    OnBadOption,
    OptionList,
    PairBias,
    PairNormOption,
    PoolingOption,
    ReadoutOption,
    Reduce,
    Smiles,
    TrunkOption,
    parsed_options,
)

if TYPE_CHECKING:
    from ..grammars.grammar import Grammar
    from ..training.config import RunConfig
    from ..training.session import Result
    from ..training.setup import Parts


def train(
    dataset: Annotated[
        str | None, typer.Argument(help="A name (g2n2 datasets) or a path to your own graphs.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="What to predict; repeat for several.")
    ] = None,
    grammar: Annotated[str | None, typer.Option(help=f"{HELP} [r-G_L3]")] = None,
    reduce: Reduce = None,
    baseline: Annotated[
        str | None, typer.Option(help="GIN, GCN, ChebNet, PPGN … in place of a grammar.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="A run folder, a network's file, or qm9, to start from."),
    ] = None,
    freeze: Annotated[
        int | None, typer.Option(help="Number of first layers of that network to freeze. [0]")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="modern, paper, official or ppgn. [modern]")
    ] = None,
    track: Annotated[str | None, typer.Option(help="QM9: bonds or distance.")] = None,
    features: Annotated[
        str | None, typer.Option(help="QM9: pyg, ppgn, sanitized or smiles.")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="modern or paper. [modern]")] = None,
    split: Annotated[
        str | None,
        typer.Option(help="random, scaffold, stored, column:NAME, fold:K or file:PATH."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Maximum number of graphs, drawn at random. [all]")
    ] = None,
    width: Annotated[
        int | None, typer.Option(help="Channels of every memory. [by grammar and device]")
    ] = None,
    layers: Annotated[int | None, typer.Option(help="Number of layers. [3]")] = None,
    readout: ReadoutOption = None,
    pooling: PoolingOption = None,
    functions: FunctionsOption = None,
    pair_bias: PairBias = None,
    pair_norm: PairNormOption = None,
    marks: MarksOption = None,
    trunk: TrunkOption = None,
    batch: Annotated[
        int | None, typer.Option(help="Graphs in a step. [by the number of graphs]")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Maximum number of epochs. [by device and number of graphs]")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate. [the recipe's]")] = None,
    dropout: Annotated[
        float | None, typer.Option(help="Dropout before each decision layer. [0]")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Time budget in minutes; the learning rate schedule fits into it. [none]"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of weights, split and batches. [0]")
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda. [auto]")] = None,
    devices: Annotated[int | None, typer.Option(help="Number of GPUs or processes. [1]")] = None,
    precision: Annotated[str | None, typer.Option(help="32, tf32, bf16 or 64. [32]")] = None,
    threads: Annotated[int | None, typer.Option(help="CPU threads.")] = None,
    smiles: Smiles = None,
    id_column: Id = None,
    task: Annotated[
        str | None, typer.Option(help="regression, binary, multiclass or multilabel.")
    ] = None,
    join: Annotated[
        str | None, typer.Option(help="Columns of numbers to join as features, such as mw,charge.")
    ] = None,
    descriptors: Annotated[
        bool | None, typer.Option("--descriptors", help="Join RDKit's 2D descriptors of molecules.")
    ] = None,
    preprocess: Annotated[
        str | None,
        typer.Option(help="none leaves features as they are and adds no degrees. [auto]"),
    ] = None,
    on_bad: OnBadOption = None,
    option: OptionList = None,
    data: DataFolder = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings in a TOML file, or a run's config.json.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run folder. [runs/DATASET-TARGET-NNN]")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Continue the run in this folder.")] = None,
) -> None:
    """Train a network on your graphs or a data set, into a run folder.

    Settings on the command line win over those of --config, and those over the defaults.
    """
    given = dict(locals())
    from ..compiler.marks import marks_named, refuse_without_marks
    from ..training.config import RunConfig, merged, run_grammar, with_chosen_rules

    settings = {field.name: given[field.name] for field in fields(RunConfig) if field.name in given}
    reading = ("track", "features", "smiles", "id_column", "task", "join", "descriptors", "on_bad")
    options = {name.removesuffix("_column"): given[name] for name in reading}
    options = {k: v for k, v in options.items() if v is not None} | parsed_options(option)
    if resume is not None:
        _refuse_beside_resume(settings, options, out, config)
        _run(_resumed(resume, device, devices, minutes), resume, resume=True)
        return
    if out is not None:
        check_folder(out)
    if dataset is None and config is None:
        raise DataError(
            "say what to train on: g2n2 train DATASET (see: g2n2 datasets), or --config"
        )
    run_config = merged(config, settings, options)
    if reduce is not None and (run_config.baseline or run_config.rules):
        raise DataError("--reduce and --exhaustive say what a fragment of --grammar stands for")
    run_config, other = with_chosen_rules(run_config, exhaustive=reduce is False)
    if marks is not None and not (run_config.baseline or run_config.start):
        refuse_without_marks(marks_named(marks), run_grammar(run_config))
    from ..training.run_folder import new_run_folder

    _run(run_config, out or new_run_folder(run_config), resume=False, other=other)


def sweep(
    config: Annotated[Path, typer.Argument(help="A TOML file: settings, and a table [sweep].")],
    trials: Annotated[
        int, typer.Option(min=1, help="Total number of trials, including those already done.")
    ],
    storage: Annotated[
        str,
        typer.Option(
            help="File that keeps the trials, or the URL of a database several machines share; "
            "name it again to continue."
        ),
    ] = "sweep.db",
    out: Annotated[Path, typer.Option(help="Folder of the trials' runs.")] = Path("runs/sweep"),
) -> None:
    """Search settings and grammars with Optuna; can be resumed."""
    from ..training.sweep import Sweep, run_sweep

    plan = Sweep.read(config)
    try:
        finished = run_sweep(plan, trials, storage, out, note=show.say)
    except KeyboardInterrupt:
        show.say("\nstopped, and saved; the same command goes on")
        raise typer.Exit(130) from None
    show.title(f"Trials of {config}, the best first")
    show.table(finished.headers, finished.rows)
    if finished.host:
        show.say(f"\nthe best trial's run is not here: {finished.best} on {finished.host}; there:")
    else:
        show.say("")
    best = quote(str(finished.best))
    show.say(f"scores on test graphs: g2n2 evaluate {best}")
    show.say(f"predict:               g2n2 predict {best} FILE --out preds.csv")


def _resumed(
    folder: Path, device: str | None, devices: int | None, minutes: float | None
) -> RunConfig:
    from ..training.run_folder import RunFolder

    settings = RunFolder.existing(folder).config()
    return replace(
        settings,
        device=device or settings.device,
        devices=devices or settings.devices,
        minutes=settings.minutes if minutes is None else minutes,
    )


def _refuse_beside_resume(
    settings: dict[str, Any], options: dict[str, Any], out: Path | None, config: Path | None
) -> None:
    from ..training.config import CHANGEABLE

    given = [name for name, value in settings.items() if value not in (None, (), [])]
    given += [*options, *(["out"] if out else []), *(["config"] if config else [])]
    if others := [name for name in given if name not in CHANGEABLE]:
        raise DataError(
            f"--resume goes on with the settings of the run; leave out {', '.join(others)} "
            "(only --device, --devices and --minutes may change)"
        )


def _run(settings: RunConfig, folder: Path, *, resume: bool, other: Grammar | None = None) -> None:
    from ..training.processes import first_process
    from ..training.session import Watch
    from ..training.session import train_config as run

    if not first_process():
        with suppress(KeyboardInterrupt):  # the first process says so
            run(settings, folder, resume=resume, watch=Watch())
        return
    from ..training.display import Display, shown_path

    with Display(other=other) as display:
        try:
            result = run(settings, folder, resume=resume, watch=display.watch())
        except KeyboardInterrupt:
            interrupted = True
        else:
            interrupted = False
    if interrupted:
        started = (folder / "config.json").is_file()
        advice = f", and saved; go on with: g2n2 train --resume {quote(shown_path(folder))}"
        show.say(f"\nstopped{advice if started else ' before training began; nothing was saved'}")
        raise typer.Exit(130)
    done, planned = result.epochs
    if settings.minutes and done < planned:
        show.say(f"\nthe minutes were over in epoch {done:,} of {planned:,}")
    _say_result(result, display.console)
    if not settings.baseline:
        show.say(f"power:      g2n2 power {quote(shown_path(folder))} says what it can tell apart")


def _say_result(result: Result, console: Any) -> None:
    from ..training.display import reliability_sentences, score_table, shown_path

    count, folder = len(result.parts.splits["test"]), shown_path(result.folder)
    if result.scores:
        test = f"Test: {counted(count, 'graph')} of {result.parts.graphs.name}"
        show.title(f"{test}{_trained_on(result.parts)}, weights of epoch {result.best_epoch}")
        console.print(score_table(result.parts.task, result.scores, result.guesses))
        what = f"test {result.parts.graphs.level}"
        for sentence in reliability_sentences(result.parts.task, result.reliability, what):
            show.say(sentence)
    else:
        why = "No test graph has a known target" if count else "There are no test graphs"
        show.say(f"\n{why} to score.")
    show.say(f"\nrun folder: {folder}  (result.json, metrics.csv, test.csv, pictures, weights)")
    show.say(f"predict:    g2n2 predict {quote(folder)} FILE --out preds.csv")


def _trained_on(parts: Parts) -> str:
    """What is known of training on the test graphs, before this run and in it."""
    from ..data.summary import graph_keys

    keys = graph_keys(parts.graphs)
    train = {keys[index] for index in parts.splits["train"]}
    both = sum(keys[index] in train for index in parts.splits["test"])
    twice = f"{both:,} of which {'is' if both == 1 else 'are'} in train too" if both else ""
    phrases = [*filter(None, (twice, parts.trained_before))]
    return f", {', '.join(phrases)}" if phrases else " never trained on"
