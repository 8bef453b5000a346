"""Figure of Q2: errors as multiples of the paper's, target by target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...data.qm9 import QM9_TARGETS
from ...demonstration.inline_svg import INK, SOFT
from ...experiments.training_cells import mae_key
from ..cited import cited
from ..standings import Standing
from .drawing import BLUE, GREEN, ORANGE, SKY, Drawing

_OWN = "G²N², ours (alone 64, at once 32 wide)"
_OURS = {
    "single": {
        _OWN: ("single/{}/distance/G2N2/modern", BLUE, "o"),
        "G²N², ours, more epochs": ("single/{}/distance/G2N2/modern/long", SKY, "o"),
        "G²N², ours, less the extent": ("single/{}/distance/G2N2/modern/extent", BLUE, "^"),
        "PPGN, ours": ("single/{}/distance/PPGN/modern", ORANGE, "s"),
        "G²N², ours, bonds only": ("single/{}/bonds/G2N2/modern", GREEN, "D"),
    },
    "joint": {
        _OWN: ("joint/width32/distance/G2N2/modern", BLUE, "o"),
        "G²N², ours, less the extent": ("joint/width32/distance/G2N2/modern/extent", BLUE, "^"),
        "G²N², ours, less the extent, more epochs": (
            "joint/width32/distance/G2N2/modern/extent/long",
            SKY,
            "^",
        ),
        "PPGN, ours": ("joint/width32/distance/PPGN/modern", ORANGE, "s"),
        "G²N², ours, bonds only": ("joint/width32/bonds/G2N2/modern", GREEN, "D"),
        "G²N², ours, width 64, less the extent": (
            "joint/width64/distance/G2N2/modern/extent",
            BLUE,
            "*",
        ),
    },
}
LANES = 0.56
"""How much of a target's line its markers are spread over."""
_TITLES = {"single": "Each target alone", "joint": "All twelve at once"}


def drawing(known: Mapping[str, Standing]) -> Drawing:
    """Both ways of learning side by side."""
    likely = cited("qm9-joint").at("zpve", "G²N²").likely
    names = {
        pattern.format(target.name)
        for series in _OURS.values()
        for pattern, *_ in series.values()
        for target in QM9_TARGETS
    }
    hollow = any(known[name].partial for name in names if name in known)
    return Drawing(
        "q2",
        "Test error on QM9 as a multiple of the paper's G²N², logarithmic; left of the line is "
        f"better than the paper (all twelve at once: ZPVE as a multiple of {likely}, our reading "
        "of a misprint). What has no point was not run or stands in the tables alone."
        + (" Hollow points are partial runs." if hollow else ""),
        (9.4, 6.4),
        lambda figure: _draw(figure, known),
    )


def _draw(figure: Any, known: Mapping[str, Standing]) -> None:
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    for axes, which in zip(panels, _OURS, strict=True):
        _panel(axes, which, known)
    panels[0].set_yticks(range(len(QM9_TARGETS), 0, -1), [target.symbol for target in QM9_TARGETS])
    handles: dict[str, Any] = {}
    for axes in panels:
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=8.5
    )


def _panel(axes: Any, which: str, known: Mapping[str, Standing]) -> None:
    table = cited(f"qm9-{which}")
    heights = range(len(QM9_TARGETS), 0, -1)
    bars = {t.name: table.at(t.name, "G²N²").bar or 1.0 for t in QM9_TARGETS}
    axes.axvline(1, color=INK, linewidth=1.2, label="G²N² in the paper")
    published = [(table.at(t.name, "PPGN").value or 0) / bars[t.name] for t in QM9_TARGETS]
    axes.plot(published, heights, "|", color=SOFT, markersize=11, label="PPGN in the paper")
    lanes = len(_OURS[which])
    for lane, (label, (pattern, colour, marker)) in enumerate(_OURS[which].items()):
        aside = LANES * (0.5 - lane / (lanes - 1))  # so that no marker hides another
        for target, height in zip(QM9_TARGETS, heights, strict=True):
            standing = known.get(pattern.format(target.name))
            found = standing.mean(mae_key(target.name, target.unit)) if standing else None
            if found is None:
                continue
            axes.errorbar(
                found.value / bars[target.name],
                height + aside,
                xerr=found.spread / bars[target.name] if found.spread else None,
                fmt=marker,
                color=colour,
                markersize=10 if marker == "*" else 6,
                markerfacecolor="white" if found.partial else colour,
            )
        style = {"color": colour, "marker": marker, "linestyle": "none"}
        axes.plot([], [], markersize=10 if marker == "*" else 6, label=label, **style)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    axes.set_title(_TITLES[which])
    axes.set_xlabel("test error / error of G²N² in the paper")
    axes.set_ylim(0.4, len(QM9_TARGETS) + 0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both", alpha=0.7)
    axes.set_axisbelow(True)
