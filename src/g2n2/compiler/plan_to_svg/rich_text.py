"""Text with subscripts and superscripts, and how wide it is drawn at most."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

FONTS = "DejaVu Sans, Verdana, Arial, Helvetica, sans-serif"
_SHRINK = 0.72
_DROP = 0.22
_RAISE = -0.38
_SHIFTED = re.compile(r"([_^])(?:\{((?:[^{}]|\{[^{}]*\})*)\}|(L?\d+|\w))")

_ADVANCES: dict[int, str] = {
    29: "ijlIJ'",
    34: " ,./:;|·",
    40: "()[]-!tfᵀ⁰¹²³⁴⁵⁶⁷⁸⁹",
    50: '*^_`"rsz‖–ₖ?',
    60: "ckvxyFLPTY",
    64: "0123456789abdeghnopquESZΣ{}∖",
    70: "ABCKRVX",
    76: "DGHNU∪&",
    86: "MOQ#+<=>~⊙→×−w",
    100: "mW@%…",
}
_EM = {letter: width / 100 for width, letters in _ADVANCES.items() for letter in letters}
"""Advance widths in em, rounded up from DejaVu Sans, the widest of the fonts asked for."""

_BOLD = 1.16


class Run(NamedTuple):
    """A piece of text: how far it is moved down and how much it is shrunk, relative to 1 em."""

    text: str
    drop: float
    scale: float


def runs(text: str, drop: float = 0.0, scale: float = 1.0) -> Iterator[Run]:
    """Cut `MLP_{V_c}` or `C^{(l+1)}` into pieces; `_x` shifts one letter, `_12` a number."""
    place = 0
    for found in _SHIFTED.finditer(text):
        if found.start() > place:
            yield Run(text[place : found.start()], drop, scale)
        shift = (_DROP if found[1] == "_" else _RAISE) * scale
        yield from runs(found[2] or found[3] or "", drop + shift, scale * _SHRINK)
        place = found.end()
    if place < len(text):
        yield Run(text[place:], drop, scale)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """How wide a text is drawn at most."""
    total = sum(run.scale * sum(_EM.get(letter, 1.0) for letter in run.text) for run in runs(text))
    return size * total * (_BOLD if bold else 1.0)
