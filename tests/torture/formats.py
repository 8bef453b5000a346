"""Every format g2n2 reads: a valid file of it, how it is damaged, and what reads it.

Where a format has checksums, what is read back after damage must be what was written, or nothing.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np

import g2n2
from g2n2.data.reading import read_graphs
from g2n2.data.splits import read_split_file
from g2n2.errors import DataError, G2N2Error
from g2n2.graphs import read_graph, to_graph6
from g2n2.input_files import parse_json
from g2n2.language.registry import registered
from g2n2.nn import files as model_files
from g2n2.pipeline import choose_grammar
from g2n2.reduction.certificates import digest, read_certificate
from g2n2.training import sweep
from g2n2.training.checkpoint import CHECKPOINT, MANIFEST, load_checkpoint
from g2n2.training.config import merged, with_chosen_rules
from g2n2.training.run import Run
from g2n2.training.run_folder import BEST
from g2n2.training.session import train_config
from g2n2_paper.record import CellRecord
from small_runs import no_pictures, same_bytes, small_config, small_graphs

from .mutations import (
    Mutate,
    either,
    in_bytes,
    in_header,
    in_json,
    in_lines,
    in_members,
    packed,
    zipped,
)
from .watch import Try

TEXT = either(in_lines, in_lines, in_bytes)
JSON = either(in_json, in_json, in_json, in_bytes, in_lines)


@dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
        name: As the table says.
        folder: Of a valid example.
        files: Which of its files are damaged, and how.
        use: Reads the folder; what it returns says what was read.
        same: Whether damage must be refused or give what was there before.
        share: How many inputs it gets, relative to others.
        fresh: Whether reading changes the folder, so that each input needs another copy.
    """

    name: str
    folder: str
    files: Mapping[str, Mutate]
    use: Callable[[Path], Any]
    same: bool = False
    share: float = 1.0
    fresh: bool = False


# --- what reads each ------------------------------------------------------------------------------


def _graphs(name: str, **options: Any) -> Callable[[Path], Any]:
    def use(folder: Path) -> None:
        graphs = read_graphs(folder / name, **options).check()
        repr(graphs)

    return use


def _one_graph(folder: Path) -> None:
    read_graph(folder / "graph.txt")


def _refused(name: str) -> Callable[[Path], Any]:
    def use(folder: Path) -> None:
        for door in (g2n2.load, read_graphs):
            with suppress(G2N2Error):
                door(folder / name)
                raise AssertionError("it was read")
        if (folder / "mark").exists():
            raise AssertionError("a pickle was run")
        raise DataError("it was refused")

    return use


@cache
def _some_graphs() -> Any:
    return small_graphs()


def _split(name: str) -> Callable[[Path], Any]:
    def use(folder: Path) -> None:
        read_split_file(folder / name, _some_graphs())

    return use


def _settings(name: str) -> Callable[[Path], Any]:
    def use(folder: Path) -> None:
        with_chosen_rules(merged(folder / name, {}, {}), exhaustive=False)

    return use


def _sweep(folder: Path) -> None:
    sweep.Sweep.read(folder / "sweep.toml")


def _certificate(folder: Path) -> Any:
    content = read_certificate(folder / "proof.json")
    verdict = g2n2.check(content)
    if not verdict.valid:
        raise DataError(verdict.failure)
    return parse_json(json.dumps(content))


def _grammar(name: str) -> Callable[[Path], Any]:
    def use(folder: Path) -> None:
        str(choose_grammar(str(folder / name), reduce=True).grammar)

    return use


def _model(folder: Path) -> Any:
    model = model_files.load(folder / "model.safetensors")
    weights = {name: value.numpy().tobytes() for name, value in model.state_dict().items()}
    return str(model.plan.grammar), weights


def _run(folder: Path) -> Any:
    run = Run(folder, "cpu")
    predicted = run.predict(_some_graphs().select(np.arange(8))).values.tobytes()
    scored = run.evaluate("test", _some_graphs()).values.tobytes()
    for about in (str, Run.history.fget, Run.scores.fget, Run.guesses.fget):  # type: ignore[attr-defined]
        with suppress(G2N2Error):
            about(run)
    return predicted, scored


def _checkpoint(folder: Path) -> Any:
    content, troubles = load_checkpoint(folder)
    if troubles:  # the run goes on from the checkpoint before, which it says
        raise DataError("; ".join(troubles))
    return content


def _storage(folder: Path) -> None:
    def train(*_: Any) -> Any:
        raise DataError("no trial is run here")

    real, sweep.train_trial = sweep.train_trial, train
    try:
        plan = sweep.Sweep.read(folder / "sweep.toml")
        sweep.run_sweep(plan, 2, folder / "sweep.db", folder / "out", lambda _: None)
    finally:
        sweep.train_trial = real


def _predicted(seeds: Path, folder: Path) -> bytes:
    run = Run(seeds / "run", "cpu")
    run.predict_to(folder / "few.g6", folder / "out.csv", chunk=4, resume=True)
    return (folder / "out.csv").read_bytes()


def _record(folder: Path) -> None:
    CellRecord.read(folder / "q1" / "a-b.s0.json")


# --- valid examples -------------------------------------------------------------------------------

SMILES = ["C", "CC", "CCO", "c1ccccc1", "CC(=O)O", "[Na+].[Cl-]", "C[C@H](N)O", "N#N", "C1CC1", "O"]
ROWS = [f"m{at},{text},{at / 3:.3f},{at % 2}" for at, text in enumerate(SMILES)]
TABLE = "\n".join(["id,smiles,logp,toxic", *ROWS, ""])
XYZ = "5\nmethane\nC 0 0 0\nH 0.63 0.63 0.63\nH -0.63 -0.63 0.63\nH -0.63 0.63 -0.63\nH 0.63 -0.63 -0.63\n"
TU = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "0\n1\n0\n2\n1\n",
    "edge_labels": "0\n0\n1\n1\n0\n0\n",
    "node_attributes": "0.5, 1\n1.5, 2\n0, 0\n1, 1\n2, 2\n",
}
EDGES = {
    "edges.csv": "graph,source,target,weight,length\n1,0,1,1,0.5\n1,1,2,2,1.5\n2,a,b,1,2\n3,0,0,1,1\n",
    "nodes.csv": "graph,node,charge\n1,0,0.1\n1,1,0.2\n1,2,0.3\n2,a,1\n2,b,2\n3,0,0\n",
    "graphs.csv": "graph,y,split\n1,0.5,train\n2,1.5,train\n3,2.5,test\n",
}
TOML = 'dataset = "regular"\ngrammar = "GNNML1"\nwidth = 4\nlayers = 1\nepochs = 2\nrate = 1e-3\nseed = 3\nminutes = 0.5\ndecision = [8, 4]\nsplit = "random"\n\n[options]\ncount = 50\nnodes = 8\n'
SWEEP = 'dataset = "regular"\nepochs = 1\nlayers = 1\n\n[options]\ncount = 50\nnodes = 8\n\n[sweep]\nwidth = [4, 8]\n'
SPLIT = '{"train": [0, 1, 2, 3, 4], "validation": [5, 6], "test": ["7", "8"]}'


def make(folder: Path) -> None:
    """Write a valid example of every format."""
    put = partial(_put, folder)
    put("csv/molecules.csv", TABLE)
    put("csv.gz/molecules.csv.gz", gzip.compress(TABLE.encode(), mtime=0))
    put("tsv/molecules.tsv", TABLE.replace(",", "\t"))
    put("smi/molecules.smi", "".join(f"{text} m{at}\n" for at, text in enumerate(SMILES)))
    put("xyz/molecules.xyz", XYZ * 2 + "1\n\nO 0 0 0\n")
    put("g6/graphs.g6", "".join(to_graph6(nx.cycle_graph(n)) + "\n" for n in (3, 5, 70)))
    put("g6/graphs_graphs.csv", "graph,y\n0,1.5\n1,2.5\n2,0\n")
    put("edge list/graph.txt", "# a graph\n0 1\n1 2 0.5\n2,3\n3 0\n")
    for name, text in EDGES.items():
        put(f"edge tables/{name}", text)
    for name, text in TU.items():
        put(f"tu/DS_{name}.txt", text)
    put(
        "tu zip/DS.zip", zipped([(f"DS/DS_{name}.txt", text.encode()) for name, text in TU.items()])
    )
    put("npz/graphs.npz", _arrays())
    put("xlsx/table.xlsx", _workbook())
    put("pickle/model.pt", pickle.dumps(_Mark()))
    put("settings/settings.toml", TOML)
    put("settings/sweep.toml", SWEEP)
    put("split/split.json", SPLIT)
    put("split/split.csv", "id,split\n0,train\n1,train\n2,validation\n3,test\n")
    put(
        "grammar/rules.txt",
        "# rules\nV_c → MV_c | 1 | C_1V_c\nM → (M⊙M) | MM | diag(V_c) | A\nC_1 = A + I\n",
    )
    derived = g2n2.derive("L1")
    put("certificate/proof.json", json.dumps(derived.certificate))
    put("grammar/derivation.json", json.dumps(derived.to_json()))
    (folder / "model").mkdir()
    g2n2.compile("GNNML1", width=4, layers=1).save(folder / "model/model.safetensors")
    put("record/q1/a-b.s0.json", _a_record(folder))
    _molecules(folder)
    config = small_config(grammar="GNNML1", epochs=2)
    with no_pictures():
        train_config(config, folder / "run", graphs=small_graphs())
    shutil.rmtree(folder / "run" / "tensorboard", ignore_errors=True)
    shutil.copytree(folder / "run", folder / "unchecked")
    (folder / "unchecked" / MANIFEST).unlink()
    (folder / "checkpoint").mkdir()
    shutil.copy(folder / "run" / CHECKPOINT, folder / "checkpoint" / CHECKPOINT)
    (folder / "storage").mkdir()
    put("storage/sweep.toml", SWEEP)
    _swept(folder / "storage")
    _cut_off(folder, folder / "cut off")


def _cut_off(seeds: Path, folder: Path) -> None:
    """Predictions that were cut off after two chunks of three."""

    def stop(done: int, _total: int) -> None:
        if done == 8:
            raise KeyboardInterrupt

    _put(folder, "few.g6", "Bw\nC~\nDQc\n" * 4)
    with suppress(KeyboardInterrupt):
        Run(seeds / "run", "cpu").predict_to(
            folder / "few.g6", folder / "out.csv", chunk=4, progress=stop
        )


def _put(folder: Path, name: str, content: str | bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def _molecules(folder: Path) -> None:
    """SDF and MOL, which RDKit writes."""
    from rdkit import Chem

    blocks = []
    for at, text in enumerate(SMILES):
        molecule = Chem.MolFromSmiles(text)
        blocks.append(f"{Chem.MolToMolBlock(molecule)}>  <logp>\n{at / 2}\n\n$$$$\n")
    _put(folder, "sdf/molecules.sdf", "".join(blocks))
    _put(folder, "mol/a.mol", blocks[3].partition(">  <")[0])


def _workbook() -> bytes:
    import openpyxl

    book, content = openpyxl.Workbook(), io.BytesIO()
    for row in TABLE.splitlines():
        book.active.append(row.split(","))
    book.save(content)
    return content.getvalue()


def _arrays() -> bytes:
    chance = np.random.default_rng(0)
    upper = np.triu(chance.random((3, 4, 4)) < 0.6, 1)
    made = io.BytesIO()
    np.savez(
        made,
        A=(upper | upper.transpose(0, 2, 1)).astype(np.float32),
        x=chance.random((3, 4, 2)),
        y=np.array([0.5, 1.5, 2.5]),
        ids=np.array(["a", "b", "c"]),
        target_names=np.array(["y"]),
    )
    return made.getvalue()


def _a_record(folder: Path) -> bytes:
    record = CellRecord("q1", "a/b", 0, 2, "epochs", {"x": 1.0}, {}, {}, {}, 1.0)
    return record.write(folder / "record").read_bytes()


def _swept(folder: Path) -> None:
    """A storage with two finished trials."""
    real, sweep.train_trial = sweep.train_trial, lambda *_: (1.0, "validation MAE 1")
    try:
        plan = sweep.Sweep.read(folder / "sweep.toml")
        sweep.run_sweep(plan, 2, folder / "sweep.db", folder / "out", lambda _: None)
    finally:
        sweep.train_trial = real


class _Mark:
    """Loading its pickle would leave a mark."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("mark"),))


# --- damage that knows the format -----------------------------------------------------------------


def _other_arrays(chance: Random, content: bytes) -> bytes:
    """One array of another type, shape or content."""
    with np.load(io.BytesIO(content)) as held:
        arrays = dict(held)
    key = chance.choice(sorted(arrays))
    old = arrays[key]
    match chance.randrange(8):
        case 0:
            del arrays[key]
        case 1:
            arrays[key] = old.reshape(-1)
        case 2:
            arrays[key] = old[..., None]
        case 3:
            arrays[key] = np.resize(
                old, tuple(chance.randrange(5) for _ in range(chance.randrange(5)))
            )
        case 4:
            arrays[key] = np.full_like(old, chance.choice((0, 1)))
        case 5:
            kinds = ("f2", "u1", "i8", "c8", "U3", "S2", "?", "M8[s]", "m8[s]")
            arrays[key] = np.ones(old.shape).astype("i8").astype(chance.choice(kinds))
        case 6:
            arrays[key] = np.full(old.shape, chance.choice((np.nan, np.inf, -1e300, 1e300, -1.0)))
        case _:
            arrays[chance.choice(("sizes", "e", "positions", "more"))] = old
    made = io.BytesIO()
    np.savez(made, **arrays)
    return made.getvalue()


def _resealed_certificate(chance: Random, content: bytes) -> bytes:
    said = in_json(chance, content)
    with suppress(ValueError, RecursionError):
        found = json.loads(said)
        if isinstance(found, dict):
            return json.dumps({**found, "digest": digest(found)}).encode(errors="replace")
    return said


def _header(chance: Random, content: bytes) -> bytes:
    """The JSON in front of the tensors changed, with its length."""
    size = int.from_bytes(content[:8], "little")
    made = in_json(chance, content[8 : 8 + size])
    return len(made).to_bytes(8, "little") + made + content[8 + size :]


def _resealed_model(chance: Random, content: bytes) -> bytes:
    """Metadata or weights changed, and a checksum that fits."""
    from safetensors import safe_open
    from safetensors import torch as safetensors

    Path("old.safetensors").write_bytes(content)
    with safe_open("old.safetensors", "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        told = dict(file.metadata())
    key = chance.choice([name for name in told if name != "checksum"])
    way = in_json if key in ("options", "supports") else in_lines
    match chance.randrange(8):
        case 0:
            name = chance.choice(sorted(tensors))
            tensors[name] = tensors[name] * chance.choice((float("nan"), float("inf"), 0.0))
        case 1:
            name = chance.choice(sorted(tensors))
            tensors[name] = tensors[name].reshape(-1)[:-1].clone()
        case 2:
            del told[key]
        case _:
            told[key] = way(chance, told[key].encode()).decode(errors="replace")
    told["checksum"] = model_files.checksum(tensors, told)
    return safetensors.save(tensors, told)


ARCHIVE = either(in_bytes, in_members, partial(in_members, inner=in_lines))
NPZ = either(in_bytes, _other_arrays, _other_arrays, partial(in_members, inner=in_header))
RUN_FILES = ("config.json", "data.json", "split.json", "result.json", MANIFEST, "metrics.csv", BEST)


def _of_run(folder: Path) -> dict[str, Mutate]:
    """Every file of a run that is read back, those of newer versions too."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".json":
            found[path.name] = JSON
        elif path.suffix == ".csv" and path.name in RUN_FILES:
            found[path.name] = TEXT
        elif path.suffix == ".safetensors":
            found[path.name] = either(in_bytes, _header)
    return found


def formats(seeds: Path) -> list[Format]:
    """All of them, with examples in a folder."""
    checkpoint = either(in_bytes, partial(in_members, inner=in_bytes))
    return [
        Format("CSV of molecules", "csv", {"molecules.csv": TEXT}, _graphs("molecules.csv")),
        Format(
            "CSV of molecules, one target",
            "csv",
            {"molecules.csv": TEXT},
            _graphs("molecules.csv", target="logp", on_bad="refuse"),
            share=0.5,
        ),
        Format(
            "gzipped CSV",
            "csv.gz",
            {"molecules.csv.gz": partial(packed, inner=in_lines)},
            _graphs("molecules.csv.gz"),
        ),
        Format("TSV", "tsv", {"molecules.tsv": TEXT}, _graphs("molecules.tsv"), share=0.5),
        Format("SMI", "smi", {"molecules.smi": TEXT}, _graphs("molecules.smi")),
        Format("SDF", "sdf", {"molecules.sdf": TEXT}, _graphs("molecules.sdf")),
        Format("MOL", "mol", {"a.mol": TEXT}, _graphs("a.mol"), share=0.5),
        Format("XYZ", "xyz", {"molecules.xyz": TEXT}, _graphs("molecules.xyz")),
        Format(
            "graph6 with targets",
            "g6",
            {"graphs.g6": TEXT, "graphs_graphs.csv": TEXT},
            _graphs("graphs.g6"),
        ),
        Format("edge list of one graph", "edge list", {"graph.txt": TEXT}, _one_graph),
        Format(
            "edge, node and graph tables",
            "edge tables",
            dict.fromkeys(EDGES, TEXT),
            _graphs("edges.csv"),
        ),
        Format("npz", "npz", {"graphs.npz": NPZ}, _graphs("graphs.npz")),
        Format("TU folder", "tu", {f"DS_{name}.txt": TEXT for name in TU}, _graphs(".")),
        Format("TU zip", "tu zip", {"DS.zip": ARCHIVE}, _graphs("DS.zip")),
        Format("XLSX", "xlsx", {"table.xlsx": ARCHIVE}, _graphs("table.xlsx"), share=0.5),
        Format(
            "pickle (refused)", "pickle", {"model.pt": in_bytes}, _refused("model.pt"), share=0.5
        ),
        Format("split as JSON", "split", {"split.json": JSON}, _split("split.json"), share=0.5),
        Format("split as CSV", "split", {"split.csv": TEXT}, _split("split.csv"), share=0.5),
        Format("settings in TOML", "settings", {"settings.toml": TEXT}, _settings("settings.toml")),
        Format("sweep in TOML", "settings", {"sweep.toml": TEXT}, _sweep, share=0.5),
        Format("sweep storage", "storage", {"sweep.db": in_bytes}, _storage, share=0.3),
        Format("grammar as text", "grammar", {"rules.txt": TEXT}, _grammar("rules.txt")),
        Format(
            "derivation as JSON",
            "grammar",
            {"derivation.json": JSON},
            _grammar("derivation.json"),
            share=0.3,
        ),
        Format("certificate", "certificate", {"proof.json": JSON}, _certificate, True),
        Format(
            "certificate, resealed",
            "certificate",
            {"proof.json": _resealed_certificate},
            _certificate,
        ),
        Format("model", "model", {"model.safetensors": either(in_bytes, _header)}, _model, True),
        Format("model, resealed", "model", {"model.safetensors": _resealed_model}, _model),
        Format("run folder", "run", _of_run(seeds / "run"), _run, True, 3),
        Format(
            "run folder without checksums", "unchecked", _of_run(seeds / "unchecked"), _run, share=2
        ),
        Format("checkpoint", "run", {CHECKPOINT: checkpoint}, _checkpoint, True),
        Format(
            "checkpoint without checksums",
            "checkpoint",
            {CHECKPOINT: checkpoint},
            _checkpoint,
            share=0.5,
        ),
        Format(
            "predictions cut off",
            "cut off",
            {"out.csv.partial": TEXT, "out.csv.partial.jsonl": JSON},
            partial(_predicted, seeds),
            True,
            0.5,
            True,
        ),
        Format("experiment record", "record", {"q1/a-b.s0.json": JSON}, _record, share=0.5),
    ]


def kinds(seeds: Path, seed: int, folder: Path) -> dict[str, Try]:
    """What a worker tries: number N of a format is always the same damage."""
    found = formats(seeds)
    return {one.name: _Tried(one, seeds, seed, folder / str(at)) for at, one in enumerate(found)}


class _Tried:
    """Damages a copy of an example, reads it, and mends it again."""

    def __init__(self, chosen: Format, seeds: Path, seed: int, folder: Path) -> None:
        self.format, self.seeds, self.seed, self.folder = (
            chosen,
            seeds / chosen.folder,
            seed,
            folder,
        )
        self.whole: Any = None

    def __call__(self, number: int) -> str:
        if not self.folder.exists():
            shutil.copytree(self.seeds, self.folder)
            if self.format.same and self.whole is None:
                self.whole = self.format.use(self.folder)
                if self.format.fresh:
                    shutil.rmtree(self.folder)
                    shutil.copytree(self.seeds, self.folder)
        name, content = damaged(self.format, self.seeds.parent, self.seed, number)
        path = self.folder / name
        path.write_bytes(content)
        os.chdir(self.folder)
        try:
            with registered(alone=True):
                read = self.format.use(self.folder)
        finally:
            os.chdir(self.folder.parent)
            if self.format.fresh:
                shutil.rmtree(self.folder)
            else:
                shutil.copyfile(self.seeds / name, path)
        if self.format.same and not same_bytes(read, self.whole):
            return "altered"
        return "read"


def damaged(chosen: Format, seeds: Path, seed: int, number: int) -> tuple[str, bytes]:
    """Which file of an example, and what it holds then."""
    chance = Random(f"{seed} {chosen.name} {number}")
    name = chance.choice(sorted(chosen.files))
    whole = (seeds / chosen.folder / name).read_bytes()
    content = whole
    while content == whole:
        content = chosen.files[name](chance, whole)
    return name, content
