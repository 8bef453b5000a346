"""What the user sees of a run: a summary, a progress bar or plain lines, a table of scores."""

from __future__ import annotations

import textwrap
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import nn

from ..compiler.costs import NetworkCost
from ..compiler.grammar_to_plan import plan_network
from ..compiler.marks import marks_named
from ..data.batch import LARGE
from ..data.batching import epoch_batches
from ..described import counted, shown_number
from ..errors import G2N2Error
from ..grammars.grammar import Grammar
from ..nn.model import GrammarGNN
from .calibration import Reliability, percent
from .config import RunConfig, with_rules
from .loop import Loop, Watch
from .optimiser import Learner
from .processes import find_device
from .setup import (
    Parts,
    make_model,
    make_store,
    takes_edges,
    without_edge_features,
)
from .task import LABELS, Scores, Task

CHEAPER = "r-G_L1"
"""The grammar without matrices that is named beside one with them."""
FORWARD = 1 / 3
"""Of the time of a training step: a prediction needs no gradients."""
LONG_STEP = 0.3
"""Seconds: a step that takes longer is timed once."""
WITH_UNIT = ("mae", "rmse")
LINES_EVERY = 10.0
"""Seconds between two lines where there is no terminal to redraw."""


class Display(AbstractContextManager["Display"]):
    """Shows a run on a console: a bar on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console | None = None, other: Grammar | None = None) -> None:
        """`other` is the exhaustive grammar of a fragment that was reduced."""
        self.console = console or plain_console()
        self.other = other
        self._first = (0, 0.0)
        self._bar: Progress | None = None
        self._last_line = 0.0

    def watch(self) -> Watch:
        return Watch(self.summary, self.start, self.step, self.epoch, self.note)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def note(self, sentence: str) -> None:
        self._say(f"note: {sentence}")

    def summary(self, config: RunConfig, parts: Parts, model: nn.Module) -> None:
        """Print what is about to be trained, and on what."""
        recipe = config.effective_recipe()
        for sentence in data_sentences(config, parts, model):
            self._point(sentence)
        weights = sum(p.numel() for p in model.parameters())
        name = config.baseline or f"The network of {config.grammar} (preset {recipe.preset})"
        trunk = f", and {config.trunk} before the marks" if config.trunk else ""
        self._point(
            f"{name} has {counted(config.layers, 'layer')} of width {recipe.width}{trunk}: "
            f"{weights:,} weights."
        )
        if self.other is not None and isinstance(model, GrammarGNN):
            other = self.other
            plan = plan_network(other, **model.options, supports=model.supports is not None)
            self._point(
                f"The fragment stands for its reduced grammar, {model.plan.grammar.rule_count}; "
                f"{other.name} has {other.rule_count} and would have "
                f"{NetworkCost(plan, 1, 1).weights:,} weights (--exhaustive)."
            )
        self._point(
            f"Recipe {recipe.name}: at most {counted(recipe.epochs, 'epoch')}, batches of "
            f"{recipe.batch}, learning rate {recipe.rate:g}, seed {config.seed}."
        )
        if config.devices == 1 and find_device(config.device).type == "cpu":
            for sentence in time_sentences(config, parts):
                self._point(sentence)

    def _point(self, sentence: str) -> None:
        width = max(40, self.console.width)
        lines = textwrap.wrap(sentence, width, initial_indent="• ", subsequent_indent="  ")
        self._say("\n".join(lines))

    def _say(self, text: str) -> None:
        self.console.print(text, soft_wrap=True, markup=False, highlight=False, emoji=False)

    def start(self, loop: Loop) -> None:
        self._first = loop.progress.steps, loop.progress.seconds
        self._say(f"\ntraining into {shown_path(loop.folder)}; Ctrl-C stops and saves")
        if loop.progress.steps and not loop.finished:
            self._say(f"going on from epoch {loop.progress.epoch + 1}")
        if self.console.is_terminal and not loop.finished:
            width = max(6, min(30, self.console.width - 84))  # what the text beside it leaves
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=width),
                TextColumn("{task.fields[text]}", markup=False),
                console=self.console,
            )
            steps = loop.planned_steps
            self._bar.add_task("epoch", total=steps, completed=loop.progress.steps, text="")
            self._bar.start()

    def step(self, loop: Loop) -> None:
        if self._bar is not None:
            epochs = loop.recipe.epochs
            self._bar.update(
                self._bar.tasks[0].id,
                completed=loop.progress.steps,
                description=f"epoch {min(loop.progress.epoch + 1, epochs)}/{epochs}",
                text=self.line(loop),
            )

    def epoch(self, loop: Loop) -> None:
        """Print a line for an epoch, at most one every `LINES_EVERY` seconds."""
        if self._bar is not None:
            self.step(loop)
            return
        now = time.monotonic()
        if now - self._last_line >= LINES_EVERY or loop.progress.epoch == 1 or loop.finished:
            self._last_line = now
            self._say(f"epoch {loop.progress.epoch}/{loop.recipe.epochs}  {self.line(loop)}")

    def line(self, loop: Loop) -> str:
        """Loss, validation metric in its unit, graphs a second, time left."""
        progress = loop.progress
        parts = []
        last = progress.history[-1] if progress.history else {}
        if progress.known:
            parts.append(f"loss {progress.loss / progress.known:.4g}")
        elif last:
            parts.append(f"loss {last['loss']:.4g}")
        if last:
            parts.append(f"validation {measured(loop.task, last[progress.metric])}")
        # Speed counts from where this process started or resumed.
        steps, seconds = progress.steps - self._first[0], progress.seconds - self._first[1]
        if steps > 0 and seconds > 0:
            graphs = steps / loop.epoch_steps * loop.config.passes * len(loop.train)
            left = seconds / steps * (loop.planned_steps - progress.steps)
            if loop.config.minutes:
                left = min(left, loop.config.minutes * 60.0 - seconds)
            parts += [f"{graphs / seconds:,.0f} graphs/s", f"{duration(max(0.0, left))} left"]
        return "  ".join(parts)


class Advance(AbstractContextManager["Advance"]):
    """Progress of a long task on a terminal, with speed and time left; called with both counts."""

    def __init__(self, what: str, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        self.what, self.done = what, 0
        self._bar = Progress(
            BarColumn(bar_width=20),
            TextColumn(f"{{task.completed:,}} of {{task.total:,}} {what}  {{task.fields[speed]}}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )

    def __call__(self, done: int, total: int) -> None:
        self.done = done
        if not self._bar.tasks:
            self._bar.add_task("", total=total, completed=done, speed="")
            self._bar.start()
        speed = self._bar.tasks[0].speed
        shown = f"{speed:,.0f} {self.what}/s" if speed else ""
        self._bar.update(self._bar.tasks[0].id, completed=done, speed=shown)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def plain_console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)


def time_sentences(config: RunConfig, parts: Parts) -> list[str]:
    """How long a run will take on this CPU; none if that could not be measured.

    Beside a network with matrices it says what one without them would take.
    """
    seconds = forecast(config, parts)
    if seconds is None:
        return []
    sentence = f"This takes about {duration(seconds)} on this CPU"
    if config.minutes and seconds > config.minutes * 60.0:
        sentence += f"; in its {config.minutes:g} min the learning rate comes down earlier"
    sentences = [f"{sentence}."]
    if not (config.baseline or config.start) and takes_edges(config):
        names = ("recipe", "width", "layers", "batch", "epochs", "passes", "precision")
        same = {name: getattr(config, name) for name in names}
        plain = with_rules(RunConfig(config.dataset, grammar=CHEAPER, **same))
        cheaper = forecast(plain, replace(parts, graphs=without_edge_features(parts.graphs)))
        if cheaper is not None and cheaper < 0.5 * seconds:
            sentences.append(
                f"{CHEAPER}, which passes messages along edges and tells less apart, would take "
                f"about {duration(cheaper)} (--grammar {CHEAPER})."
            )
    return sentences


def forecast(config: RunConfig, parts: Parts) -> float | None:
    """Seconds of all steps, validations and the last predictions, without a time limit.

    Marks that are drawn in training are all there in predictions. None if a step fails: the run
    itself says why, or goes on with smaller batches.
    """
    recipe, splits = config.effective_recipe(), parts.splits
    sizes = parts.graphs.sizes[splits["train"]]
    chosen = splits["train"][epoch_batches(sizes, recipe.batch, config.seed, 0)[0]]
    try:
        step = step_seconds(config, replace(parts, graphs=parts.graphs.select(chosen)))
    except (G2N2Error, RuntimeError, MemoryError):
        return None
    trained = recipe.epochs * config.passes * len(splits["train"])
    predicted = recipe.epochs * len(splits["validation"]) + sum(map(len, splits.values()))
    drawn = marks_named(config.marks)
    copies = max(1.0, float(sizes.mean()) / drawn) if isinstance(drawn, int) else 1.0
    return step / len(chosen) * (trained + FORWARD * copies * predicted)


def step_seconds(config: RunConfig, parts: Parts) -> float:
    """Seconds of a training step of a copy on all graphs, once caches are warm."""
    graphs = replace(parts.graphs, targets=parts.scaling.scale(parts.task, parts.graphs))
    with torch.random.fork_rng():
        store = make_store(config, graphs, torch.device("cpu"))
        model = make_model(config, parts).to(store.dtype)
        if config.freeze:
            from .fine_tuning import freeze

            freeze(model, config.freeze)
        learner = Learner.of(config, model, store, parts.task)
        every, seconds = np.arange(len(graphs)), []
        for indices in (every[:2], every, every, every):
            begin = time.perf_counter()
            learner.gradients(indices, len(indices), 1.0)
            learner.step(1)
            seconds.append(time.perf_counter() - begin)
            if len(seconds) > 1 and seconds[-1] > LONG_STEP:
                break
    return min(seconds[1:])


def data_sentences(config: RunConfig, parts: Parts, model: nn.Module) -> list[str]:
    """The data in sentences, with the memory a batch takes in this network."""
    from ..data.summary import activation_bytes, summarise
    from ..nn.memory_budget import estimate

    def bytes_of(batch: int, nodes: int) -> float:
        if not isinstance(model, GrammarGNN):
            return activation_bytes(batch, nodes, width, config.layers)
        sparse = model.columns_only and int(parts.graphs.sizes.max()) >= LARGE
        entries = int(np.sort(parts.graphs.edge_counts)[-batch:].sum()) if sparse else None
        return float(estimate(model, batch, nodes, entries=entries))

    width, batch = config.effective_recipe().width, config.effective_recipe().batch
    return [*summarise(parts.graphs, parts.splits, batch, bytes_of), *parts.notes]


def score_table(task: Task, scores: Scores, guesses: Scores | None = None) -> Table:
    """Scores with units: a row for each target, their mean, and `guesses` to compare with."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    names = list(scores["all"])
    table.add_column("target")
    for name in names:
        table.add_column(LABELS[name], justify="right")
    for column in task.columns:
        cells = (_cell(name, scores[column.name][name], column.unit) for name in names)
        table.add_row(column.name, *cells)
    if len(task.columns) > 1:
        table.add_row("mean", *(_cell(name, scores["all"][name], "") for name in names))
    if guesses:
        label = "guessing the mean" if task.kind == "regression" else "guessing the commonest"
        unit = task.columns[0].unit if len(task.columns) == 1 else ""
        table.add_row(label, *(_cell(name, guesses["all"][name], unit) for name in names))
    return table


def reliability_sentences(task: Task, reliability: Reliability, what: str) -> list[str]:
    """How intervals or calibrated probabilities do, for each target; `what`: `test graph`."""
    sentences = []
    for column in task.columns:
        if (row := reliability.get(column.name)) is None:
            continue
        of = f"{column.name}: " if len(task.columns) > 1 else ""
        row_count = counted(int(row["rows"]), what)
        if row.get("temperature") == 1.0:  # too few validation rows to fit one
            sentences.append(
                f"{of}on {row_count} the negative log-likelihood is {row['nll']:.4g}, "
                f"the expected calibration error {percent(row['ece'])}"
            )
        elif "temperature" in row:
            sentences.append(
                f"{of}probabilities are calibrated by a temperature of {row['temperature']:.3g}; "
                f"on {row_count} the negative log-likelihood is {row['nll']:.4g} "
                f"(before: {row['nll_before']:.4g}), the expected calibration error "
                f"{percent(row['ece'])} (before: {percent(row['ece_before'])})"
            )
        elif row["width"] < float("inf"):
            unit = f" {column.unit}" if column.unit else ""
            rest = ""
            if far := int(row["far"]):
                row_count = f"{int(row['rows']):,} of {counted(int(row['rows']) + far, what)}"
                are = "is" if far == 1 else "are"
                rest = f"; {far:,} {are} too far outside the training graphs for an interval"
            sentences.append(
                f"{of}{percent(row['level'])} intervals (± {row['width'] / 2:.4g}{unit}) hold "
                f"{100 * row['coverage']:.1f} % of {row_count}{rest}"
            )
    return sentences


def measured(task: Task, value: float) -> str:
    """The metric a run is judged by, as `MAE 3.2 meV`; no unit if targets have several."""
    unit, *others = {column.unit for column in task.columns}
    return f"{LABELS[task.metric]} {_cell(task.metric, value, '' if others else unit)}"


def duration(seconds: float) -> str:
    """`42 s`, `3 min 5 s` or `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def shown_path(path: Path) -> str:
    """A path as one would type it here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _cell(name: str, value: float, unit: str) -> str:
    if value != value:
        return "–"
    if name == "accuracy":
        return f"{value:.1%}"
    shown = shown_number(f"{value:.4g}")
    return f"{shown} {unit}" if unit and name in WITH_UNIT else shown
