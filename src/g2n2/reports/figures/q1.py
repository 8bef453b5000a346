"""Figure of Q1: error against parameters, and exact power beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...demonstration.inline_svg import FAINT, INK, SOFT
from ...experiments.q1 import GRAMMARS
from ..standings import Standing
from .drawing import BLUE, GREEN, ORANGE, SKY, Drawing, say_not_run
from .labels import label_points

MAE = "test MAE r2 (bohr²)"
_POWERS = (("network", BLUE, "network read-out"), ("own", SKY, "the grammar's own read-out"))


def drawing(known: Mapping[str, Standing]) -> Drawing:
    """What there is, grammar by grammar."""
    return Drawing(
        "q1",
        "Left: test error of R² against parameters, one point for each grammar (orange: "
        "one without a rule), bars over seeds. "
        "Right: pairs of BREC each grammar tells apart exactly, nothing trained, with three layers "
        "(dark) and with any number (full length; ≥ where more layers are not proved to add "
        "nothing).",
        (9.4, 4.4),
        lambda figure: _draw(figure, known),
    )


def proved(power: Standing) -> bool:
    """Whether more layers provably tell no more pairs apart."""
    return 0 not in power.values("proved")


def _draw(figure: Any, known: Mapping[str, Standing]) -> None:
    errors, power = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _powers(power, known)
    _errors(errors, known)


def _colour(name: str) -> str:
    """Exhaustive and reduced grammars, ablations, and the one of four rules."""
    if name.startswith("r-G_L3-"):
        return ORANGE
    return GREEN if name == "four-rule" else BLUE


def _errors(axes: Any, known: Mapping[str, Standing]) -> None:
    points, names, colours, bars = [], [], [], []
    for name, said in GRAMMARS.items():
        standing = known.get(f"train/{name}")
        mae = standing.mean(MAE) if standing else None
        size = standing.mean("parameters") if standing else None
        if standing is None or mae is None or size is None:
            continue
        colour = _colour(name)
        axes.errorbar(
            size.value / 1000,
            mae.value,
            yerr=mae.spread,
            fmt="o",
            color=colour,
            markerfacecolor="white" if standing.partial else colour,
            capsize=3,
            linewidth=1.2,
        )
        points.append((size.value / 1000, mae.value))
        names.append(said)
        colours.append(colour)
        bars.append(mae.spread or 0.0)
    axes.set_title("Error after training")
    axes.set_xlabel("parameters (thousands)")
    axes.set_ylabel("test MAE of R² (a₀²)")
    if not points:
        say_not_run(axes)
        return
    axes.set_xlim(0, 1.25 * max(x for x, _ in points))
    values = [y for _, y in points]
    top = max(y + bar for y, bar in zip(values, bars, strict=True))
    if max(values) > 3 * min(values):
        axes.set_yscale("log")
        axes.set_ylim(min(values) / 1.6, top * 1.6)
        for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            which(lambda value, _: f"{value:g}")
    else:
        axes.set_ylim(0, 1.1 * top)
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    if any(line.get_markerfacecolor() == "white" for line in axes.lines):
        axes.text(0.99, 0.01, "hollow: partial", transform=axes.transAxes, ha="right", color=SOFT)
    label_points(axes, points, names, colours, bars)


def _powers(axes: Any, known: Mapping[str, Standing]) -> None:
    heights = dict(zip(GRAMMARS, range(len(GRAMMARS), 0, -1), strict=True))
    top = 0.0
    for readout, colour, label in _POWERS:
        lift = 0.18 if readout == "network" else -0.18
        for name in GRAMMARS:
            standing = known.get(f"exact/{name}/{readout}")
            few = standing.mean("pairs separated, 3 layers") if standing else None
            most = standing.mean("pairs separated") if standing else None
            if standing is None or few is None or most is None:
                continue
            at = heights[name] + lift
            axes.barh(at, most.value, 0.32, color=colour, alpha=0.35, linewidth=0)
            axes.barh(at, few.value, 0.32, color=colour, linewidth=0, label=label)
            axes.annotate(
                f"{most.value:.0f}" if proved(standing) else f"≥ {most.value:.0f}",
                (most.value, at),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=INK,
            )
            top = max(top, most.value)
            label = ""
    axes.set_yticks(list(heights.values()), [GRAMMARS[name] for name in heights])
    axes.tick_params(axis="y", length=0)
    axes.set_title("Exact power: dark 3 layers, pale any")
    axes.set_xlabel("pairs of BREC told apart")
    axes.set_xlim(0, max(top, 1) * 1.15)
    axes.set_ylim(0.4, len(GRAMMARS) + 1.5)
    axes.spines["left"].set_color(FAINT)
    if top:
        axes.legend(
            loc="upper left",
            ncols=2,
            fontsize=7.5,
            handlelength=1.0,
            handletextpad=0.4,
            columnspacing=0.9,
            borderaxespad=0.1,
        )
    else:
        say_not_run(axes)
