"""Every dataset that has a name: what it is, where it comes from, and how to get it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import DataError, guess
from ..validation import read_as
from .graph_set import GraphSet


@dataclass(frozen=True)
class Dataset:
    """One row of the table of datasets."""

    name: str  # its name; case and `_` or `-` make no difference
    task: str  # what is learned
    graphs: int  # how many
    about: str  # what it is, in a few words
    origin: str  # where it comes from
    how: str  # how to get it
    loader: str  # `module:function` below `g2n2.data`, imported when asked for
    fixed: tuple[tuple[str, Any], ...] = ()  # arguments of the loader that make it this set


_TU = "TUDataset, Morris et al. 2020"
_TWO, _THREE = "2 classes", "3 classes"
_DOWNLOADED = "downloaded"
_GENERATED = "generated"
_FILE = "file {} in --data or $G2N2_DATA"


def _tu(name: str, task: str, graphs: int, about: str, **fields: str) -> Dataset:
    origin, how = fields.get("origin", _TU), fields.get("how", _DOWNLOADED)
    fixed = (("name_or_path", name),)
    return Dataset(name.lower(), task, graphs, about, origin, how, "tu:load_tu", fixed)


# fmt: off
DATASETS: tuple[Dataset, ...] = (
    Dataset("qm9", "12 regressions", 130_831, "small molecules with DFT properties and geometry",
            "Ramakrishnan et al. 2014", "pip install 'g2n2[chem]'", "qm9:load_qm9"),
    Dataset("zinc", "regression", 12_000, "penalised logP; another training set than published",
            "ZINC-12k test, resampled training set",
            _FILE.format("zinc/zinc12k_val_test_and_surrogate_train.npz"),
            "benchmarks:load_zinc"),
    _tu("MUTAG", _TWO, 188, "nitro compounds, mutagenic or not"),
    _tu("PTC", _TWO, 344, "carcinogenic for rats; the set of the GIN paper, with hydrogens",
        origin="pytorch_DGCNN, Zhang et al. 2018", how=_FILE.format("tu/PTC.zip")),
    _tu("PTC_MR", _TWO, 344, "carcinogenic for male rats; the TU set, without hydrogens"),
    _tu("PROTEINS", _TWO, 1_113, "proteins, enzyme or not"),
    _tu("NCI1", _TWO, 4_110, "compounds tested against lung cancer cells"),
    _tu("IMDB-BINARY", _TWO, 1_000, "ego networks of actors, by genre; degree features"),
    _tu("IMDB-MULTI", _THREE, 1_500, "ego networks of actors, by genre; degree features"),
    Dataset("filtering", "3 node regressions", 3, "low-, high- and band-pass filters of an image",
            "TwoDGrid30, Balcilar et al. 2021", _FILE.format("filtering/TwoDGrid30.mat"),
            "benchmarks:load_filtering"),
    Dataset("counting", "7 regressions", 5_000, "subgraph counts in random graphs of 10-30 nodes",
            "Chen et al. 2020", _FILE.format("counting/random_graphs.npz"),
            "benchmarks:load_counting"),
    Dataset("counting-generated", "7 regressions", 5_000, "the recipe of counting, fresh graphs",
            "Chen et al. 2020", _GENERATED, "benchmarks:generate_counting"),
    Dataset("regular", "2 regressions", 1_500, "triangles and 4-cycles of regular graphs, one size",
            "this package", _GENERATED, "benchmarks:regular_counting_set"),
    Dataset("exp", _TWO, 1_200, "satisfiable or not; pairs that 1-WL cannot tell apart",
            "Abboud et al. 2021", _FILE.format("expressivity/exp_graphsat.npz"),
            "suites:load_exp"),
    Dataset("csl", "10 classes", 150, "circular skip links, 15 relabelled copies of each",
            "Murphy et al. 2019", _GENERATED, "suites:load_csl"),
    Dataset("sr25", "15 classes", 15, "strongly regular graphs SR(25, 12, 5, 6)",
            "Spence, McKay", _DOWNLOADED, "suites:load_sr25"),
)
# fmt: on
_BY_NAME = {row.name.replace("_", "-"): row for row in DATASETS}


def load_dataset(
    name: str, data: str | Path | None = None, options: Mapping[str, Any] | None = None
) -> GraphSet:
    """Load or make the dataset of that name; paths are read by `g2n2.read_graphs`.

    Args:
        name: A name in `DATASETS`.
        data: Folder in which files are sought before `$G2N2_DATA`, the user cache and the source.
        options: Further arguments of its loader, for instance `{"track": "distance"}` of `qm9`.
    """
    row = find_dataset(name)
    load, allowed, arguments = _loader(row), dataset_options(row), dict(options or {})
    parameters = inspect.signature(load).parameters
    for option, value in arguments.items():
        if option not in allowed:
            expected = ", ".join(allowed) or "none"
            raise DataError(
                f"{row.name} has no option {option!r}: expected {expected}{guess(option, allowed)}"
            )
        if (kind := type(parameters[option].default)) in (int, bool):
            read_as(kind, value, f"option {option}", None)
    if "data" in parameters:
        arguments["data"] = data
    return load(**dict(row.fixed), **arguments)


def dataset_options(row: Dataset) -> list[str]:
    """Names of the options a user may give to a dataset's loader."""
    return [
        name
        for name in inspect.signature(_loader(row)).parameters
        if name != "data" and name not in dict(row.fixed)
    ]


def find_dataset(name: str) -> Dataset:
    """Return the row of that name."""
    key = name.strip().lower().replace("_", "-")
    if key in _BY_NAME:
        return _BY_NAME[key]
    names = [row.name for row in DATASETS]
    raise DataError(
        f"no dataset {name!r}: expected one of {', '.join(names)}, or a path to your own data"
        f"{guess(key, names)}"
    )


def _loader(row: Dataset) -> Callable[..., GraphSet]:
    module, function = row.loader.split(":")
    load: Callable[..., GraphSet] = getattr(import_module(f"g2n2.data.{module}"), function)
    return load
