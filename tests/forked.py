"""Functions called in a process of their own, forked from one in which torch is imported already."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PRELOADED = [
    "g2n2.cli",
    "g2n2.training.session",
    "g2n2.training.display",
    "torch._dynamo",
    "torch.utils.tensorboard",
    "run_processes",
]
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(PRELOADED)


def in_fork(folder: Path, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of an importable module returns in a folder; what it registers is forgotten.

    Raises:
        AssertionError: It raised something; the message has what it printed and the traceback.
    """
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_call, args=(theirs, folder, function, arguments))
    process.start()
    theirs.close()
    try:
        done, answer = ours.recv()
    except EOFError:
        done, answer = False, "the process ended without a word"
    process.join()
    assert done, f"{answer} (exit code {process.exitcode})"
    return answer


def _call(
    pipe: Any, folder: Path, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    os.chdir(folder)
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            answer = function(*arguments)
    except BaseException:
        pipe.send((False, said.getvalue() + traceback.format_exc()))
    else:
        pipe.send((True, answer))
