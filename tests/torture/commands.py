"""Bad files and options given to the commands: an answer or a message, never a traceback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from g2n2.input_files import printable

from .bench import Bench, Case
from .formats import damaged, formats

SMALL = ["--grammar", "GNNML1", "--width", "2", "--layers", "1", "--epochs", "1", "--threads", "1"]
TRAIN = [*SMALL, "--out", "out"]
# Words of a command by the format of the file it is given.
GIVEN: dict[str, list[str]] = {
    "CSV of molecules": ["train", "molecules.csv", "--target", "logp", *TRAIN],
    "gzipped CSV": ["train", "molecules.csv.gz", "--target", "logp", *TRAIN],
    "SMI": ["train", "molecules.smi", *TRAIN],
    "SDF": ["train", "molecules.sdf", *TRAIN],
    "XYZ": ["train", "molecules.xyz", *TRAIN],
    "npz": ["train", "graphs.npz", *TRAIN],
    "edge, node and graph tables": ["train", "edges.csv", *TRAIN],
    "TU zip": ["train", "DS.zip", *TRAIN],
    "graph6 with targets": ["predict", "{run}", "graphs.g6", "--out", "out.csv"],
    "edge list of one graph": ["eval", "1ᵀA1", "graph.txt"],
    "split as JSON": ["train", "regular", "--split", "file:split.json", *TRAIN],
    "settings in TOML": ["train", "--config", "settings.toml", *TRAIN, "--minutes", "0.1"],
    "sweep in TOML": ["sweep", "sweep.toml", "--trials", "1"],
    "sweep storage": ["sweep", "sweep.toml", "--trials", "2"],
    "grammar as text": ["compile", "rules.txt", "--width", "2", "--layers", "1"],
    "certificate": ["check", "proof.json"],
    "run folder": ["evaluate", "."],
    "run folder without checksums": ["predict", ".", "{graphs}", "--out", "out.csv"],
    "checkpoint": ["train", "--resume", "."],
    "model": ["predict", "model.safetensors", "{graphs}"],
}
HUGE = str(2**64)
LONG = "a" * 5000
REGULAR = ["train", "regular", *SMALL]
SOURCES = ["", ".", "nope", LONG, "fifo", "/dev/zero", "/dev/null"]
TARGETS = [".", "/dev/full", "/proc/x", LONG, "fifo", "no/such/folder/x"]
# Words before and after a bad one, and what is bad; a FIFO called `fifo` is in the folder.
BAD: list[tuple[list[str], list[str], list[str]]] = [
    ([*REGULAR, "--seed"], [], [HUGE, "-1", "nan", ""]),
    ([*REGULAR, "--minutes"], [], ["nan", "-1", "inf", "1e999"]),
    ([*REGULAR, "--rate"], [], ["nan", "0", "inf", "1e9"]),
    ([*REGULAR, "--threads"], [], ["100000", "-1", HUGE]),
    ([*REGULAR, "--batch"], [], ["0", HUGE]),
    ([*REGULAR, "--devices"], [], ["0", "100000"]),
    ([*REGULAR, "--limit"], [], ["-1", HUGE]),
    ([*REGULAR, "--dropout"], [], ["nan", "1", "-0.5"]),
    ([*REGULAR, "--precision"], [], ["", "128"]),
    ([*REGULAR, "--target"], [], ["", "nope", "\x01"]),
    ([*REGULAR, "--split"], [], ["", "fold:", "fold:x", "file:", "file:fifo", f"file:{LONG}", "x"]),
    ([*REGULAR, "--option"], [], ["", "=", "a=1", "count=-1", "count=0", "count=1000000000"]),
    ([*REGULAR, "--option"], [], ["nodes=0", "nodes=x", "nodes=1e99", "seed=-1", "degree=true"]),
    ([*REGULAR, "--out"], [], ["/dev/null", "/proc/x", "fifo", "a\nb", LONG]),
    (["train", "regular", "--width"], [], ["1000000000", "0", "-1", HUGE]),
    (["train", "regular", "--layers"], [], ["1000000", "0", HUGE]),
    (["train", "regular", "--grammar"], [], ["", "nope", "V → AV", "(" * 5000, "fifo", LONG]),
    (["train"], SMALL, SOURCES),
    (["train", "{table}", "--option"], SMALL, ["hydrogens=x", "largest=2", "smiles=5", "id=true"]),
    (
        ["train", "{table}", "--option"],
        SMALL,
        ["name=1", "target=3", "level=x", "task=1", "on_bad=0"],
    ),
    (["train", "mutag", "--data"], SMALL, SOURCES),
    (["train", "--config"], [], SOURCES),
    (["train", "--resume"], [], SOURCES),
    (["predict"], ["{graphs}"], SOURCES),
    (["predict", "{run}"], [], SOURCES),
    (["predict", "{run}", "{graphs}", "--out"], [], TARGETS),
    (["predict", "{run}", "--smiles"], [], ["", "((", "[U]", "C" * 3000]),
    (["evaluate"], [], SOURCES),
    (["evaluate", "{run}", "--on"], [], SOURCES),
    (["evaluate", "{run}", "--out"], [], TARGETS),
    (["check"], [], SOURCES),
    (["compile"], [], [*SOURCES, "V → ", "\x01"]),
    (["derive"], [], ["", "nope", "· ÷", "L3 " * 200, LONG]),
    (["derive", "L1", "--out"], [], TARGETS),
    (["separate", "L1"], ["Bw"], [*SOURCES, "~" * 5000]),
    (["eval"], ["Bw"], ["", "A⊙1", "(" * 5000, "A^201", "9" * 5000, LONG]),
    (["power", "L1", "--suite"], [], SOURCES),
    (["sweep"], ["--trials", "1"], SOURCES),
    (["sweep", "{sweep}", "--trials", "1", "--storage"], [], TARGETS),
    (["report"], [], ["nope", "fifo", "/dev/zero", LONG]),
    (["datasets"], [], ["", "nope", LONG]),
    (["--plugin"], ["grammars"], ["", "nope", LONG, "./fifo", "x.py"]),
]


def bad_commands(bench: Bench, seeds: Path, full: bool) -> Iterator[Case]:
    """Damaged files by their formats, and all bad words or some of them."""
    for name, words in GIVEN.items():
        for number in range(8 if full else 1):
            work = partial(_given, bench, seeds, name, words, 10_000 + number)
            yield Case("damaged file given to a command", f"{words[0]}, {name} {number}", work)
    for before, after, bad in BAD:
        for word in bad if full else bad[:1]:
            words = [*before, word, *after]
            what = " ".join([*before, printable(word, 30), *after])
            yield Case(
                "bad name or value given to a command", what, partial(_answered, bench, words)
            )


def _given(
    bench: Bench, seeds: Path, name: str, words: list[str], number: int, folder: Path
) -> None:
    (chosen,) = (one for one in formats(seeds) if one.name == name)
    place = folder / "given"
    shutil.copytree(seeds / chosen.folder, place)
    file, content = damaged(chosen, seeds, bench.seed, number)
    (place / file).write_bytes(content)
    _answered(bench, words, place)


def _answered(bench: Bench, words: list[str], folder: Path) -> None:
    """Run a command that must succeed or refuse, in a folder that holds a FIFO too."""
    os.mkfifo(folder / "fifo")
    known = {
        "{run}": str(bench.run),
        "{graphs}": str(bench.folder / "few.g6"),
        "{table}": str(bench.folder / "table.csv"),
        "{sweep}": str(bench.folder / "sweep.toml"),
    }
    words = [known.get(word, word) for word in words]
    code, said = bench.ended(bench.start(words, folder), folder)
    assert code in (0, 1, 2), f"ended with {code}: {said}"
    assert code == 0 or said.strip(), "no word"
    bench.refuse_changes()
