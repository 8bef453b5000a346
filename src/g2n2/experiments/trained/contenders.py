"""The networks whose trained power is set beside the exact power of their grammars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Contender:
    """A network, and what is known of its power before any training.

    Attributes:
        name: In cells and tables.
        network: A key of `nn.baselines.BASELINES`.
        layers: How many.
        grammar: Whose words the layers compute, without the functions in between; None where they
            rest on the spectrum, which no exact arithmetic evaluates.
        bound: k of the k-FWL test no weights can exceed: 1 for 1-WL, 2 for 3-WL.
        width: Channels of every memory.
        options: Of the network.
        preset: In place of the network's own.
    """

    name: str
    network: str
    layers: int
    grammar: str | None
    bound: Literal[1, 2]
    width: int = 16
    options: Mapping[str, Any] = field(default_factory=dict)
    preset: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain types, for JSON; options and a preset only where there are some."""
        seldom = ("options", "preset")
        return {name: value for name, value in asdict(self).items() if name not in seldom or value}

    @property
    def built(self) -> dict[str, Any]:
        """What of a `RunConfig` names the network."""
        return {"baseline": self.network, "preset": self.preset or None}


CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender("G2N2-8", "G2N2", 8, "r-G_L3", 2),
        Contender("G2N2-5", "G2N2", 5, "r-G_L3", 2),
        Contender("G2N2-3", "G2N2", 3, "r-G_L3", 2),
        Contender("PPGN", "PPGN", 8, "PPGN", 2),
        Contender("GNNML3", "GNNML3", 5, None, 2),
        # GIN's sums and MLPs are the words of GNNML1: both are 1-WL. Batch normalisation would only
        # blow up rounding errors where all nodes are alike.
        Contender("GIN", "GIN", 5, "GNNML1", 1, options={"norm": False}),
    )
}
ALIKE = Contender("PPGN-alike", "PPGN", 8, "PPGN", 2, preset="modern")
"""The grammar of PPGN in the blocks of G²N²: whether a grammar fails or what stands around it."""
