"""Initial weights of the preset `modern`; the other presets keep PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from torch import nn

from .layer import BilinearUpdate, Select, Update, linear_maps
from .marks import SumsOverMarks
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
        _normal([cast(nn.Linear, embedding)])
    layers = len(model.trunk) + len(model.layers)
    for module in model.modules():
        if isinstance(module, Select):
            _normal(linear_maps(module.maps))
        elif isinstance(module, Update):
            maps = linear_maps(module.mixer)
            _normal(maps[:-1], math.sqrt(2.0))
            _normal(maps[-1:], 1.0 / math.sqrt(layers))
        elif isinstance(module, SumsOverMarks):
            for mixer in module.mixers:
                maps = linear_maps(cast(nn.Sequential, mixer))
                _normal(maps[:-1], math.sqrt(2.0))
                _normal(maps[-1:])
        elif isinstance(module, Readout):
            maps = linear_maps(module.decision)
            _normal(maps[:-1], math.sqrt(2.0))
            _normal(maps[-1:] if module.straight is None else [maps[-1], module.straight])
        elif isinstance(module, BilinearUpdate):
            nn.init.xavier_uniform_(module.weight)


def _normal(maps: Sequence[nn.Linear], gain: float = 1.0) -> None:
    for part in maps:
        nn.init.normal_(part.weight, std=gain / math.sqrt(max(part.in_features, 1)))
        if part.bias is not None:
            nn.init.zeros_(part.bias)
