"""Computations in processes of their own, with progress, which can be cancelled.

A computation is `function(*arguments, report)`; function and arguments are pickled. Cancelling the
awaiting task terminates the process. Results are cached, so ten pages with the same example compute
it once.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from ..errors import G2N2Error
from ..language.operations import Operation, registered_operations
from ..language.registry import register

LIMIT_SECONDS = 180
_KEPT_RESULTS = 64
_LOG = logging.getLogger("g2n2.workbench")

Progress = Callable[[float, str], None]


class JobFailed(G2N2Error):
    """A computation that ended without a result; the message is for the page."""


class Jobs:
    """Runs computations, as many at once as there are processors."""

    def __init__(self, at_once: int | None = None) -> None:
        self.at_once = at_once or max(2, os.cpu_count() or 2)
        if sys.platform != "win32":
            self._processes = multiprocessing.get_context("forkserver")
            self._processes.set_forkserver_preload(
                ["g2n2.workbench.chain", "g2n2.workbench.pairs", "g2n2.workbench.network"]
            )
        else:
            self._processes = multiprocessing.get_context("spawn")
        self._free = asyncio.Semaphore(self.at_once)
        # A thread that waits for a cancelled process ends with it, a little later.
        self._threads = ThreadPoolExecutor(2 * self.at_once + 2, thread_name_prefix="workbench")
        self._results: OrderedDict[Any, Any] = OrderedDict()
        self.running: set[Any] = set()

    async def run(
        self, function: Callable[..., Any], *arguments: Any, progress: Progress, keep: bool = True
    ) -> Any:
        """The result of a computation.

        Args:
            function: Called in another process with the arguments and a progress function.
            arguments: Pickled; hashable where the result is kept.
            progress: Called here with the share done and what is being done.
            keep: Whether the result is kept for the next call with the same arguments.

        Raises:
            JobFailed: It failed or took too long.
        """
        key = (function, arguments)
        if keep and key in self._results:
            self._results.move_to_end(key)
            return self._results[key]
        if self._free.locked():
            progress(0.0, "waiting for a free processor")
        async with self._free:
            try:
                async with asyncio.timeout(LIMIT_SECONDS):
                    result = await self._run(function, arguments, progress)
            except TimeoutError:
                raise JobFailed(
                    f"stopped after {LIMIT_SECONDS} seconds; try fewer rules or smaller graphs, "
                    "or the command line, which has no limit"
                ) from None
        if keep:
            self._results[key] = result
            while len(self._results) > _KEPT_RESULTS:
                self._results.popitem(last=False)
        return result

    async def _run(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], progress: Progress
    ) -> Any:
        loop = asyncio.get_running_loop()
        receiver, sender = self._processes.Pipe(duplex=False)
        process = self._processes.Process(
            target=_work,
            args=(sender, function, arguments, registered_operations()),
            daemon=True,
        )
        self.running.add(process)
        started = loop.run_in_executor(self._threads, process.start)
        try:
            await asyncio.shield(started)  # a process that is half started cannot be ended
            sender.close()
            while True:
                kind, *content = await loop.run_in_executor(self._threads, receiver.recv)
                if kind == "progress":
                    progress(*content)
                elif kind == "result":
                    return content[0]
                else:
                    raise JobFailed(content[0])
        except EOFError:
            raise JobFailed("the computation ended without a result; try it again") from None
        finally:
            self.running.discard(process)
            started.add_done_callback(lambda _: process.terminate())

    def warm_up(self) -> None:
        """Start the process that all others are forked from; the first takes a second."""
        self._processes.Process(daemon=True).start()

    def close(self) -> None:
        """End everything that runs."""
        for process in list(self.running):
            if process.pid is not None:
                process.terminate()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _work(
    sender: Connection,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    operations: tuple[Operation, ...],
) -> None:
    """The whole life of a process: compute, and send what came out."""
    if hasattr(os, "nice"):
        os.nice(5)  # the page comes first

    def report(share: float, text: str) -> None:
        sender.send(("progress", share, text))

    try:
        for operation in operations:
            register(operation)
        sender.send(("result", function(*arguments, report)))
    except BrokenPipeError:
        return  # nobody waits for it any more
    except G2N2Error as fault:
        sender.send(("fault", str(fault).split("\n")[0]))
    except MemoryError:
        sender.send(("fault", "this needs more memory than there is; try smaller graphs"))
    except Exception as fault:
        traceback.print_exc()
        sender.send(
            ("fault", f"a fault of the workbench stopped this ({type(fault).__name__}); the "
             "terminal that runs it says more")
        )  # fmt: skip
