"""The report of a demonstration as Markdown, and its figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from ..pipeline import Derivation
from ..reduction.checker import CheckResult
from .findings import DEGREE, TARGETS, DemoSettings, R2Claim, TrainedNetwork, WlView, r2_text
from .page import FAINT, INK, inline


@dataclass(frozen=True, eq=False)
class DemoOutcome:
    """Everything a demonstration found."""

    settings: DemoSettings
    derivation: Derivation
    check: CheckResult  # what the checker says of the certificate
    wl_view: WlView
    derived: TrainedNetwork
    gin: TrainedNetwork
    claims: tuple[R2Claim, ...]  # empty where the settings claim nothing
    seconds: Mapping[str, float]  # by step

    @property
    def holds(self) -> bool:
        return all(claim.holds for claim in self.claims)


def score_rows(outcome: DemoOutcome) -> list[list[str]]:
    """The table of scores, its headers first."""
    rows = [["network"], *([network.name] for network in (outcome.derived, outcome.gin))]
    for target, words in TARGETS.items():
        rows[0] += [f"{words} R²", "MAE"]
        for row, network in zip(rows[1:], (outcome.derived, outcome.gin), strict=True):
            scores = network.scores[target]
            row += [r2_text(scores["r2"]), f"{scores['mae']:.3f}"]
    return rows


def report(outcome: DemoOutcome) -> str:
    """What was done, what came out, how to see it again."""
    settings, derivation, check = outcome.settings, outcome.derivation, outcome.check
    view, derived, gin = outcome.wl_view, outcome.derived, outcome.gin
    title = "A network derived from five operations, and a GIN, set to count"
    claimed = "**A quick run: it trains too briefly to claim anything.**"
    quick = "" if settings.claims else " --quick"
    if outcome.claims:
        marks = ("**does not hold**", "holds")
        claimed = " ".join(f"{c.text}: {marks[c.holds]}." for c in outcome.claims)
        if outcome.holds:
            title = "A network derived from five operations counts what a GIN cannot see"
    exhaustive, reduced = derivation.exhaustive.all_rules, derivation.reduced.all_rules
    removed = len(set(exhaustive) - set(reduced))
    cited = f" Cited, not checked: {'; '.join(check.cited)}." if check.cited else ""
    steps = "\n".join(
        f"{step.title}: {', '.join(map(str, step.removed))}\n    {step.reason}"
        for step in derivation.steps
    )
    copies = "No test graph is a copy of a training graph."
    if view.seen_before:
        copies = f"At most {view.seen_before} test graphs are copies of training graphs."
    sentences = "\n".join(
        f"{s.text:<11} = {s.formula:<22} on {s.graphs:,} of {settings.graphs:,} graphs"
        for s in view.sentences
    )
    times = [["step", "seconds"], *([name, f"{s:.1f}"] for name, s in outcome.seconds.items())]
    paragraphs = [
        f"# {title}",
        f"{settings.graphs:,} random {DEGREE}-regular graphs of {settings.nodes} nodes. To 1-WL, "
        "and so to every message-passing network, they are one and the same graph. A network "
        "derived from the operations `·` `ᵀ` `1` `diag` `⊙` is trained to count their triangles "
        "and 4-cycles; a GIN of the same width and depth has one answer for all of them.",
        f"![Predicted against true counts for {len(derived.truth):,} test graphs; a point is a "
        "graph, spread sideways because counts are integers.](figure.png)",
        _table(score_rows(outcome)),
        claimed,
        "## The network, derived",
        f"There are {len(exhaustive)} typed rules over {derivation.fragment}. By proof {removed} of"
        f" them go or are replaced; this grammar of {derivation.reduced.rule_count} has the same "
        "power on undirected graphs:",
        _code(str(derivation.reduced)),
        "`certificate.json` holds the proof. A checker that shares no code with the search went "
        f"through its {check.checked} obligations and accepts it.{cited} Check it yourself: "
        "`g2n2 check certificate.json`. What was removed, and why:",
        _code(steps),
        "![A layer of the network: a memory for each variable, a step for each rule.](layer.svg)",
        "## What the graphs look like to 1-WL",
        f"1-WL gives all {settings.graphs:,} graphs {colours(view.one_wl)}; 3-WL, which the "
        f"derived grammar reaches, gives them {colours(view.three_wl)}. {copies} "
        "These sentences of the grammar count, and were evaluated exactly on every graph:",
        _code(sentences),
        "How the grammar derives the first of them:",
        _code(view.sentences[0].tree),
        "## Training",
        f"Both networks: {settings.layers} layers of width {settings.width}, {settings.epochs} "
        f"epochs, batches of {settings.batch}, learning rate {settings.rate:g}, recipe modern, "
        f"seed {settings.seed}, on the CPU; 60 % of the graphs to train, 20 % to choose the best "
        "epoch, 20 % to test. No node or edge carries a feature besides a constant.",
        f"The derived network has {derived.parameters:,} weights, the GIN {gin.parameters:,}. The "
        f"answers of the GIN for any two test graphs differ by {gin.spread:.1g} at most, those of "
        f"the derived network by {derived.spread:.1f}. That is no matter of width or training: on "
        "regular graphs of one size without features every GIN is constant. The loss is the mean "
        "absolute error, so that its one answer is near the median, and R² may be below 0.",
        _table(times),
        "## See it again",
        _code(f"g2n2 demo{quick} --seed {settings.seed} --out DIR"),
    ]
    return "\n\n".join(paragraphs) + "\n"


def colours(count: int) -> str:
    """`one colour` or `12 colours`."""
    return "one colour" if count == 1 else f"{count:,} colours"


def _code(text: str) -> str:
    return f"```text\n{text}\n```"


def _table(rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(rows[0]) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))


JITTER = 0.2
"""Counts are integers: points are spread sideways so that they can be told apart."""

_COLOURS = ("#2a7fb0", "#d1603d")
_STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    "font.size": 9.5,
    "svg.hashsalt": "g2n2",  # the same numbers give the same file
}
_NAMELESS = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def draw(networks: Sequence[TrainedNetwork], path: Path, title: str) -> str:
    """Write `path`.png and `path`.svg, predicted against true counts; return panels for a page.

    The page sets the panels' ink and breaks the row where the screen is narrow.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels = []
    with rc_context(_STYLE):
        figure = Figure(figsize=(8.0, 4.1), layout="constrained")
        figure.suptitle(title, fontsize=11.5, fontweight="bold")
        for target, axes in enumerate(figure.subplots(1, len(TARGETS))):
            _panel(axes, networks, target)
        figure.savefig(path.with_suffix(".png"), dpi=150)
        figure.savefig(path.with_suffix(".svg"), metadata=_NAMELESS)
        for target, words in enumerate(TARGETS.values()):
            figure = Figure(figsize=(4.0, 3.8), layout="constrained")
            _panel(figure.subplots(), networks, target)
            svg = StringIO()
            figure.savefig(svg, format="svg", metadata=_NAMELESS, transparent=True)
            label = f"{words}, predicted and true"
            panels.append(inline(svg.getvalue(), label, f"panel{target}-"))
    return "".join(panels)


def _panel(axes: Any, networks: Sequence[TrainedNetwork], target: int) -> None:
    words = list(TARGETS.values())[target]
    top = networks[0].truth[:, target].max()
    axes.plot([0, top], [0, top], color=FAINT, linewidth=1.2, zorder=0)
    for number, (network, colour) in enumerate(zip(networks, _COLOURS, strict=True)):
        truth = network.truth[:, target]
        jitter = np.random.default_rng(number).uniform(-JITTER, JITTER, len(truth))
        style = {"s": 14, "alpha": 0.6, "linewidths": 0, "color": colour, "zorder": 3 - number}
        label = f"{network.name}   R² = {r2_text(network.r2()[target])}"
        axes.scatter(truth + jitter, network.answers[:, target], label=label, **style)
    axes.set_xlabel(f"{words} in the graph")
    axes.set_ylabel(f"{words} predicted")
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    legend = axes.legend(loc="upper left", frameon=False, handletextpad=0.2, borderaxespad=0.1)
    for handle in legend.legend_handles:
        handle.set_alpha(1.0)
        handle.set_sizes([28])
    axes.set_xlim(-0.6, top + 0.6)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.2 * (high - low))  # room for the legend
