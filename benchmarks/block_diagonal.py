"""Baseline: the algorithm of the released G²N² code, with the weights of a network of ours.

The graphs of a batch are one graph of ΣN nodes. Its matrix memory is a list of the Σn² pairs that
lie within a graph, `[P, S]`; a product of matrices writes them into block-diagonal `[S, ΣN, ΣN]`
matrices, multiplies those whole, and reads the pairs back, so that its cost grows with the square
of the batch. Run it to compare: `python benchmarks/block_diagonal.py`.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass

import networkx as nx
import torch
from torch import Tensor

from g2n2.data.batch import GraphBatch
from g2n2.language.printing import to_text
from g2n2.nn import G2N2, GrammarGNN
from g2n2.nn.layer import ApplyRule, GrammarLayer, Update
from g2n2.nn.model import first_memories


@dataclass(frozen=True)
class Blocks:
    """The pairs within graphs, by the numbers of their nodes in the whole batch.

    Attributes:
        dense: `[B, N, N]` which pairs of a dense batch are there.
        left: `[P]` first node of each pair.
        right: `[P]` second node of each pair.
        nodes: ΣN.
    """

    dense: Tensor
    left: Tensor
    right: Tensor
    nodes: int

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
        """`[ΣN, F]` as the pairs of diag(v)."""
        return v[self.left] * (self.left == self.right)[:, None]


def network(model: GrammarGNN, batch: GraphBatch) -> Tensor:
    """The outputs of a network of r-G_L3, preset `paper`, by the released algorithm."""
    constants = model.constants(batch.adjacency, batch.mask)
    first = first_memories(model.plan.inputs, model.words, batch.nodes, batch.edges, constants)
    blocks = Blocks.of(batch.mask)
    c, h = first["M"][blocks.dense], first["V"][batch.mask]
    for layer in model.layers:
        assert isinstance(layer, GrammarLayer)
        c, h = (_updated(layer.updates[letter], c, h, blocks) for letter in ("M", "V"))
    matrix = c.new_zeros(*blocks.dense.shape, c.shape[1])
    matrix[blocks.dense] = c
    column = h.new_zeros(*batch.mask.shape, h.shape[1])
    column[batch.mask] = h
    output: Tensor = model.readout({"M": matrix, "V": column}, batch.mask, constants)
    return output


def _updated(update: torch.nn.Module, c: Tensor, h: Tensor, blocks: Blocks) -> Tensor:
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


def molecules(count: int, seed: int = 0) -> GraphBatch:
    """Trees of the sizes of QM9's molecules: 18 ± 3 atoms, 29 at most."""
    draw = random.Random(seed)
    sizes = [max(4, min(29, round(draw.gauss(18, 3)))) for _ in range(count)]
    return GraphBatch.of([nx.random_labeled_tree(n, seed=n) for n in sizes])


def main() -> None:
    """Print the time of a training step and of inference, one beside the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", action="store_true", help="one thread, CPU time: a busy machine")
    asked = parser.parse_args()
    clock = time.process_time if asked.busy else time.perf_counter
    if asked.busy:
        torch.set_num_threads(1)
    model = G2N2(width=asked.width, layers=3, preset="paper")
    batch = molecules(asked.batch)

    def outputs(backend: str) -> Tensor:
        if backend == "block-diagonal":
            return network(model, batch)
        model.backend = backend
        return model(batch)  # type: ignore[no-any-return]

    backends = ("block-diagonal", "reference", "plain")
    with torch.no_grad():
        expected = outputs("reference")
        for backend in backends:
            close = torch.allclose(outputs(backend), expected, rtol=1e-3, atol=1e-3)
            assert close, f"{backend} gives other numbers than the reference"
    for training in (True, False):
        best = dict.fromkeys(backends, float("inf"))
        for _ in range(asked.rounds):
            for backend in backends:
                start = clock()
                with torch.set_grad_enabled(training):
                    value = outputs(backend).abs().sum()
                    if training:
                        model.zero_grad()
                        value.backward()  # type: ignore[no-untyped-call]
                best[backend] = min(best[backend], clock() - start)
        print("training step" if training else "inference", f"batch {asked.batch}")
        for backend, seconds in best.items():
            ratio = best["block-diagonal"] / seconds
            print(f"  {backend:15} {seconds * 1e3:8.0f} ms   {ratio:5.1f} × block-diagonal")


if __name__ == "__main__":
    main()
