"""Predictions made and written in chunks: the rows of `Run.predict`, whatever cuts them off."""

from __future__ import annotations

import errno
import gzip
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import g2n2
from g2n2 import partial_output
from g2n2.atomic_files import InUseError
from g2n2.errors import DataError
from g2n2.training.run import Run
from g2n2.training.session import train_config
from small_runs import no_pictures, small_config

Chem = pytest.importorskip("rdkit.Chem", reason="molecules are read with RDKit")

SMILES = [
    f"{'C' * (1 + number % 5)}{tail}"
    for number, tail in enumerate(("O", "N", "C(=O)O", "Cl", "c1ccccc1", "", "=O", "#N") * 5)
]
BAD = {3: "C1CC(", 10: "not one", 11: "", 29: "xyz"}


def rows_of(count: int = len(SMILES)) -> list[str]:
    """SMILES with some that are none, among them two in a row."""
    return [BAD.get(number, SMILES[number % len(SMILES)]) for number in range(count)]


def table(path: Path, count: int = len(SMILES), separator: str = ",") -> Path:
    """Ids that repeat, blank lines and a cell over two lines, so that rows are no lines."""
    lines = [separator.join(("id", "comment", "smiles"))]
    for number, text in enumerate(rows_of(count)):
        comment = '"two\nlines"' if number == 5 else "x"
        lines += [separator.join((f"m{number % 37}", comment, text)), *([""] * (number == 8))]
    content = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def smi(path: Path, named: bool) -> Path:
    lines = ["smiles name", "# made up"]
    for number, text in enumerate(SMILES):
        lines += [f"{BAD[29] if number == 4 else text}{f' name {number}' * named}"]
    path.write_text("\n".join(lines))
    return path


def sdf(path: Path) -> Path:
    records = []
    for number, text in enumerate(SMILES):
        molecule = Chem.MolFromSmiles(text)
        molecule.SetProp("_Name", "" if number % 2 else "title")
        block = Chem.MolToMolBlock(molecule)
        if number in (0, 6):
            block = block.replace(" C ", " Qq", 1)
        records.append(f"{block}>  <code>\nc-{number}\n\n$$$$\n")
    path.write_text("".join(records))
    return path


def xyz(path: Path) -> Path:
    water = "3\nname=w{}\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n"
    odd = "2\nname=odd\nC 0 0\nH 1 0 0\n"
    path.write_text("".join(odd if n in (2, 9) else water.format(n) for n in range(16)))
    return path


FILES = {
    "csv": lambda folder: table(folder / "new.csv"),
    "tsv.gz": lambda folder: table(folder / "new.tsv.gz", separator="\t"),
    "smi": lambda folder: smi(folder / "new.smi", named=True),
    "smi without names": lambda folder: smi(folder / "bare.smi", named=False),
    "sdf": lambda folder: sdf(folder / "new.sdf"),
    "xyz": lambda folder: xyz(folder / "new.xyz"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in float64, whose numbers do not depend on the graphs beside them in nine digits."""
    folder = tmp_path_factory.mktemp("predicting")
    lines = [f"{text},{0.1 * len(text) + number % 3}" for number, text in enumerate(SMILES)]
    (folder / "mine.csv").write_text("\n".join(["smiles,y", *lines]) + "\n")
    config = small_config(
        dataset=str(folder / "mine.csv"),
        options={},
        split="random",
        batch=8,
        epochs=1,
        precision="64",
        grammar="GNNML1",
    )
    with no_pictures():
        train_config(config, folder / "run")
    return folder


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    return Run(home / "run", "cpu")


@pytest.fixture(scope="module")
def whole(home: Path, run: Run) -> bytes:
    """What is predicted for `new.csv` at once."""
    run.predict(table(home / "new.csv")).to_csv(home / "whole.csv")
    return (home / "whole.csv").read_bytes()


@pytest.mark.parametrize(
    ("kind", "chunk"), [*((kind, 7) for kind in FILES), ("csv", 1), ("csv", 1000), ("xyz", 1)]
)
def test_chunks_give_the_rows_of_the_whole_file(
    tmp_path: Path, run: Run, kind: str, chunk: int
) -> None:
    path = FILES[kind](tmp_path)
    outcome = run.predict(path)
    outcome.to_csv(tmp_path / "whole.csv")
    steps: list[int] = []
    made = run.predict_to(
        path, tmp_path / "out.csv", chunk=chunk, progress=lambda done, _: steps.append(done)
    )
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    unread = outcome.graphs.source["unread"]
    assert unread
    names = outcome.graphs.source["record_ids"]
    assert (made.rows, made.unread) == (len(outcome), len(unread))
    assert made.first_unread == (names[min(unread)], unread[min(unread)])
    noted = [note for note in outcome.notes if note and not note.startswith("not predicted")]
    assert made.noted == len(noted)
    about = ("several fragments", "gives the molecules")
    said = {note for note in outcome.graphs.notes if any(text in note for text in about)}
    named = {"csv": "id", "tsv.gz": "id", "smi": "name"}  # of a table; repeated or not
    said |= {f"Column {named[kind]} gives the ids."} if kind in named else set()
    assert {*made.notes} == said
    assert made.records == len(names) == steps[-1]
    assert steps == [*range(0, made.records, chunk), made.records]
    assert made.repeated == next((x for x in names if x and names.count(x) > 1), None)
    assert {path.name for path in tmp_path.iterdir()} == {path.name, "out.csv", "whole.csv"}


def test_the_molecules_are_found_where_no_column_is_called_so(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "odd.csv"
    cells = zip(["", "", *SMILES[:20]], ["CC", *["no"] * 21], strict=True)
    path.write_text("a,b,key\n" + "".join(f"{x},{y},k{n}\n" for n, (x, y) in enumerate(cells)))
    run.predict(path).to_csv(tmp_path / "whole.csv")
    made = run.predict_to(path, tmp_path / "out.csv", chunk=3)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert made.first_unread is not None
    assert made.first_unread[0] == "k0"


def test_formats_that_are_one_object_are_written_in_chunks(tmp_path: Path) -> None:
    with no_pictures():
        config = small_config(epochs=1, precision="64")
        train_config(config, tmp_path / "run")
    run = Run(tmp_path / "run", "cpu")
    lines = ["C~", "Bw", "DQc", "EEh_", "C~", "Dhc", "Bw"]
    (tmp_path / "new.g6").write_text("\n".join(lines) + "\n")
    graphs = g2n2.read_graphs(tmp_path / "new.g6")
    for source in (tmp_path / "new.g6", graphs):
        run.predict(source).to_csv(tmp_path / "whole.csv")
        for chunk in (1, 3, 1000):
            run.predict_to(source, tmp_path / "out.csv", chunk=chunk)
            assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    (tmp_path / "bad.g6").write_text("\n".join([*lines, "C~~~"]) + "\n")
    with pytest.raises(DataError, match=r"bad.g6:8"):
        run.predict_to(tmp_path / "bad.g6", tmp_path / "bad.csv", chunk=1)
    assert not list(tmp_path.glob("bad.csv*"))


def test_edge_predictions_of_an_edge_list(tmp_path: Path) -> None:
    """Directed and undirected graphs in one file: a chunk is as directed as the file is.

    Both directions of an edge would get the same prediction in an undirected set.
    """
    edges = [(g, n, (n + 1) % 4) for g in range(8) for n in range(4)]
    edges += [(g, b, a) for g, a, b in edges if g % 2]
    text = "".join(f"{g},{a},{b},{g + a}\n" for g, a, b in sorted(edges))
    (tmp_path / "edges.csv").write_text("graph,source,target,y\n" + text)
    nodes = "".join(f"{g},{n},{n}\n" for g in range(8) for n in range(4))
    (tmp_path / "nodes.csv").write_text("graph,node,x\n" + nodes)
    options = {"directed": True}
    config = small_config(
        dataset=str(tmp_path / "edges.csv"), options=options, target=["y"], split="random",
        epochs=1, batch=2, precision="64",
    )  # fmt: skip
    with no_pictures():
        train_config(config, tmp_path / "run")
    run = Run(tmp_path / "run", "cpu")
    run.predict(tmp_path / "edges.csv").to_csv(tmp_path / "whole.csv")
    made = run.predict_to(tmp_path / "edges.csv", tmp_path / "out.csv", chunk=1)
    assert made.rows == 48
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


class Cut(Exception):
    pass


def cut_off(run: Run, source: Path, out: Path, after: int, **options: Any) -> None:
    """A prediction that ends without warning once so many records are written."""

    def progress(done: int, total: int) -> None:
        if done >= after:
            raise Cut

    with pytest.raises(Cut):
        run.predict_to(source, out, chunk=7, progress=progress, **options)


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: -5 if path.suffix == ".jsonl" else -1])


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + 1000 * b"m21,1.2")


@pytest.mark.parametrize(
    ("after", "harm", "of"),
    [
        (7, None, ""),
        (7, torn, "partial"),
        (28, torn, "partial"),
        (28, torn, "partial.jsonl"),
        (28, longer, "partial"),
        (28, longer, "partial.jsonl"),
    ],
)
def test_a_prediction_that_was_cut_off_goes_on(
    tmp_path: Path, home: Path, run: Run, whole: bytes, after: int, harm: Any, of: str
) -> None:
    source, out = home / "new.csv", tmp_path / "out.csv"
    cut_off(run, source, out, after)
    assert not out.exists()
    partial = tmp_path / "out.csv.partial"
    assert whole.startswith(partial.read_bytes())
    assert partial.read_bytes().count(b"\n") >= after
    if harm is not None:
        harm(tmp_path / f"out.csv.{of}")
    steps: list[int] = []
    made = run.predict_to(
        source, out, chunk=7, resume=True, progress=lambda done, _: steps.append(done)
    )
    assert steps[0] == (after - 7 if harm is torn else after)
    assert out.read_bytes() == whole
    assert (made.rows, made.unread, made.repeated) == (36, 4, "m0")
    assert made.first_unread == ("m3", "'C1CC(': RDKit cannot parse it")
    assert os.listdir(tmp_path) == ["out.csv"]


def test_what_is_not_gone_on_with(tmp_path: Path, home: Path, run: Run, whole: bytes) -> None:
    source, out = home / "new.csv", tmp_path / "out.csv"
    cut_off(run, source, out, 14)
    partial = tmp_path / "out.csv.partial"
    kept = partial.read_bytes()
    other = table(tmp_path / "new.csv", count=39)
    for arguments, part in (
        ({"source": other}, r"begun with something else \(input: new.csv, \w+; now new.csv, \w+\)"),
        ({"interval": 0.8}, r'else \(options: \{.*"interval": 0.9\}; now .*"interval": 0.8'),
        ({"options": {"largest": True}}, r"begun with something else \(options: "),
        ({"chunk": 8}, r"begun with something else \(chunk: 7; now 8\)"),
    ):
        said = {"source": source, "chunk": 7, **arguments}
        with pytest.raises(DataError, match=part):
            run.predict_to(out=out, resume=True, **said)
    with pytest.raises(
        DataError, match=r"holds 14 records of an interrupted prediction of new\.csv"
    ):
        run.predict_to(source, out)
    partial.write_bytes(kept.replace(b"m1,", b"m2,"))
    with pytest.raises(DataError, match="was altered since it was written"):
        run.predict_to(source, out, chunk=7, resume=True)
    partial.write_bytes(kept)
    (tmp_path / "out.csv.partial.jsonl").unlink()
    with pytest.raises(DataError, match="is lost or damaged: remove"):
        run.predict_to(source, out, chunk=7, resume=True)
    partial.unlink()
    run.predict_to(source, out, resume=True)
    assert out.read_bytes() == whole
    with pytest.raises(DataError, match=r"out\.csv is whole: leave out --resume"):
        run.predict_to(source, out, resume=True)


def test_another_run_does_not_go_on(tmp_path: Path, home: Path, run: Run) -> None:
    cut_off(run, home / "new.csv", tmp_path / "out.csv", 7)
    config = small_config(
        dataset=str(home / "mine.csv"), options={}, split="random", batch=8, epochs=1, seed=1,
        precision="64", grammar="GNNML1",
    )  # fmt: skip
    with no_pictures():
        train_config(config, tmp_path / "run")
    with pytest.raises(DataError, match=r"something else \(run: run, \w+; now run, \w+\)"):
        Run(tmp_path / "run", "cpu").predict_to(
            home / "new.csv", tmp_path / "out.csv", chunk=7, resume=True
        )


def test_one_writer_at_a_time(tmp_path: Path, home: Path, run: Run, whole: bytes) -> None:
    source, out = home / "new.csv", tmp_path / "out.csv"
    refused: list[str] = []

    def progress(done: int, total: int) -> None:
        with pytest.raises(InUseError) as caught:
            run.predict_to(source, out, resume=done > 0)
        refused.append(str(caught.value))

    run.predict_to(source, out, chunk=7, progress=progress)
    assert len(refused) == 7
    assert all(f"is being written by process {os.getpid()} on " in text for text in refused)
    assert out.read_bytes() == whole
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_full_disk_loses_nothing(
    tmp_path: Path, home: Path, run: Run, whole: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = home / "new.csv", tmp_path / "out.csv"
    real, room = partial_output.put, [len(b"".join(whole.splitlines(keepends=True)[:18]))]

    def put(file: Any, content: bytes) -> None:
        if file.name.endswith(".partial"):
            real(file, content[: room[0]])
            room[0] -= len(content)
            if room[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
        else:
            real(file, content)

    with monkeypatch.context() as patched:
        patched.setattr(partial_output, "put", put)
        with pytest.raises(
            DataError, match=r"No space left on device\): 14 records are in it; free space, and go"
        ):
            run.predict_to(source, out, chunk=7)
    assert not out.exists()
    run.predict_to(source, out, chunk=7, resume=True)
    assert out.read_bytes() == whole


def test_ctrl_c_ends_after_the_chunk_in_hand(
    tmp_path: Path, home: Path, run: Run, whole: bytes
) -> None:
    def progress(done: int, total: int) -> None:
        if done == 7:
            os.kill(os.getpid(), signal.SIGTERM)

    out = tmp_path / "out.csv"
    with pytest.raises(KeyboardInterrupt):
        run.predict_to(home / "new.csv", out, chunk=7, progress=progress)
    run.predict_to(home / "new.csv", out, chunk=7, resume=True)
    assert out.read_bytes() == whole


@pytest.mark.parametrize(
    ("text", "options", "part"),
    [
        ("smiles\nC(\nxx\n", {}, r"none of the 2 records of .*new.csv can be read: line 2: 'C\('"),
        (
            "id,smiles\na,C\n\nb,C(\nc,CC\n",
            {"on_bad": "refuse"},
            r"^at least 1 of the 3 records of .* cannot be read: line 4 \(b\): 'C\('",
        ),
        ("smiles\nCC\nxx\n", {"on_bad": "refuse"}, "^1 of the 2 records of .* line 3: 'xx'"),
        ("smiles,y\nC,1\nCC\n", {}, "line 3: got 1 cells, expected 2"),
        ("smiles\n" + "C\n" * 9 + '"C\n', {}, "a quote that is never closed"),
        ("a,b\n1,2\n", {}, "no column of .*new.csv holds SMILES"),
        ("smiles\nC\n", {"nope": 1}, "no option 'nope' for your own graphs"),
        ("smiles\nC\n", {"directed": True}, "says nothing about molecules in a table"),
        ("smiles\nC\n", {"id": "nme"}, "has no column 'nme'"),
    ],
)
def test_what_is_refused_leaves_nothing(
    tmp_path: Path, run: Run, text: str, options: dict[str, Any], part: str
) -> None:
    path = tmp_path / "new.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=part) as caught:
        run.predict_to(path, tmp_path / "out.csv", options, chunk=1)
    with pytest.raises(DataError) as at_once:
        run.predict(path, options)
    assert str(caught.value).removeprefix("at least ") == str(at_once.value)
    assert os.listdir(tmp_path) == ["new.csv"]


def test_a_file_that_changes_meanwhile_is_said(tmp_path: Path, run: Run) -> None:
    path = table(tmp_path / "new.csv")

    def progress(done: int, total: int) -> None:
        with path.open("a") as file:
            file.write("late,x,CC\n")

    with pytest.raises(DataError, match="was changed while it was read"):
        run.predict_to(path, tmp_path / "out.csv", chunk=7, progress=progress)
    assert not (tmp_path / "out.csv").exists()


MEASURED = """
import sys
from g2n2.training.run import Run
from peak_memory import peak_bytes
Run(sys.argv[1], "cpu").predict_to(sys.argv[2], sys.argv[3])
print(peak_bytes() // 2**20)
"""


def many(path: Path, count: int) -> Path:
    """Distinct molecules of about twenty atoms."""
    tails = ("O", "N", "Cl", "C(=O)O", "c1ccccc1", "C#N", "F", "S(=O)(=O)N", "C1CC1", "Br")
    with path.open("w") as file:
        file.write("id,smiles\n")
        for n in range(count):
            a, b, c = (tails[n // 10**k % 10] for k in range(3))
            file.write(f"m{n},{'C' * (n // 1000 + 1)}N({a})CC({b})CCC({c})CO\n")
    return path


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path, home: Path) -> None:
    peak = {}
    for count in (1_000, 4_000):
        source = many(tmp_path / f"{count}.csv", count)
        command = [sys.executable, "-c", MEASURED, home / "run", source, tmp_path / f"{count}.out"]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        assert done.returncode == 0, done.stderr
        peak[count] = int(done.stdout)
        assert (tmp_path / f"{count}.out").read_bytes().count(b"\n") == count + 1
    assert peak[4_000] - peak[1_000] < 30, peak  # at once it is 110 MiB


@pytest.mark.slow
def test_a_killed_prediction_goes_on(tmp_path: Path, home: Path, run: Run) -> None:
    source, out = many(tmp_path / "many.csv", 4_000), tmp_path / "out.csv"
    words = ["predict", str(home / "run"), str(source), "--out", str(out), "--device", "cpu"]
    partial = tmp_path / "out.csv.partial"
    for number in range(2):
        command = [sys.executable, "-m", "g2n2", *words, *(["--resume"] if number else [])]
        before = partial.stat().st_size if partial.exists() else 0
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not partial.exists() or partial.stat().st_size <= before + 1000:
            assert process.poll() is None, process.stderr
            time.sleep(0.01)
        process.kill()
        process.communicate()
    run.predict_to(source, out, resume=True)
    run.predict_to(source, tmp_path / "whole.csv")
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["many.csv", "out.csv", "whole.csv"]


def test_a_cluster_that_is_not_there_is_said_at_once(tmp_path: Path, run: Run) -> None:
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens, and nobody else can
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DataError, match=f"no Ray cluster at {address} .*ray start --head"):
            run.predict_to(
                table(tmp_path / "in.csv"), tmp_path / "out.csv", engine="ray", ray_address=address
            )
    assert os.listdir(tmp_path) == ["in.csv"]


@pytest.mark.slow
def test_an_actor_of_ray_gives_the_same_rows_though_it_is_killed(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_prestart_worker_first_driver", "0")  # no processes that stay idle
    source = many(tmp_path / "many.csv", 30)
    with source.open("a") as file:
        file.write("bad,C1CC(\n")
    run.predict_to(source, tmp_path / "local.csv", chunk=5)
    killed: list[int] = []

    def progress(done: int, total: int) -> None:
        if done >= 10 and not killed:
            killed.append(kill_an_actor())

    def give_up(*_: object) -> None:
        pytest.fail("Ray did not come to its end in ten minutes")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(600)
    try:
        made = run.predict_to(
            source, tmp_path / "ray.csv", chunk=5, engine="ray", workers=1, progress=progress
        )
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert killed
    unseen = 9  # three molecules each with F, S and Br; the run knows C, N, O and Cl
    assert (made.rows, made.unread) == (30 - unseen, 1 + unseen)
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


def kill_an_actor() -> int:
    """End the process that predicts, as the system does where memory is short."""
    import psutil

    actors = [
        process
        for process in psutil.Process().children(recursive=True)
        if re.match(r"ray::ChunkActor", " ".join(process.cmdline()))
    ]
    (actor,) = actors
    actor.kill()
    return actor.pid


@pytest.mark.parametrize("hydrogens", [False, True])
def test_molecules_come_with_hydrogens_as_those_trained_on(tmp_path: Path, hydrogens: bool) -> None:
    """A run on an SDF reads SMILES, and SDF of the other kind, as the file it learned from."""
    for name, whole in (("bare", False), ("whole", True)):
        with Chem.SDWriter(str(tmp_path / f"{name}.sdf")) as file:
            for text in SMILES[:10]:
                molecule = Chem.MolFromSmiles(text)
                molecule.SetProp("y", str(len(text)))
                file.write(Chem.AddHs(molecule) if whole else molecule)
    config = small_config(
        dataset=str(tmp_path / f"{'whole' if hydrogens else 'bare'}.sdf"),
        options={}, target=("y",), split="random", grammar="GNNML1", epochs=1,
    )  # fmt: skip
    with no_pictures():
        train_config(config, tmp_path / "run")
    run = Run(tmp_path / "run", "cpu")
    (tmp_path / "new.csv").write_text("smiles\n" + "\n".join(SMILES[:10]) + "\n")
    sources: list[Any] = [
        SMILES[:10],
        *(tmp_path / f for f in ("new.csv", "bare.sdf", "whole.sdf")),
    ]
    first, *others = (run.predict(source).values for source in sources)
    for values in others:
        assert values == pytest.approx(first, rel=1e-5, nan_ok=True)
    assert run.read(SMILES[:1]).sizes.tolist() == [6 if hydrogens else 2]  # methanol
