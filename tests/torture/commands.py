"""Bad files and options given to the commands: an answer or a message, never a traceback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from .bench import Bench, Case
from .formats import damaged, formats
from .process import Blow

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
SIZES = (
    "count=-1",
    "count=0",
    "count=1000000000",
    "nodes=0",
    "nodes=x",
    "nodes=1e99",
    "seed=-1",
    "degree=true",
)
READING = (
    "hydrogens=x",
    "largest=2",
    "smiles=5",
    "id=true",
    "name=1",
    "target=3",
    "level=x",
    "task=1",
)
LONG = "a" * 5000
# Words that no command can follow; {fifo} is one, {run} and {graphs} are good.
BAD: list[list[str]] = [
    *(["train", "regular", *SMALL, "--seed", text] for text in (HUGE, "-1", "nan", "")),
    *(["train", "regular", *SMALL, "--minutes", text] for text in ("nan", "-1", "inf", "1e999")),
    *(["train", "regular", *SMALL, "--rate", text] for text in ("nan", "0", "inf", "1e9")),
    *(["train", "regular", "--width", text] for text in ("1000000000", "0", "-1", HUGE)),
    *(["train", "regular", "--layers", text] for text in ("1000000", "0", HUGE)),
    *(["train", "regular", *SMALL, "--threads", text] for text in ("100000", "-1", HUGE)),
    *(["train", "regular", *SMALL, "--batch", text] for text in ("0", HUGE)),
    *(["train", "regular", *SMALL, "--devices", text] for text in ("0", "100000")),
    *(["train", "regular", *SMALL, "--limit", text] for text in ("-1", HUGE)),
    *(["train", "regular", *SMALL, "--dropout", text] for text in ("nan", "1", "-0.5")),
    *(
        ["train", "regular", *SMALL, "--split", text]
        for text in ("", "fold:", "fold:x", "file:", "x")
    ),
    *(["train", "regular", *SMALL, "--target", text] for text in ("", "nope", "\x01")),
    *(
        ["train", "regular", *SMALL, "--option", text]
        for text in ("", "=", "a=1", "count=-1", "nodes=0")
    ),
    *(["train", "regular", *SMALL, "--precision", text] for text in ("", "128")),
    *(
        ["train", "regular", *SMALL, "--out", text]
        for text in ("/dev/null", "/proc/x", "{fifo}", "a\n")
    ),
    *(
        ["train", text, *SMALL]
        for text in ("", ".", "nope", "{fifo}", "/dev/zero", "/dev/null", "a" * 5000)
    ),
    *(
        ["train", "--config", text]
        for text in ("", ".", "nope", "{fifo}", "/dev/zero", "/dev/null")
    ),
    *(["train", "--resume", text] for text in ("", ".", "nope", "{fifo}", "/dev/zero")),
    *(
        ["train", "regular", "--grammar", text]
        for text in ("", "nope", "V → AV", "(" * 5000, "{fifo}")
    ),
    *(["predict", text, "{graphs}"] for text in ("", ".", "nope", "{fifo}", "/dev/zero")),
    *(["predict", "{run}", text] for text in ("", ".", "nope", "{fifo}", "/dev/zero", "/dev/null")),
    *(
        ["predict", "{run}", "{graphs}", "--out", text]
        for text in (".", "/dev/full", "{fifo}", "no/x/y")
    ),
    *(["predict", "{run}", "--smiles", text] for text in ("", "((", "[U]", "C" * 3000)),
    *(["evaluate", "{run}", "--on", text] for text in ("", "nope", "{fifo}", "/dev/zero")),
    *(["evaluate", "{run}", "--out", text] for text in (".", "/dev/full", "{run}/config.json/x")),
    *(["check", text] for text in ("", ".", "nope", "{fifo}", "/dev/zero", "/dev/null")),
    *(["compile", text] for text in ("", ".", "nope", "{fifo}", "/dev/zero", "V → ", "\x01")),
    *(["derive", text] for text in ("", "nope", "· ÷", "L3 " * 2000)),
    *(["derive", "L1", "--out", text] for text in (".", "/dev/full", "{fifo}", "/proc/x")),
    *(["separate", "L1", text, "Bw"] for text in ("", "nope", "~" * 5000, "{fifo}", "/dev/zero")),
    *(["eval", text, "Bw"] for text in ("", "A⊙1", "(" * 5000, "A^201", "9" * 5000)),
    *(["sweep", text, "--trials", "1"] for text in ("", ".", "nope", "{fifo}", "/dev/zero")),
    *(["report", text] for text in ("nope", "{fifo}", "/dev/zero")),
]


def bad_commands(bench: Bench, seeds: Path, full: bool) -> Iterator[Case]:
    """Damaged files by their formats, and all bad words or some of them."""
    for name, words in GIVEN.items():
        for number in range(15 if full else 1):
            work = partial(_given, bench, seeds, name, words, 10_000 + number)
            yield Case("damaged file given to a command", f"{words[0]}, {name} {number}", work)
    for words in BAD if full else BAD[:: len(BAD) // 20]:
        work = partial(_answered, bench, words)
        yield Case("bad name or value given to a command", " ".join(words)[:80], work)


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
    places = {
        "{run}": str(bench.run),
        "{graphs}": str(bench.folder / "few.g6"),
        "{fifo}": "fifo",
        "{table}": str(bench.folder / "table.csv"),
    }
    said_words = []
    for word in words:
        for mark, place in places.items():
            word = word.replace(mark, place)
        said_words.append(word)
    code, said = bench.ended(bench.start(said_words, folder, Blow()), folder)
    assert code in (0, 1, 2), f"ended with {code}: {said}"
    assert code == 0 or said.strip(), "no word"
    bench.refuse_changes()
