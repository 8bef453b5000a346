"""Predictions for a file, made and written chunk by chunk; cut off, they go on where they were."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from torch import nn

from .. import __version__
from ..data.graph_set import GraphSet
from ..data.readers.options import SHOWN, Options, settle_bad_records
from ..data.streaming import Chunk, GraphStream, read_chunk
from ..described import Described
from ..errors import DataError
from ..partial_output import PartialOutput, partial_output
from .evaluate import Predictions
from .interruption import Interruption
from .manifest import NAME as MANIFEST
from .predict import Row, csv_header, csv_lines, prediction_columns, prediction_rows
from .run_folder import BEST, CALIBRATION, DESCRIPTION, checksum, ids_checksum

if TYPE_CHECKING:
    from .run import Run

CHUNK = 1024
"""Records computed and written together."""
Engine = Literal["local", "ray"]
ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Written:
    """What a chunk of records gave.

    Attributes:
        text: Its lines of CSV.
        records: In the chunk.
        rows: Predictions among the lines.
        bad: For each record that cannot be read where it stands and why.
        first_bad: What the first of those is called, and why it cannot be read.
    """

    text: bytes
    records: int
    rows: int
    bad: tuple[str, ...]
    first_bad: tuple[str, str] | None


@dataclass(frozen=True, repr=False)
class Predicted(Described):
    """What predictions for a file came to.

    Attributes:
        path: The CSV file.
        rows: Predictions in it.
        records: Of the input.
        unread: Records without a prediction.
        first_unread: What the first of those is called, and why it has none.
        repeated: The first id, if any, that more than one record has.
    """

    path: Path
    rows: int
    records: int
    unread: int
    first_unread: tuple[str, str] | None
    repeated: str | None

    def facts(self) -> dict[str, str]:
        """The predictions in a few words, for `repr` and notebooks."""
        found = {"path": str(self.path), "predictions": f"{self.rows:,}"}
        return found | ({"not read": f"{self.unread:,}"} if self.unread else {})


class ChunkPredictor:
    """What a run says of chunks of records; the network is loaded once.

    Args:
        run: The run.
        options: How records are read.
        interval: The level of the intervals; 0 for none.
    """

    def __init__(self, run: Run, options: Options, interval: float) -> None:
        self.run, self.options, self.interval = run, options, interval
        self.columns = prediction_columns(
            run.files.data("level"), run.task, run.calibration, truth=False, interval=interval
        )
        self._model: nn.Module | None = None

    def __call__(self, chunk: Chunk) -> Written:
        graphs = read_chunk(chunk, self.options)
        rows = self._rows(graphs)
        lost: dict[int, str] = graphs.source.get("unread", {})
        names = chunk.names or graphs.source.get("record_ids", ())
        numbered = names == tuple(map(str, range(chunk.first, chunk.first + len(names))))
        bad = tuple(
            f"{chunk.places[place] if chunk.places else f'record {place + 1}'}"
            f"{'' if numbered else f' ({names[place]})'}: {why}"
            for place, why in lost.items()
        )
        first = (names[min(lost)], lost[min(lost)]) if lost else None
        text = csv_lines(rows, self.columns)
        return Written(text, len(chunk), len(rows) - len(lost), bad, first)

    def _rows(self, graphs: GraphSet) -> list[Row]:
        run, calibration = self.run, self.run.calibration
        if len(graphs):
            parts = run.parts_of(graphs)
            graphs = parts.graphs
            if self._model is None:
                self._model = run.network(parts)
            made = run.made_by(self._model, parts, np.arange(len(graphs)))
        else:
            calibration = None
            none = np.zeros((0, len(run.task.columns)))
            made = Predictions(np.zeros(0, dtype=np.int64), np.zeros((0, run.task.out)), none)
        return prediction_rows(
            graphs,
            run.task,
            made,
            truth=False,
            unread=True,
            calibration=calibration,
            interval=self.interval,
        )


def predict_to(
    run: Run,
    source: str | Path | GraphSet,
    out: Path,
    options: Mapping[str, Any] | None,
    interval: float,
    *,
    resume: bool = False,
    chunk: int = CHUNK,
    engine: Engine = "local",
    ray_address: str | None = None,
    workers: int = 2,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Predicted:
    """Predictions for the graphs of a file, written to a CSV file; see `Run.predict_to`.

    Args:
        run: The run.
        source: A file, a folder, a data set's name, or graphs.
        out: The CSV file; `OUT.partial` while it is made.
        options: Of reading.
        interval: The level of the intervals; 0 for none.
        resume: Go on with an output that was cut off.
        chunk: Records computed and written together.
        engine: `local`, this process; or `ray`, actors of a Ray cluster.
        ray_address: Of the cluster: `auto`, or HOST:PORT; None for one on this machine, unless
            RAY_ADDRESS is set.
        workers: Actors of the cluster.
        progress: Told the records done and those there are, after every chunk.

    Raises:
        DataError: As `Run.predict_to`.
        KeyboardInterrupt: Ctrl-C or SIGTERM, once the chunk in hand is written.
    """
    if chunk < 1:
        raise DataError(f"chunk is {chunk}, expected at least 1")
    if engine not in ENGINES:
        raise DataError(f"engine is {engine!r}, expected {' or '.join(ENGINES)}")
    with Interruption() as interruption:
        before = _stamp(source)
        stream = run.stream(source, options)
        predictor = ChunkPredictor(run, stream.options, interval)
        made_of = {
            "input": _input(source, stream),
            "run": _run_digest(run),
            "options": json.dumps({**_said(stream.options), "interval": interval}),
            "chunk": str(chunk),
            "device": run.device.type,
            "g2n2": __version__,
        }
        head = csv_header(predictor.columns)
        with partial_output(out, made_of, head, resume=resume) as output:
            chunks = stream.chunks(chunk, output.done.records)
            if engine == "ray":
                from .ray_engine import predicted_by_ray

                results = predicted_by_ray(predictor, chunks, ray_address, workers)
            else:
                results = map(predictor, chunks)
            progress(output.done.records, stream.total)
            for written in results:
                _refuse_bad(written, stream, output)
                output.add(written.text, written.records, _counts(output, written))
                progress(output.done.records, stream.total)
                if interruption.asked:
                    raise KeyboardInterrupt
            if _stamp(source) != before:
                output.dropped = True
                raise DataError(f"{stream.label} was changed while it was read: begin anew")
            _refuse_nothing(stream, output)
        counts = output.done.counts
        first = counts.get("first_bad")
        return Predicted(
            out,
            counts.get("rows", 0),
            stream.total,
            counts.get("unread", 0),
            (first[0], first[1]) if first else None,
            stream.repeated,
        )


def _counts(output: PartialOutput, written: Written) -> dict[str, Any]:
    """Of all records up to here."""
    so_far = output.done.counts
    first = so_far.get("first_bad") or written.first_bad
    return {
        "rows": so_far.get("rows", 0) + written.rows,
        "unread": so_far.get("unread", 0) + len(written.bad),
        "bad": [*so_far.get("bad", ()), *written.bad][:SHOWN],
        "first_bad": list(first) if first else None,
    }


def _refuse_bad(written: Written, stream: GraphStream, output: PartialOutput) -> None:
    """Refuse records that cannot be read, where the user asked for that."""
    if written.bad and stream.options.on_bad == "refuse":
        output.dropped = True
        settle_bad_records(written.bad, stream.total, stream.label, "refuse")


def _refuse_nothing(stream: GraphStream, output: PartialOutput) -> None:
    """Refuse a file of which no record can be read."""
    counts = output.done.counts
    if counts.get("unread", 0) == stream.total:
        output.dropped = True
        rest = max(0, stream.total - SHOWN)
        settle_bad_records([*counts["bad"], *[""] * rest], stream.total, stream.label, "skip")


def _said(options: Options) -> dict[str, Any]:
    unset = asdict(Options())
    return {name: value for name, value in asdict(options).items() if value != unset[name]}


def _stamp(source: str | Path | GraphSet) -> tuple[int, int] | None:
    """What changes where a file does."""
    if isinstance(source, GraphSet) or not os.path.isfile(source):
        return None
    found = os.stat(source)
    return found.st_size, found.st_mtime_ns


def _input(source: str | Path | GraphSet, stream: GraphStream) -> str:
    """The input by its name and the checksum of what it holds."""
    if stream.graphs is not None:
        return f"{stream.name}, {checksum(stream.graphs)[:16]}{ids_checksum(stream.graphs)[:16]}"
    path = Path(str(source))
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in filter(Path.is_file, files):
        with file.open("rb") as content:
            digest.update(file.name.encode(errors="replace"))
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return f"{path.name}, {digest.hexdigest()[:32]}"


def files_of(run: Run) -> dict[str, bytes]:
    """The files of a run folder that predictions are made with."""
    paths = (run.folder / name for name in (*DESCRIPTION, CALIBRATION, BEST, MANIFEST))
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def _run_digest(run: Run) -> str:
    """The run by its name and the checksum of the files its predictions depend on."""
    digest = hashlib.sha256()
    for name, content in files_of(run).items():
        if name != MANIFEST:
            digest.update(name.encode() + content)
    return f"{run.folder.name}, {digest.hexdigest()[:32]}"
