"""The update equations of the papers, written out by hand, against compiled layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from g2n2.compiler.presets import Preset
from g2n2.data.batch import GraphBatch
from g2n2.nn import GrammarGNN

Array = npt.NDArray[np.float64]
N, NODE_FEATURES, EDGE_FEATURES = 6, 3, 2


def weights(part: Any) -> tuple[Array, Array]:
    """The matrix and the bias of a linear map, the bias zero where there is none."""
    matrix = part.weight.detach().numpy().astype(np.float64)
    bias = np.zeros(len(matrix)) if part.bias is None else part.bias.detach().numpy()
    return matrix, bias


def linear(part: Any, x: Array) -> Array:
    """A linear map over the last axis, entry by entry."""
    matrix, bias = weights(part)
    result = np.zeros((*x.shape[:-1], len(matrix)))
    for place in np.ndindex(x.shape[:-1]):
        for out in range(len(matrix)):
            result[place][out] = sum(matrix[out] * x[place]) + bias[out]
    return result


def relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def matrix_product(x: Array, y: Array) -> Array:
    """`(XY)_ij = Σ_k X_ik Y_kj`, channel by channel."""
    result = np.zeros_like(x)
    for i, j, k in np.ndindex(N, N, N):
        result[i, j] += x[i, k] * y[k, j]
    return result


def matrix_column(x: Array, v: Array) -> Array:
    result = np.zeros_like(v)
    for i, k in np.ndindex(N, N):
        result[i] += x[i, k] * v[k]
    return result


def on_diagonal(v: Array) -> Array:
    result = np.zeros((N, N, v.shape[1]))
    for i in range(N):
        result[i, i] = v[i]
    return result


def selectors(update: Any, rule: str) -> list[Any]:
    """The selectors of one rule's operands."""
    (step,) = [step for step in update.steps if step.rule.body_text() == rule]
    return [[part for part in select.maps if hasattr(part, "weight")] for select in step.selectors]


def mixer(update: Any) -> list[Any]:
    return [part for part in update.mixer if hasattr(part, "weight")]


def paper_layer(layer: Any, c: Array, h: Array) -> tuple[Array, Array]:
    """The two update equations of section 3.3."""
    edge, node = layer.updates["M"], layer.updates["V"]
    (l1,), (l2,) = selectors(edge, "MM")
    (l3,), (l4,) = selectors(edge, "(M⊙M)")
    ((l6,),) = selectors(edge, "diag(V_c)")
    (l5,), (l7,) = selectors(node, "MV_c")
    parts = {
        "(M⊙M)": linear(l3, c) * linear(l4, c),
        "MM": matrix_product(linear(l1, c), linear(l2, c)),
        "diag(V_c)": on_diagonal(linear(l6, h)),
    }
    joined = np.concatenate([c, *(parts[s.rule.body_text()] for s in edge.steps)], axis=-1)
    first, second = mixer(edge)
    new_c = linear(second, relu(linear(first, joined)))
    product = matrix_column(linear(l5, c), linear(l7, h))
    first, second = mixer(node)
    return new_c, linear(second, relu(linear(first, np.concatenate([h, product], axis=-1))))


def official_layer(layer: Any, c: Array, h: Array) -> tuple[Array, Array]:
    """The released code: divisions by the width, and nodes that read the new C."""
    edge, node = layer.updates["M"], layer.updates["V"]
    e, f = c.shape[-1], h.shape[-1]
    (l1,), (l2,) = selectors(edge, "MM")
    (l3,), (l4,) = selectors(edge, "(M⊙M)")
    ((l5,),) = selectors(edge, "diag(V_c)")
    parts = {
        "(M⊙M)": linear(l3, c) / e * (linear(l4, c) / e),
        "MM": matrix_product(linear(l1, c) / e, linear(l2, c) / e),
        "diag(V_c)": on_diagonal(linear(l5, h) / f),
    }
    joined = np.concatenate([c, *(parts[s.rule.body_text()] for s in edge.steps)], axis=-1)
    first, second = mixer(edge)
    assert first.weight.shape == (8 * e, 3 * e + max(e, f))
    assert first.bias is None
    assert second.bias is None
    new_c = linear(second, relu(linear(first, joined)))
    weight, bias = node.weight.detach().numpy(), node.bias.detach().numpy()
    new_h = np.zeros((N, weight.shape[2])) + bias / f
    for k, i, j in np.ndindex(new_c.shape[-1], N, N):
        new_h[i] += new_c[i, j, k] * (h[j] / f) @ weight[k]
    return new_c, new_h


def decided(model: GrammarGNN, c: Array, h: Array) -> Array:
    """ΣH, Σdiag C and Σoffdiag C through the decision layers."""
    diagonal = sum(c[i, i] for i in range(N))
    rest = sum(c[i, j] for i in range(N) for j in range(N) if i != j)
    value = np.concatenate([h.sum(0), diagonal, rest])
    maps = [part for part in model.readout.decision if hasattr(part, "weight")]
    for part in maps[:-1]:
        value = relu(linear(part, value))
    return linear(maps[-1], value)


def example(seed: int = 0) -> tuple[GraphBatch, Array, Array, Array]:
    """A weighted graph as a batch, and A, X and E by themselves."""
    draw = np.random.default_rng(seed)
    matrix = np.triu(draw.random((N, N)) * (draw.random((N, N)) < 0.6), 1)
    matrix = matrix + matrix.T
    nodes = draw.normal(size=(N, NODE_FEATURES))
    edges = draw.normal(size=(N, N, EDGE_FEATURES)) * (matrix != 0)[..., None]
    return GraphBatch.of([matrix], [nodes], [edges], dtype=torch.float64), matrix, nodes, edges


def network(grammar: str, preset: str | Preset, **options: Any) -> GrammarGNN:
    torch.manual_seed(1)
    model = GrammarGNN(
        grammar, NODE_FEATURES, EDGE_FEATURES, width=4, layers=3, preset=preset, **options
    )
    model = model.double()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith("bias"):  # some start at zero, which would hide them
                value.copy_(torch.randn_like(value) * 0.3)
    return model


@pytest.mark.parametrize("preset", ["paper", "official"])
def test_g2n2(preset: str) -> None:
    model = network("r-G_L3", preset, decision=(7, 5), out=2)
    batch, matrix, nodes, edges = example()
    c = np.concatenate([np.eye(N)[..., None], matrix[..., None], edges], axis=-1)
    h = np.concatenate([nodes, np.ones((N, 1))], axis=-1) if preset == "paper" else nodes
    for number, layer in enumerate(model.layers):
        if preset == "paper":
            c, h = paper_layer(layer, c, h)
        else:
            c, h = official_layer(layer, relu(c) if number else c, relu(h) if number else h)
    memories, _ = model.final(batch.adjacency, batch.nodes, batch.edges, batch.mask)
    np.testing.assert_allclose(memories["M"][0].detach(), c, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(memories["V"][0].detach(), h, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model(batch)[0].detach(), decided(model, c, h), rtol=1e-12)


def test_paper_shapes() -> None:
    """Selectors without bias, b = S of the layer written, hidden twice the input, with bias."""
    model = network("r-G_L3", "paper")
    for layer in model.layers:
        for update, rules in ((layer.updates["M"], 3), (layer.updates["V"], 1)):
            assert len(update.steps) == rules
            for step in update.steps:
                for select in step.selectors:
                    (part,) = select.maps
                    assert part.bias is None
                    assert part.out_features == 4
            first, second = mixer(update)
            assert first.out_features == 2 * first.in_features
            assert first.bias is not None
            assert second.bias is not None


def test_ppgn_block() -> None:
    """Two MLPs with ReLU after each of their two maps, a product, and one map of input ‖ product."""
    model = network("PPGN", "ppgn", decision=(5,))
    batch, matrix, nodes, edges = example()
    features = np.zeros((N, N, NODE_FEATURES))
    for i in range(N):
        features[i, i] = nodes[i]
    value = np.concatenate(
        [np.eye(N)[..., None], matrix[..., None], edges, features], axis=-1
    )  # PPGN has no node memory: features stand on the diagonal
    for layer in model.layers:
        block = layer.updates["M"]
        (a, b), (c, d) = selectors(block, "MM")
        left = relu(linear(b, relu(linear(a, value))))
        right = relu(linear(d, relu(linear(c, value))))
        (last,) = mixer(block)
        value = linear(last, np.concatenate([value, matrix_product(left, right)], axis=-1))
    memories, _ = model.final(batch.adjacency, batch.nodes, batch.edges, batch.mask)
    np.testing.assert_allclose(memories["M"][0].detach(), value, rtol=1e-12, atol=1e-12)
    off = [value[i, j] for i in range(N) for j in range(N) if i != j]
    pooled = np.concatenate([np.max([value[i, i] for i in range(N)], axis=0), np.max(off, axis=0)])
    first, second = (part for part in model.readout.decision if hasattr(part, "weight"))
    expected = linear(second, relu(linear(first, pooled)))
    np.testing.assert_allclose(model(batch)[0].detach(), expected, rtol=1e-12)


def test_gnnml1() -> None:
    """`H W₁ + A H W₂ + H W₃ ⊙ H W₄`, with the maps of the last two apart."""
    plain = Preset("one map", hidden=0, mixer_bias=False)
    torch.manual_seed(0)
    model = GrammarGNN("GNNML1", NODE_FEATURES, width=4, layers=2, preset=plain).double()
    draw = np.random.default_rng(3)
    batch, matrix, h, _ = example()
    h = np.concatenate([h, np.ones((N, 1))], axis=-1)
    batch = GraphBatch.of([matrix], [h[:, :-1]], dtype=torch.float64)
    for layer in model.layers:
        update = layer.updates["V"]
        w1, w2, w3, w4 = draw.normal(size=(4, h.shape[1], 4))
        ((third,), (fourth,)), ((second,),) = (
            selectors(update, "(V_c⊙V_c)"),
            selectors(update, "AV_c"),
        )
        (last,) = mixer(update)
        with torch.no_grad():
            for part, weight in ((second, w2), (third, w3), (fourth, w4)):
                part.weight.copy_(torch.tensor(weight.T))
            last.weight.copy_(torch.tensor(np.concatenate([w1, np.eye(4), np.eye(4)]).T))
        h = h @ w1 + matrix @ h @ w2 + (h @ w3) * (h @ w4)
    memories, _ = model.final(batch.adjacency, batch.nodes, batch.edges, batch.mask)
    np.testing.assert_allclose(memories["V"][0].detach(), h, rtol=1e-12, atol=1e-12)
