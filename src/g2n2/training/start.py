"""train: from graphs and plain arguments to a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.graph_set import GraphSet
from ..data.reading import read_with
from ..errors import DataError
from ..grammars.catalogue import GIVEN
from ..grammars.coercion import GrammarLike, as_network_grammar
from ..whole_files import check_folder
from .config import RunConfig
from .run import Run
from .session import train_config
from .settings import new_run_folder, rooted, rules_of
from .setup import chosen_graphs

Graphs = str | Path | GraphSet | Iterable[Any]
"""A data set's name, a path, or graphs in memory."""


def train(
    dataset: Graphs,
    target: str | Sequence[str] = (),
    *,
    out: str | Path | None = None,
    grammar: GrammarLike = "r-G_L3",
    baseline: str | None = None,
    preset: str | None = None,
    width: int = 64,
    layers: int = 3,
    readout: str | None = None,
    pooling: str | None = None,
    functions: str = "mlp",
    pair_bias: bool | None = None,
    decision: Sequence[int] | None = None,
    context: bool = False,
    distance: Sequence[str] | None = None,
    recipe: str = "modern",
    batch: int | None = None,
    epochs: int | None = None,
    passes: int = 1,
    window: int = 0,
    rate: float | None = None,
    decay: float | None = None,
    ema: float | None = None,
    dropout: float | None = None,
    minutes: float = 0.0,
    split: str = "auto",
    limit: int = 0,
    references: bool = False,
    extent: bool = False,
    options: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
    seed: int = 0,
    device: str = "auto",
    devices: int = 1,
    precision: str = "32",
    threads: int = 0,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    progress: bool = False,
    pictures: bool = True,
) -> Run:
    """Train a network on graphs and give the run: its model, its scores, its predictions.

    >>> import tempfile
    >>> import networkx as nx
    >>> from g2n2 import train
    >>> graphs = [nx.cycle_graph(3 + i % 4) for i in range(20)]
    >>> for graph in graphs:
    ...     graph.graph["y"] = float(len(graph))
    >>> with tempfile.TemporaryDirectory() as there:
    ...     run = train(graphs, out=f"{there}/run", grammar="GNNML1", width=4, layers=1, epochs=1,
    ...                 device="cpu", pictures=False)
    ...     sorted(run.scores), run.predict(["C~", "Bw"]).values.shape
    (['all', 'y'], (2, 1))

    Args:
        dataset: A CSV with SMILES or any other file `g2n2.read_graphs` reads, a name of
            `g2n2 datasets`, a `GraphSet`, or a list of networkx graphs or PyG `Data`.
        target: What to predict, one name or several; all targets there are where empty.
        out: The run folder; `runs/DATASET-TARGET-NNN` with the next free number where None.
        grammar: A grammar, its name, its rules, a file of them or a certificate, or a fragment,
            which stands for its reduced grammar.
        baseline: GIN, GCN, ChebNet, PPGN … in place of the grammar.
        preset: What the grammar does not say: `modern`, `paper`, `official` or `ppgn`; the
            recipe's where None.
        width: Channels of every memory.
        layers: How many layers.
        readout: `grammar` for the rules of S, `pooled` for pooled memories joined by the rules of S
            that pooling does not contain; the preset's where None.
        pooling: `sum`, `mean` or `max`; the preset's where None.
        functions: `mlp` for an MLP on every memory, `free` only where it adds nothing to the words.
        pair_bias: Whether MLPs on M have biases; the preset's where None.
        decision: Hidden widths of the decision layers; the preset's where None.
        context: Append the pooled vector to nodes and edges.
        distance: Edge channels made of positions: `raw`, `square`, `inverse`, `rbf16` …; the
            recipe's where None.
        recipe: `modern` or `paper`.
        batch: Graphs in a step; the recipe's where None.
        epochs: At most; the recipe's where None.
        passes: Times all training graphs are seen in an epoch.
        window: Batches of an epoch sorted by size together; 1: by chance, 0: as the set asks for.
        rate: Learning rate; the recipe's where None.
        decay: Weight decay; the recipe's where None.
        ema: Decay of the averaged weights that are evaluated; the recipe's where None.
        dropout: Share left out of what each decision layer reads; the recipe's where None.
        minutes: Stop after so many minutes of training, from now on; 0 for no limit. A run that
            was stopped has no scores on test graphs before it is resumed and comes to its end.
        split: `random`, `scaffold`, `stored`, `column:NAME`, `file:PATH`, `fold:3`; `auto` takes
            stored splits where there are some, else random.
        limit: Use only so many graphs; 0 for all.
        references: Learn what is left of a target after fitted per-element values.
        extent: And after fitted sums of squared distances between elements.
        options: Of the data set (`track`, `features`) or of reading (`smiles`, `id`, `task` …).
        data: Folder in which known data sets are sought first.
        seed: Of the weights, the split and the order of batches.
        device: `auto`, `cpu` or `cuda`.
        devices: Processes, one for each GPU.
        precision: `32`, `tf32`, `bf16` or `64`.
        threads: CPU threads; the machine's choice where 0.
        checkpoint_seconds: At most so long between two checkpoints.
        resume: Go on with the run in `out`, with its own settings.
        progress: Show what `g2n2 train` shows.
        pictures: Draw learning curves and predictions, where matplotlib is installed.

    Raises:
        DataError: Bad settings or data, or a folder that holds another run.
        TrainingError: The run cannot go on.
    """
    if out is not None:
        check_folder(Path(out))
    targets = (target,) if isinstance(target, str) else tuple(target)
    network = {"baseline": baseline} if baseline else _recorded(grammar)  # before the data is read
    graphs = None if isinstance(dataset, str | Path) else _in_memory(dataset, targets, options)
    config = RunConfig.from_dict(
        {
            "dataset": str(dataset) if graphs is None else graphs.name,
            "target": targets,
            "data": None if data is None else str(data),
            "options": dict(options or {}) if graphs is None else {},
            "split": split,
            "limit": limit,
            "references": references,
            "extent": extent,
            **network,
            "preset": preset,
            "width": width,
            "layers": layers,
            "readout": readout,
            "pooling": pooling,
            "functions": functions,
            "pair_bias": pair_bias,
            "decision": None if decision is None else tuple(decision),
            "context": context,
            "distance": None if distance is None else tuple(distance),
            "recipe": recipe,
            "batch": batch,
            "epochs": epochs,
            "passes": passes,
            "window": window,
            "rate": rate,
            "decay": decay,
            "ema": ema,
            "dropout": dropout,
            "minutes": minutes,
            "seed": seed,
            "device": device,
            "devices": devices,
            "precision": precision,
            "threads": threads,
            "checkpoint_seconds": checkpoint_seconds,
        },
        "train",
    )
    if resume and out is None:
        raise DataError("resume goes on with a run: name its folder with out=")
    if graphs is None:
        config = rooted(config)
    else:
        graphs = chosen_graphs(config, graphs)
    folder = new_run_folder(config) if out is None else Path(out)
    _run(config, folder, resume, graphs, progress, pictures)
    return Run(folder, device, graphs)


def _in_memory(
    dataset: GraphSet | Iterable[Any],
    targets: tuple[str, ...],
    options: Mapping[str, Any] | None,
) -> GraphSet:
    """Graphs in memory, with their targets."""
    if isinstance(dataset, GraphSet):
        if options:
            raise DataError(f"options are of reading, and a GraphSet is read: {', '.join(options)}")
        return dataset
    wanted = {"target": targets} if targets else {}
    return read_with(dataset, {**wanted, **(options or {})})


def _recorded(grammar: GrammarLike) -> dict[str, Any]:
    """What a config says of a grammar: what it is called, and its rules."""
    chosen = as_network_grammar(grammar)
    name = chosen.name if chosen.name not in ("", GIVEN) else "; ".join(chosen.lines())
    return {"grammar": name, "rules": rules_of(chosen)}


def _run(
    config: RunConfig,
    folder: Path,
    resume: bool,
    graphs: GraphSet | None,
    progress: bool,
    pictures: bool,
) -> None:
    if not progress:
        train_config(config, folder, resume=resume, graphs=graphs, pictures=pictures)
        return
    from .display import Display

    with Display() as display:
        watch = display.watch()
        train_config(config, folder, resume=resume, graphs=graphs, watch=watch, pictures=pictures)
