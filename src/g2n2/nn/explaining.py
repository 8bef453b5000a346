"""Which words of its grammar a network's output follows, on given graphs.

Candidates are the words up to a size, and the formula written into the network if there is one.
They are chosen greedily: each time the word that explains most of what is left of the output's
variance, after the part it shares with the words chosen before is taken away. A share is a share of
the variance on these graphs, no more: on others the network may follow other words.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..data.batch import GraphBatch
from ..errors import DataError
from ..grammars.words import enumerate_words, parse_word
from ..graphs import GraphLike
from ..language.evaluation import FUNCTION_VALUES, evaluate
from ..language.patterns import Assumption
from ..language.printing import to_text
from ..language.sorts import M, S, Sort, V
from ..language.terms import IDENTITY, ONE, Apply, Leaf, Term, apply
from .model import GrammarGNN

Numbers = npt.NDArray[np.float64]

RELU = {"f": FUNCTION_VALUES["relu"]}
"""What networks take for the f of a fragment."""
FEATURE_SIZE = 4
"""Operations of a word that is tried with features too."""
SHUFFLES = 20
"""How often the outputs are shuffled to see what a word explains by chance."""
NEGLIGIBLE = 1e-6
"""Share below which no further word is listed; float32 resolves no less."""


@dataclass(frozen=True)
class WordShare:
    """A word and the share of the output's variance it adds to the words before it."""

    word: Term
    share: float


@dataclass(frozen=True)
class OutputShares:
    """The words one output follows.

    Attributes:
        words: Largest addition first.
        constant: The output's value where it is the same on all graphs; then there are no words.
        chance: The share the best single word has of the same outputs in random order.
    """

    words: tuple[WordShare, ...]
    constant: float | None
    chance: float

    @property
    def total(self) -> float:
        return sum(word.share for word in self.words)


@dataclass(frozen=True)
class Explanation:
    """The words each output of a network follows, on given graphs.

    Attributes:
        outputs: One entry for each output of the network.
        values: How many numbers each output has on the graphs.
        candidates: How many words were tried.
        notes: What the shares do not cover.
    """

    outputs: tuple[OutputShares, ...]
    values: int
    candidates: int
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.candidates} words against {self.values} values of each output"]
        for number, output in enumerate(self.outputs):
            lines.append(f"output {number}" if len(self.outputs) > 1 else "output")
            if output.constant is not None:
                lines.append(f"   constant: {output.constant:.6g}")
                continue
            lines += [f"  {word.share:6.1%}  {to_text(word.word)}" for word in output.words]
            rest = max(0.0, 1.0 - output.total)
            lines.append(f"  {rest:6.1%}  not explained; one word by chance: {output.chance:.1%}")
        return "\n".join([*lines, *self.notes])


def explain(
    model: GrammarGNN,
    graphs: GraphBatch | GraphLike | Iterable[GraphLike],
    size: int = 6,
    top: int = 5,
    limit: int = 300,
    features: Sequence[str] = (),
) -> Explanation:
    """The words with the largest share of the output's variance on the given graphs.

    >>> from g2n2 import GrammarGNN, explain, write_formula
    >>> model = GrammarGNN("r-G_L3", width=4, layers=2, preset="paper").double()
    >>> needed = write_formula(model, "1ᵀ(A²⊙A)1")
    >>> explain(model, ["C~", "C^", "Bw", "Bg", "D~{"], top=1).outputs[0].words[0].share > 0.999
    True

    Sentences for the task `graph`, vectors for `node`, matrices for `edge`.

    Args:
        model: Any network.
        graphs: A batch, a PyG `Data` or `Batch`, or graphs without features; or a single graph,
            whose nodes or pairs the task compares.
        size: The most operations a word may apply.
        top: The most words for each output.
        limit: The most words to try.
        features: Names of the node features, to try words that have a feature `x[name]` in the
            place of one 1 too.

    Raises:
        DataError: They are no graphs, there are fewer than two values, so that nothing varies, or
            no word to try.
    """
    if not hasattr(model, "parameters"):
        raise DataError(
            f"got {type(model).__name__}, expected a network; that of a run is run.model, and "
            "g2n2 explain RUN explains its predictions"
        )
    weight = next(model.parameters())
    batch = _batch(graphs).to(weight.device, weight.dtype)
    sort = model.plan.readout.sort
    with torch.no_grad():
        results = model(batch)
    outputs = np.concatenate([_real(results[b], mask, sort) for b, mask in enumerate(batch.mask)])
    if len(outputs) < 2:
        raise DataError("one value has no variance to share out: give more graphs")
    words, columns, notes = _tried(model, batch, sort, size, limit, features)
    if not words:
        raise DataError(f"no word of {size} operations or fewer to try: raise size or limit")
    return Explanation(
        tuple(_shares(words, columns, output, top) for output in outputs.T),
        len(outputs),
        len(words),
        tuple(notes),
    )


def _batch(graphs: Any) -> GraphBatch:
    """The graphs as a batch, one that stands alone too."""
    if isinstance(graphs, GraphBatch):
        return graphs
    if hasattr(graphs, "edge_index"):
        return GraphBatch.from_pyg(graphs)
    text = isinstance(graphs, str | bytes | os.PathLike)
    # A networkx graph and a matrix would be taken apart into nodes and rows.
    if text or hasattr(graphs, "adj") or len(getattr(graphs, "shape", ())) == 2:
        return GraphBatch.of([graphs])
    if not isinstance(graphs, Iterable) or isinstance(graphs, Mapping):
        raise DataError(
            f"graphs: got {type(graphs).__name__}, expected a list of graphs or a GraphBatch"
        )
    return GraphBatch.of(list(graphs))


def _tried(
    model: GrammarGNN,
    batch: GraphBatch,
    sort: Sort,
    size: int,
    limit: int,
    features: Sequence[str],
) -> tuple[list[Term], Numbers, list[str]]:
    """The words, the value of each on every entry of every graph, and what is left out."""
    notes = []
    if model.plan.inputs.node_features or model.plan.inputs.edge_features:
        of, owed = ("A", "features") if not features else ("A and x", "other features")
        notes.append(f"Words are of {of} alone: what the output owes to {owed} is not explained.")
    values_of = _values(model, batch, features)
    texts = model.formula.split(";") if model.formula else []
    formulas = [parse_word(model.plan.grammar, text) for text in texts]
    words, rows = [], []
    plain = list(_words(model, sort, size, limit, batch.directed))
    with_features = [
        variant
        for name in features
        for word in plain
        if word.operations <= FEATURE_SIZE
        for variant in _with_feature(word, Leaf(f"x[{name}]", V))
    ]
    for word in (*formulas, *plain, *with_features):
        try:
            values = np.concatenate([evaluate(word, *given, RELU).ravel() for given in values_of])
        except DataError:  # only a formula names features
            notes.append(f"{to_text(word)} reads features and was not tried.")
            continue
        if np.isfinite(values).all():
            words.append(word)
            rows.append(values)
    return words, np.array(rows), notes


@torch.no_grad()
def _values(
    model: GrammarGNN, batch: GraphBatch, features: Sequence[str]
) -> list[tuple[Numbers, dict[str, Numbers]]]:
    """A, the supports and the features of each graph, as the evaluation of terms takes them."""
    constants = model.constants(batch.adjacency, batch.mask, batch.designed)
    named = ("A", *model.undefined, *model.defined)
    graphs = []
    for b, mask in enumerate(batch.mask):
        n = int(mask.sum())
        values = {name: _real(constants[name][b], mask, M).reshape(n, n) for name in named}
        if features:
            columns = _real(batch.nodes[b], mask, V)
            values |= {f"x[{name}]": columns[:, [k]] for k, name in enumerate(features)}
        graphs.append((values.pop("A"), values))
    return graphs


def _with_feature(term: Term, feature: Leaf) -> Iterator[Term]:
    """The word with a feature in the place of one of its 1, for each of them."""
    if term == ONE:
        yield feature
    elif isinstance(term, Apply) and not term.function:
        for k, argument in enumerate(term.args):
            for variant in _with_feature(argument, feature):
                args = (*term.args[:k], variant, *term.args[k + 1 :])
                yield Apply(term.op, args, term.sort)


def _words(model: GrammarGNN, sort: Sort, size: int, limit: int, directed: bool) -> Iterator[Term]:
    """Words of a sort; those of the other sort, summed or spread, where the grammar has none.

    A grammar without sentences is explained by those its pooled network adds.
    """
    grammar = model.plan.grammar
    if sort == S and not grammar.sentence_rules:
        grammar = model.plan.test_grammar()
    has = sort in grammar.variables
    source = sort if has else {V: M, M: V}[sort]
    assume: Assumption = "none" if directed else "symmetric"
    for word, _ in enumerate_words(grammar, source, size, assume, limit):
        if has:
            yield word
        elif sort == V:
            yield apply("matmul", word, ONE)
            yield apply("matmul", apply("hadamard", word, IDENTITY), ONE)
        else:
            yield apply("matmul", word, apply("transpose", ONE))
            yield apply("matmul", ONE, apply("transpose", word))


def _shares(words: list[Term], rows: Numbers, output: Numbers, top: int) -> OutputShares:
    """Greedy forward selection among orthogonalised words.

    Of words that explain equally much, up to rounding, the first is taken: the formula before any
    word, a smaller word before a larger one.
    """
    around = output - output.mean()
    if np.linalg.norm(around) <= NEGLIGIBLE * np.linalg.norm(output):
        return OutputShares((), float(output.mean()), 0.0)
    around = around / np.linalg.norm(around)
    free = _unit(rows - rows.mean(1, keepdims=True), np.linalg.norm(rows, axis=1))
    random = np.random.default_rng(0)
    chance = np.mean([np.max((free @ random.permutation(around)) ** 2) for _ in range(SHUFFLES)])
    chosen: list[WordShare] = []
    while len(chosen) < top:
        gains = (free @ around) ** 2
        if gains.max() < NEGLIGIBLE:
            break
        best = int(np.argmax(gains >= gains.max() * (1 - NEGLIGIBLE)))
        chosen.append(WordShare(words[best], float(gains[best])))
        direction = free[best].copy()
        free = _unit(free - np.outer(free @ direction, direction), np.ones(len(free)))
    return OutputShares(tuple(chosen), None, float(chance))


def _unit(rows: Numbers, scales: Numbers) -> Numbers:
    """Rows of length 1; a row that is nothing beside its scale is zero, not rounding blown up."""
    lengths = np.linalg.norm(rows, axis=1)
    kept = lengths > NEGLIGIBLE * scales
    return np.where(kept, 1.0 / np.where(kept, lengths, 1.0), 0.0)[:, None] * rows


def _real(values: Tensor, mask: Tensor, sort: Sort) -> Numbers:
    """`[entries, channels]` of one graph, without padding."""
    real = {S: lambda: values, V: lambda: values[mask], M: lambda: values[mask][:, mask]}[sort]()
    array: Numbers = real.reshape(-1, values.shape[-1]).double().cpu().numpy()
    return array
