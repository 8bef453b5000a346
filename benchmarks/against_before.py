"""A training step on a CPU beside that of another version of g2n2, taken in turns.

    git worktree add build/before cd93403~1
    python benchmarks/against_before.py build/before/src --out results/bench/before.cpu.json

Each version runs in a process of its own, on the same random batches of 32 graphs: sizes of QM9's
molecules and of Lipophilicity's, one and two threads. A round is a step of each, one after the
other; the ratio is the median over rounds of CPU time (one thread) or of the clock (two).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import IO, Any, cast

import numpy as np

QM9 = (
    "9:172 10:483 11:1053 12:2189 13:4027 14:6758 15:10216 16:13824 17:16969 18:17442 19:18146 "
    "20:12403 21:13166 22:4428 23:6362 24:712 25:1923 26:59 27:356 29:35"
)
LIPOPHILICITY = (
    "7:2 8:1 9:5 10:26 11:29 12:26 13:42 14:34 15:64 16:92 17:127 18:131 19:158 20:151 21:131 "
    "22:154 23:171 24:153 25:198 26:209 27:217 28:225 29:210 30:214 31:213 32:204 33:225 34:205 "
    "35:147 36:109 37:80 38:74 39:45 40:20 41:27 42:21 43:14 44:15 45:8 46:4 47:6 50:3 58:1 61:1 "
    "65:1 72:1 100:1 115:1"
)
"""Number of atoms to number of molecules."""
SETS = {"QM9": QM9, "Lipophilicity": LIPOPHILICITY}
BATCH, BATCHES = 32, 4


def drawn(name: str) -> list[list[int]]:
    """Sizes of the graphs of each batch."""
    pairs = [part.split(":") for part in SETS[name].split()]
    sizes, counts = (np.array([int(pair[k]) for pair in pairs]) for k in (0, 1))
    chosen = np.random.default_rng(0).choice(sizes, BATCH * BATCHES, p=counts / counts.sum())
    return [[int(n) for n in part] for part in chosen.reshape(BATCHES, BATCH)]


def work(name: str, threads: int, preset: str) -> None:
    """Answer every line of the input with the seconds of a step: of the CPU, and of the clock."""
    import torch

    from g2n2.data.batch import GraphBatch
    from g2n2.nn import GrammarGNN

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    draw = np.random.default_rng(1)
    batches = []
    for sizes in drawn(name):
        upper = [np.triu(draw.random((n, n)) < 2 / n, 1).astype(np.float32) for n in sizes]
        nodes = [draw.standard_normal((n, 11)).astype(np.float32) for n in sizes]
        edges = [draw.standard_normal((n, n, 4)).astype(np.float32) for n in sizes]
        matrices = [matrix + matrix.T for matrix in upper]
        batches.append(GraphBatch.of(matrices, nodes, edges, dtype=torch.float32))
    model = GrammarGNN("r-G_L3", 11, 4, width=64, layers=3, preset=preset)
    optimiser = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    for number, _ in enumerate(sys.stdin):
        clock, cpu = time.perf_counter(), time.process_time()
        optimiser.zero_grad(set_to_none=True)
        model(batches[number % BATCHES]).abs().mean().backward()
        optimiser.step()
        print(time.process_time() - cpu, time.perf_counter() - clock, flush=True)


class Worker:
    """A version of g2n2 in a process."""

    def __init__(self, source: str, name: str, threads: int, preset: str) -> None:
        environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, __file__, "--work", name, str(threads), preset]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def step(self) -> tuple[float, float]:
        given, answers = cast(IO[str], self.process.stdin), cast(IO[str], self.process.stdout)
        given.write("\n")
        given.flush()
        cpu, clock = map(float, answers.readline().split())
        return cpu, clock

    def end(self) -> None:
        cast(IO[str], self.process.stdin).close()
        self.process.wait()


def compared(before: str, name: str, threads: int, preset: str, rounds: int) -> dict[str, Any]:
    """How long a step takes now, as a share of what it took before."""
    now = str(Path(__file__).resolve().parents[1] / "src")
    workers = [Worker(source, name, threads, preset) for source in (before, now)]
    try:
        for _ in range(2 * BATCHES):
            for worker in workers:
                worker.step()
        times = [[worker.step() for worker in workers] for _ in range(rounds)]
    finally:
        for worker in workers:
            worker.end()
    kind = 0 if threads == 1 else 1
    ratios = sorted(new[kind] / old[kind] for old, new in times)
    return {
        "sizes": name,
        "threads": threads,
        "preset": preset,
        "rounds": rounds,
        "ratio": round(median(ratios), 3),
        "quarters": [round(ratios[len(ratios) * k // 4], 3) for k in (1, 3)],
        "milliseconds": round(1e3 * median(new[1] for _, new in times), 1),
        "timed": ("CPU", "clock")[kind],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", nargs="?", help="the folder src of the other version")
    parser.add_argument("--out", type=Path, help="JSON to write")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--preset", default="modern")
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.work[0], int(given.work[1]), given.work[2])
        return
    rows = []
    for name in SETS:
        for threads in (1, 2):
            rows.append(compared(given.before, name, threads, given.preset, given.rounds))
            print(rows[-1], flush=True)
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
