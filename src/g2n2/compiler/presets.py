"""Presets: selectors, MLPs, norms, read-out and decision layers around the rules, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from ..errors import LoweringError

PairNorm = Literal["entry", "graph", "none"]
"""How layers read M where they read normalised memories: each entry divided by the root mean square
of its channels, all entries of a graph by one number, or as it is."""

ReadoutMode = Literal["grammar", "pooled", "pooled-only"]
"""The rules of S; pooled memories joined by the rules of S that pooling does not contain; pooled
memories alone, as every network was read out before rules of S were."""


@dataclass(frozen=True)
class Preset:
    """Everything about a network that its grammar does not say."""

    name: str
    selector: Literal["linear", "mlp"] = "linear"  # one map, or two with bias and ReLU (PPGN)
    selector_scale: bool = False  # divide what a selector gives by the width it reads
    # Occurrences b of a rule: the width written, or the width read (released code).
    copies: Literal["written", "read"] = "written"
    hidden: int = 2  # width of the MLP's hidden layer in multiples of its input; 0 for none
    mixer_bias: bool = True  # whether the MLPs of the memories have biases
    pair_bias: bool = True  # whether that of M does, where the others do
    activation: Literal["relu", "silu"] = "relu"
    node_update: Literal["rules", "bilinear"] = "rules"  # or the released code's Σₖ Cₖ H Wₖ
    ones: Literal["always", "without features"] = "always"  # the column 1 beside node features
    between: bool = False  # whether the activation also stands between two layers
    embedding: bool = False  # a linear map to full width before the first layer
    normalised: bool = False  # layers read an RMS-normalised memory and add to it
    pair_norm: PairNorm = "entry"  # how they read M then
    product_scale: bool = False  # divide products over n entries by √n
    readout: ReadoutMode = "pooled"
    pooling: Literal["sum", "mean", "max"] = "sum"
    decision: tuple[int, ...] = (512, 256)  # hidden widths after the read-out
    linear_path: bool = False  # a linear map beside the decision layers


_MODERN = Preset(
    "modern",
    embedding=True,
    normalised=True,
    product_scale=True,
    decision=(256,),
    linear_path=True,
)
PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset("paper"),
        Preset(
            "official",
            selector_scale=True,
            copies="read",
            mixer_bias=False,
            node_update="bilinear",
            ones="without features",
            between=True,
        ),
        # A published network read out by maxima: sums beside them would be another network.
        Preset("ppgn", selector="mlp", hidden=0, readout="pooled-only", pooling="max"),
        _MODERN,
    )
}

MODERN_BEFORE = "modern-0.2"
"""What `modern` was in versions 0.1 and 0.2: runs of those versions are read with it."""
_EARLIER = {MODERN_BEFORE: replace(_MODERN, name=MODERN_BEFORE)}


def find_preset(name: str | Preset) -> Preset:
    """The preset of that name."""
    if isinstance(name, Preset):
        return name
    by_name = PRESETS | _EARLIER
    if name not in by_name:
        raise LoweringError(f"no preset is called {name!r}; known: {', '.join(by_name)}")
    return by_name[name]


def with_pair_norm(preset: Preset, pair_norm: str | None) -> Preset:
    """The preset with another way of reading M; itself for None.

    Raises:
        LoweringError: There is no such way.
    """
    if pair_norm is None:
        return preset
    if pair_norm not in get_args(PairNorm):
        raise LoweringError(
            f"pair_norm is {', '.join(get_args(PairNorm))} or the preset's (None), "
            f"got {pair_norm!r}"
        )
    if pair_norm != "none" and not preset.normalised:
        raise LoweringError(
            f'the preset {preset.name} normalises no memory: leave pair_norm="{pair_norm}" out, or '
            'use preset="modern"'
        )
    return replace(preset, pair_norm=cast(PairNorm, pair_norm))
