"""Predictions by the actors of a Ray cluster: Ray Data sends them chunks, and the rows come back.

The run's files are sent along, so that actors on other machines need not see its folder; they need
g2n2 itself. An actor that dies is started anew, and its chunk computed again, by Ray Data.
"""

from __future__ import annotations

import logging
import os
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from ..data.readers.options import Options
from ..data.streaming import Chunk
from ..errors import DataError, G2N2Error, TrainingError
from ..input_files import printable
from .predict_file import ChunkPredictor, Written, files_of

WINDOW = 1024
"""Chunks that are with the cluster at a time; actors are kept for as many."""
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

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        made = [self._answer(pickle.loads(chunk)) for chunk in batch["chunk"]]
        answers = np.array([pickle.dumps(answer) for answer in made], dtype=object)
        return {"number": batch["number"], "answer": answers}

    def _answer(self, chunk: Chunk) -> Written | G2N2Error:
        try:
            return self._predict(chunk)
        except G2N2Error as fault:
            return fault


def predicted_by_ray(
    predictor: ChunkPredictor, chunks: Iterator[Chunk], address: str | None, workers: int
) -> Iterator[Written]:
    """What a run says of chunks, in their order.

    Args:
        predictor: Holds the run and how records are read.
        chunks: Of a file.
        address: Of a cluster; None for RAY_ADDRESS, or one on this machine.
        workers: Actors, each with a CPU and, for the device cuda, a GPU.

    Raises:
        DataError: Ray is not installed or there is no cluster at the address; or as a chunk gives.
    """
    run = predictor.run
    arguments = (
        run.folder.resolve().name,
        files_of(run),
        run.device.type,
        predictor.options,
        predictor.interval,
    )
    with _cluster(address, workers) as ray:
        from ray.data import ActorPoolStrategy, DataContext

        settings = DataContext.get_current()
        settings.execution_options.preserve_order = True
        settings.enable_progress_bars = False
        numbers = count()
        expected = count()
        while sent := [
            {"number": number, "chunk": pickle.dumps(chunk)}
            for chunk, number in zip(islice(chunks, WINDOW), numbers, strict=False)
        ]:
            answers = ray.data.from_items(sent, override_num_blocks=len(sent)).map_batches(
                ChunkActor,
                fn_constructor_args=arguments,
                batch_size=1,
                compute=ActorPoolStrategy(size=min(workers, len(sent))),
                num_cpus=1,
                num_gpus=1 if run.device.type == "cuda" else 0,
            )
            for row in answers.iter_rows():
                if row["number"] != next(expected):
                    raise RuntimeError("Ray gave the chunks in another order")
                answer = pickle.loads(row["answer"])
                if isinstance(answer, G2N2Error):
                    raise answer
                yield answer


@contextmanager
def _cluster(address: str | None, workers: int) -> Iterator[Any]:
    """Ray, connected to a cluster or with one of its own that ends with the context."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError:
        raise DataError("--engine ray needs Ray: pip install 'g2n2[scale]'") from None
    logging.getLogger("ray").setLevel(logging.ERROR)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield ray
        return
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = address or os.environ.get("RAY_ADDRESS")
    if address and address != "local":
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as fault:
            raise DataError(
                f"there is no Ray cluster at {address} ({str(fault).splitlines()[0]}): start one "
                "with ray start --head, or leave out --ray-address"
            ) from None
    else:
        ray.init(
            address="local",
            num_cpus=workers + 1,
            include_dashboard=False,
            object_store_memory=STORE,
            **quiet,
        )
    try:
        yield ray
    except (ray.exceptions.RayError, ray.data.exceptions.SystemException) as fault:
        lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
        raise TrainingError(
            f"the Ray cluster failed ({printable(lines[-1] if lines else type(fault).__name__)}): "
            "its machines need g2n2 with the extra chem. What was predicted is kept: go on with "
            "--resume"
        ) from None
    finally:
        ray.shutdown()
