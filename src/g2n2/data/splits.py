"""Splits into train, validation and test, each a pure function of the set and the seed.

| how | parts |
|-|-|
| `random` | at random; equal class balance in each part if the one target is a class |
| `scaffold` | molecules of one Bemis-Murcko scaffold in one part, common scaffolds in training |
| `stored` | those that came with the data |
| `column:NAME` | a column of the table, read with `split_column=NAME` |
| `fold:K` | tests on the stored fold K, validates on a random share of the rest |
| `file:PATH` | a JSON or CSV file; see `read_split_file` |
| `110k/10k/rest` | 110,000 and 10,000 at random, as the geometric networks split QM9 |

If given parts leave out `validation`, it is drawn from the training part.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..graphs.text import chemistry
from ..input_files import parse_json, printable, read_text_file
from .graph_set import GraphSet, Ints
from .readers.labels import PART_NAMES, rows_by_part
from .readers.tables import read_table

PARTS = ("train", "validation", "test")
Parts = dict[str, Ints]
_WHOLE_GRAPHS = ", as whole graphs are split and not the nodes or edges of one"


def split(
    graphs: GraphSet,
    how: str = "random",
    seed: int = 0,
    fractions: Sequence[float] = (0.8, 0.1, 0.1),
) -> Parts:
    """Split a set into `train`, `validation` and `test`, each in ascending order.

    Args:
        graphs: The set.
        how: One of the ways above.
        seed: Of every random choice.
        fractions: Of the graphs, for train, validation and test; 0 leaves a part empty.

    Raises:
        DataError: If the way is unknown, needs what the set lacks, or leaves a part empty.
    """
    refuse_unknown_split(how)
    shown = ", ".join(f"{share:g}" for share in fractions)
    if len(fractions) != 3 or not all(0 <= share <= 1 for share in fractions) or not fractions[0]:
        raise DataError(f"fractions are {shown}; expected three from 0 to 1, the first above 0")
    if not math.isclose(sum(fractions), 1, abs_tol=1e-6):
        raise DataError(f"fractions {shown} sum to {sum(fractions):g}, expected 1")
    if how == "random":
        return _cut(graphs, seed, fractions)
    if how == "scaffold":
        return _by_scaffold(graphs, fractions)
    if how == "110k/10k/rest":
        if len(graphs) <= 120_000:
            raise DataError(f"the split {how} needs more than {len(graphs):,} molecules")
        # RandomState's stream is frozen; that of numpy's newer generators may change.
        order = np.random.RandomState(seed).permutation(len(graphs)).astype(np.int64)
        return _named(np.split(order, [110_000, 120_000]))
    parts = _given_parts(graphs, how)
    check_parts(graphs, parts)
    train = np.sort(parts["train"])
    if "validation" not in parts and fractions[1]:
        share = fractions[1] / (fractions[0] + fractions[1])
        drawn = _cut(graphs.select(train), seed, (1 - share, share, 0.0))
        parts |= {part: train[drawn[part]] for part in ("train", "validation")}
    return _named([parts.get(part, ()) for part in PARTS])


def _named(members: Sequence[Any]) -> Parts:
    parts = zip(PARTS, members, strict=True)
    return {part: np.sort(np.asarray(indices, dtype=np.int64)) for part, indices in parts}


def refuse_unknown_split(how: str) -> None:
    """Refuse an unknown way to split; this needs no graphs."""
    kind, _, argument = how.partition(":")
    if how not in ("random", "scaffold", "stored", "110k/10k/rest") and not (
        kind in ("column", "fold", "file") and argument
    ):
        raise DataError(
            f"no split is called {how!r}; expected random, scaffold, stored, column:NAME, fold:K, "
            "file:PATH or 110k/10k/rest"
        )


def random_subset(graphs: GraphSet, count: int, seed: int) -> GraphSet:
    """`count` random graphs in the order of the set; splits keep the members that are drawn."""
    if not count or count >= len(graphs):
        return graphs
    drawn = np.sort(np.random.default_rng([seed, 1]).permutation(len(graphs))[:count])
    parts = {part: np.flatnonzero(np.isin(drawn, m)) for part, m in graphs.splits.items()}
    return replace(graphs.select(drawn), splits={p: m for p, m in parts.items() if len(m)})


def check_parts(graphs: GraphSet, parts: Mapping[str, Ints]) -> None:
    """Refuse parts that are empty, share a graph, or name one that does not exist."""
    part_of_graph: dict[int, str] = {}
    for part, members in parts.items():
        if not len(members):
            raise DataError(f"the part {part!r} of the split holds no graph")
        for index in members.tolist():
            if not 0 <= index < len(graphs):
                raise DataError(
                    f"the part {part!r} names graph {index}, but there are {len(graphs)} graphs, "
                    "counted from 0"
                )
            if before := part_of_graph.get(index):
                named = f" ({graphs.ids[index]})" if graphs.ids else ""
                both = "twice in" if before == part else f"in {before!r} and"
                raise DataError(f"graph {index}{named} is {both} {part!r}; expected it once")
            part_of_graph[index] = part


def stratified_folds(labels: NDArray[Any], folds: int = 10, seed: int = 0) -> Parts:
    """Folds of equal class balance, `fold-1`, `fold-2` …; each names its test graphs.

    The same as scikit-learn's `StratifiedKFold(folds, shuffle=True, random_state=seed)`, on which
    published numbers are based.
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    appearance = np.argsort(np.argsort(first))[inverse]  # classes numbered as they first appear
    sizes = np.bincount(appearance)
    if sizes.max() < folds:
        raise DataError(f"{folds} folds need a class of at least {folds} graphs, not {sizes.max()}")
    ordered = np.sort(appearance)
    shares = [np.bincount(ordered[i::folds], minlength=len(sizes)) for i in range(folds)]
    generator = np.random.RandomState(seed)
    fold_of = np.empty(len(labels), dtype=np.int64)
    for number in range(len(sizes)):
        dealt = np.repeat(np.arange(folds), [share[number] for share in shares])
        generator.shuffle(dealt)
        fold_of[appearance == number] = dealt
    return {f"fold-{k + 1}": np.flatnonzero(fold_of == k).astype(np.int64) for k in range(folds)}


def _cut(graphs: GraphSet, seed: int, fractions: Sequence[float]) -> Parts:
    """Cut a random order of the graphs into the three parts."""
    count = len(graphs)
    # A part that is asked for has a graph, however small its share.
    validation, test = (max(round(share * count), share > 0) for share in fractions[1:])
    sizes = (count - validation - test, validation, test)
    for part, share, size in zip(PARTS, fractions, sizes, strict=True):
        if share and size < 1:
            raise DataError(
                f"{count} graph{'s' * (count > 1)} cannot be split into the fractions "
                f"{', '.join(f'{value:g}' for value in fractions)}: {part!r} would be empty; "
                f"give more graphs{'' if graphs.level == 'graph' else _WHOLE_GRAPHS}"
            )
    return _named(np.split(_random_order(graphs, seed), np.cumsum(sizes)[:-1]))


def _random_order(graphs: GraphSet, seed: int) -> Ints:
    """A shuffle in which every stretch has the whole set's class balance.

    Graphs are ordered by their rank within their class divided by the size of that class, so any
    cut gives each class its share to within one graph.
    """
    shuffled = np.random.default_rng(seed).permutation(len(graphs)).astype(np.int64)
    one_class = graphs.level == "graph" and len(graphs.columns) == 1
    if not one_class or graphs.columns[0].kind == "regression":
        return shuffled
    labels = np.nan_to_num(graphs.targets[:, 0], nan=-1)[shuffled]  # missing: a class of its own
    rank = np.empty(len(graphs))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        rank[members] = (np.arange(len(members)) + 0.5) / len(members)
    return shuffled[np.argsort(rank, kind="stable")]


def _by_scaffold(graphs: GraphSet, fractions: Sequence[float]) -> Parts:
    """Largest scaffolds first into training, then validation, then test: the rule of DeepChem.

    A scaffold is the SMILES of a molecule's ring systems and what joins them; '' without a ring.
    """
    smiles = smiles_of(graphs)
    if smiles is None:
        raise DataError(f"a scaffold split needs SMILES, {graphs.name} has none; split at random")
    groups: dict[str, list[int]] = defaultdict(list)
    with chemistry() as chem:
        from rdkit.Chem.Scaffolds import MurckoScaffold

        murcko: Any = MurckoScaffold  # part of RDKit's Python code has no types
        for index, scaffold in enumerate(smiles):
            molecule = chem.MolFromSmiles(scaffold)
            if molecule is not None:  # none: from a file whose bond orders are not known
                scaffold = murcko.MurckoScaffoldSmiles(mol=molecule, includeChirality=False)
            groups[scaffold].append(index)
    ordered = sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True)
    parts: tuple[list[int], ...] = ([], [], [])
    train, validation, test = parts
    for members in ordered:
        if len(train) + len(members) <= fractions[0] * len(graphs):
            train += members
        elif len(train) + len(validation) + len(members) <= (1 - fractions[2]) * len(graphs):
            validation += members
        else:
            test += members
    for part, share, members in zip(PARTS, fractions, parts, strict=True):
        if share and not members:
            raise DataError(
                f"{len(groups)} scaffolds of {len(graphs)} molecules leave {part!r} empty "
                f"(the largest scaffold has {len(ordered[0])}); split at random"
            )
    return _named(parts)


def smiles_of(graphs: GraphSet) -> list[str] | None:
    """Canonical SMILES of every graph if the reader kept them, else None."""
    smiles = graphs.source.get("smiles")
    return list(smiles) if isinstance(smiles, tuple) and len(smiles) == len(graphs) else None


def _given_parts(graphs: GraphSet, how: str) -> Parts:
    """The parts that came with the set, as columns, folds or a file."""
    kind, _, argument = how.partition(":")
    parts = {name: np.asarray(members) for name, members in graphs.splits.items()}
    folds = {name: members for name, members in parts.items() if name.startswith("fold-")}
    if kind == "fold":
        if f"fold-{argument}" not in folds:
            held = f"it has {', '.join(folds)}"
            if not folds:
                held = (
                    "it has none: take random, or read a column of fold numbers with --option "
                    "split_column=NAME (split_column=NAME)"
                )
            raise DataError(f"{graphs.name} has no fold {argument!r}; {held}")
        test = folds[f"fold-{argument}"]
        return {"train": np.setdiff1d(np.arange(len(graphs)), test), "test": test}
    column = graphs.source.get("split_column")
    if kind == "file":
        parts = read_split_file(argument, graphs)
    elif kind == "column" and str(column).lower() != argument.lower():
        read = f"the one read is {column!r}" if column else "none was read"
        raise DataError(
            f"no split column {argument!r} was read with {graphs.name} ({read}); read the "
            f"table with split_column={argument!r}"
        )
    elif folds and "train" not in parts:
        first = next(iter(folds)).replace("-", ":", 1)
        with_column = f" --option split_column={column}" if column else ""
        raise DataError(
            f"{graphs.name} has folds: {', '.join(parts)}; choose one with --split {first}"
            f"{with_column}"
        )
    if "train" not in parts:
        held = ", ".join(parts) or "none"
        raise DataError(f"the split of {graphs.name} has no part 'train' (parts: {held})")
    return {part: parts[part] for part in PARTS if part in parts}


def read_split_file(path: str | Path, graphs: GraphSet) -> Parts:
    """Read the parts of a split from a file; graphs the reader skipped are left out.

    JSON: `{"train": [...], "validation": [...], "test": [...]}`; whole numbers are rows of the
    input counted from 0, text is ids. CSV: the columns `id` or `index`, and `split`.
    """
    by_id: dict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(graphs.ids):
        by_id[name].append(index)
    rows, records = graphs.source.get("rows", ()), graphs.source.get("records", len(graphs))
    skipped = len(rows) == len(graphs) != records
    by_row = {row: index for index, row in enumerate(rows)} if skipped else {}
    parts: Parts = {}
    for part, members in _listed(path).items():
        indices: list[int] = []
        for member in members:
            if isinstance(member, str):
                if member not in by_id:
                    raise DataError(
                        f"{path}: {part!r} names {member!r}, which is no id of {graphs.name} "
                        f"(ids are like {', '.join(graphs.ids[:3]) or 'none'})"
                    )
                indices += by_id[member]
            elif not 0 <= member < 2**62:
                shown = printable(str(member), 40)
                raise DataError(f"{path}: {part!r} names graph {shown}; they count from 0")
            elif not skipped or member >= records:
                indices.append(member)  # one that does not exist is refused by `check_parts`
            elif member in by_row:
                indices.append(by_row[member])
        parts[part] = np.array(indices, dtype=np.int64)
    return parts


def _listed(path: str | Path) -> dict[str, list[int | str]]:
    """The members of each part as a file names them."""
    if Path(path).name.lower().removesuffix(".gz").endswith((".csv", ".tsv")):
        table = read_table(path)
        key, column = table.first_of(("index", "id")), table.first_of(("split", "part"))
        if key is None or column is None:
            listed = ", ".join(table.columns)
            raise DataError(f"{path} has the columns {listed}; expected id,split or index,split")
        names: list[int | str] = list(table.columns[key])
        if key.lower() == "index":
            for row, cell in enumerate(table.columns[key]):
                if not re.fullmatch(r"-?\d{1,18}", cell):
                    at = f"{path}, {table.places[row]}"
                    raise DataError(f"{at}: index {printable(cell, 40)!r} is not a whole number")
                names[row] = int(cell)
        by_part = rows_by_part(table.columns[column], str(path), table.places)
        return {part: [names[row] for row in rows] for part, rows in by_part.items()}
    try:
        content = parse_json(read_text_file(path))
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not JSON ({error}); expected lists by part") from error
    if not isinstance(content, dict):
        raise DataError(f'{path} holds no object; expected {{"train": [...], "test": [...]}}')
    for name, members in content.items():
        if name.lower() not in PART_NAMES:
            raise DataError(f"{path}: {name!r} is no part; expected train, validation or test")
        if not isinstance(members, list) or not all(type(m) in (int, str) for m in members):
            raise DataError(f"{path}: {name!r} is no list of whole numbers or ids")
    parts = {PART_NAMES[name.lower()]: members for name, members in content.items()}
    if len(parts) < len(content):
        raise DataError(f"{path} names a part twice, in other words: {', '.join(content)}")
    return parts
