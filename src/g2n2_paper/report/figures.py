"""One figure for each question, and the roofline: PNG files with a digest of what they show."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib import style
from matplotlib.figure import Figure
from PIL import Image

from g2n2.atomic_files import replace_file

from ..bench.run import Row
from ..brec import CLEAR, TRAINED
from ..contenders import BOUND, CONTENDERS, MARKED, SEPARATED
from ..molecule_sets import SETS as MOLECULE_SETS
from ..q1 import GRAMMARS
from ..q3 import GIN, MODELS, NESTED, RELEASED, SETS
from . import entries, tu
from .tables import TARGETS, Results, cited, mae_of

INK, SOFT, FAINT = "#1f2430", "#5b6472", "#c9ced6"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
PINK, SKY, GOLD = "#cc79a7", "#56b4e9", "#e69f00"
Q1_LABELS = {
    "r-G_L3": (-14, -17), "G_L3": (-8, 9), "i-G_L3": (8, 4), "r-G_L3+transpose": (8, 3),
    "r-G_L3-hadamard": (-84, -14), "r-G_L3-product": (-76, 5), "r-G_L3-diagonal": (-102, -6),
    "r-G_L3-vector": (9, 2), "four-rule": (-20, 14),
}  # fmt: skip
"""Offset of a grammar's name from its dot, in points."""
_SINGLE, _JOINT = "single/{}/distance/G2N2/modern", "joint/width32/distance/G2N2/modern"
Q2_OURS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "single": {
        "G²N², ours": (_SINGLE, BLUE, "o"),
        "G²N², ours, less the extent": (f"{_SINGLE}/extent", BLUE, "^"),
        "G²N², ours, 300 epochs": (f"{_SINGLE}/long", SKY, "o"),
        "PPGN, ours": (_SINGLE.replace("G2N2", "PPGN"), ORANGE, "s"),
        "G²N², ours, bonds only": (_SINGLE.replace("distance", "bonds"), GREEN, "D"),
    },
    "joint": {
        "G²N², ours": (_JOINT, BLUE, "o"),
        "G²N², ours, less the extent": (f"{_JOINT}/extent", BLUE, "^"),
        "G²N², ours, width 64, less the extent": (
            _JOINT.replace("32", "64") + "/extent", BLUE, "*",
        ),
        "PPGN, ours": (_JOINT.replace("G2N2", "PPGN"), ORANGE, "s"),
        "G²N², ours, bonds only": (_JOINT.replace("distance", "bonds"), GREEN, "D"),
    },
}  # fmt: skip
"""Label to cell, colour and marker."""
Q3_MARKS = {NESTED: (GREEN, "s"), GIN: (BLUE, "o"), RELEASED: (ORANGE, "^")}
Q4_LINES = {
    ("G2N2-chebyshev", 6): (BLUE, "-"),
    ("G2N2-slow", 5): (SKY, "-"),
    ("G2N2", 3): (SKY, "--"),
    ("G2N2-released", 5): (ORANGE, "-"),
    ("PPGN", 3): (SOFT, "--"),
    ("GNNML3", 3): (GREEN, "-."),
    ("ChebNet", 3): (PINK, "--"),
    ("GCN", 3): (GOLD, ":"),
}

ROOFS = {"bf16": ("bfloat16", BLUE), "tf32": ("tf32", ORANGE), "32": ("float32", GREEN)}
"""Name and colour of a precision."""
LEAST_WIDTH = 0.05
"""Of a panel of scores of molecules."""
STYLE = Path(__file__).with_name("figures.mplstyle")
DIGEST = "Source"
"""The metadata field of a PNG that has the digest."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure: its size in inches, and a function that draws it."""

    size: tuple[float, float]
    draw: Callable[[Any], None]

    def save(self, path: Path) -> None:
        buffer = BytesIO()
        with style.context(STYLE):
            figure = self._drawn()
            figure.savefig(buffer, format="png", dpi=150, metadata={DIGEST: _digest(figure)})
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, buffer.getvalue())

    def is_current(self, path: Path) -> bool:
        """Whether a PNG file shows the numbers of the drawing."""
        try:
            with Image.open(path) as picture:
                picture.load()
                recorded = picture.info.get(DIGEST)
        except OSError:
            return False
        with style.context(STYLE):
            return bool(recorded == _digest(self._drawn()))

    def _drawn(self) -> Any:
        figure = Figure(figsize=self.size, layout="constrained")
        self.draw(figure)
        return figure


def _digest(figure: Any) -> str:
    """Digest of the numbers and words of a figure, independent of matplotlib's version."""
    shown: list[Any] = []
    for axes in figure.axes:
        shown += [line.get_xydata().tolist() for line in axes.lines]
        shown += [patch.get_bbox().bounds for patch in axes.patches]
        shown += [text.get_text() for text in (*axes.texts, *axes.get_yticklabels())]
    text = json.dumps(shown, default=float)
    rounded = re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.6g}", text)
    return sha256(rounded.encode()).hexdigest()


def drawings(results: Results) -> dict[str, Drawing]:
    figures: dict[str, tuple[float, float, Callable[[Results, Any], None]]] = {
        "q1": (9.4, 4.4, draw_q1),
        "q2": (9.4, 6.4, draw_q2),
        "q3": (9.4, 5.2, draw_q3),
        "q4": (9.4, 4.0, draw_q4),
        "power": (9.0, 4.7, draw_power),
        "molecules": (9.4, 3.4, draw_molecules),
    }
    return {name: Drawing((x, y), partial(draw, results)) for name, (x, y, draw) in figures.items()}


def draw_q1(results: Results, figure: Any) -> None:
    """Error against parameters, and exact power."""
    errors, power = figure.subplots(1, 2, width_ratios=(1.25, 1))
    for name, grammar in GRAMMARS.items():
        error = results.need("q1", f"train/{name}", "test MAE r2 (bohr²)")
        size = results.need("q1", f"train/{name}", "parameters")
        colour = GREEN if name == "four-rule" else ORANGE if name.startswith("r-G_L3-") else BLUE
        point = size.mean / 1000, error.mean
        errors.errorbar(*point, yerr=error.spread, fmt="o", color=colour, capsize=3)
        offset = {"xytext": Q1_LABELS[name], "textcoords": "offset points"}
        errors.annotate(grammar, point, color=colour, fontsize=8.5, **offset)
    errors.set(title="Error after training", xlabel="parameters (thousands)")
    errors.set(ylabel="test MAE of R² (a₀²)", ylim=(0.9, 2.6), xscale="log", xlim=(48, 900))
    errors.set_xticks((100, 200, 400, 800), ("100", "200", "400", "800"), minor=False)
    errors.set_xticks((), minor=True)
    errors.grid(axis="y")
    heights = dict(zip(GRAMMARS, range(len(GRAMMARS), 0, -1), strict=True))
    for readout, colour, lift, label in (
        ("network", BLUE, 0.18, "network read-out"),
        ("own", SKY, -0.18, "the grammar's own read-out"),
    ):
        few, most, proved = (
            [results.need("q1", f"exact/{name}/{readout}", metric).mean for name in heights]
            for metric in ("pairs separated, 3 layers", "pairs separated", "proved")
        )
        rows = [height + lift for height in heights.values()]
        power.barh(rows, most, 0.32, color=colour, alpha=0.35)
        power.barh(rows, few, 0.32, color=colour, label=label)
        for row, count, exact in zip(rows, most, proved, strict=True):
            text = f"{count:.0f}" if exact else f"≥ {count:.0f}"
            power.text(count + 4, row, text, va="center", fontsize=8)
    power.set_yticks(list(heights.values()), list(GRAMMARS.values()))
    power.set(title="Exact power (dark: 3 layers, pale: any)", xlabel="pairs of BREC told apart")
    power.set(xlim=(0, 310), ylim=(0.4, len(GRAMMARS) + 1.5))
    power.tick_params(axis="y", length=0)
    power.legend(loc="upper left", ncols=2, fontsize=7.5)


def draw_q2(results: Results, figure: Any) -> None:
    """Errors as multiples of the paper's, target by target."""
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    targets = TARGETS
    heights = range(len(targets), 0, -1)
    handles: dict[str, Any] = {}
    for axes, (which, series) in zip(panels, Q2_OURS.items(), strict=True):
        rows = cited(f"qm9-{which}").rows
        axes.axvline(1, color=INK, linewidth=1.2, label="G²N² in the paper")
        ppgn = [rows[t]["PPGN"].number / rows[t]["G²N²"].number for t in targets]
        axes.plot(ppgn, heights, "|", color=SOFT, markersize=11, label="PPGN in the paper")
        for lane, (label, (pattern, colour, marker)) in enumerate(series.items()):
            values = [results.value("q2", pattern.format(t), mae_of(t)) for t in targets]
            points = [
                (value.mean / rows[t]["G²N²"].number, height + 0.14 * (2 - lane))
                for t, value, height in zip(targets, values, heights, strict=True)
                if value
            ]
            size = 10 if marker == "*" else 6
            _scatter(axes, points, colour, marker, label, markersize=size)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
        title = "Each target alone" if which == "single" else "All twelve at once"
        axes.set(title=title, xlabel="test error / error of G²N² in the paper")
        axes.grid(axis="both", alpha=0.7)
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    panels[0].set_yticks(heights, [target.symbol for target in targets.values()])
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)


def _scatter(
    axes: Any,
    points: Sequence[tuple[float, float]],
    colour: str,
    marker: str,
    label: str,
    **style: Any,
) -> None:
    style |= {"color": colour, "marker": marker, "linestyle": "none"}
    axes.plot(*zip(*points, strict=True), label=label, **style)


def draw_q3(results: Results, figure: Any) -> None:
    """One panel for each set, one line for each network, three statistics on it."""
    panels = figure.subplots(2, 3, sharey=True)
    published, heights = cited("tu"), range(len(MODELS), 0, -1)
    for axes, name in zip(panels.flat, SETS, strict=True):
        axes.axvline(published.rows["G²N²"][name].number, color=INK, label="G²N² in the paper")
        _, other = published.best(name, tu.NOT_OTHER_GNNS)
        label = f"best other GNN in the paper, {GIN}"
        axes.axvline(other, color=SOFT, linestyle=(0, (4, 3)), label=label)
        for statistic, (colour, marker) in Q3_MARKS.items():
            values = [tu.accuracy(results, f"{name}/{m}", statistic) for m in MODELS]
            points = [(v.mean, h) for v, h in zip(values, heights, strict=True) if v]
            _scatter(axes, points, colour, marker, f"ours, {statistic}")
        axes.set_yticks(heights, map(tu.label, MODELS))
        axes.set(title=name, ylim=(0.4, len(MODELS) + 0.6))
        axes.margins(x=0.12)
        axes.grid(axis="x", alpha=0.7)
    for axes in panels[-1]:
        axes.set_xlabel("accuracy (%)")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def draw_q4(results: Results, figure: Any) -> None:
    """Learned spectral responses and the true filters."""
    panels = figure.subplots(1, 3)
    for axes, name in zip(panels, entries.FILTERS, strict=True):
        truth: list[float] = []
        for network, (colour, dashes) in Q4_LINES.items():
            record = results.first("q4", f"{name}/{network[0]}/layers-{network[1]}")
            if record is None:
                continue
            response = record.detail["response"]
            truth, x = response["truth"], response["eigenvalues"]
            label = f"{entries.FILTER_LABELS.get(network[0], network[0])} ({network[1]})"
            axes.plot(x, response["learned"], color=colour, linestyle=dashes, label=label)
        axes.plot(x, truth, color=INK, linewidth=3.6, alpha=0.3, label="the true filter")
        margin = 0.3 * (max(truth) - min(truth))  # a failed network may be far off
        axes.set(title=f"{name}-pass", xlabel="eigenvalue of D − A")
        axes.set_ylim(min(truth) - margin, max(truth) + margin)
        axes.axhline(0, color=SOFT, linewidth=0.6)
    panels[0].set_ylabel("factor passed")
    handles = panels[-1].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4, fontsize=8.5)


def draw_power(results: Results, figure: Any) -> None:
    """Pairs of BREC: after training, by words, and at most."""
    axes = figure.subplots()
    contenders = {"G2N2Σ-5": MARKED["G2N2Σ-5"], **CONTENDERS}
    heights = range(len(contenders), 0, -1)
    bound, words, trained, clear = (
        [value.mean if value else 0.0 for value in values]
        for values in (
            [results.value("power", f"brec/{name}", metric) for name in contenders]
            for metric in (BOUND, SEPARATED, TRAINED, CLEAR)
        )
    )
    label = "exact bound: Σ2-FWL, 3-WL, or 1-WL for GIN"
    axes.barh(heights, bound, 0.62, color="none", edgecolor=INK, label=label)
    label = "exact, by the grammar's words"
    axes.barh(heights, words, 0.62, color=BLUE, alpha=0.3, label=label)
    axes.barh(heights, trained, 0.3, color=BLUE, label="trained, released test")
    style = {"color": ORANGE, "markersize": 5, "label": "trained, clear of noise"}
    axes.plot(clear, heights, "D", **style)
    for name, height, most, count in zip(contenders, heights, bound, trained, strict=True):
        text = f"{count:.0f}"
        if lacking := 400 - results.of("power", f"brec/{name}")[0].done:
            text += f" ({lacking} not run)"
        axes.text(max(most, count) + 3, height, text, va="center", fontsize=8.5)
    ppgn = cited("brec").rows["PPGN"]["total (400)"].number
    axes.axvline(ppgn, color=SOFT, linestyle=(0, (4, 3)), label=f"PPGN, published: {ppgn:.0f}")
    axes.set_yticks(heights, map(entries.power_label, contenders.values()))
    axes.set(xlim=(0, 445), xlabel="pairs of BREC told apart, of 400")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=FAINT)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8.5)


def draw_molecules(results: Results, figure: Any) -> None:
    """One panel for each set: the score of each contender, a mark for each split."""
    panels = figure.subplots(1, len(MOLECULE_SETS), sharey=True)
    labels = entries.MOLECULE_LABELS
    heights = dict(zip(labels, range(len(labels), 0, -1), strict=True))
    given, chance = (BLUE, "o", 0.12), (GREEN, "s", -0.12)
    marks = {"scaffold": given, "official": given, "random": chance}
    for axes, molecules in zip(panels, MOLECULE_SETS, strict=True):
        shown = [
            (value, heights[contender], marks[how])
            for how in molecules.splits
            for contender in labels
            if (value := entries.molecule_score(results, molecules, how, contender))
        ]
        for value, height, (colour, marker, lift) in shown:
            point = {"x": value.mean, "y": height + lift, "xerr": value.spread}
            axes.errorbar(**point, color=colour, marker=marker, markersize=5, capsize=2)
        if not shown:
            axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center", color=SOFT)
            axes.set_xticks(())
        arrow = "lower" if molecules.metric == "RMSE" else "higher"
        axes.set(title=molecules.name, xlabel=f"{molecules.metric}, {arrow} is better")
        axes.set(ylim=(0.4, len(labels) + 0.6))
        axes.margins(x=0.15)
        low, high = axes.get_xlim()
        if high - low < LEAST_WIDTH:  # one contender's tiny deviation does not fill a panel
            axes.set_xlim((low + high - LEAST_WIDTH) / 2, (low + high + LEAST_WIDTH) / 2)
        axes.locator_params(axis="x", nbins=4)
        axes.grid(axis="x", alpha=0.7)
    panels[0].set_yticks(list(heights.values()), list(labels.values()))
    for colour, marker, lift in (given, chance):
        label = "scaffold or official split" if lift > 0 else "random split"
        panels[0].plot([], [], marker, color=colour, label=label)
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2, fontsize=8.5)


def roofline(rows: Iterable[Row]) -> Drawing:
    """Measured cases of the GPU under the roof of its measured peaks."""
    points = [
        row
        for row in rows
        if row["made_with"]["device"] != "cpu" and "flops_per_byte" in row["figures"]
    ]
    return Drawing((7.2, 4.4), lambda figure: _draw_roofline(figure, points))


def _draw_roofline(figure: Any, points: Sequence[Row]) -> None:
    axes = figure.subplots()
    hardware = points[-1]["made_with"]
    speed = hardware["bandwidth_gb_per_second"] * 1e9
    peaks: dict[str, float] = {}
    for row in points:
        peaks |= row["made_with"]["peak_tflops"]
    for precision, peak in peaks.items():
        name, colour = ROOFS[precision]
        roof = [1.0, peak * 1e12 / speed, 4096.0], [speed / 1e12, peak, peak]
        axes.plot(*roof, color=colour, label=f"{name}: {peak:.0f} TFLOP/s")
    lowest: dict[float, float] = {}
    for row in sorted(points, key=lambda row: row["figures"]["tflops"]):
        x, y = row["figures"]["flops_per_byte"], row["figures"]["tflops"]
        named = bool(row["settings"]["floor"])
        style: dict[str, Any] = {"markersize": 5 if named else 3, "alpha": 1.0 if named else 0.4}
        axes.plot(x, y, "o", color=ROOFS[row["settings"]["precision"]][1], **style)
        if not named:
            continue
        column = round(x, -1)  # names of one column are pushed up until they do not touch
        lowest[column] = max(y, 1.22 * lowest.get(column, 0.0))
        side = "right" if x < 200 else "left"  # away from the dots of the next column
        corner = (x * 1.35 if side == "left" else x / 1.2, lowest[column])
        if x > 500:  # above, beside the names of the column at 300
            side, corner = "center", (x, 1.7 * y)
        style = {"ha": side, "va": "center", "fontsize": 7.5}
        arrow = {"arrowstyle": "-", "linewidth": 0.4, "color": "0.6"}
        name = row["case"].removesuffix("-modern").replace("-bf16", "")  # as the colour says
        axes.annotate(name, (x, y), corner, arrowprops=arrow, **style)
    axes.set(xscale="log", yscale="log", xlim=(8, 2048), ylabel="useful TFLOP/s")
    axes.set_xlabel("useful FLOP for each byte a fused layer moves")
    axes.set_title(f"{hardware['device']}, {speed / 1e12:.2g} TB/s measured")
    axes.grid(True)
    axes.legend(loc="upper left", fontsize=8)
