"""Figure of the trained power: realised beside exact, on BREC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...demonstration.inline_svg import FAINT, INK, SOFT
from ...experiments.trained.brec_cells import CLEAR, TRAINED, WITHIN
from ...experiments.trained.exact import BOUND, SEPARATED
from ..cited import cited
from ..standings import Standing
from .drawing import BLUE, ORANGE, Drawing


def drawing(known: Mapping[str, Standing], titles: Mapping[str, str]) -> Drawing:
    """One line for each network, from the top.

    Args:
        known: Of the question.
        titles: What stands beside the line of each contender, by its name.
    """
    return Drawing(
        "power",
        "Pairs of BREC: what any weights could tell apart (outline), what the words of the grammar "
        "tell apart at that depth (pale), and what trained networks tell apart (dark).",
        (9.0, 4.2),
        lambda figure: _draw(figure, known, titles),
    )


def _draw(figure: Any, known: Mapping[str, Standing], titles: Mapping[str, str]) -> None:
    axes = figure.subplots()
    most = 0.0
    for height, name in zip(range(len(titles), 0, -1), titles, strict=True):
        standing = known.get(f"brec/{name}")
        if standing is not None:
            most = max(most, _bars(axes, height, standing))
        else:
            _say(axes, "not run yet", 0, height, SOFT)
    axes.bar(0, 0, color="none", edgecolor=INK, label="exact bound: 3-WL, or 1-WL for GIN")
    axes.bar(0, 0, color=BLUE, alpha=0.3, label="exact, by the grammar's words")
    axes.bar(0, 0, color=BLUE, label="trained, released test")
    if any(known[name].partial for name in map("brec/{}".format, titles) if name in known):
        part = {"color": BLUE, "hatch": "////", "edgecolor": "white", "linewidth": 0}
        axes.bar(0, 0, label="the same, partial", **part)
    axes.plot([], [], "D", color=ORANGE, label="trained, clear of noise")
    if most > 200:
        ppgn = cited("brec").at("PPGN", "total (400)").value
        axes.axvline(ppgn, color=SOFT, linestyle=(0, (4, 3)), label=f"PPGN, published: {ppgn:.0f}")
    axes.set_yticks(range(len(titles), 0, -1), titles.values())
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(0.4, len(titles) + 0.6)
    axes.set_xlim(0, max(most, 1) * 1.12)
    axes.set_xlabel("pairs of BREC told apart, of 400")
    axes.grid(axis="x", color=FAINT)
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8.5)


def _bars(axes: Any, height: int, standing: Standing) -> float:
    """A network's numbers; the largest of them."""
    bound, words, trained, clear = (
        standing.mean(metric) for metric in (BOUND, SEPARATED, TRAINED, CLEAR)
    )
    largest = 0.0
    if words is not None:
        axes.barh(height, words.value, 0.62, color=BLUE, alpha=0.3, linewidth=0)
    if bound is not None:
        axes.barh(height, bound.value, 0.62, color="none", edgecolor=INK, linewidth=1.0)
        largest = bound.value
    if trained is not None:
        hatch = "////" if trained.partial else None
        axes.barh(height, trained.value, 0.3, color=BLUE, hatch=hatch, edgecolor="white", lw=0)
        largest = max(largest, trained.value)
        _say(axes, f"{trained.value:.0f}{_so_far(standing)}", largest, height, INK)
    if clear is not None:
        axes.plot(clear.value, height, "D", color=ORANGE, markersize=5, zorder=4, clip_on=False)
    return largest


def _so_far(standing: Standing) -> str:
    """What is to be known of a number where pairs are left."""
    if not standing.partial:
        return ""
    within, bound = (standing.mean(name) for name in (WITHIN, BOUND))
    if within is not None and bound is not None and within.value == bound.value:
        return ", all within the bound judged"
    return f" of {min(record.done for record in standing.records)} judged"


def _say(axes: Any, text: str, x: float, y: float, colour: str) -> None:
    """A text a little to the right of a place."""
    style = {"textcoords": "offset points", "va": "center", "fontsize": 8.5, "color": colour}
    axes.annotate(text, (x, y), xytext=(5, 0), **style)
