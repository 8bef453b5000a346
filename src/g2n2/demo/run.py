"""The steps of the demonstration, in order, each reported as it runs."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..atomic_files import make_folder
from ..compiler.grammar_to_plan import plan_network
from ..compiler.plan_to_svg import layer_svg
from ..data.catalogue import load_dataset
from ..errors import DataError, G2N2Error, ReductionError
from ..pipeline import derive
from ..reduction.certificates import read_certificate, write_certificate
from ..reduction.checker import check
from ..training.config import RunConfig
from ..training.display import Display, duration, shown_path
from ..training.session import Watch
from .findings import (
    DEGREE,
    FRAGMENT,
    TARGETS,
    DemoSettings,
    TrainedNetwork,
    claims,
    compare_tests,
    configs,
    train_network,
)
from .page import page
from .report import DemoOutcome, colours, draw, report, score_rows

NEEDED = {"torch_geometric": "pyg", "matplotlib": "plot"}
NAMES = {"derived": f"derived from {FRAGMENT}", "gin": "GIN"}
CERTIFICATE = "certificate.json"
MARK = "demo.json"
WRITTEN = (
    CERTIFICATE, "figure.png", "figure.svg", "layer.svg", "report.md", "report.html", *NAMES
)  # fmt: skip
"""Everything a demonstration writes besides its mark; nothing else is ever removed."""


def demonstrate(settings: DemoSettings, out: Path, console: Console) -> DemoOutcome:
    """Derive, look, train both networks, and write figure and report into a folder."""
    missing = [extra for package, extra in NEEDED.items() if find_spec(package) is None]
    if missing:
        raise G2N2Error(
            "the demonstration trains and draws, and packages for that are missing: "
            f'pip install "g2n2[{",".join(missing)}]"'
        )
    claim_folder(out)
    seconds: dict[str, float] = {}

    @contextmanager
    def step(title: str) -> Iterator[None]:
        console.print(f"\n{len(seconds) + 1}. {title}", style="bold", soft_wrap=True)
        start = time.monotonic()
        yield
        seconds[title] = time.monotonic() - start

    def tell(*lines: str) -> None:
        for line in lines:
            console.print(f"   {line}", soft_wrap=True)

    with step(f"Derive a network from {FRAGMENT}, with a proof"):
        derivation = derive(FRAGMENT)
        write_certificate(derivation.certificate, out / CERTIFICATE)
        result = check(read_certificate(out / CERTIFICATE))
        if not result.valid:
            raise ReductionError(f"the checker refuses {out / CERTIFICATE}: {result.failure}")
        reduced = derivation.reduced
        rules = len(derivation.exhaustive.all_rules)
        tell(
            f"{derivation.fragment} gives {rules} rules; proofs leave",
            *(f"  {line}" for line in reduced.lines()),
            f"certificate: {result.checked} obligations, accepted by a checker that shares no code "
            "with the search",
        )
    graphs_text = f"{settings.graphs:,} random {DEGREE}-regular graphs of {settings.nodes} nodes"
    with step(f"Make {graphs_text}, and look at them"):
        graphs = load_dataset("regular", options=settings.data_options)
        view = compare_tests(graphs, reduced)
        tell(
            f"1-WL, and so any GIN: {colours(view.one_wl)} for all {settings.graphs:,}",
            f"3-WL, and so the derived grammar: {colours(view.three_wl)}",
            f"test graphs 3-WL cannot tell from a training graph: {view.seen_before or 'none'}",
            "sentences of the grammar that count, evaluated on every graph:",
            *(f"  {s.text} = {s.formula}: right on {s.graphs:,}" for s in view.sentences),
        )
    trained: dict[str, TrainedNetwork] = {}
    for key, config in configs(reduced, settings).items():
        with step(f"Train: {NAMES[key]}"), Display(console) as display:
            watch = _watch(display, console)
            trained[key] = train_network(config, NAMES[key], out / key, graphs, watch)
    with step("Test both, on graphs never trained on"):
        claimed = claims(*trained.values()) if settings.claims else ()
        outcome = DemoOutcome(
            settings, derivation, result, view, **trained, claims=claimed, seconds=seconds
        )
        headers, *rows = score_rows(outcome)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(f"   {headers[0]}")
        for header in headers[1:]:
            table.add_column(header, justify="right")
        for row in rows:
            table.add_row(f"   {row[0]}", *row[1:])
        console.print(table)
        _write(outcome, out)
    return outcome


def claim_folder(path: Path) -> Path:
    """Make a folder ready for a demonstration; what an earlier one left there is removed."""
    try:
        make_folder(path)
        if not (path / MARK).is_file() and any(path.iterdir()):
            raise DataError(
                f"{path} holds files that no demonstration left there; "
                "name another folder with --out, or an empty one"
            )
        _mark(path, {"made_by": "g2n2 demo", "finished": False})
        for name in WRITTEN:
            if (path / name).is_dir() and not (path / name).is_symlink():
                shutil.rmtree(path / name)
            else:
                (path / name).unlink(missing_ok=True)
    except OSError as fault:
        raise DataError(f"cannot write to {path}: {fault.strerror or fault}") from None
    return path


def _mark(path: Path, content: dict[str, Any]) -> None:
    """Write the file that says whose folder it is; in the end it holds the results."""
    text = json.dumps(content, ensure_ascii=False, indent=2)
    (path / MARK).write_text(text + "\n", encoding="utf-8")


def _watch(display: Display, console: Console) -> Watch:
    """The display of any run, with one line in place of its summary."""

    def summary(config: RunConfig, _parts: Any, model: Any) -> None:
        weights = sum(p.numel() for p in model.parameters())
        console.print(
            f"   {config.layers} layers of width {config.width}, {weights:,} weights, "
            f"{config.epochs} epochs",
            soft_wrap=True,
        )

    return Watch(summary, display.start, display.step, display.epoch, display.note)


def _write(outcome: DemoOutcome, out: Path) -> None:
    """Figure, report in two forms, and the results as data."""
    settings, networks = outcome.settings, (outcome.derived, outcome.gin)
    count = len(outcome.derived.truth)
    caption = f"{count:,} test graphs, all {DEGREE}-regular with {settings.nodes} nodes"
    plan = plan_network(
        outcome.derivation.reduced, width=settings.width, layers=settings.layers, preset="modern"
    )
    layer = layer_svg(plan)
    (out / "layer.svg").write_text(layer, encoding="utf-8")
    pictures = {
        "figure.png": draw(networks, out / "figure", caption),
        # Part of a page: its name spaces are the page's.
        "layer.svg": re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", layer[layer.index("<svg") :]),
    }
    text = report(outcome)
    (out / "report.md").write_text(text, encoding="utf-8")
    (out / "report.html").write_text(page(text, pictures), encoding="utf-8")
    _mark(
        out,
        {
            "made_by": "g2n2 demo",
            "finished": True,
            "settings": asdict(settings),
            "grammar": str(outcome.derivation.reduced),
            "obligations_checked": outcome.check.checked,
            "colours": {"1-WL": outcome.wl_view.one_wl, "3-WL": outcome.wl_view.three_wl},
            "scores": {
                network.folder.name: {target: network.scores[target] for target in TARGETS}
                for network in networks
            },
            "claims": [asdict(claim) for claim in outcome.claims],
            "seconds": {title: round(s, 2) for title, s in outcome.seconds.items()},
        },
    )


def closing(outcome: DemoOutcome, out: Path) -> list[str]:
    """What to open, and what to try next."""
    here = shown_path(out.resolve())
    trials = {
        f"g2n2 check {here}/{CERTIFICATE}": "check the proof again",
        f"g2n2 evaluate {here}/derived": "the trained network on its test graphs",
        "g2n2 separate C6 2C3": "two graphs 1-WL confuses, and a sentence that differs",
        "g2n2 train FILE --target COLUMN": "a network for your own graphs or molecules",
    }
    wide = max(map(len, trials))
    return [
        f"Done in {duration(sum(outcome.seconds.values()))}. Open {here}/report.html",
        "",
        "Try next",
        *(f"  {command:<{wide}}   {about}" for command, about in trials.items()),
    ]
