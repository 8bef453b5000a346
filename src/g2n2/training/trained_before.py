"""Which graphs the network a run starts from was trained on: they should not be held out again.

Graphs are compared as the summary does: by canonical SMILES, or by 1-WL with all features. Where
those of a run cannot be read again, the keys in its folder stand for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..data.graph_set import GraphSet, Ints
from ..data.reading import read_graphs
from ..data.splits import PARTS, smiles_of
from ..data.summary import graph_keys
from ..errors import DataError
from .config import RunConfig
from .fine_tuning import Start
from .run import HELD_OUT, Run, is_pretrained
from .setup import Parts, chosen_graphs, prepare
from .trained_on import GraphKeys

LEAST_LEFT = 0.1
"""Of the validation and of the test graphs of a run, for its split to be taken over."""


@dataclass(frozen=True, eq=False)
class TrainedBefore:
    """What a starting network has seen of some graphs.

    Attributes:
        name: Of the network.
        part: For each graph `train` if the network or one it was itself started from was trained on
            it, else its part of the split of the nearest run that has it; empty if none has.
        own: For each graph its part of the split of the starting run itself.
        before: The networks before it that were trained on graphs it holds out.
        possible: For each graph whether it may have been trained on, where that is not known.
    """

    name: str
    part: NDArray[np.str_]
    own: NDArray[np.str_]
    before: tuple[str, ...]
    possible: NDArray[np.bool_]

    @classmethod
    def of(cls, start: Start, graphs: GraphSet) -> TrainedBefore:
        """What the network and those it was itself started from have seen of these graphs."""
        found, own = (np.full(len(graphs), "", dtype="U10") for _ in range(2))
        possible = np.zeros(len(graphs), dtype=bool)
        before = list[str]()
        for number, (of_run, run) in enumerate(_ancestry(start)):
            try:
                if run is None:
                    raise DataError("a file does not say what its network was trained on")
                here = _parts_in(run, graphs)
            except DataError:
                possible |= _within_range(run, graphs)
                continue
            found = np.where((here == "train") | (found == ""), here, found)
            if number == 0:
                own = here
            elif (np.isin(own, PARTS[1:]) & (here == "train")).any():
                before.append(of_run)
        return cls(start.name, found, own, tuple(before), possible & (found != "train"))

    def splits(self, config: RunConfig, graphs: GraphSet) -> dict[str, Ints] | None:
        """The split of the starting run; None if another is asked for, or graphs are new to it.

        Graphs that a network before it was trained on are in train. None too if that leaves less
        than a tenth of its validation or test graphs.
        """
        asked_for = config.split != "auto" or "train" in graphs.splits
        return None if asked_for or not self._enough else self._members

    @cached_property
    def _members(self) -> dict[str, Ints]:
        """What there is of each part; empty if some graphs are new."""
        if (self.part == "").any():
            return {}
        return {name: np.flatnonzero(self.part == name) for name in PARTS}

    @cached_property
    def _enough(self) -> bool:
        """Whether enough of each part is there for the split to be taken over."""
        parts = self._members
        if not parts or not all(map(len, parts.values())):
            return False
        return all(len(parts[n]) >= LEAST_LEFT * (self.own == n).sum() for n in PARTS[1:])

    def _on_split(self, config: RunConfig, graphs: GraphSet) -> list[str]:
        """A sentence on the split taken over, or on why it is not."""
        parts = self._members
        if not parts or config.split != "auto" or "train" in graphs.splits:
            return []
        were = "were" if len(self.before) > 1 else "was"
        without = f"without what {' and '.join(self.before)} {were} trained on"
        counts = "/".join(f"{len(rows):,}" for rows in parts.values())
        if not self._enough:
            left = " and ".join(
                f"{len(parts[name]):,} of its {(self.own == name).sum():,} {name} graphs"
                for name in PARTS[1:]
            )
            with_those = f"{without} it has" if self.before else "among these graphs are"
            return [f"The split of {self.name} is not taken over: {with_those} {left}."]
        if (self.own == self.part).all():
            return [f"The split is that of {self.name}, which has all these graphs."]
        if (self.own == "").any():
            return [
                f"The split is made of those of {self.name} and of the runs it goes back to, with "
                f"all that any was trained on in train: {counts} graphs."
            ]
        return [f"The split is that of {self.name} {without}: {counts} graphs."]

    def parts(self, config: RunConfig, graphs: GraphSet) -> Parts:
        """The graphs in their split, with what of validation and test was trained on."""
        splits = self.splits(config, graphs)
        parts = prepare(config, graphs, splits)
        notes, of_test = [*parts.notes, *self._on_split(config, graphs)], ""
        advice = "hold out others with --split file:PATH"
        if self.splits(replace(config, split="auto"), graphs) is not None:
            advice = "leave out --split to take its split"
        held_out = {name: parts.splits[name] for name in PARTS[1:]}
        for flags, how, effect in (
            (self.possible, "may have been", "may look better than they are, as that is not known"),
            (self.part == "train", "was", "look better than they are"),
        ):
            counts = {name: int(flags[rows].sum()) for name, rows in held_out.items()}
            listed = " and ".join(
                f"{count:,} of the {len(held_out[name]):,} graphs in {name}"
                for name, count in counts.items()
                if count
            )
            which = f"{self.name} {how} trained on"
            if listed:
                notes.append(f"{which} {listed}: scores and intervals {effect}; {advice}.")
            if counts["test"]:
                of_test = f"{counts['test']:,} of which {which}"
        return replace(parts, notes=tuple(notes), trained_before=of_test)


def _ancestry(start: Start) -> Iterator[tuple[str, Run | None]]:
    """Name and run of the network, of the one that run started from, and so on.

    The run is None where it is not there.
    """
    name, run, folders = start.name, start.run, set[str]()
    while True:
        yield name, run
        if run is None or not run.config.start or str(run.folder) in folders:
            return
        folders.add(str(run.folder))
        name = run.config.start
        try:
            run = Start.find(name).run
        except DataError:
            run = None


def _parts_in(run: Run, graphs: GraphSet) -> NDArray[np.str_]:
    """For each graph its part in the split of a run, empty if it has none.

    Raises:
        DataError: The run's graphs cannot be had again, and their keys cannot be compared.
    """
    try:
        own = _own_parts(run, graphs)
        if (smiles_of(own.graphs) is None) != (smiles_of(graphs) is None):
            raise DataError("molecules are compared with graphs")
    except DataError:
        kept = None if is_pretrained(run.folder) else run.files.graph_keys()
        if kept is None:
            raise
        these = GraphKeys.of(graphs if kept.by == "SMILES" else run.parts_of(graphs).graphs)
        if these.by != kept.by:
            raise DataError("molecules are compared with graphs") from None
        return _looked_up(these.keys, kept.keys, run.files.splits())
    return _looked_up(graph_keys(graphs), graph_keys(own.graphs), own.splits)


def _own_parts(run: Run, graphs: GraphSet) -> Parts:
    """The graphs of a run in their split.

    A network of the package has no split in its folder; on the same data it is made again.
    """
    splits = None if is_pretrained(run.folder) else run.files.splits()
    try:
        own = chosen_graphs(run.config, graphs) if splits is None else run.own_graphs()
    except DataError:  # they were in memory: perhaps they are the same again
        own = chosen_graphs(run.config, graphs)
    parts = prepare(run.config, own, splits)
    run.trained_on.refuse_other(parts.graphs, run.folder)
    return replace(parts, graphs=own)


def _looked_up(
    keys: Sequence[object], known: Sequence[object], splits: Mapping[str, Ints]
) -> NDArray[np.str_]:
    """For each key the part of the known ones it is in: train if it is in several."""
    parts = {known[i]: name for name in reversed(PARTS) for i in splits[name]}
    return np.array([parts.get(key, "") for key in keys], dtype="U10")


def _within_range(run: Run | None, graphs: GraphSet) -> NDArray[np.bool_]:
    """For each graph whether a run may have been trained on it, by the ranges of its graphs."""
    everything = np.ones(len(graphs), dtype=bool)
    try:
        if run is None or run.calibration is None:
            return everything
        known = {name: value for name, value in graphs.source.items() if name != "not_read"}
        matched = run.parts_of(replace(graphs, source=known)).graphs
        within = np.array([not outside for outside in run.calibration.training.notes(matched)])
        held_out = run.folder / HELD_OUT
        if (smiles := smiles_of(graphs)) is not None and held_out.is_file():
            never = set(smiles_of(read_graphs(held_out, target=(), smiles="smiles")) or ())
            within &= np.array([text not in never for text in smiles])
        return within
    except DataError:  # other features
        return everything
