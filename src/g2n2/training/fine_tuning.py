"""Training that starts from a trained network: `g2n2 train mine.csv --from RUN --freeze 2`.

The network keeps its grammar, layers and weights. Input columns are matched by name: those it does
not know start with weight 0. Outputs are matched by the names of the targets and rescaled to the
new targets; if one of them is new, the last decision layer starts anew.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..data.distances import distance_width
from ..data.graph_set import GraphSet
from ..data.readers.tables import shortened
from ..data.reading import holds_molecules
from ..described import counted
from ..errors import DataError
from ..language.sorts import Sort
from ..nn.files import load
from ..nn.model import GrammarGNN
from .config import RunConfig, names_dataset, rules_of
from .run import Run, pretrained_names, run_path
from .run_folder import BEST
from .setup import Parts, distance_kinds
from .task import Scaling, Task

NETWORK = (
    "grammar",
    "rules",
    "baseline",
    "preset",
    "width",
    "layers",
    "readout",
    "pooling",
    "functions",
    "pair_bias",
    "pair_norm",
    "marks",
    "trunk",
    "decision",
    "context",
)
"""Settings that the network to start from decides."""

Channel = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Start:
    """A trained network, and the run it comes from, if it is known."""

    name: str
    model: GrammarGNN
    run: Run | None

    @classmethod
    def find(cls, name: str) -> Start:
        """The network of a run folder, a file or a name; a DataError if there is none."""
        path = run_path(name)
        if path.name == BEST and (path.parent / "config.json").is_file():
            path = path.parent
        if os.path.isfile(path):
            return cls(name, load(path), None)
        if not os.path.isdir(path):
            raise DataError(
                f"no run folder or network {name!r} to start from: check the path; by name there "
                f"are {', '.join(pretrained_names())}"
            )
        run = Run(path, "cpu")
        if run.config.baseline or not isinstance(run.model, GrammarGNN):
            raise DataError(
                f"{name} is a run of the baseline {run.config.baseline}; only a network of a "
                "grammar can be started from"
            )
        return cls(name, run.model, run)

    def settings(self, config: RunConfig) -> RunConfig:
        """The config of a run that starts here; a DataError if it asks for another network."""
        plan, options = self.model.plan, self.model.options
        width = options["width"]
        inherited: dict[str, Any] = {
            **{name: getattr(self.run.config if self.run else config, name) for name in NETWORK},
            "grammar": plan.grammar.name or plan.grammar.in_short,
            "rules": rules_of(plan.grammar),
            "width": width if isinstance(width, int) else max(width.values()),
            "layers": len(plan.layers),
            "preset": plan.preset.name,
        }
        default = {field.name: field.default for field in fields(RunConfig)}
        asked = {name: getattr(config, name) for name in NETWORK}
        if others := [k for k, v in asked.items() if v != default[k] and v != inherited[k]]:
            raise DataError(
                f"the network comes from {self.name}: leave out {', '.join(others)}, or train "
                "from the beginning"
            )
        if self.run is not None and self.run.trained_on.positions:
            inherited["distance"] = self.run.config.effective_recipe().distance
        hydrogens = self.run is not None and self.run.reading_of_training.get("hydrogens")
        by_path = not names_dataset(config.dataset)
        if hydrogens and by_path and holds_molecules(config.dataset, config.options):
            inherited["options"] = {"hydrogens": True, **config.options}
        return replace(config, **inherited)

    def network(self, config: RunConfig, parts: Parts) -> tuple[GrammarGNN, list[str]]:
        """The network for these graphs and targets, and what there is to say about it."""
        source, graphs, task = self.model, parts.graphs, parts.task
        kinds = distance_kinds(config, graphs)
        grammar = source.plan.grammar
        given = {
            "node_features": graphs.node_features.shape[1],
            "edge_features": graphs.edge_features.shape[1] + sum(map(distance_width, kinds)),
            "out": task.out,
            "task": graphs.level,
            "directed": graphs.directed and grammar.has_matrices,
        }
        torch.manual_seed(config.seed)
        options = {**source.options, **given}
        model = GrammarGNN(grammar, **options, typical_size=source.typical_size)
        weights = dict(source.state_dict())
        mine, theirs = self._columns(graphs, kinds)
        sentences = []
        if mine != theirs or options["directed"] != source.options["directed"]:
            weights |= self._embeddings(model, mine, theirs)
            known = [name[-1] for what in ("X", "E") for name in theirs[what]]
            if known and not any({*mine[what]} & {*theirs[what]} for what in ("X", "E")):
                raise DataError(
                    f"no input column of {graphs.name} is known to {self.name}, which was trained "
                    f"on {shortened(known)}: give columns of these names, or leave out --from to "
                    "train from the beginning"
                )
            new = [name for what in ("X", "E") for name in mine[what] if name not in theirs[what]]
            if new and config.freeze:
                raise DataError(
                    f"{self.name} does not know the input columns "
                    f"{shortened(name[-1] for name in new)}, and freeze would keep their weights "
                    "at 0: leave out freeze, or these columns"
                )
            sentences.append(
                f"Input columns {self.name} does not know start with weight 0: "
                f"{shortened(name[-1] for name in new)}."
                if new
                else f"Some input columns of {self.name} are not in {graphs.name}."
            )
        head, sentence = self._head(model, parts.scaling, task)
        fresh = model.state_dict()
        last = {id(weight) for part in _last(model) for weight in part.parameters()}
        names = {name for name, weight in model.named_parameters() if id(weight) in last}
        try:
            model.load_state_dict({**weights, **{name: fresh[name] for name in names}, **head})
        except RuntimeError as error:
            raise DataError(
                f"the network of {self.name} does not fit {graphs.name}: "
                f"{str(error).splitlines()[-1].strip()}"
            ) from None
        frozen = ""
        if config.freeze:
            before = min(config.freeze, len(model.trunk))
            marked = f" ({before} before the marks)" if before else ""
            frozen = f", {counted(config.freeze, 'layer')}{marked} frozen"
        first = f"The weights start from {self.name}{frozen}; {sentence}."
        return model, [first, *sentences]

    def _columns(
        self, graphs: GraphSet, kinds: tuple[str, ...]
    ) -> tuple[dict[str, list[Channel]], dict[str, list[Channel]]]:
        """Channels of node and edge features of the new graphs, and of those trained on."""
        inputs = self.model.plan.inputs
        nodes, edges = inputs.node_features, inputs.edge_features
        mine = {
            "X": _named("X", graphs.node_names, graphs.node_features.shape[1]),
            "E": [
                *_named("E", graphs.edge_names, graphs.edge_features.shape[1]),
                *_distances(kinds),
            ],
        }
        if self.run is None:  # a file has no names: the same number of columns are the same ones
            counts = {"X": nodes, "E": edges}
            same = {what: len(mine[what]) == count for what, count in counts.items()}
            return mine, {
                what: mine[what] if same[what] else _named(what, (), count)
                for what, count in counts.items()
            }
        before = self.run.trained_on
        trained = self.run.config.effective_recipe().distance if before.positions else ()
        edge_channels = _named("E", before.edge_names, before.edge_features)
        return mine, {
            "X": _named("X", before.node_names, nodes),
            "E": [*edge_channels, *_distances(trained)][:edges],
        }

    def _embeddings(
        self, model: GrammarGNN, mine: dict[str, list[Channel]], theirs: dict[str, list[Channel]]
    ) -> dict[str, Tensor]:
        """Weights of the embeddings with the columns of known channels, 0 for the others."""
        if self.run is None or not model.embeddings or model.trunk_embeddings:
            raise DataError(
                f"the input columns are not those {self.name} was trained on, and its network has "
                "no embedding whose columns could be matched by name: give the same columns"
            )
        weights = {}
        for sort, part in model.plan.embeddings:
            places = {c: i for i, c in enumerate(_channels(self.model, sort, theirs))}
            before = self.model.get_parameter(f"embeddings.{sort.letter}.weight")
            weight = before.new_zeros(part.width_out, part.width_in)
            for place, channel in enumerate(_channels(model, sort, mine)):
                if channel in places:
                    weight[:, place] = before[:, places[channel]]
            weights[f"embeddings.{sort.letter}.weight"] = weight.detach()
        return weights

    def _head(
        self, model: GrammarGNN, scaling: Scaling, task: Task
    ) -> tuple[dict[str, Tensor], str]:
        """The last decision layer for the new targets, empty if it starts anew, and a sentence."""
        anew = "the last decision layer starts anew"
        if self.run is None:
            return {}, anew
        before, old = self.run.task, self.run.trained_on.scaling
        rows = {(c.name.lower(), c.kind, c.classes): i for i, c in enumerate(before.columns)}
        keys = [(c.name.lower(), c.kind, c.classes) for c in task.columns]
        new = [c.name for c, key in zip(task.columns, keys, strict=True) if key not in rows]
        if new or scaling.references or old.references:
            return {}, f"{anew}" + (f", as {', '.join(new)} is new" if new else "")
        chosen = [rows[key] for key in keys]
        if task.kind == "multiclass":
            chosen = list(range(task.out))
        factor, shift = torch.ones(task.out), torch.zeros(task.out)
        if task.kind == "regression":
            was, now = (torch.tensor(s.deviation, dtype=torch.float64) for s in (old, scaling))
            mean, centre = (torch.tensor(s.mean, dtype=torch.float64) for s in (old, scaling))
            factor = was[chosen] / now
            shift = (mean[chosen] - centre) / now
        head: dict[str, Tensor] = {}
        places = {id(part): name for name, part in model.named_modules()}
        for number, (part, source) in enumerate(zip(_last(model), _last(self.model), strict=True)):
            name, rest = places[id(part)], (shift if number == 0 else torch.zeros_like(shift))
            scale = factor.to(source.weight)
            head[f"{name}.weight"] = source.weight[chosen].detach() * scale[:, None]
            if source.bias is not None:
                bias = source.bias[chosen].detach() * scale
                head[f"{name}.bias"] = bias + rest.to(source.bias)
        return head, "outputs are those of the targets of the same names"


def freeze(model: nn.Module, layers: int) -> None:
    """Keep the first layers, and the embeddings they read, as they are; a trunk is first."""
    if not layers:
        return
    assert isinstance(model, GrammarGNN), "only a network of a grammar is started from"
    every = [*model.trunk, *model.layers]
    if layers > len(every):
        raise DataError(f"freeze is {layers}, and the network has {counted(len(every), 'layer')}")
    frozen = [model.trunk_embeddings, *every[:layers]]
    if layers > len(model.trunk):
        frozen.append(model.embeddings)
    for part in frozen:
        part.requires_grad_(False)


def _last(model: GrammarGNN) -> list[nn.Linear]:
    """The linear maps that end in the outputs: of the decision layers, and beside them."""
    last = model.readout.decision[-1]
    assert isinstance(last, nn.Linear), "decision layers end in a linear map"
    beside = model.readout.straight
    return [last, *([beside] if isinstance(beside, nn.Linear) else [])]


def _named(what: str, names: Any, width: int) -> list[Channel]:
    column_names = list(names) if len(names) == width else [f"column {i + 1}" for i in range(width)]
    return [(what, name) for name in column_names]


def _distances(kinds: tuple[str, ...]) -> list[Channel]:
    return [("E", kind, f"{kind} {i + 1}") for kind in kinds for i in range(distance_width(kind))]


def _channels(model: GrammarGNN, sort: Sort, columns: Mapping[str, list[Channel]]) -> list[Channel]:
    """The channels of a first memory in their order."""
    groups = {**columns, "diag(X)": columns["X"]}
    names = model.plan.inputs.parts[sort]
    return [channel for name in names for channel in groups.get(name, [(name,)])]
