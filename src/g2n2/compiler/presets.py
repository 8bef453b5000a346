"""What a layer looks like around its rules: four presets, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import LoweringError

ReadoutMode = Literal["grammar", "pooled", "pooled-only"]
"""The rules of S; pooled memories joined by the rules of S that pooling does not contain; pooled
memories alone, as every network was read out before rules of S were."""


@dataclass(frozen=True)
class Preset:
    """Everything about a network that its grammar does not say.

    Attributes:
        name: How it is asked for.
        selector: One linear map without bias, or two with bias and ReLU after each (PPGN).
        selector_scale: Divide what a selector gives by the width it reads (released code).
        copies: Multiplicity b of a rule: the width written, or the width read (released code).
        hidden: Width of the MLP's hidden layer in multiples of its input; 0 for no hidden layer.
        mixer_bias: Whether the MLP has biases.
        pair_bias: Whether that of M does, where the others do.
        activation: The function between two linear maps.
        node_update: The grammar's rules, or the released code's Σₖ Cₖ H Wₖ.
        ones: Whether the column 1 stands beside node features (the released code leaves it out).
        between: Whether the activation also stands between two layers.
        embedding: Whether a linear map brings the inputs to full width before the first layer.
        normalised: Whether layers read a root-mean-square-normalised memory and add to it.
        product_scale: Divide products over n entries by √n.
        readout: What is read out of the last memories where nothing is asked for.
        pooling: What is taken over nodes, the diagonal and the rest where nothing is asked for.
        decision: Hidden widths after the read-out.
        linear_path: Whether a linear map stands beside the decision layers.
    """

    name: str
    selector: Literal["linear", "mlp"] = "linear"
    selector_scale: bool = False
    copies: Literal["written", "read"] = "written"
    hidden: int = 2
    mixer_bias: bool = True
    pair_bias: bool = True
    activation: Literal["relu", "silu"] = "relu"
    node_update: Literal["rules", "bilinear"] = "rules"
    ones: Literal["always", "without features"] = "always"
    between: bool = False
    embedding: bool = False
    normalised: bool = False
    product_scale: bool = False
    readout: ReadoutMode = "pooled"
    pooling: Literal["sum", "mean", "max"] = "sum"
    decision: tuple[int, ...] = (512, 256)
    linear_path: bool = False


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
        Preset(
            "modern",
            embedding=True,
            normalised=True,
            product_scale=True,
            decision=(256,),
            linear_path=True,
        ),
    )
}


def find_preset(name: str | Preset) -> Preset:
    """The preset of that name."""
    if isinstance(name, Preset):
        return name
    if name not in PRESETS:
        raise LoweringError(f"no preset is called {name!r}; known: {', '.join(PRESETS)}")
    return PRESETS[name]
