"""Random networks of a grammar against its WL test, on all graphs of up to six nodes at once.

Two questions for every grammar, preset, read-out, choice of pair biases and depth: does a network
ever tell graphs apart that the test merges (it must not), and do a few random networks together
tell apart all that the test does. Networks are compared by the features before the decision layers,
in float64, with a margin over what relabelling the nodes changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray

from g2n2.compiler.plan import NetworkPlan
from g2n2.compiler.presets import find_preset
from g2n2.errors import LoweringError
from g2n2.grammars.grammar import Grammar
from g2n2.graphs import adjacency
from g2n2.language.sorts import M
from g2n2.nn.model import GrammarGNN
from g2n2.power.grammar_test import grammar_test

WIDTH = 16
AT_ONCE = 3
MARGIN = 100.0
FLOOR = 4096 * np.finfo(np.float64).eps
"""A gap must exceed the margin times the noise plus this share of the numbers' size."""
REAL = 1e-9
"""A gap between graphs of one class counts against the test above this share of the largest number:
rounding in deep networks stays below it."""

READOUTS = ("grammar", "pooled")
MOST_LAYERS = 4

Array = NDArray[Any]


@cache
def small_graphs(most: int = 6) -> list[Array]:
    return [adjacency(g) for g in nx.graph_atlas_g() if 2 <= len(g) <= most]


@cache
def batch(most: int = 6) -> tuple[torch.Tensor, ...]:
    """All graphs and a relabelled copy of each, padded: adjacency, nodes, edges, mask."""
    graphs = small_graphs(most)
    rng = np.random.default_rng(1)
    stacked = np.zeros((2 * len(graphs), most, most))
    mask = np.zeros((2 * len(graphs), most), dtype=bool)
    for index, graph in enumerate(graphs):
        n = len(graph)
        order = rng.permutation(n)
        stacked[index, :n, :n] = graph
        stacked[len(graphs) + index, :n, :n] = graph[np.ix_(order, order)]
        mask[[index, len(graphs) + index], :n] = True
    empty = torch.zeros(2 * len(graphs), most, most, 0, dtype=torch.float64)
    return torch.from_numpy(stacked), empty[:, 0], empty, torch.from_numpy(mask)


@cache
def pairs(most: int = 6) -> tuple[Array, Array]:
    """All pairs of graphs of equal size."""
    sizes = np.array([len(graph) for graph in small_graphs(most)])
    first, second = np.triu_indices(len(sizes), 1)
    same = sizes[first] == sizes[second]
    return first[same], second[same]


EVERY = np.arange(len(small_graphs()))


@dataclass(frozen=True)
class Setting:
    """One kind of network of a grammar."""

    preset: str
    readout: str
    pair_bias: bool
    layers: int

    def __str__(self) -> str:
        bias = "" if self.pair_bias else ", no pair biases"
        return f"{self.preset}, {self.readout} read-out, {self.layers} layers{bias}"


@dataclass
class Outcome:
    """What the networks of one setting told apart.

    Attributes:
        name: The grammar's.
        wanted: How many pairs the test tells apart.
        left: How many of them no network did.
        networks: How many networks were tried.
        above: Pairs a network told apart and the test does not.
        largest: The largest gap within a class, against the largest number there.
    """

    name: str
    setting: Setting
    wanted: int = 0
    left: int = 0
    networks: int = 0
    above: list[tuple[int, int]] = field(default_factory=list)
    largest: float = 0.0


@dataclass(frozen=True)
class Trial:
    """One random network: its seed, and what is changed of the preset to see more.

    Attributes:
        kinks: Put the kinks of the MLPs between entries of the graphs not told apart so far. Random
            kinks often lie where no entry does, and the MLP is then linear on the graphs at hand.
    """

    seed: int
    activation: str = ""
    scale: float = 1.0
    width: int = WIDTH
    kinks: bool = False


def trials(more: int) -> Iterator[Trial]:
    """Three networks as they come, then others: kinks at the data, SiLU, larger weights."""
    yield from (Trial(seed) for seed in range(AT_ONCE))
    for seed in range(AT_ONCE, AT_ONCE + more):
        scale = (1.0, 2.0, 3.0)[seed // 3 % 3]
        yield (
            Trial(seed, kinks=True),
            Trial(seed, scale=scale, width=2 * WIDTH, kinks=True),
            Trial(seed, "silu", scale, 2 * WIDTH),
        )[seed % 3]


def network(grammar: Grammar, setting: Setting, trial: Trial, graphs: Array = EVERY) -> GrammarGNN:
    """A random network, biases drawn too: those of `modern` start at zero.

    `graphs` are those between whose entries kinks are put, where the trial says so.
    """
    preset = find_preset(setting.preset)
    if trial.activation:
        preset = replace(preset, activation=trial.activation)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(trial.seed)
        model = GrammarGNN(
            grammar,
            width=trial.width,
            layers=setting.layers,
            preset=preset,
            readout=setting.readout,
            pooling=None if setting.readout == "grammar" else "sum",
            pair_bias=setting.pair_bias,
            decision=(2,),
            backend="reference" if trial.kinks else "plain",
        ).double()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("bias"):
                    parameter.normal_(std=0.3)
                parameter.mul_(trial.scale)
            if trial.kinks:
                _place_kinks(model, graphs)
    return model.eval()


def _place_kinks(model: GrammarGNN, graphs: Array) -> None:
    """Change every hidden unit so that it is zero midway between two entries of one of the graphs."""
    chosen = torch.from_numpy(graphs)

    def between(part: torch.nn.Linear, args: tuple[torch.Tensor]) -> None:
        entries = args[0].reshape(len(args[0]), -1, part.in_features)
        graph = chosen[torch.randint(len(chosen), (part.out_features,))]
        # Of two entries drawn, a zero one is most often padding: the other then stands for both.
        first, second = entries[graph, torch.randint(entries.shape[1], (2, part.out_features))]
        second = torch.where((second != 0).any(1, keepdim=True), second, first)
        first = torch.where((first != 0).any(1, keepdim=True), first, second)
        if part.bias is not None:
            part.bias.copy_(-(part.weight * (first + second) / 2).sum(1))
            return
        lengths = [each.norm(dim=1, keepdim=True).clamp(min=1e-12) for each in (first, second)]
        middle = first / lengths[0] + second / lengths[1]
        share = (part.weight * middle).sum(1) / (middle * middle).sum(1).clamp(min=1e-12)
        part.weight.sub_(share[:, None] * middle)

    handles = [
        update.mixer[0].register_forward_pre_hook(between)
        for layer in model.layers
        for update in layer.updates.values()
    ]
    model.final(*batch())
    for handle in handles:
        handle.remove()


def classes_of_test(plan: NetworkPlan, rounds: int, most: int = MOST_LAYERS) -> Array:
    """The classes the WL test of a plan gives to the graphs after some rounds, of `most` that are asked for."""
    options = plan.test_options()
    last = options.last_functions
    history = _history(
        plan.test_grammar(),
        tuple(options.functions.items()),
        None if last is None else tuple(last.items()),
        options.inputs,
        most,
    )
    return history[rounds]


@cache
def _history(
    grammar: Grammar, functions: Any, last: Any, inputs: Any, rounds: int
) -> tuple[Array, ...]:
    found = grammar_test(
        grammar,
        small_graphs(),
        rounds=rounds,
        functions=dict(functions),
        last_functions=dict(last) if last else None,
        inputs=inputs,
    )
    return found.graph_history


def outcomes(
    grammar: Grammar,
    presets: Sequence[str] = ("paper", "modern"),
    layers: Sequence[int] = (1, 2),
    more: int = 12,
    readouts: Sequence[str] = READOUTS,
) -> Iterator[Outcome]:
    """Run the networks of a grammar; settings that cannot be compiled are left out."""
    has_pairs = any(rule.head == M for rule in grammar.rules)
    for preset in presets:
        for pair_bias in (True, False) if has_pairs else (True,):
            for depth in layers:
                settings = [Setting(preset, r, pair_bias, depth) for r in readouts]
                yield from _same_layers(grammar, settings, more, max(layers))


def _same_layers(
    grammar: Grammar, settings: Sequence[Setting], more: int, most: int
) -> list[Outcome]:
    """Networks that differ in their read-out only: the layers are run once for all of them."""
    name = grammar.name or str(grammar)
    found: dict[Setting, Outcome] = {}
    unseen: dict[Setting, Array] = {}
    classes: dict[Setting, Array] = {}
    plans: dict[Setting, NetworkPlan] = {}
    first, second = pairs()
    for trial in trials(more):
        models: dict[Setting, GrammarGNN] = {}
        open_pairs = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *unseen.values()]))
        graphs = np.unique([first[open_pairs], second[open_pairs]])
        for setting in settings:
            if setting in found and not len(unseen[setting]):
                continue
            try:
                models[setting] = network(grammar, setting, trial, graphs)
            except LoweringError:
                continue
        for setting, model in list(models.items()):
            if setting not in found:
                plans[setting] = model.plan
                classes[setting] = classes_of_test(model.plan, setting.layers, most)
                apart = classes[setting][first] != classes[setting][second]
                unseen[setting] = np.flatnonzero(apart)
                found[setting] = Outcome(name, setting, len(unseen[setting]))
            elif model.plan.functions() != plans[setting].functions() or (
                trial.activation and "zero" in model.plan.functions().values()
            ):
                del models[setting]  # SiLU without biases is another kind of function
        features = _features(models)
        for setting, values in features.items():
            outcome = found[setting]
            outcome.networks += 1
            _count_above(outcome, values, classes[setting])
            unseen[setting] = _still_unseen(values, unseen[setting])
            outcome.left = len(unseen[setting])
        if not any(len(left) for left in unseen.values()):
            break
    return list(found.values())


def _features(models: dict[Setting, GrammarGNN]) -> dict[Setting, Array]:
    """What the decision layers read, `[graphs and copies, channels]`."""
    found: dict[Setting, Array] = {}
    memories: Any = None
    runner: GrammarGNN | None = None
    *_, mask = batch()
    with torch.no_grad():
        for setting, model in models.items():
            if runner is None or not _same_weights(runner, model):
                memories, constants = model.final(*batch())
                runner = model
            found[setting] = model.readout.features(memories, mask, constants).numpy()
    return found


def _same_weights(one: GrammarGNN, other: GrammarGNN) -> bool:
    first, second = one.layers.state_dict(), other.layers.state_dict()
    return first.keys() == second.keys() and all(
        first[key].shape == second[key].shape and torch.equal(first[key], second[key])
        for key in first
    )


def _halves(features: Array) -> tuple[Array, Array]:
    """The features of the graphs, and how much relabelling changed each."""
    values, copies = np.split(features, 2)
    return values, np.abs(values - copies)


def _gap_exceeds(values: Array, noise: Array, i: Array, j: Array) -> Array:
    gap = np.abs(values[i] - values[j])
    needed = MARGIN * np.maximum(noise[i], noise[j])
    needed += FLOOR * np.maximum(np.abs(values[i]), np.abs(values[j])) + np.finfo(float).tiny
    with np.errstate(invalid="ignore"):
        return np.asarray((gap > needed) & np.isfinite(gap))


def _still_unseen(features: Array, unseen: Array) -> Array:
    """The pairs, of those given, that these features do not tell apart."""
    first, second = pairs()
    values, noise = _halves(features)
    left = [
        some[~_gap_exceeds(values, noise, first[some], second[some]).any(axis=1)]
        for some in np.array_split(unseen, max(1, len(unseen) // 4000))
    ]
    return np.concatenate(left) if left else unseen


def _count_above(outcome: Outcome, features: Array, classes: Array) -> None:
    first, second = pairs()
    merged = np.flatnonzero(classes[first] == classes[second])
    if not len(merged):
        return
    values, noise = _halves(features)
    scale = np.abs(values).max(axis=0) + np.finfo(float).tiny
    for some in np.array_split(merged, max(1, len(merged) // 4000)):
        i, j = first[some], second[some]
        relative = np.abs(values[i] - values[j]) / scale
        outcome.largest = max(outcome.largest, float(np.nanmax(relative, initial=0.0)))
        real = (_gap_exceeds(values, noise, i, j) & (relative > REAL)).any(axis=1)
        outcome.above += list(zip(i[real].tolist(), j[real].tolist(), strict=True))
