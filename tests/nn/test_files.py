"""One safetensors file: what goes in comes out, and what is damaged is refused whole."""

import json
import os
import pickle
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors import torch as safetensors

from cases import UNMARKED
from g2n2 import __version__
from g2n2.compiler.presets import PRESETS, Preset
from g2n2.data.batch import GraphBatch
from g2n2.errors import DataError, LoweringError
from g2n2.grammars.grammar import Grammar
from g2n2.nn import G2N2, GrammarGNN
from g2n2.nn.baselines import baseline
from g2n2.nn.files import checksum, load
from g2n2.nn.supports import SpectralSupports

SIZES = (1, 2, 7)


def batch(nodes: int = 0, edges: int = 0, dtype: torch.dtype = torch.float32) -> GraphBatch:
    rng = np.random.default_rng(0)
    return GraphBatch.of(
        [nx.gnp_random_graph(n, 0.5, seed=n) for n in SIZES],
        [rng.normal(size=(n, nodes)) for n in SIZES],
        [rng.normal(size=(n, n, edges)) for n in SIZES],
        dtype=dtype,
    )


def small(**options: object) -> GrammarGNN:
    torch.manual_seed(1)
    given = {"grammar": "r-G_L3", "width": 3, "layers": 2, "decision": (4,)}
    return GrammarGNN(**{**given, **options})


FEATURES: dict[str, object] = {"node_features": 2, "edge_features": 1}
OPTIONS: list[dict[str, object]] = [
    *({"grammar": name} for name in ("G_L3", "GCN", "2-IGN", "· 1", "S → 1ᵀA1 | SS")),
    *(
        {"grammar": "GNNML3-4", "supports": SpectralSupports(4, 2.0, 2, learned=learned)}
        for learned in (True, False)
    ),
    *(FEATURES | {"preset": name} for name in PRESETS),
    FEATURES
    | {
        "preset": replace(PRESETS["paper"], name="mine", hidden=1, decision=(5, 6)),
        "decision": None,
    },
    {"preset": Preset("silu", activation="silu", pooling="mean")},
    FEATURES | {"width": {"M": 3, "V": 5}},
    FEATURES | {"task": "node", "context": True},
    FEATURES | {"task": "edge", "readout": {"diagonal": "max", "off-diagonal": "none"}},
    {"readout": "max", "out": 4},
    {"directed": True, "typical_size": 3.5},
    {"preset": "modern", "pair_norm": "graph"},
    {"preset": "modern", "pair_norm": "none", "pair_bias": False},
    {"grammar": "G_L1", "functions": "free", "pair_bias": True, "readout": "grammar"},
    {"grammar": "r-G_L1ΣΣ", "marks": "orbits", "trunk": 1},
]


def test_the_checksum_sees_names_shapes_and_dtypes() -> None:
    zeros = torch.zeros(2, 3)
    others = ({"b": zeros}, {"a": zeros.view(3, 2)}, {"a": zeros.int()}, {"a": zeros + 1})
    found = {checksum(tensors, {"g2n2": "1"}) for tensors in ({"a": zeros}, *others)}
    assert len(found) == 5


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_network_comes_back_as_it_went(options: dict[str, object], tmp_path: Path) -> None:
    model = small(**options)
    model.save(tmp_path / "x")
    again = GrammarGNN.load(tmp_path / "x")
    assert again.plan == model.plan
    assert again.plan.grammar.name == model.plan.grammar.name
    assert repr(again) == repr(model)
    inputs = model.plan.inputs
    data = batch(inputs.node_features, inputs.edge_features)
    torch.testing.assert_close(again(data), model(data), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_dtype_is_kept(dtype: torch.dtype, tmp_path: Path) -> None:
    model = small().to(dtype)
    model.save(tmp_path / "x")
    again = load(tmp_path / "x")
    assert {p.dtype for p in again.parameters()} == {dtype}
    assert all(p.requires_grad and p.device.type == "cpu" for p in again.parameters())
    data = batch(dtype=dtype)
    torch.testing.assert_close(again(data), model(data), rtol=0, atol=0)


def test_a_baseline_that_leaves_edge_features_out_still_does(tmp_path: Path) -> None:
    model = baseline("GNNML1", node_features=2, edge_features=1, width=3, layers=1)
    assert isinstance(model, GrammarGNN)
    model.save(tmp_path / "x")
    torch.testing.assert_close(load(tmp_path / "x")(batch(2, 1)), model(batch(2, 1)))


def test_the_metadata_are_text_a_person_can_read(tmp_path: Path) -> None:
    model = G2N2(width=3, layers=1)
    model.formula = "1ᵀA1"
    model.save(tmp_path / "x")
    with safe_open(tmp_path / "x", "pt") as file:
        told = file.metadata()
    assert told["format"] == "2"
    assert told["g2n2"] == __version__
    assert Grammar.parse(told["grammar"]) == UNMARKED["r-G_L3"]
    assert json.loads(told["options"])["width"] == 3
    assert told["plan"].startswith("r-G_L3: 1 layer, preset modern, graph level")
    assert load(tmp_path / "x").formula == "1ᵀA1"


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    small().save(tmp_path / "x")
    torch.manual_seed(5)
    load(tmp_path / "x")
    after = torch.rand(1)
    torch.manual_seed(5)
    assert after == torch.rand(1)


def test_a_loaded_network_does_not_live_in_the_file(tmp_path: Path) -> None:
    model = small()
    model.save(tmp_path / "x")
    again = load(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"")
    torch.testing.assert_close(again(batch()), model(batch()), rtol=0, atol=0)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_nothing_is_left_behind_and_the_old_file_survives_a_failure(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    small().save(path)
    before = path.read_bytes()

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(DataError, match=r"cannot write .* No space left on device"):
        small(width=5).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x"]


def test_supports_given_by_code_are_refused_with_what_to_do(tmp_path: Path) -> None:
    class Mine(torch.nn.Module):
        def forward(self, adjacency: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return adjacency.unsqueeze(-1)

    model = small(grammar="V_c → CV_c | 1", supports=Mine())
    with pytest.raises(LoweringError, match=r"Mine are code, .* define them in the grammar"):
        model.save(tmp_path / "x")
    assert not os.listdir(tmp_path)


def test_a_class_of_ones_own_is_refused(tmp_path: Path) -> None:
    class Mine(GrammarGNN):
        pass

    with pytest.raises(LoweringError, match="not Mine"):
        Mine(width=2, layers=1).save(tmp_path / "x")


def contents(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    with safe_open(path, "pt") as file:
        return {k: file.get_tensor(k) for k in file.keys()}, dict(file.metadata())  # noqa: SIM118


def rewritten(path: Path, change: str) -> bytes:
    """The file with something else in it and a checksum that fits: what a careless tool makes."""
    tensors, told = contents(path)
    first = min(tensors)
    match change:
        case "missing tensor":
            del tensors[first]
        case "extra tensor":
            tensors["extra"] = torch.zeros(2)
        case "wrong shape":
            tensors[first] = torch.zeros(7, 7)
        case "newer":
            told |= {"format": "3", "g2n2": "9.9.9"}
        case "no format":
            del told["format"]
        case "bad grammar":
            told["grammar"] = "V_c → QV_d"
        case "bad option":
            told["options"] = told["options"].replace('"layers": 2', '"layers": -2')
        case "unknown option":
            told["options"] = told["options"].replace('"layers": 2', '"lairs": 2')
        case "too many layers":
            told["options"] = told["options"].replace('"layers": 2', '"layers": 1000000')
        case "too many decision layers":
            options = json.loads(told["options"])
            told["options"] = json.dumps({**options, "decision": [64] * 100_000})
        case "too wide":
            options = json.loads(told["options"])
            told["options"] = json.dumps({**options, "width": {"M": 10**9}})
        case "negative hidden width":
            options = json.loads(told["options"])
            told["options"] = json.dumps({**options, "preset": {**options["preset"], "hidden": -1}})
        case "options that are none":
            told["options"] = "null"
        case "deep options":
            told["options"] = "[" * 100_000
        case "deep supports":
            told["supports"] = "[" * 100_000
        case "endless supports":
            sizes = {"bandwidth": 1.0, "receptive_field": 1, "learned": True}
            told["supports"] = json.dumps({"count": 10**9, **sizes})
        case "NaN":
            tensors[first][0] = float("nan")
        case "infinity":
            tensors[first][0] = float("inf")
        case "whole numbers":
            tensors[first] = tensors[first].to(torch.int64)
        case "unknown kind":
            told["kind"] = "os.system"
        case _:
            raise AssertionError(change)
    told["checksum"] = checksum(tensors, told)
    return safetensors.save(tensors, told)


OLD_NAMES = ("pooling", "functions", "pair_bias", "pair_norm")


@pytest.mark.parametrize("grammar", ["G_L1", "r-G_L3", "M → A ; S → Tr(MMM)"])
@pytest.mark.parametrize("pooling", [None, "mean", {"diagonal": "max"}])
def test_format_1_is_read_as_what_it_was(grammar: str, pooling: Any, tmp_path: Path) -> None:
    """Pooled memories alone; saved again it says so."""
    path = tmp_path / "x"
    model = GrammarGNN(grammar, width=3, layers=2, readout="pooled-only", pooling=pooling)
    model.save(path)
    path.write_bytes(as_format_1(path, pooling))
    again = load(path)
    assert again.plan == model.plan
    assert not again.plan.readout.steps
    torch.testing.assert_close(again(batch()), model(batch()), rtol=0, atol=0)
    again.save(tmp_path / "y")
    assert load(tmp_path / "y").plan == model.plan
    with safe_open(tmp_path / "y", "pt") as file:
        assert json.loads(file.metadata()["options"])["readout"] == "pooled-only"


def as_format_1(path: Path, pooling: Any) -> bytes:
    """A file as it was written before the rules of S were read out."""
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        told = file.metadata()
    options = json.loads(told["options"])
    for name in OLD_NAMES:
        del options[name]
    for name in ("readout", "pair_bias", "pair_norm"):
        del options["preset"][name]
    told |= {"format": "1", "options": json.dumps({**options, "readout": pooling})}
    told["checksum"] = checksum(tensors, told)
    return safetensors.save(tensors, told)


REWRITTEN = [
    ("missing tensor", r"the weight \S+ has shape none, the network it describes needs \["),
    ("extra tensor", r"the weight extra has shape \[2\], .* needs none of that name"),
    ("wrong shape", r"has shape \[7, 7\], the network it describes needs \["),
    ("newer", r"format 3, written by g2n2 9\.9\.9; this g2n2 .* reads formats 1 to 2: upgrade"),
    ("no format", "but not of a g2n2 network"),
    ("bad grammar", "describes a network that cannot be made"),
    ("bad option", "layers must be a whole number, at least 1, got -2"),
    ("unknown option", "describes a network that cannot be made"),
    ("unknown kind", r"metadata\.kind should be GrammarGNN or WithoutEdgeFeatures, got"),
    ("too many layers", "cannot be made: layers must be at most 256, got 1000000"),
    ("too many decision layers", "the number of decision layers must be at most 256, got 100000"),
    ("too wide", "a width must be at most 65536, got 1000000000"),
    ("negative hidden width", "describes a network that cannot be made"),
    ("options that are none", "describes a network that cannot be made"),
    ("deep options", "describes a network that cannot be made"),
    ("deep supports", "describes a network that cannot be made"),
    (
        "endless supports",
        r"supports\.count should be a whole number from 2 to 4096, got 1000000000",
    ),
    ("NaN", r"the weight \S+ holds NaN or infinity"),
    ("infinity", r"the weight \S+ holds NaN or infinity"),
    ("whole numbers", r"the weight \S+ is of torch\.int64, not floating-point"),
]


@pytest.mark.parametrize(("change", "message"), REWRITTEN)
def test_a_file_of_something_else_is_refused(change: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    small().save(path)
    path.write_bytes(rewritten(path, change))
    with pytest.raises(DataError, match=message):
        load(path)


DAMAGED = [
    ("empty", lambda x: b""),
    ("cut in the length", lambda x: x[:5]),
    ("cut in the header", lambda x: x[: 8 + struct.unpack("<Q", x[:8])[0] // 2]),
    ("cut after the header", lambda x: x[: 8 + struct.unpack("<Q", x[:8])[0]]),
    ("cut in the data", lambda x: x[:-5]),
    ("one byte more", lambda x: x + b"\0"),
    ("huge header length", lambda x: b"\xff" * 8 + x[8:]),
    ("header not JSON", lambda x: x.replace(b"__metadata__", b'__met"data__')),
    ("zeros for weights", lambda x: x[:-64] + bytes(64)),
    ("not safetensors", lambda x: b"hello, this is a text file\n" * 9),
]


@pytest.mark.parametrize(("what", "damage"), DAMAGED, ids=[name for name, _ in DAMAGED])
def test_a_damaged_file_is_refused(what: str, damage: object, tmp_path: Path) -> None:
    path = tmp_path / "x"
    small().save(path)
    whole = path.read_bytes()
    broken = damage(whole)
    assert broken != whole, "the damage missed"
    path.write_bytes(broken)
    with pytest.raises(DataError, match=r"is damaged: .*; nothing was loaded"):
        load(path)


def test_a_flip_of_any_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    small(width=2, layers=1).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(3)
    for place in rng.integers(0, len(whole), 150):
        broken = bytearray(whole)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(broken))
        with pytest.raises(DataError):
            load(path)


def test_a_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return os.mkdir, (str(tmp_path / "ran"),)

    (tmp_path / "a.pt").write_bytes(pickle.dumps(Evil()))
    torch.save({"x": Evil()}, tmp_path / "b.pt")
    for name in ("a.pt", "b.pt"):
        with pytest.raises(DataError, match="g2n2 never unpickles"):
            load(tmp_path / name)
    assert not (tmp_path / "ran").exists()


def test_a_file_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*nothing.*No such file"):
        load(tmp_path / "nothing")
    with pytest.raises(DataError, match="cannot read"):
        load(tmp_path)
    with pytest.raises(DataError, match=r"cannot write .*No such file"):
        small().save(tmp_path / "no folder" / "x")
