"""Baseline: the algorithm of the released G²N² code, with the weights of a network of ours.

The graphs of a batch are one graph of ΣN nodes. Its matrix memory is a list of the Σn² pairs
within a graph, `[P, S]`. A product of matrices writes them into block-diagonal `[S, ΣN, ΣN]`
matrices, multiplies these whole and reads the pairs back, so that its cost grows with the square of
the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from g2n2.bench import Forward
from g2n2.data.batch import GraphBatch
from g2n2.language.printing import to_text
from g2n2.nn.input_memories import input_memories
from g2n2.nn.layer import ApplyRule, PlannedLayer, Update
from g2n2.nn.model import GrammarGNN


@dataclass(frozen=True)
class Blocks:
    """The pairs within graphs, by the numbers of their nodes in the whole batch."""

    dense: Tensor  # `[B, N, N]`, which pairs of a dense batch are there
    left: Tensor  # `[P]`, first node of each pair
    right: Tensor  # `[P]`, second node of each pair
    nodes: int  # ΣN

    @classmethod
    def of(cls, mask: Tensor) -> Blocks:
        dense = mask[:, :, None] & mask[:, None]
        number = (mask.flatten().cumsum(0) - 1).view_as(mask)
        graph, i, j = dense.nonzero(as_tuple=True)
        return cls(dense, number[graph, i], number[graph, j], int(mask.sum()))

    def matrix(self, pairs: Tensor) -> Tensor:
        """`[P, S]` as `[S, ΣN, ΣN]`."""
        whole = pairs.new_zeros(pairs.shape[1], self.nodes, self.nodes)
        whole[:, self.left, self.right] = pairs.T
        return whole

    def pairs(self, whole: Tensor) -> Tensor:
        return whole[:, self.left, self.right].T

    def diagonal(self, v: Tensor) -> Tensor:
        """`[ΣN, F]` as the pairs of diag(v), which is written whole too."""
        return self.pairs(torch.diag_embed(v.T))


def forward_of(model: GrammarGNN) -> Forward:
    """A network of r-G_L3, preset `paper`, computed by the released algorithm."""
    return partial(_network, model)


def _network(model: GrammarGNN, batch: GraphBatch) -> Tensor:
    constants = model.constants(batch.adjacency, batch.mask)
    first = input_memories(model.plan.inputs, model.words, batch.nodes, batch.edges, constants)
    blocks = Blocks.of(batch.mask)
    c, h = first["M"][blocks.dense], first["V"][batch.mask]
    for layer in model.layers:
        assert isinstance(layer, PlannedLayer)
        c, h = (_updated(layer.updates[letter], c, h, blocks) for letter in ("M", "V"))
    matrix = c.new_zeros(*blocks.dense.shape, c.shape[1])
    matrix[blocks.dense] = c
    column = h.new_zeros(*batch.mask.shape, h.shape[1])
    column[batch.mask] = h
    output: Tensor = model.readout({"M": matrix, "V": column}, batch.mask, constants)
    return output


def _updated(update: nn.Module, c: Tensor, h: Tensor, blocks: Blocks) -> Tensor:
    assert isinstance(update, Update)
    memories = {"M": c, "V": h}
    parts = [memories[update.sort.letter]] if update.skips else []
    for step in update.steps:
        assert isinstance(step, ApplyRule)
        operands = [
            select.maps(memories[source])  # type: ignore[operator]
            for select, source in zip(step.selectors, step.sources, strict=True)
        ]
        parts.append(_applied(to_text(step.rule.body, powers=False), operands, blocks))
    mixed: Tensor = update.mixer(torch.cat(parts, dim=-1))
    return mixed


def _applied(body: str, operands: list[Tensor], blocks: Blocks) -> Tensor:
    match body:
        case "M⊙M":
            return operands[0] * operands[1]
        case "MM":
            left, right = map(blocks.matrix, operands)
            return blocks.pairs(left @ right)
        case "diag(V_c)":
            return blocks.diagonal(operands[0])
        case "MV_c":
            return (blocks.matrix(operands[0]) @ operands[1].T.unsqueeze(2))[..., 0].T
    raise AssertionError(f"r-G_L3 has no rule with the body {body}")
