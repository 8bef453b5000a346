"""The demonstration as one short list of steps, told as it goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from ..data.catalogue import load_dataset
from ..errors import G2N2Error
from ..training.config import RunConfig
from ..training.display import Display, duration, shown_path
from ..training.session import Watch
from . import folder
from .figure import draw, panels
from .page import markdown, page
from .proof import DemoProof, prove
from .report import DemoOutcome, blocks, colours, score_rows, title
from .settings import DEGREE, FRAGMENT, TARGETS, DemoSettings
from .training_runs import TrainedNetwork, claims, configs, train_network
from .what_wl_sees import WlView, compare_tests

NEEDED = {"lightning": "train", "torch_geometric": "pyg", "matplotlib": "plot"}
NAMES = {"derived": f"derived from {FRAGMENT}", "gin": "GIN"}


def demonstrate(settings: DemoSettings, out: Path, console: Console) -> DemoOutcome:
    """Derive, look, train both networks, and write figure and report into a folder.

    Raises:
        G2N2Error: A package is missing, or the folder is not a demonstration's.
        KeyboardInterrupt: Ctrl-C or SIGTERM.
    """
    _refuse_missing_packages()
    folder.take(out)
    teller = Teller(console)
    with teller.step(f"Derive a network from {FRAGMENT}, with a proof"):
        proof = prove(FRAGMENT, out / folder.CERTIFICATE)
        _tell_proof(console, proof)
    shape = f"{settings.graphs:,} random {DEGREE}-regular graphs of {settings.nodes} nodes"
    with teller.step(f"Make {shape}, and look at them"):
        graphs = load_dataset("regular", options=settings.data_options)
        wl_view = compare_tests(graphs, proof.derivation.reduced)
        _tell_wl_view(console, wl_view, settings)
    runs = configs(proof.derivation.reduced, settings)
    trained: dict[str, TrainedNetwork] = {}
    for key, config in runs.items():
        with teller.step(f"Train: {NAMES[key]}"), Display(console) as display:
            watch = _watch(display, console, config)
            trained[key] = train_network(config, NAMES[key], out / key, graphs, watch)
    with teller.step("Test both, on graphs never trained on"):
        made = claims(*trained.values()) if settings.claims else ()
        outcome = DemoOutcome(
            settings, proof, wl_view, **trained, claims=made, seconds=teller.seconds
        )
        _tell_scores(console, outcome)
        _write(outcome, out)
    return outcome


class Teller:
    """Numbers the steps and times them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.number = 0
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        self.number += 1
        self.console.print(f"\n{self.number}. {title}", style="bold", soft_wrap=True)
        start = time.monotonic()
        yield
        self.seconds[title] = time.monotonic() - start


def _refuse_missing_packages() -> None:
    missing = [extra for package, extra in NEEDED.items() if find_spec(package) is None]
    if missing:
        raise G2N2Error(
            "the demonstration trains and draws, and packages for that are missing: "
            f'pip install "g2n2[{",".join(missing)}]"'
        )


def _watch(display: Display, console: Console, config: RunConfig) -> Watch:
    """The display of any run, with one line in place of its summary."""

    def summary(_config: RunConfig, _parts: Any, model: Any) -> None:
        weights = sum(p.numel() for p in model.parameters())
        console.print(
            f"   {config.layers} layers of width {config.width}, {weights:,} weights, "
            f"{config.epochs} epochs",
            soft_wrap=True,
        )

    return Watch(summary, display.start, display.step, display.epoch, display.note)


def _tell_proof(console: Console, proof: DemoProof) -> None:
    derived = proof.derivation
    total = len(derived.exhaustive.all_rules)
    console.print(f"   {derived.fragment} gives {total} rules; proofs leave", soft_wrap=True)
    for line in derived.reduced.lines():
        console.print(f"     {line}", soft_wrap=True)
    console.print(
        f"   certificate: {proof.verdict.checked} obligations, accepted by a checker that shares "
        "no code with the search",
        soft_wrap=True,
    )


def _tell_wl_view(console: Console, wl_view: WlView, settings: DemoSettings) -> None:
    copies = wl_view.seen_before or "none"
    for line in (
        f"1-WL, and so any GIN: {colours(wl_view.one_wl)} for all {settings.graphs:,}",
        f"3-WL, and so the derived grammar: {colours(wl_view.three_wl)}",
        f"test graphs that 3-WL cannot tell from a training graph: {copies}",
        "sentences of the grammar that count, evaluated on every graph:",
        *(f"  {s.text} = {s.worth}: right on {s.right:,}" for s in wl_view.sentences),
    ):
        console.print(f"   {line}", soft_wrap=True)


def _tell_scores(console: Console, outcome: DemoOutcome) -> None:
    from rich.table import Table

    headers, rows = score_rows(outcome)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(f"   {headers[0]}")
    for header in headers[1:]:
        table.add_column(header, justify="right")
    for row in rows:
        table.add_row(f"   {row[0]}", *row[1:])
    console.print(table)


def _write(outcome: DemoOutcome, out: Path) -> None:
    """Figure, report in two forms, and the results as data."""
    count, settings = len(outcome.derived.truth), outcome.settings
    caption = f"{count:,} test graphs, all {DEGREE}-regular with {settings.nodes} nodes"
    both = (outcome.derived, outcome.gin)
    draw(both, out / folder.FIGURE, caption)
    content = list(blocks(outcome, panels(both)))
    for kind, write in ((".md", markdown), (".html", page)):
        text = write(title(outcome), content)
        (out / f"{folder.REPORT}{kind}").write_text(text, encoding="utf-8")
    folder.mark(
        out,
        {
            "made_by": "g2n2 demo",
            "finished": True,
            "settings": asdict(settings),
            "grammar": str(outcome.proof.derivation.reduced),
            "obligations_checked": outcome.proof.verdict.checked,
            "colours": {"1-WL": outcome.wl_view.one_wl, "3-WL": outcome.wl_view.three_wl},
            "scores": {
                one.folder.name: {target: one.scores[target] for target in TARGETS} for one in both
            },
            "claims": [asdict(claim) for claim in outcome.claims],
            "seconds": {step: round(s, 2) for step, s in outcome.seconds.items()},
        },
    )


def closing(outcome: DemoOutcome, out: Path) -> list[str]:
    """What to open, and what to try next."""
    here = shown_path(out.resolve())
    trials = {
        f"g2n2 check {here}/{folder.CERTIFICATE}": "check the proof again",
        f"g2n2 evaluate {here}/derived": "the trained network on its test graphs",
        "g2n2 separate EhEG EJaG --grammar r-G_L3": "two graphs 1-WL confuses, and a sentence",
        "g2n2 train FILE": "a network for your own graphs",
    }
    wide = max(map(len, trials))
    return [
        f"Done in {duration(sum(outcome.seconds.values()))}. Open {here}/{folder.REPORT}.html",
        "",
        "Try next",
        *(f"  {command:<{wide}}   {about}" for command, about in trials.items()),
    ]
