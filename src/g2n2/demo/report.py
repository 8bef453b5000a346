"""The report of a demonstration: what was done, what came out, how to see it again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..compiler.grammar_to_plan import plan_network
from ..compiler.plan_to_svg import layer_svg
from .page import Block, Code, Heading, PageTable, Picture, Text
from .proof import DemoProof
from .settings import DEGREE, TARGETS, DemoSettings
from .training_runs import R2Claim, TrainedNetwork, minus
from .what_wl_sees import WlView


@dataclass(frozen=True, eq=False)
class DemoOutcome:
    """Everything a demonstration found.

    Attributes:
        settings: What was asked for.
        proof: The derivation, checked.
        wl_view: What the tests and sentences see.
        derived: The network of the derived grammar.
        gin: The GIN.
        claims: Empty where the settings claim nothing.
        seconds: Time by step.
    """

    settings: DemoSettings
    proof: DemoProof
    wl_view: WlView
    derived: TrainedNetwork
    gin: TrainedNetwork
    claims: tuple[R2Claim, ...]
    seconds: Mapping[str, float]

    @property
    def holds(self) -> bool:
        return all(claim.holds for claim in self.claims)


def title(outcome: DemoOutcome) -> str:
    """What the report says, or only what was tried where that is not shown."""
    if outcome.claims and outcome.holds:
        return "A network derived from five operations counts what a GIN cannot see"
    return "A network derived from five operations, and a GIN, set to count"


def score_rows(outcome: DemoOutcome) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Headers and rows of the table of scores."""
    headers = ["network"]
    for words in TARGETS.values():
        headers += [f"{words} R²", "MAE"]
    rows = []
    for one in (outcome.derived, outcome.gin):
        row = [one.name]
        for target in TARGETS:
            scores = one.scores[target]
            row += [minus(scores["r2"]), f"{scores['mae']:.3f}"]
        rows.append(tuple(row))
    return tuple(headers), tuple(rows)


def blocks(outcome: DemoOutcome, panels: str) -> Iterator[Block]:
    """The report, block by block."""
    settings, wl_view = outcome.settings, outcome.wl_view
    test = len(outcome.derived.truth)
    yield Text(
        f"{settings.graphs:,} random {DEGREE}-regular graphs of {settings.nodes} nodes. To 1-WL, "
        "and so to every message-passing network, they are one and the same graph. A network "
        "derived from the operations `·` `ᵀ` `1` `diag` `⊙` is trained to count their triangles "
        "and 4-cycles; a GIN with the same budget has one answer for all of them."
    )
    yield Picture(
        "figure.png",
        f"Predicted against true counts for {test:,} test graphs; a point is a graph, spread "
        "sideways because counts are integers.",
        panels,
    )
    yield PageTable(*score_rows(outcome))
    if outcome.claims:
        marks = ("**does not hold**", "holds")
        yield Text(" ".join(f"{c.text}: {marks[c.holds]}." for c in outcome.claims))
    else:
        yield Text("**A quick run: it trains too briefly to claim anything.**")
    yield from _derivation(outcome.proof, settings)
    yield Heading("What the graphs look like to 1-WL")
    yield Text(
        f"1-WL gives all {settings.graphs:,} graphs {colours(wl_view.one_wl)}; 3-WL, which the "
        f"derived grammar reaches, gives them {colours(wl_view.three_wl)}. {_new_graphs(wl_view)} "
        "These sentences of the grammar count, and were evaluated exactly on every graph:"
    )
    yield Code(
        "\n".join(
            f"{s.text:<11} = {s.worth:<22} on {s.right:,} of {settings.graphs:,} graphs"
            for s in wl_view.sentences
        )
    )
    yield Text("How the grammar derives the first of them:")
    yield Code(wl_view.sentences[0].tree)
    yield from _training(outcome)
    yield Heading("See it again")
    yield Code(f"make demo\ng2n2 demo --seed {settings.seed} --out DIR")


def _derivation(proof: DemoProof, settings: DemoSettings) -> Iterator[Block]:
    derived, verdict = proof.derivation, proof.verdict
    total = len(derived.exhaustive.all_rules)
    yield Heading("The network, derived")
    yield Text(
        f"There are {total} typed rules over {derived.fragment}. By proof {proof.removed} of them "
        f"go or are replaced; this grammar of {derived.reduced.rule_count} has the same "
        "power on undirected graphs:"
    )
    yield Code(str(derived.reduced))
    cited = f" Cited, not checked: {'; '.join(verdict.cited)}." if verdict.cited else ""
    yield Text(
        f"`certificate.json` holds the proof. A checker that shares no code with the search went "
        f"through its {verdict.checked} obligations and accepts it.{cited} Check it yourself: "
        "`g2n2 check certificate.json`. What was removed, and why:"
    )
    yield Code(
        "\n".join(
            f"{step.title}: {', '.join(map(str, step.removed))}\n    {step.reason}"
            for step in derived.steps
        )
    )
    plan = plan_network(
        derived.reduced, width=settings.width, layers=settings.layers, preset="modern"
    )
    alt = "A layer of the network: a memory for each variable, a step for each rule."
    yield Picture("", alt, _as_part(layer_svg(plan)), wide=True)


def _training(outcome: DemoOutcome) -> Iterator[Block]:
    settings = outcome.settings
    yield Heading("Training")
    yield Text(
        f"Both networks: {settings.layers} layers of width {settings.width}, {settings.epochs} "
        f"epochs, batches of {settings.batch}, learning rate {settings.rate:g}, recipe modern, "
        f"seed {settings.seed}, on the CPU; 60 % of the graphs to train, 20 % to choose the best "
        "epoch, 20 % to test. No node or edge carries a feature besides a constant."
    )
    derived, gin = outcome.derived, outcome.gin
    yield Text(
        f"The derived network has {derived.parameters:,} weights, the GIN {gin.parameters:,}. The "
        f"answers of the GIN for any two test graphs differ by {gin.spread:.1g} at most, those of "
        f"the derived network by {derived.spread:.1f}. That is no matter of width or training: on "
        "regular graphs of one size without features every GIN is constant. The loss is the mean "
        "absolute error, so that its one answer is near the median, and R² may be below 0."
    )
    yield PageTable(
        ("step", "seconds"),
        tuple((step, f"{seconds:.1f}") for step, seconds in outcome.seconds.items()),
    )


def _new_graphs(wl_view: WlView) -> str:
    if not wl_view.seen_before:
        return "No test graph is a copy of a training graph."
    return f"At most {wl_view.seen_before} test graphs are copies of training graphs."


def colours(count: int) -> str:
    """How many, in words where it is one."""
    return "one colour" if count == 1 else f"{count:,} colours"


def _as_part(svg: str) -> str:
    """A drawing as part of a page, its name spaces left to the page."""
    return re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg[svg.index("<svg") :])
