"""Predictions for a file, written chunk by chunk, resumable, by this process or a Ray cluster."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import __version__
from ..atomic_files import refuse_overwriting
from ..data.graph_set import GraphSet
from ..data.readers import SHOWN, Options, settle_bad_records
from ..data.readers.molecules import fragment_notes
from ..data.reading import Chunk, GraphStream, read_chunk
from ..described import Described
from ..errors import DataError, G2N2Error, TrainingError
from ..input_files import printable
from ..partial_output import partial_output
from .calibration import NO_CALIBRATION
from .checkpoint import MANIFEST
from .evaluate import NOT_PREDICTED, Outcome, csv_lines
from .processes import Interruption
from .run_folder import BEST, CALIBRATION, DESCRIPTION
from .trained_on import checksum, ids_checksum

if TYPE_CHECKING:
    from .run import Run

CHUNK = 1024
"""Records computed and written together."""
Engine = Literal["local", "ray"]
ENGINES = ("local", "ray")


@dataclass(frozen=True)
class PredictedChunk:
    """Predictions for a chunk of records."""

    text: bytes  # lines of CSV
    records: int  # in the chunk
    bad: tuple[str, ...]  # position and reason of each record that cannot be read
    first_empty: tuple[str, str] | None  # id and reason of the first record without a prediction
    # `rows` (predictions among the lines), `noted` (those with a note), `unread` records, molecules
    # with `unseen` elements and `fragmented` molecules
    counts: Mapping[str, int]

    def added_to(self, so_far: Mapping[str, Any]) -> dict[str, Any]:
        """What is counted up to here, for the journal of the output."""
        first = so_far.get("first_empty") or self.first_empty
        return {
            **{name: so_far.get(name, 0) + count for name, count in self.counts.items()},
            "bad": [*so_far.get("bad", ()), *self.bad][:SHOWN],
            "first_empty": list(first) if first else None,
        }


@dataclass(frozen=True, repr=False)
class PredictionFile(Described):
    """A file of predictions.

    Attributes:
        path: The CSV file.
        rows: Predictions in it.
        records: Of the input.
        unread: Records without a prediction: not readable, or with an unseen element.
        first_unread: Id and reason of the first of them.
        repeated: The first id, if any, that more than one record has.
        noted: Predictions with a note on how the graph is unlike the training graphs.
        notes: What there is to say about the columns and the molecules, a sentence each.
    """

    path: Path
    rows: int
    records: int
    unread: int
    first_unread: tuple[str, str] | None
    repeated: str | None
    noted: int
    notes: tuple[str, ...]

    def facts(self) -> dict[str, str]:
        facts = {"path": str(self.path), "predictions": f"{self.rows:,}"}
        counts = {"not read": self.unread, "with a note": self.noted}
        return facts | {name: f"{count:,}" for name, count in counts.items() if count}


class ChunkPredictor:
    """Predicts chunks of records; the network is loaded once."""

    def __init__(self, run: Run, options: Options, interval: float) -> None:
        self.run, self.options, self.interval = run, options, interval
        nothing = run.trained_on.no_graphs(), run.task, np.zeros(0, np.int64)
        values = np.zeros((0, run.task.out))
        self.empty = Outcome(*nothing, values, run.calibration or NO_CALIBRATION, interval)

    def __call__(self, chunk: Chunk) -> PredictedChunk:
        graphs = read_chunk(chunk, self.options)
        if len(graphs):
            parts = self.run.parts_of(graphs)
            outcome = self.run.outcome(parts, np.arange(len(graphs)), self.interval)
        else:
            outcome = replace(self.empty, graphs=replace(self.empty.graphs, source=graphs.source))
        rows = outcome.rows()
        reasons: dict[int, str] = graphs.source.get("unread", {})
        names = chunk.names or graphs.source.get("record_ids", ())
        numbered = names == tuple(map(str, range(chunk.first, chunk.first + len(names))))
        bad = tuple(
            f"{chunk.places[index] if chunk.places else f'record {index + 1}'}"
            f"{'' if numbered else f' ({names[index]})'}: {reason}"
            for index, reason in reasons.items()
        )
        empty = [row for row in rows if row["note"].startswith(NOT_PREDICTED)]
        first = (empty[0]["id"], empty[0]["note"].removeprefix(NOT_PREDICTED)) if empty else None
        counts = {
            "rows": len(rows) - len(empty),
            "noted": sum(bool(row["note"]) for row in rows) - len(empty),
            "unread": len(bad),
            "unseen": len(empty) - len(bad),
            "fragmented": graphs.source.get("fragmented", 0),
        }
        text = csv_lines(rows, self.empty.columns(), digits=self.run.trained_on.scaling.digits)
        return PredictedChunk(text, len(chunk), bad, first, counts)


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
) -> PredictionFile:
    """Write predictions for a file to a CSV file; see `Run.predict_to` for the other arguments.

    Args:
        resume: Continue an output that was cut off.
        chunk: Records computed and written together.
        engine: `local`, this process; or `ray`, actors of a Ray cluster.
        ray_address: Of the cluster: `auto`, or HOST:PORT; None for RAY_ADDRESS, or a cluster on
            this machine.
        workers: Actors of the cluster.
        progress: Called after every chunk with the records done and the number of all records.
    """
    files = [source] if isinstance(source, str | Path) else []
    refuse_overwriting(out, *files, run.config.dataset)
    if chunk < 1:
        raise DataError(f"chunk is {chunk}, expected at least 1")
    if engine not in ENGINES:
        raise DataError(f"engine is {engine!r}, expected {' or '.join(ENGINES)}")
    with Interruption() as interruption:
        before = _stamp(source)
        stream = run.stream(source, options)
        predictor = ChunkPredictor(run, stream.options, interval)
        default = asdict(Options())
        given = {k: v for k, v in asdict(stream.options).items() if v != default[k]}
        made_of = {
            "input": _input(source, stream),
            "run": _run_digest(run),
            "options": json.dumps({**given, "interval": interval}),
            "chunk": str(chunk),
            "device": run.device.type,
            "g2n2": __version__,
        }
        header = csv_lines([], predictor.empty.columns(), header=True)
        with partial_output(out, made_of, header, resume=resume) as output:
            chunks = stream.chunks(chunk, output.done.records)
            if engine == "ray":
                results = predicted_by_ray(predictor, chunks, ray_address, workers)
            else:
                results = map(predictor, chunks)
            progress(output.done.records, stream.total)
            for result in results:
                if result.bad and stream.options.on_bad == "refuse":
                    output.dropped = True
                    unseen = output.done.records + result.records < stream.total
                    settle_bad_records(
                        result.bad, stream.total, stream.label, "refuse", at_least=unseen
                    )
                output.add(result.text, result.records, result.added_to(output.done.counts))
                progress(output.done.records, stream.total)
                if interruption.asked:
                    raise KeyboardInterrupt
            if _stamp(source) != before:
                output.dropped = True
                raise DataError(f"{stream.label} was changed while it was read: begin anew")
            counts = output.done.counts
            if counts.get("unread", 0) == stream.total:  # no record could be read
                output.dropped = True
                bad = [*counts["bad"], *[""] * max(0, stream.total - SHOWN)]
                settle_bad_records(bad, stream.total, stream.label, "skip")
        first = counts.get("first_empty")
        return PredictionFile(
            out,
            counts.get("rows", 0),
            stream.total,
            counts.get("unread", 0) + counts.get("unseen", 0),
            (first[0], first[1]) if first else None,
            stream.repeated,
            counts.get("noted", 0),
            (*stream.notes, *fragment_notes(counts.get("fragmented", 0), stream.options.largest)),
        )


def _stamp(source: str | Path | GraphSet) -> tuple[int, int] | None:
    """Size and modification time of a file."""
    if isinstance(source, GraphSet) or not os.path.isfile(source):
        return None
    status = os.stat(source)
    return status.st_size, status.st_mtime_ns


def _input(source: str | Path | GraphSet, stream: GraphStream) -> str:
    """Name and checksum of the input."""
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
    """The files of a run folder that predictions need."""
    paths = (run.folder / name for name in (*DESCRIPTION, CALIBRATION, BEST, MANIFEST))
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def _run_digest(run: Run) -> str:
    """Name of the run and checksum of the files its predictions depend on."""
    digest = hashlib.sha256()
    for name, content in files_of(run).items():
        if name != MANIFEST:
            digest.update(name.encode() + content)
    return f"{run.folder.name}, {digest.hexdigest()[:32]}"


WINDOW = 4
"""Chunks that wait at each actor."""
LISTENING = 10.0
"""Seconds a cluster has to accept a connection."""
STORE = 2**28
"""Bytes of the object store of a cluster on this machine."""


class ChunkActor:
    """Loads the network once, then takes chunks."""

    def __init__(
        self, name: str, files: dict[str, bytes], device: str, options: Options, interval: float
    ) -> None:
        from .run import Run

        self._home = tempfile.TemporaryDirectory(prefix="g2n2-")
        folder = Path(self._home.name) / name
        folder.mkdir()
        for file, content in files.items():
            (folder / file).write_bytes(content)
        self._predict = ChunkPredictor(Run(folder, device), options, interval)

    def predict(self, chunk: Chunk) -> PredictedChunk | G2N2Error:
        try:
            return self._predict(chunk)
        except G2N2Error as fault:
            return fault


def predicted_by_ray(
    predictor: ChunkPredictor, chunks: Iterator[Chunk], address: str | None, workers: int
) -> Iterator[PredictedChunk]:
    """Predictions for chunks in their order, by Ray actors with a CPU and, on cuda, a GPU each.

    The run's files are sent along, so actors on other machines need g2n2 but not the run folder.
    Ray restarts an actor that dies and computes its chunks again.
    """
    run = predictor.run
    name, device = run.folder.resolve().name, run.device.type
    with _cluster(address, workers) as ray:
        arguments = name, ray.put(files_of(run)), device, predictor.options, predictor.interval
        of_actor = {"num_cpus": 1, "num_gpus": 1 if device == "cuda" else 0}
        actor = ray.remote(max_restarts=-1, max_task_retries=-1, **of_actor)(ChunkActor)
        actors = cycle([actor.remote(*arguments) for _ in range(workers)])
        sent = (next(actors).predict.remote(chunk) for chunk in chunks)
        waiting = deque(islice(sent, WINDOW * workers))
        while waiting:
            answer = ray.get(waiting.popleft())
            waiting.extend(islice(sent, 1))
            if isinstance(answer, G2N2Error):
                raise answer
            yield answer


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Drop what Ray's C++ code prints while it starts, such as the log level it was given."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _cluster(address: str | None, workers: int) -> Iterator[Any]:
    """Ray, connected to a cluster, or with a local one that ends with the context."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its faults reach us as exceptions
    try:
        import ray
    except ImportError:
        raise DataError("--engine ray needs Ray: pip install 'g2n2[scale]'") from None
    logging.getLogger("ray").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield ray
        return
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = address or os.environ.get("RAY_ADDRESS")
    if address and address != "local":
        try:
            host, colon, port = address.rpartition(":")
            if colon and port.isdecimal() and "/" not in host:  # Ray itself would try for minutes
                socket.create_connection((host.strip("[]"), int(port)), LISTENING).close()
            with _without_stderr():
                ray.init(address=address, **quiet)
        except (OSError, RuntimeError, ValueError) as fault:
            raise DataError(
                f"there is no Ray cluster at {address} ({str(fault).splitlines()[0]}): start one "
                "with ray start --head, or leave out --ray-address"
            ) from None
    else:
        with _without_stderr():
            ray.init(
                address="local",
                num_cpus=workers + 1,
                include_dashboard=False,
                object_store_memory=STORE,
                **quiet,
            )
    try:
        yield ray
    except ray.exceptions.RayError as fault:
        lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
        raise TrainingError(
            f"the Ray cluster failed ({printable(lines[-1] if lines else type(fault).__name__)}): "
            "its machines need g2n2 with the extra chem. What was predicted is kept: go on with "
            "--resume"
        ) from None
    finally:
        ray.shutdown()
