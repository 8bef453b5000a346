"""Figure of Q3: one panel for each set, one line for each network, three statistics on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...demonstration.inline_svg import INK, SOFT
from ...experiments.q3.settings import MODELS, SETS
from ...experiments.q3.statistics import GIN, NESTED, RELEASED
from ..cited import KERNELS, cited
from ..standings import Measured
from .drawing import BLUE, GREEN, ORANGE, Drawing

_MARKS = {NESTED: (GREEN, "s"), GIN: (BLUE, "o"), RELEASED: (ORANGE, "^")}
_BAR = {"ecolor": BLUE, "alpha": 0.2, "elinewidth": 3.5}
Found = Mapping[tuple[str, str, str], Measured]
"""Set, model and statistic to a number."""


def drawing(found: Found) -> Drawing:
    """All sets, ours beside the two published numbers that matter."""
    hollow = any(one.partial for one in found.values())
    return Drawing(
        "q3",
        "Accuracy on six TU sets by three statistics of our runs; the full line is the paper's "
        "G²N² (best epoch of each fold, if the released script made it), the dashed one its best "
        "other GNN (GIN's protocol). Pale bars say how folds differ, not how sure a mean is."
        + (" Hollow points have a smaller budget or earlier settings." if hollow else ""),
        (9.4, 5.2),
        lambda figure: _draw(figure, found),
    )


def _draw(figure: Any, found: Found) -> None:
    panels = figure.subplots(2, 3, sharey=True)
    for axes, name in zip(panels.flat, SETS, strict=True):
        _panel(axes, name, found)
    for axes in panels[-1]:
        axes.set_xlabel("accuracy (%)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8.5)


def _panel(axes: Any, name: str, found: Found) -> None:
    table = cited("tu")
    axes.axvline(
        table.at("G²N²", name).value,
        color=INK,
        linewidth=1.1,
        label="G²N² in the paper",
    )
    _, other = table.best(name, without=(*KERNELS, "G²N²"))
    style = {"color": SOFT, "linewidth": 1.1, "linestyle": (0, (4, 3))}
    axes.axvline(other, label=f"best other GNN in the paper, {GIN}", **style)
    for height, model in enumerate(reversed(MODELS), start=1):
        own = {one: found[name, model, one] for one in _MARKS if (name, model, one) in found}
        values = [one.value for one in own.values()]
        if values:
            axes.plot([min(values), max(values)], [height] * 2, color=SOFT, linewidth=0.8, zorder=1)
        else:
            where = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 8}
            axes.text(0.03, height, "not all folds yet", color=SOFT, **where)
        for statistic, one in own.items():
            colour, marker = _MARKS[statistic]
            hollow = "white" if one.partial else colour
            if statistic == GIN and one.spread is not None:
                axes.errorbar(one.value, height, xerr=one.spread, fmt="none", zorder=0, **_BAR)
            axes.plot(one.value, height, marker, color=colour, markerfacecolor=hollow)
    for statistic, (colour, marker) in _MARKS.items():
        axes.plot([], [], marker, color=colour, label=f"ours, {statistic}")
    axes.errorbar([], [], xerr=[], fmt="none", label=f"± over folds, {GIN}", **_BAR)
    axes.set_yticks(
        range(1, len(MODELS) + 1),
        ["G²N²" if model == "G2N2" else model for model in reversed(MODELS)],
    )
    axes.set_ylim(0.4, len(MODELS) + 0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_title(name)
    axes.margins(x=0.12)
    axes.grid(axis="x", alpha=0.7)
    axes.set_axisbelow(True)
