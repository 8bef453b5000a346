"""Grammars as a user might write them: rules drawn from lists, with sums, functions, J and read-outs."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from g2n2.errors import GrammarError
from g2n2.grammars.grammar import Grammar

BODIES = {
    "V": (
        "1 | AV | MV | V⊙V | diag(V)V | Rᵀ | A²V | A1 | M1 | VS | AV⊙V | AᵀV | V + V | AV + V | AV − V"
        " | 2×V | V(1ᵀV) | V(RV) | Mᵀ1 | f(V) | relu(AV) | (M⊙I)1 | JV"
    ),
    "R": "Vᵀ | RM | R⊙R | RA | 1ᵀ | SR | 1ᵀM | R + R | f(R)",
    "M": (
        "A | MM | M⊙M | Mᵀ | diag(V) | VR | V1ᵀ | I | AM | V·Vᵀ | 1·1ᵀ | AMA | M⊙A | M⊙I | J | M⊙J"
        " | diag(V)M | Aᵀ | M + M | diag(M1) | S×M | f(M) | f(M + A)"
    ),
    "S": (
        "1ᵀV | RV | Tr(M) | 1ᵀM1 | SS | VᵀV | S⊙S | Tr(MM) | 1ᵀAV | RMV | 1ᵀ1 | S + S | f(S)"
        " | 1ᵀf(V) | 1.0 | Tr(M + A)"
    ),
}
LIKELY = {"V": 0.85, "R": 0.3, "M": 0.6, "S": 0.65}
"""How often each variable has rules at all."""


def hand_written(seed: int) -> Iterator[Grammar]:
    """Random grammars without end; those that cannot generate are left out."""
    rng = Random(seed)
    while True:
        lines = [
            f"{variable} → {' | '.join(rng.sample(bodies.split(' | '), rng.randint(1, 4)))}"
            for variable, bodies in BODIES.items()
            if rng.random() < LIKELY[variable]
        ]
        try:
            yield Grammar.parse("; ".join(lines))
        except GrammarError:
            continue
