"""Parts of a set to train on, choose by and test on: each a pure function of the set and the seed.

| how | parts |
|-|-|
| `random` | by chance; equal class balance in each part where one target holds classes |
| `scaffold` | molecules of one Bemis-Murcko scaffold in one part, common scaffolds in training |
| `stored` | those that came with the data |
| `column:NAME` | a column of the table, read with `split_column=NAME` |
| `fold:K` | tests on the stored fold K, validates on a random share of the rest |
| `file:PATH` | a JSON or CSV file; see `split_files` |
| `110k/10k/rest` | 110,000 and 10,000 by chance, as the geometric networks split QM9 |

Where given parts leave out `validation`, it is drawn from the training part.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import DataError
from .graph_set import GraphSet, Ints
from .qm9.splits import qm9_splits
from .split_files import read_split_file

PARTS = ("train", "validation", "test")
DEFAULT_FRACTIONS = (0.8, 0.1, 0.1)


def split(
    graphs: GraphSet,
    how: str = "random",
    seed: int = 0,
    fractions: Sequence[float] = DEFAULT_FRACTIONS,
) -> dict[str, Ints]:
    """Split a set into `train`, `validation` and `test`, each in ascending order.

    Args:
        graphs: The set.
        how: One of the ways above.
        seed: Of what is left to chance.
        fractions: Of the graphs, for train, validation and test; 0 leaves a part empty.

    Raises:
        DataError: If the way is unknown, needs what the set lacks, or leaves a part empty.
    """
    refuse_unknown_split(how)
    shares = _checked_fractions(fractions)
    kind, _, argument = how.partition(":")
    if how == "random":
        return _cut(graphs, _random_order(graphs, seed), shares)
    if how == "scaffold":
        return _by_scaffold(graphs, shares)
    if kind in ("stored", "column", "file"):
        return _completed(graphs, _given(graphs, kind, argument), seed, shares)
    if kind == "fold":
        return _completed(graphs, _fold(graphs, argument), seed, shares)
    drawn = qm9_splits(len(graphs), "110k/10k/rest", seed)
    return {name: np.sort(part) for name, part in drawn.items()}


def refuse_unknown_split(how: str) -> None:
    """Refuse a way to split that there is not, before there are graphs.

    Raises:
        DataError: Naming those there are.
    """
    kind, _, argument = how.partition(":")
    if how not in ("random", "scaffold", "stored", "110k/10k/rest") and not (
        kind in ("column", "fold", "file") and argument
    ):
        raise DataError(
            f"no split is called {how!r}; expected random, scaffold, stored, column:NAME, fold:K, "
            "file:PATH or 110k/10k/rest"
        )


def check_parts(graphs: GraphSet, parts: Mapping[str, Ints]) -> None:
    """Refuse parts that are empty, share a graph, or name one that does not exist.

    Raises:
        DataError: Naming the part and the graph.
    """
    seen: dict[int, str] = {}
    for part, members in parts.items():
        if not len(members):
            raise DataError(f"the part {part!r} of the split holds no graph")
        for index in members.tolist():
            if not 0 <= index < len(graphs):
                raise DataError(
                    f"the part {part!r} names graph {index}, but there are {len(graphs)} graphs, "
                    "counted from 0"
                )
            if index in seen:
                named = f" ({graphs.ids[index]})" if graphs.ids else ""
                both = "twice in" if seen[index] == part else f"in {seen[index]!r} and"
                raise DataError(f"graph {index}{named} is {both} {part!r}; expected it once")
            seen[index] = part


def _checked_fractions(fractions: Sequence[float]) -> tuple[float, float, float]:
    shown = ", ".join(f"{share:g}" for share in fractions)
    if len(fractions) != 3 or not all(0 <= share <= 1 for share in fractions) or not fractions[0]:
        raise DataError(f"fractions are {shown}; expected three from 0 to 1, the first above 0")
    if not math.isclose(sum(fractions), 1, abs_tol=1e-6):
        raise DataError(f"fractions {shown} sum to {sum(fractions):g}, expected 1")
    return (fractions[0], fractions[1], fractions[2])


def _part_sizes(graphs: int, shares: tuple[float, float, float]) -> tuple[int, int, int]:
    # A part that is asked for has a graph, however small its share.
    validation, test = (max(round(share * graphs), share > 0) for share in shares[1:])
    sizes = (graphs - validation - test, validation, test)
    for part, share, size in zip(PARTS, shares, sizes, strict=True):
        if share and size < 1:
            raise DataError(
                f"{graphs} graph{'s' * (graphs > 1)} cannot be split into the fractions "
                f"{', '.join(f'{value:g}' for value in shares)}: {part!r} would be empty; "
                "give more graphs"
            )
    return sizes


def _cut(graphs: GraphSet, order: Ints, shares: tuple[float, float, float]) -> dict[str, Ints]:
    sizes = _part_sizes(len(graphs), shares)
    cuts = np.split(order, np.cumsum(sizes)[:-1])
    return {part: np.sort(members) for part, members in zip(PARTS, cuts, strict=True)}


def _random_order(graphs: GraphSet, seed: int) -> Ints:
    """A shuffle in which every stretch has the whole set's class balance.

    Graphs stand in the order of their rank within their class divided by the size of that class, so
    any cut gives each class its share to within one graph.
    """
    shuffled = np.random.default_rng(seed).permutation(len(graphs)).astype(np.int64)
    one_class = graphs.level == "graph" and len(graphs.columns) == 1
    if not one_class or graphs.columns[0].kind == "regression":
        return shuffled
    # A missing label is a class of its own here.
    labels = np.nan_to_num(graphs.targets[:, 0], nan=-1)[shuffled]
    rank = np.empty(len(graphs))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        rank[members] = (np.arange(len(members)) + 0.5) / len(members)
    return shuffled[np.argsort(rank, kind="stable")]


def _by_scaffold(graphs: GraphSet, shares: tuple[float, float, float]) -> dict[str, Ints]:
    """Largest scaffolds first into training, then validation, then test: the rule of DeepChem."""
    from .scaffolds import scaffolds_of

    groups: dict[str, list[int]] = defaultdict(list)
    for index, scaffold in enumerate(scaffolds_of(graphs)):
        groups[scaffold].append(index)
    ordered = sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True)
    parts: dict[str, list[int]] = {part: [] for part in PARTS}
    for members in ordered:
        in_training = len(parts["train"]) + len(members)
        if in_training <= shares[0] * len(graphs):
            parts["train"] += members
        elif in_training + len(parts["validation"]) <= (1 - shares[2]) * len(graphs):
            parts["validation"] += members
        else:
            parts["test"] += members
    for part, share in zip(PARTS, shares, strict=True):
        if share and not parts[part]:
            raise DataError(
                f"{len(groups)} scaffolds of {len(graphs)} molecules leave {part!r} empty "
                f"(the largest scaffold has {len(ordered[0])}); split at random"
            )
    return {part: np.sort(np.array(members, dtype=np.int64)) for part, members in parts.items()}


def _given(graphs: GraphSet, kind: str, argument: str) -> dict[str, Ints]:
    if kind == "file":
        parts = read_split_file(argument, graphs)
    else:
        column = graphs.source.get("split_column")
        if kind == "column" and (not argument or str(column).lower() != argument.lower()):
            read = f"the one read is {column!r}" if column else "none was read"
            raise DataError(
                f"no split column {argument!r} was read with {graphs.name} ({read}); read the "
                f"table with split_column={argument!r}"
            )
        parts = {name: np.asarray(members) for name, members in graphs.splits.items()}
        if "train" not in parts and any(name.startswith("fold-") for name in parts):
            raise DataError(f"{graphs.name} has folds: {', '.join(parts)}; choose one as fold:1")
    if "train" not in parts:
        held = ", ".join(parts) or "none"
        raise DataError(f"the split of {graphs.name} has no part 'train' (parts: {held})")
    return {part: parts[part] for part in PARTS if part in parts}


def _fold(graphs: GraphSet, argument: str) -> dict[str, Ints]:
    folds = {name: members for name, members in graphs.splits.items() if name.startswith("fold-")}
    if f"fold-{argument}" not in folds:
        held = f"it has {', '.join(folds)}" if folds else "it has no folds"
        raise DataError(f"{graphs.name} has no fold {argument!r}; {held}")
    test = folds[f"fold-{argument}"]
    rest = np.setdiff1d(np.arange(len(graphs)), test)
    return {"train": rest, "test": test}


def _completed(
    graphs: GraphSet, parts: dict[str, Ints], seed: int, shares: tuple[float, float, float]
) -> dict[str, Ints]:
    """Checked parts, with `validation` drawn from `train` where it is not given."""
    check_parts(graphs, parts)
    if "validation" not in parts and shares[1]:
        train = np.sort(parts["train"])
        inside = graphs.select(train)
        share = shares[1] / (shares[0] + shares[1])
        drawn = _cut(inside, _random_order(inside, seed), (1 - share, share, 0.0))
        parts |= {"train": train[drawn["train"]], "validation": train[drawn["validation"]]}
    empty = np.zeros(0, dtype=np.int64)
    return {part: np.sort(parts.get(part, empty)) for part in PARTS}
