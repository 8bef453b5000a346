"""RunConfig: everything a run depends on, from the command line, a TOML file or a run folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

from ..errors import DataError
from ..validation import MOST_LAYERS, MOST_WEIGHTS, MOST_WIDTH
from .recipes import Recipe, find_recipe

PRECISIONS = ("32", "tf32", "bf16", "64")
OVERRIDES = ("batch", "epochs", "rate", "decay", "ema", "dropout", "distance", "preset")
"""What a run may say in place of its recipe."""
POOLINGS = ("sum", "mean", "max")
FREE = ("data", "minutes", "device", "devices", "threads", "checkpoint_seconds")
"""Settings a run may be taken up with that are not those it was started with."""


@dataclass(frozen=True)
class RunConfig:
    """Settings of a run; None means what the recipe or the data says.

    Attributes:
        dataset: A known name (`g2n2 datasets`) or a path to the user's own graphs.
        target: Names of the targets to learn; all of them where empty.
        data: Folder in which known data sets are sought first.
        options: Options of the data set or reader (`track`, `features`, `smiles`, `id` …).
        split: `stored`, `random`, `scaffold`, `column:NAME`, `file:PATH`, `fold:3`; `auto` takes
            stored splits where the set has them, else random.
        limit: Use only so many graphs, drawn with the seed; 0 for all.
        references: Learn what is left of a target after fitted per-element values.
        extent: And after fitted sums of squared distances between elements; needs positions.
        grammar: A grammar's name, its rules, a file of them or a certificate, or a fragment, which
            stands for its reduced grammar.
        rules: The rules of that grammar, one by one; what the run is made of where they are there,
            so that it does not depend on a file or on what a name means later.
        baseline: A network that is no grammar (GIN, GCN, ChebNet) in place of the grammar.
        preset: What the grammar does not say; the recipe's, or the baseline's own, where None.
        width: Channels of every memory.
        layers: How many layers.
        readout: `grammar` for the rules of S, `pooled` for pooled memories joined by those rules;
            the preset's where None.
        pooling: How memories are pooled: `sum`, `mean` or `max`; the preset's where None.
        functions: `mlp` for an MLP on every memory, `free` only where it adds nothing to the words.
        pair_bias: Whether MLPs on M have biases; the preset's where None.
        decision: Hidden widths of the decision layers; the preset's where None.
        context: Append the pooled vector to nodes and edges.
        distance: Edge channels made of positions; the recipe's where None.
        recipe: `modern` or `paper`.
        batch: Graphs in a step.
        epochs: At most.
        passes: Times all training graphs are seen between two validations: an epoch.
        window: Batches of an epoch sorted by size together, which saves padding; 1 for batches by
            chance, 0 for as many as the set asks for.
        rate: Learning rate.
        decay: Weight decay, for the recipe `modern`.
        ema: Decay of the averaged weights that are evaluated; 0 for none.
        dropout: Share of what each decision layer reads that is left out in training.
        minutes: Stop after so many minutes of training, counted from where it is started or taken
            up again; 0 for no limit.
        seed: Of the weights, the split and the order of batches.
        device: `auto`, `cpu`, `cuda`.
        devices: Processes (one for each GPU, or for CPU workers).
        precision: `32`, `tf32`, `bf16` or `64`.
        threads: CPU threads; the machine's choice where 0.
        checkpoint_seconds: At most so long between two checkpoints.
    """

    dataset: str
    target: tuple[str, ...] = ()
    data: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    split: str = "auto"
    limit: int = 0
    references: bool = False
    extent: bool = False
    grammar: str = "r-G_L3"
    rules: tuple[str, ...] = ()
    baseline: str | None = None
    preset: str | None = None
    width: int = 64
    layers: int = 3
    readout: str | None = None
    pooling: str | None = None
    functions: str = "mlp"
    pair_bias: bool | None = None
    decision: tuple[int, ...] | None = None
    context: bool = False
    distance: tuple[str, ...] | None = None
    recipe: str = "modern"
    batch: int | None = None
    epochs: int | None = None
    passes: int = 1
    window: int = 0
    rate: float | None = None
    decay: float | None = None
    ema: float | None = None
    dropout: float | None = None
    minutes: float = 0.0
    seed: int = 0
    device: str = "auto"
    devices: int = 1
    precision: str = "32"
    threads: int = 0
    checkpoint_seconds: float = 60.0

    def effective_recipe(self) -> Recipe:
        """The recipe with this run's own settings in it."""
        own = {name: value for name in OVERRIDES if (value := getattr(self, name)) is not None}
        return replace(find_recipe(self.recipe), **own)

    def checked(self) -> RunConfig:
        """Refuse settings no run can have; else itself.

        Raises:
            DataError: Naming the setting, what was got and what is expected.
        """
        recipe = self.effective_recipe()
        for name, value, least, most in (
            ("batch", recipe.batch, 1, 10**6),
            ("epochs", recipe.epochs, 1, 10**7),
            ("passes", self.passes, 1, 10**6),
            ("window", self.window, 0, 10**9),
            ("width", self.width, 1, MOST_WIDTH),
            ("layers", self.layers, 1, MOST_LAYERS),
            *(("a width in decision", width, 1, MOST_WIDTH) for width in self.decision or ()),
            ("the number of decision layers", len(self.decision or ()), 0, MOST_LAYERS),
            ("devices", self.devices, 1, 4096),
            ("limit", self.limit, 0, 10**12),
            ("seed", self.seed, 0, 2**63 - 1),
            ("threads", self.threads, 0, 1024),
            ("minutes", self.minutes, 0, 10**7),
            ("checkpoint_seconds", self.checkpoint_seconds, 0, 10**7),
        ):
            if not value >= least:
                raise DataError(f"{name} must be at least {least}, got {value}")
            if not value <= most:
                raise DataError(f"{name} must be at most {most}, got {value}")
        if self.width**2 * self.layers > MOST_WEIGHTS:
            raise DataError(
                f"width {self.width} and layers {self.layers} ask for more than "
                f"{self.width**2 * self.layers} weights; at most {MOST_WEIGHTS} are allowed: "
                "take a smaller width or fewer layers"
            )
        if not 0 < recipe.rate < 10:
            raise DataError(f"rate must lie between 0 and 10, got {recipe.rate}")
        shares = ("decay", recipe.decay, 10), ("ema", recipe.ema, 1), ("dropout", recipe.dropout, 1)
        for name, share, below in shares:
            if not 0 <= share < below:
                raise DataError(f"{name} must be at least 0 and below {below}, got {share}")
        if self.decay and recipe.optimiser != "adamw":
            raise DataError(f"the recipe {recipe.name!r} has no weight decay; leave decay out")
        if self.precision not in PRECISIONS:
            raise DataError(f"precision is one of {', '.join(PRECISIONS)}, got {self.precision!r}")
        for name, choice, choices in (
            ("readout", self.readout, (None, "grammar", "pooled", "pooled-only", *POOLINGS)),
            ("pooling", self.pooling, (None, *POOLINGS)),
            ("functions", self.functions, ("mlp", "free")),
        ):
            if choice not in choices:
                known = ", ".join(x for x in choices if x and x not in ("pooled-only",))
                raise DataError(f"{name} is one of {known}, got {choice!r}")
        if self.device not in ("auto", "cpu", "cuda"):
            raise DataError(f"device is auto, cpu or cuda, got {self.device!r}")
        return self

    def as_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return asdict(self)

    @classmethod
    def completed(cls, said: Mapping[str, Any]) -> dict[str, Any]:
        """Settings once written down, as JSON gives them back.

        One that did not exist then had the value it has by default.
        """
        given = {**cls("").as_dict(), **respelled(said)}
        plain: dict[str, Any] = json.loads(json.dumps(given))
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "the configuration") -> RunConfig:
        """A config from plain types.

        Raises:
            DataError: An unknown setting or one of the wrong type; the message names the nearest.
        """
        known = {f.name: f for f in fields(cls)}
        made: dict[str, Any] = {}
        for name, value in respelled(values).items():
            if name not in known:
                close = get_close_matches(name, known, n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise DataError(f"{source} has no setting called {name!r}{hint}")
            made[name] = tuple(value) if isinstance(value, list) else value
            _check_type(name, made[name], str(known[name].type), source)
        if "dataset" not in made:
            raise DataError(f"{source} names no dataset")
        return cls(**made).checked()


def respelled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with `readout = "mean"`, as pooling was once asked for, under its present name.

    Raises:
        DataError: Pooling is asked for under both names.
    """
    made = dict(values)
    if made.get("readout") in POOLINGS:
        way = made.pop("readout")
        if made.get("pooling") not in (None, way):
            raise DataError(
                f"readout = {way!r} is the old spelling of pooling = {way!r}, and pooling is "
                f"{made['pooling']!r}: leave one of them out"
            )
        made["pooling"] = way
    return made


def as_then(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run folder, those from before rules of S were read out as what they meant."""
    if "pooling" in values:
        return dict(values)
    return {**respelled({"pooling": None, **values}), "readout": "pooled-only"}


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "tuple[str, ...]": (tuple,),
    "tuple[int, ...]": (tuple,),
    "Mapping[str, Any]": (dict,),
}


def _check_type(name: str, value: Any, annotation: str, source: str) -> None:
    wanted = annotation.removesuffix(" | None")
    if value is None and wanted != annotation:
        return
    fits = isinstance(value, _TYPES[wanted]) and (wanted == "bool") == isinstance(value, bool)
    if fits and wanted.startswith("tuple["):
        fits = all(isinstance(part, _TYPES[wanted[6:9]]) for part in value)
    if not fits:
        english = wanted.replace("tuple[", "a list of ").replace(", ...]", "")
        english = english.replace("Mapping[str, Any]", "a table")
        raise DataError(f"{name} in {source} should be {english}, got {value!r}")
