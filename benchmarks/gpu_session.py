"""What is to be measured and trained next on a machine with one H200, as commands of its own.

    python benchmarks/gpu_session.py prepare             # here: data, graphs of molecules, QM9
    python benchmarks/gpu_session.py train --out DIR     # there, within --minutes; also measure,
                                                         # grammars, large and speedrun
    python benchmarks/gpu_session.py collect FILE …      # here: records into results/

A command goes through its stages; lanes of a stage run side by side, commands of a lane one after
the other. When time is up, what runs is stopped as by Ctrl-C: whole cells have records, others
checkpoints, and the same command goes on from both. What was made comes back as archives in DIR.
benchmarks/README.md has the estimates and says which lanes decide about an aim.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
SESSION = ROOT / "build" / "session"
DATA, RESULTS, WORK = SESSION / "data", SESSION / "results", SESSION / "work"
LOGS, SHIMS, CACHE = SESSION / "logs", SESSION / "shims", DATA / "qm9.cache"
ARCHIVE_BYTES, ARCHIVES = 15 * 2**20, 5
"""Of an archive that comes back, and how many there are of unfinished work."""
SPARE = {"checkpoint.previous.pt", "tensorboard"}
"""Files and folders of a run that nothing is continued from."""
TESTS = 120.0
"""Seconds for the tests, at most."""
GRACE, LEAST, PACKING = 20.0, 5.0, 15.0
"""Seconds to write checkpoints in, to begin a command with, and to pack in the end."""

MARK = "pytest.mark." + "gpu"
Command = list[str]
Lane = list[Command]
Stage = dict[str, Lane]


def cells(question: str, *only: str, jobs: int = 1, seed: int | None = None) -> Command:
    """Cells of a question that have no record, of one seed or all; `jobs` of them at a time."""
    chosen = [word for part in only for word in ("--only", part)]
    return [
        question,
        "--jobs",
        str(jobs),
        *chosen,
        *([] if seed is None else ["--seed", str(seed)]),
    ]


def bench(*cases: str) -> Command:
    return ["bench", *(word for case in cases for word in ("--case", case))]


def gpu_tests() -> Stage:
    """A lane for each file with tests that need a GPU."""
    files = sorted(p for p in (ROOT / "tests").rglob("test_*.py") if MARK in p.read_text("utf-8"))
    words = ["pytest", "-v", "-m", "gpu", "-o", "addopts=--import-mode=importlib"]
    words += ["-k", "not what_others_hold"]  # which wants the GPU for itself
    return {path.stem: [[*words, str(path.relative_to(ROOT))]] for path in files}


KERNELS = "benchmarks/without_kernels.py"
SINGLE = "single/{}/distance/{}/defaults{}/epochs-100"
CALLS: dict[str, list[Stage]] = {
    "measure": [
        {
            "bench": [
                bench("training", "inference", "epoch", "product", "large", "profile"),
                cells("q1", "speed/grammars"),
                cells("q2", "speed/networks"),
                bench("marks", "nodes", "width", "batch", "marks-nodes"),
                [KERNELS, "--out", "results/bench-kernels/h200.json"],
            ]
        },
        gpu_tests(),
    ],
    "train": [
        {
            "mu": [cells("q2", SINGLE.format("mu", "G2N2+D", ""))],
            "r2": [cells("q2", SINGLE.format("r2", "G2N2+D", ""), seed=0)],
            "u0": [cells("q2", SINGLE.format("u0", "G2N2", "/wider"))],
            "peers": [cells("q2", "single/u0/distance/ViSNet"), cells("q2", "SchNet")],
            "tu": [cells("q3", "errica", jobs=6)],
            "molecules": [cells("molecules", "GINE", jobs=2)],
            "power": [cells("power", "exp/G2N2Σ-4+1", jobs=2)],
        },
    ],
    "grammars": [{"q1": [cells("q1", "equal-parameters", "equal-time", jobs=14)]}],
    "large": [
        {
            "large": [cells("q2", "width-128", jobs=3)],
            "paper": [cells("q2", "paper/epochs-100", jobs=2)],
        }
    ],
    "speedrun": [{"speedrun": [["benchmarks/speedrun.py", "run", "results/speedrun/h200-2.json"]]}],
}


def prepare(data: Path) -> None:
    """All that the machine lacks, in a folder that travels with the repository."""
    from g2n2.data.qm9 import load_qm9
    from g2n2_paper.molecule_sets import SETS, write_graphs

    DATA.mkdir(parents=True, exist_ok=True)
    for source in (path for path in data.rglob("*") if path.is_file()):
        (DATA / source.relative_to(data).parent).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, DATA / source.relative_to(data))
    for molecules in SETS:
        write_graphs(molecules, DATA, str(data))
    load_qm9("ppgn", "distance", cache=CACHE)
    size = sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file())
    print(f"{size / 2**20:.0f} MiB in {DATA}")


def run(call: str, out: Path, minutes: float, smoke: bool) -> None:
    """Go through the stages of a call."""
    deadline = time.monotonic() + 60.0 * minutes - GRACE - PACKING
    for folder in (out, WORK, LOGS):
        folder.mkdir(parents=True, exist_ok=True)
    if not RESULTS.exists():
        shutil.copytree(ROOT / "results", RESULTS)
    if find_spec("lightning") is None:
        stand_in_for_lightning()
    since, over = time.time(), threading.Event()

    def pack_now_and_then() -> None:
        while not over.wait(60.0):
            pack_records(out, call, since)

    packing = threading.Thread(target=pack_now_and_then)
    packing.start()
    shares = call not in ("measure", "speedrun") and shutil.which("nvidia-cuda-mps-control")
    if shares:  # processes then share the GPU at the same time, not in turns
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)
    begun: set[str] = set()
    try:
        for stage in CALLS[call]:
            if smoke:
                stage = {name: once(lane, begun) for name, lane in stage.items()}
            tests = any(lane and lane[0][0] == "pytest" for lane in stage.values())
            until = min(deadline, time.monotonic() + TESTS) if tests else deadline
            lanes = [
                threading.Thread(target=run_lane, args=(name, lane, until, smoke))
                for name, lane in stage.items()
            ]
            for lane in lanes:
                lane.start()
            for lane in lanes:
                lane.join()
    finally:
        over.set()
        packing.join()
        if shares:
            subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", check=False)
        pack_records(out, call, since)
        if call != "measure":
            pack_work(out, call, since)


def stand_in_for_lightning() -> None:
    """`lightning.fabric` where only pytorch-lightning is installed, which has it too."""
    package = SHIMS / "lightning"
    package.mkdir(parents=True, exist_ok=True)
    lines = ["import sys", "import lightning_fabric.strategies", "fabric = lightning_fabric"]
    lines += [
        f'sys.modules["lightning.fabric{tail}"] = lightning_fabric{tail}'
        for tail in ("", ".strategies")
    ]
    (package / "__init__.py").write_text("\n".join(lines) + "\n", encoding="utf-8")


def once(lane: Lane, begun: set[str]) -> Lane:
    """Commands of a kind that was not tried yet: tiny settings make all of a kind the same."""
    new = []
    for command in lane:
        if command[0] not in begun:
            new.append(command)
        begun.add(command[0])
    return new


def run_lane(name: str, lane: Lane, deadline: float, smoke: bool) -> None:
    """Run commands until time is up; what they print is kept."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (SHIMS, ROOT / "src"))),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "G2N2_DATA": str(DATA),
        "TRITON_CACHE_DIR": str(SESSION / "triton"),
    }
    for command in lane:
        left = deadline - time.monotonic()
        if left < LEAST:
            print(f"{name}: no time for {' '.join(command)}", flush=True)
            return
        words, started = words_of(command, smoke), time.monotonic()
        with (LOGS / f"{name}.txt").open("ab") as log:
            process = subprocess.Popen(
                words, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=SESSION
            )
            try:
                process.wait(left)
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    process.kill()
        seconds = time.monotonic() - started
        print(
            f"{name}: code {process.returncode}, {seconds:.0f} s, {' '.join(command)}", flush=True
        )


def words_of(command: Command, smoke: bool = False) -> list[str]:
    """A command with its paths; with `smoke`, the smallest that shows that it runs."""
    first, *rest = command
    if first == "pytest":
        *options, path = rest
        return [sys.executable, "-m", first, *options, *["--co"] * smoke, str(ROOT / path)]
    if first.endswith(".py"):
        tiny = ["--smoke"] if first.endswith("kernels.py") else ["--limit", "300", "--epochs", "2"]
        cache = [] if first.endswith("kernels.py") else ["--cache", str(CACHE)]
        return [sys.executable, str(ROOT / first), *rest, *cache, *(tiny if smoke else [])]
    if first == "bench":
        rest = ["--case", "cpu-train-32", "--quick"] if smoke else rest
        folder = ["--out", str(RESULTS / "bench")]
    else:
        jobs = rest[rest.index("--jobs") : rest.index("--jobs") + 2]
        rest = [*jobs, "--smoke"] if smoke else rest
        results = SESSION / "smoke" if smoke else RESULTS
        folder = ["--results", str(results), "--work", str(WORK), "--data", str(DATA)]
    cache = [] if smoke and first == "bench" else ["--cache", str(CACHE)]
    return [sys.executable, "-m", "g2n2_paper", first, *rest, *folder, *cache]


def pack_records(out: Path, call: str, since: float) -> None:
    """Records made since a time, and what commands printed."""
    made = (p for p in RESULTS.rglob("*.json") if p.stat().st_mtime >= since)
    archive(out / f"{call}-records.tar.gz", [*made, *LOGS.glob("*.txt")])


def pack_work(out: Path, call: str, since: float) -> None:
    """The work of cells without a record, the smallest cells first, then compiled kernels."""
    cells = [path for path in WORK.glob("*/*") if path.is_dir() and not has_record(path, since)]
    folders = (*sorted(map(needed_files, cells), key=bytes_of), needed_files(SESSION / "triton"))
    groups: list[list[Path]] = [[]]
    size = 0
    for path in (path for files in folders for path in files):
        size += path.stat().st_size
        if size > ARCHIVE_BYTES:
            groups.append([])
            size = path.stat().st_size
        groups[-1].append(path)
    for number, group in enumerate(groups[:ARCHIVES]):
        archive(out / f"{call}-work-{number}.tar.gz", group)


def needed_files(folder: Path) -> list[Path]:
    """The files below a folder that work is continued from."""
    return [p for p in folder.rglob("*") if p.is_file() and not SPARE & {p.name, *p.parts}]


def bytes_of(files: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def has_record(work: Path, since: float) -> bool:
    """Whether the cell of a folder of unfinished work has a record made since a time."""
    record = RESULTS / work.parent.name / f"{work.name.rpartition('.')[0]}.json"
    return record.exists() and record.stat().st_mtime >= since


def archive(path: Path, files: Iterable[Path]) -> None:
    part = path.with_suffix(".part")
    with tarfile.open(part, "w:gz") as tar:
        for file in files:
            tar.add(file, file.relative_to(SESSION))
    part.replace(path)


def collect(files: Iterable[Path]) -> None:
    """Unpack what came back; records go into results/."""
    SESSION.mkdir(parents=True, exist_ok=True)
    for path in files:
        with tarfile.open(path) as tar:
            tar.extractall(SESSION, filter="data")
            for name in tar.getnames():
                if name.startswith("results/"):
                    (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(SESSION / name, ROOT / name)
                    print(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare")
    preparing.add_argument("--data", type=Path, default=os.environ.get("G2N2_DATA"))
    for call in CALLS:
        calling = commands.add_parser(call)
        calling.add_argument("--out", type=Path, required=True)
        calling.add_argument("--minutes", type=float, default=9.0)
        calling.add_argument("--smoke", action="store_true", help="tiny, on any machine")
    commands.add_parser("collect").add_argument("files", type=Path, nargs="+")
    given = parser.parse_args()
    if given.command == "prepare":
        prepare(given.data)
    elif given.command == "collect":
        collect(given.files)
    else:
        run(given.command, given.out.resolve(), given.minutes, given.smoke)


if __name__ == "__main__":
    main()
