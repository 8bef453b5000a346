"""Initial weights of the preset `modern`; the other presets keep PyTorch's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from torch import nn

from .layer import BilinearUpdate, Select, Update
from .readout import Readout

if TYPE_CHECKING:
    from .model import GrammarGNN


def initialise(model: GrammarGNN) -> None:
    """Start `modern` so that every map keeps the size of its input and no layer starts mute.

    The other presets keep PyTorch's own initialisation, as the code they reproduce did.
    """
    if not model.plan.preset.normalised:
        return
    for embedding in (*model.trunk_embeddings.values(), *model.embeddings.values()):
        if isinstance(embedding, nn.Linear):
            _normal(embedding, 1.0)
    layers = len(model.trunk) + len(model.layers)
    for module in model.modules():
        if isinstance(module, Select):
            for part in module.maps:
                if isinstance(part, nn.Linear):
                    _normal(part, 1.0)
        elif isinstance(module, Update):
            _mlp(module.mixer, last_gain=1.0 / math.sqrt(layers))
        elif isinstance(module, Readout):
            _mlp(module.decision, last_gain=1.0)
            if module.straight is not None:
                _normal(module.straight, 1.0)
        elif isinstance(module, BilinearUpdate):
            nn.init.xavier_uniform_(module.weight)


def _mlp(maps: nn.Sequential, last_gain: float) -> None:
    parts = [part for part in maps if isinstance(part, nn.Linear)]
    for part in parts[:-1]:
        _normal(part, math.sqrt(2.0))
    _normal(parts[-1], last_gain)


def _normal(part: nn.Linear, gain: float) -> None:
    nn.init.normal_(part.weight, std=gain / math.sqrt(max(part.in_features, 1)))
    if part.bias is not None:
        nn.init.zeros_(part.bias)
