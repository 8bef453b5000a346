"""Figure of Q4: the learned spectral responses against the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...demonstration.inline_svg import INK, SOFT
from ..standings import Standing
from .drawing import BLUE, GOLD, GREEN, ORANGE, PINK, SKY, Drawing, say_not_run

_LINES = {  # rows that vary another one's blocks or start are left to the table
    "G²N², Chebyshev start": (BLUE, "-"),
    "G²N², a fifth of the rate": (SKY, "-"),
    "G²N²": (SKY, "--"),
    "G²N², the paper's equations": (SKY, ":"),
    "G²N², as in the released script": (ORANGE, "-"),
    "PPGN": (SOFT, "--"),
    "GNNML3": (GREEN, "-."),
    "ChebNet": (PINK, "--"),
    "GCN": (GOLD, ":"),
}


def drawing(known: Mapping[str, Standing], places: Mapping[str, tuple[str, int]]) -> Drawing:
    """One panel for each filter.

    Args:
        known: All cells.
        places: What a network is called in the figure, to its name and depth in a cell.
    """
    return Drawing(
        "q4",
        "How strongly each network passes each frequency of the grid (median run, test image), "
        "and the true filter; each network with as many layers (in brackets) as are best at "
        "band-pass. Pale lines are partial runs or had earlier settings, a network without a line "
        "was not run on that filter or is in the table only, and what is far from the truth is cut "
        "off.",
        (9.4, 4.0),
        lambda figure: _draw(figure, known, places),
    )


def _draw(
    figure: Any, known: Mapping[str, Standing], places: Mapping[str, tuple[str, int]]
) -> None:
    panels = figure.subplots(1, 3)
    handles: dict[str, Any] = {}
    depths = {said: layers for said, (_, layers) in places.items()}
    for axes, name in zip(panels, ("low", "high", "band"), strict=True):
        _panel(axes, name, known, places)
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    for said, (colour, dashes) in _LINES.items():  # in full, whatever is pale above
        if said in handles:
            (handles[said],) = panels[0].plot([], [], color=colour, linestyle=dashes)
    panels[0].set_ylabel("factor passed")
    names = [f"{said} ({depths[said]})" if said in depths else said for said in handles]
    figure.legend(handles.values(), names, loc="outside lower center", ncols=4, fontsize=8.5)


def _panel(
    axes: Any,
    name: str,
    known: Mapping[str, Standing],
    places: Mapping[str, tuple[str, int]],
) -> None:
    seen: dict[str, list[float]] = {}
    for said, (colour, dashes) in _LINES.items():
        network, layers = places.get(said, ("", 0))
        standing = known.get(f"{name}/{network}/layers-{layers}")
        response = standing.records[0].detail.get("response") if standing else None
        if not response:
            continue
        seen = response
        axes.plot(
            response["eigenvalues"],
            response["learned"],
            color=colour,
            linestyle=dashes,
            linewidth=1.5,
            alpha=0.45 if standing and standing.partial else 1.0,
            label=said,
            zorder=3 if "Chebyshev" in said else 2,
        )
    axes.set_title(f"{name}-pass")
    axes.set_xlabel("eigenvalue of D − A")
    axes.axhline(0, color=SOFT, linewidth=0.6)
    if not seen:
        say_not_run(axes)
        return
    truth = seen["truth"]
    style = {"color": INK, "linewidth": 3.6, "alpha": 0.3, "zorder": 1}
    axes.plot(seen["eigenvalues"], truth, label="the true filter", **style)
    # A network that fails may be far off: what matters is seen around the truth.
    room = 0.3 * (max(truth) - min(truth))
    axes.set_ylim(min(truth) - room, max(truth) + room)
