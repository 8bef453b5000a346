"""Settings of a run: `RunConfig`, recipes for what it leaves open, files and the command line."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ..compiler.presets import MODERN_BEFORE, PairNorm
from ..errors import DataError, guess
from ..grammars.catalogue import given_rules
from ..grammars.coercion import catalogue_grammar
from ..grammars.grammar import Grammar
from ..grammars.rules import ARROWS
from ..input_files import read_text_file
from ..validation import MOST_LAYERS, MOST_WEIGHTS, MOST_WIDTH

SMALLEST_BATCH = 8


@dataclass(frozen=True)
class Recipe:
    """How to train: optimiser, schedule, and the defaults of settings of `RunConfig`.

    Attributes:
        optimiser: The optimiser.
        schedule: `plateau` lowers the rate when validation stalls; `cosine` warms up and falls to
            zero.
        cpu_width: The width of a grammar with matrices on a CPU.
        cpu_rate: The learning rate of that narrower network.
        least_steps: Minimum number of steps of an epoch; the default batch is halved until it is
            reached.
        cpu_visits: Epochs times training graphs of such a run, so that more graphs mean fewer
            epochs; 0 for the epochs of other runs.
        cpu_epochs: Minimum number of epochs of such a run.
        warmup: Share of all steps in which the rate rises.
        factor: What `plateau` multiplies the rate by.
        patience: Epochs without progress that `plateau` waits for.
        least_rate: Where `plateau` stops.
        clip: Largest gradient norm; 0 for none.
        normalise: Whether targets are scaled to mean 0 and deviation 1.
    """

    name: str
    optimiser: Literal["adam", "adamw"] = "adam"
    rate: float = 1e-3
    schedule: Literal["plateau", "cosine"] = "plateau"
    width: int = 64
    cpu_width: int = 64
    cpu_rate: float = 1e-3
    batch: int = 32
    least_steps: int = 0
    epochs: int = 200
    cpu_visits: int = 0
    cpu_epochs: int = 1
    decay: float = 0.0
    warmup: float = 0.05
    factor: float = 0.9
    patience: int = 4
    least_rate: float = 1e-6
    ema: float = 0.0
    clip: float = 0.0
    normalise: bool = False
    dropout: float = 0.0
    distance: tuple[str, ...] = ("raw",)
    preset: str = "paper"


RECIPES: dict[str, Recipe] = {
    "paper": Recipe("paper"),  # the released script's settings; the paper states none
    "modern": Recipe(
        "modern",
        optimiser="adamw",
        schedule="cosine",
        cpu_width=32,
        cpu_rate=2e-3,
        batch=128,
        least_steps=40,
        epochs=100,
        cpu_visits=48_000,
        cpu_epochs=40,
        decay=1e-4,
        ema=0.999,
        clip=1.0,
        normalise=True,
        distance=("raw", "square", "rbf16"),
        preset="modern",
    ),
}
_EARLIER = {
    MODERN_BEFORE: replace(
        RECIPES["modern"],
        name=MODERN_BEFORE,
        preset=MODERN_BEFORE,
        cpu_width=64,
        cpu_rate=1e-3,
        least_steps=16,
        cpu_visits=0,
    )
}
OVERRIDES = ("width", "batch", "epochs", "rate", "decay", "ema", "dropout", "distance", "preset")
"""Settings of a run that replace those of its recipe."""
RANGES: dict[str, tuple[float, float]] = {
    "limit": (0, 10**12),
    "width": (1, MOST_WIDTH),
    "layers": (1, MOST_LAYERS),
    "trunk": (0, MOST_LAYERS),
    "batch": (1, 10**6),
    "epochs": (1, 10**7),
    "passes": (1, 10**6),
    "window": (0, 10**9),
    "freeze": (0, MOST_LAYERS),
    "minutes": (0, 10**7),
    "seed": (0, 2**63 - 1),
    "devices": (1, 4096),
    "threads": (0, 1024),
    "checkpoint_seconds": (0, 10**7),
}
"""Both ends are allowed."""
BELOW: dict[str, float] = {"rate": 10, "decay": 10, "ema": 1, "dropout": 1}
"""At least 0 (`rate` above it) and below this."""
POOLINGS = ("sum", "mean", "max")
CHOICES: dict[str, tuple[str, ...]] = {
    "preprocess": ("auto", "none"),
    "readout": ("grammar", "pooled", "pooled-only"),
    "pooling": POOLINGS,
    "functions": ("mlp", "free"),
    "pair_norm": get_args(PairNorm),
    "device": ("auto", "cpu", "cuda"),
    "precision": ("32", "tf32", "bf16", "64"),
}
CHANGEABLE = ("device", "devices", "minutes")
"""Settings a user may change when a run is resumed."""
FREE = ("data", "minutes", "device", "devices", "threads", "checkpoint_seconds")
"""Settings that may differ between a run and its checkpoint."""


@dataclass(frozen=True)
class RunConfig:
    """Settings of a run; None stands for the recipe's, the preset's or the data's value.

    Attributes:
        dataset: A known name (`g2n2 datasets`) or a path to your own graphs.
        target: Names of the targets to learn; all of them if empty.
        data: Folder that is searched first for known data sets.
        options: Options of the data set or reader (`track`, `features`, `smiles`, `id` …).
        split: `stored`, `random`, `scaffold`, `column:NAME`, `file:PATH`, `fold:3`; `auto` takes
            stored splits if the set has them, else random.
        limit: Maximum number of graphs, drawn with the seed; 0 for all.
        references: Subtract fitted per-element values from the targets.
        preprocess: `auto` gives nodes without features their degree as a class, and scales large
            node and edge features of your own graphs, both fitted on the training graphs; `none`
            leaves features as they are.
        extent: Also subtract fitted sums of squared distances between elements; needs positions.
        grammar: A grammar's name, its rules, a file of them or a certificate, or a fragment, which
            stands for its reduced grammar.
        rules: The rules of that grammar, recorded so that the run does not depend on a file or on
            what a name means later.
        baseline: A network that is no grammar (GIN, GCN, ChebNet, PPGN …) in place of the grammar.
        start: What to start from: a run folder, a network's file, or the name of a network that
            comes with g2n2 (`qm9`). It decides the network.
        freeze: How many of its first layers stay as they are, with the embedding before them;
            layers of a trunk are the first.
        preset: What the grammar does not determine: `modern`, `paper`, `official` or `ppgn`.
        width: Channels of every memory. The defaults of `width`, `batch` and `epochs` depend on the
            device, the grammar and the number of training graphs.
        layers: Number of layers.
        readout: `grammar` for the rules of S, `pooled` for pooled memories joined by the rules of S
            that pooling does not contain.
        pooling: `sum`, `mean` or `max`.
        functions: `mlp` for an MLP on every memory, `free` only where it adds nothing to the words.
        pair_bias: Whether MLPs on M have biases.
        pair_norm: How `modern` reads M: normalised for each `entry` or `graph`, or not (`none`).
        marks: Nodes that a grammar with marks (r-G_L3Σ) marks: `all`, `orbits`, `heavy`, or
            how many are drawn in training; `all` or a number for L3Σ (full).
        trunk: Layers before the marks, which all marked copies of a graph share.
        decision: Hidden widths of the decision layers.
        context: Append the pooled vector to nodes and edges.
        distance: Edge channels made of positions: `raw`, `square`, `inverse`, `rbf16`, `rbf32:6` …
        recipe: `modern` or `paper`.
        batch: Graphs in a step.
        epochs: Maximum number of epochs.
        passes: Passes over the training graphs in an epoch, that is between two validations.
        window: Batches of an epoch sorted by size together, which saves padding where batches are
            padded; 0 or 1 for random batches.
        rate: Learning rate.
        decay: Weight decay, for the recipe `modern`.
        ema: Decay of the averaged weights that are evaluated; 0 for none.
        dropout: Dropout before each decision layer.
        minutes: Time budget in minutes, counted from the start or the last resume; the learning
            rate schedule fits into it. 0 for no limit.
        seed: Seed of the weights, the split and the order of batches.
        device: `auto`, `cpu`, `cuda`.
        devices: Processes (one for each GPU, or CPU workers).
        precision: `32`, `tf32`, `bf16` or `64`.
        threads: CPU threads; the machine's choice if 0.
        checkpoint_seconds: Longest time between two checkpoints.
    """

    dataset: str
    target: tuple[str, ...] = ()
    data: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    split: str = "auto"
    limit: int = 0
    references: bool = False
    preprocess: str = "auto"
    extent: bool = False
    grammar: str = "r-G_L3"
    rules: tuple[str, ...] = ()
    baseline: str | None = None
    start: str | None = None
    freeze: int = 0
    preset: str | None = None
    width: int | None = None
    layers: int = 3
    readout: str | None = None
    pooling: str | None = None
    functions: str = "mlp"
    pair_bias: bool | None = None
    pair_norm: str | None = None
    marks: str = "all"
    trunk: int = 0
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
        """The recipe with this run's settings in it; a DataError if there is no such recipe."""
        recipes = RECIPES | _EARLIER
        if self.recipe not in recipes:
            raise DataError(f"no recipe is called {self.recipe!r}; known: {', '.join(recipes)}")
        given = {name: value for name in OVERRIDES if (value := getattr(self, name)) is not None}
        return replace(recipes[self.recipe], **given)

    def checked(self) -> RunConfig:
        """The config itself; a DataError if a run cannot have these settings."""
        recipe, widths = self.effective_recipe(), self.decision or ()
        settings = {**vars(self), **{name: getattr(recipe, name) for name in OVERRIDES}}
        limits = [(name, settings[name], *ends) for name, ends in RANGES.items()]
        limits += [("a width in decision", width, 1, MOST_WIDTH) for width in widths]
        limits += [("the number of decision layers", len(widths), 0, MOST_LAYERS)]
        for name, value, least, most in limits:
            if not least <= value <= most:
                bound = f"at most {most}" if value >= least else f"at least {least}"
                raise DataError(f"{name} must be {bound}, got {value}")
        if (weights := recipe.width**2 * self.layers) > MOST_WEIGHTS:
            raise DataError(
                f"width {recipe.width} and layers {self.layers} ask for more than {weights} "
                f"weights; at most {MOST_WEIGHTS} are allowed: take a smaller width or fewer layers"
            )
        for name, below in BELOW.items():
            value, bound = settings[name], "above" if name == "rate" else "at least"
            if not 0 <= value < below or (bound == "above" and value == 0):
                raise DataError(f"{name} must be {bound} 0 and below {below}, got {value}")
        if self.decay and recipe.optimiser != "adamw":
            raise DataError(f"the recipe {recipe.name!r} has no weight decay; leave decay out")
        for name, choices in CHOICES.items():
            old = POOLINGS if name == "readout" else ()
            if settings[name] not in (*choices, *old) and settings[name] is not None:
                listed = ", ".join(choices)
                raise DataError(f"{name} is one of {listed}, got {settings[name]!r}")
        return self

    def sized(self, train: int, *, costly: bool) -> RunConfig:
        """With width, rate, batch and epochs for so many graphs; `costly`: matrices on a CPU."""
        recipe = self.effective_recipe()
        sizes = {name: getattr(recipe, name) for name in ("width", "rate", "batch", "epochs")}
        while sizes["batch"] > SMALLEST_BATCH and train < sizes["batch"] * recipe.least_steps:
            sizes["batch"] //= 2
        if costly and recipe.cpu_visits:
            most = max(recipe.cpu_epochs, round(recipe.cpu_visits / train))
            sizes["epochs"] = min(recipe.epochs, most)
        if costly and self.width is None:
            sizes |= {"width": recipe.cpu_width, "rate": recipe.cpu_rate}
        return replace(self, **{k: v for k, v in sizes.items() if getattr(self, k) is None})

    def as_dict(self) -> dict[str, Any]:
        """Plain types, for JSON."""
        return asdict(self)

    @classmethod
    def completed(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings from a file, with today's default for each that did not exist then."""
        values = {**cls("").as_dict(), **respelled(settings)}
        plain: dict[str, Any] = json.loads(json.dumps(values))  # tuples as lists
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], source: str = "the configuration") -> RunConfig:
        """A config from plain types; a DataError names an unknown or unusable setting."""
        types = {f.name: str(f.type) for f in fields(cls)}
        settings: dict[str, Any] = {}
        for name, value in respelled(values).items():
            if name not in types:
                hint = guess(name, types)
                if name == "sweep":
                    hint = f"; a table [sweep] is read by g2n2 sweep {source}"
                raise DataError(f"{source} has no setting called {name!r}{hint}")
            if types[name].startswith("tuple[str") and isinstance(value, str):
                value = [value]  # one target, as train(target="logp") takes it
            settings[name] = tuple(value) if isinstance(value, list) else value
            _check_type(name, settings[name], types[name], source)
        if "dataset" not in settings:
            raise DataError(f"{source} names no dataset")
        return cls(**settings).checked()


_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "Mapping[str, Any]": ((dict,), "a table"),
}


def _check_type(name: str, value: Any, annotation: str, source: str) -> None:
    wanted = annotation.removesuffix(" | None")
    if value is None and wanted != annotation:
        return
    several = wanted.startswith("tuple[")
    types, english = _TYPES[wanted[6:9] if several else wanted]
    parts = value if several and isinstance(value, tuple) else (value,)
    fits = all(isinstance(x, types) and (bool in types) == isinstance(x, bool) for x in parts)
    if not fits or several != isinstance(value, tuple):
        expected = f"a list, each {english}" if several else english
        raise DataError(f"{name} in {source} should be {expected}, got {value!r}")


def respelled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with `readout = "mean"`, the old spelling, as `pooling = "mean"`."""
    settings = dict(values)
    if settings.get("readout") in POOLINGS:
        pooling = settings.pop("readout")
        if settings.get("pooling") not in (None, pooling):
            raise DataError(
                f"readout = {pooling!r} is the old spelling of pooling = {pooling!r}, and pooling "
                f"is {settings['pooling']!r}: leave one of them out"
            )
        settings["pooling"] = pooling
    return settings


def upgraded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run folder; before `pooling` existed, rules of S were not read out."""
    values = with_defaults_of_then(values)
    if "pooling" in values:
        return values
    return {**respelled({"pooling": None, **values}), "readout": "pooled-only"}


def with_defaults_of_then(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run; those it is older than have the value they stood for.

    Features were left as they are before `preprocess`, and `modern` was another before `pair_norm`.
    """
    settings = {"preprocess": "none", **values}
    if "pair_norm" not in settings:
        if settings.get("recipe", "modern") == "modern":
            settings["recipe"] = MODERN_BEFORE
        of_baseline = settings.get("baseline") == "G2N2" and settings.get("preset") is None
        if settings.get("preset") == "modern" or of_baseline:
            settings["preset"] = MODERN_BEFORE
    return settings


def read_settings(path: str | Path) -> dict[str, Any]:
    """The settings of a TOML file, or of a JSON file such as a run's `config.json`."""
    kind = "JSON" if str(path).lower().endswith(".json") else "TOML"
    text = read_text_file(path, f"expected settings in {kind}")
    try:
        settings = json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # both decoders'
        raise DataError(f"{path} is not {kind}: {error}") from None
    if not isinstance(settings, dict):
        raise DataError(f"{path} holds no settings: expected names and values")
    return settings


def merged(
    file: str | Path | None, given: Mapping[str, Any], options: Mapping[str, Any]
) -> RunConfig:
    """The config of a TOML or JSON file, overridden by what the command line gives.

    Settings that are None or empty are not given; options are added to those of the file.
    """
    values = respelled(read_settings(file)) if file is not None else {}
    if "rules" in values and str(file).lower().endswith(".json"):  # a run's config.json
        values = with_defaults_of_then(values)
    source = str(file) if file is not None else "the command line"
    given = respelled({k: value for k, value in given.items() if value not in (None, (), [])})
    together = dict(values.get("options") or {}) | dict(options)
    _refuse_both(given, "--baseline or --grammar")
    if given.get("baseline") or "grammar" in given:
        values.pop("rules", None)
    if given.get("baseline"):
        values.pop("grammar", None)
    if "grammar" in given:
        values.pop("baseline", None)
    if values.get("grammar") != RunConfig.grammar:  # config.json of a baseline has the default
        _refuse_both(values, f"one of them in {file}")
    return rooted(RunConfig.from_dict({**values, **given, "options": together}, source))


def _refuse_both(settings: Mapping[str, Any], leave_out: str) -> None:
    if settings.get("baseline") and settings.get("grammar"):
        raise DataError(
            f"the baseline {settings['baseline']} takes the place of the grammar "
            f"{settings['grammar']}: leave out {leave_out}"
        )


def with_rules(config: RunConfig) -> RunConfig:
    """The config with the rules of its grammar recorded."""
    return with_chosen_rules(config, exhaustive=False)[0]


def with_chosen_rules(config: RunConfig, *, exhaustive: bool) -> tuple[RunConfig, Grammar | None]:
    """As `with_rules`; also the exhaustive grammar of a fragment that was reduced."""
    if config.baseline or config.rules or config.start:
        return config, None
    if config.grammar.strip() == "-" and config.devices > 1:
        raise DataError(
            "several processes cannot read one pipe: write the derivation to a file "
            "(g2n2 derive … --out FILE), and give --grammar FILE"
        )
    if (named := catalogue_grammar(config.grammar)) is not None:
        return replace(config, grammar=named.name, rules=rules_of(named)), None
    from ..pipeline import choose_grammar

    chosen = choose_grammar(config.grammar, reduce=not exhaustive, exhaustive=exhaustive)
    is_text = chosen.grammar.name == chosen.grammar.in_short and config.grammar.strip() != "-"
    name = config.grammar if is_text else chosen.grammar.name
    settings, other = replace(config, grammar=name, rules=rules_of(chosen.grammar)), chosen.other
    # With marks the exhaustive grammar may have no network with the same options.
    return settings, None if exhaustive or (other and other.scope) else other


def rules_of(grammar: Grammar) -> tuple[str, ...]:
    """A grammar's rules and supports, one text each."""
    supports = (f"{name} = {term}" for name, term in grammar.supports)
    return (*(str(rule) for rule in grammar.all_rules), *supports)


def run_grammar(config: RunConfig) -> Grammar:
    """The grammar of a run: its recorded rules, else what its name stands for."""
    config = with_rules(config)
    rules, is_text = "\n".join(config.rules), any(arrow in config.grammar for arrow in ARROWS)
    grammar = given_rules(rules) if is_text else Grammar.parse(rules, config.grammar)
    has_readout = any(rule.startswith("S ") for rule in config.rules)
    return grammar if has_readout else replace(grammar, readout=())


def names_dataset(source: str) -> bool:
    """Whether a source is the name of a data set, which wins over a file of that name."""
    from ..data.catalogue import DATASETS

    return source.lower().replace("_", "-") in {row.name.replace("_", "-") for row in DATASETS}


def rooted(config: RunConfig) -> RunConfig:
    """The config with absolute paths to its data and to what it starts from; names stay."""
    if config.start is not None and os.path.exists(config.start):
        config = replace(config, start=str(Path(config.start).resolve()))
    if names_dataset(config.dataset) or not os.path.exists(config.dataset):
        return config
    return replace(config, dataset=str(Path(config.dataset).resolve()))
