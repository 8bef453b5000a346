"""A network in one safetensors file: weights, and as text everything needed to make it again.

The metadata are strings: `format`, `g2n2` (the version that wrote it), `grammar` (its rules and
supports), `name`, `options` and `supports` (JSON), `plan` (for people), `formula` and `checksum`;
`sentences` is there, and `none`, only where the grammar reads nothing out of its words, and
`operations` (JSON) only where it uses operations that are not built in, with their signatures.
Nothing is ever unpickled, and nothing is loaded by halves: the checksum covers every weight and
every word of the metadata.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors import torch as safetensors
from torch import Tensor, nn

from .. import __version__
from ..atomic_files import replace_file
from ..compiler.plan_to_text import plan_text
from ..compiler.presets import Preset
from ..compiler.readout_plan import readout_options
from ..errors import DataError, G2N2Error, GrammarError, LoweringError
from ..grammars.grammar import Grammar
from ..grammars.registry import register
from ..language.registry import described, from_description
from ..validation import Int, check
from .baselines import WithoutEdgeFeatures
from .model import G2N2, GrammarGNN
from .supports import SpectralSupports, SquaredDistances

FORMAT = 2
"""Raised whenever an older g2n2 could not read, or would misread, what is written.

1: memories were pooled and the rules of S not read out; `readout` was how they were pooled.
2: `readout` and `pooling`, `functions` and `pair_bias`.
"""

KINDS: dict[str, type[GrammarGNN]] = {
    "GrammarGNN": GrammarGNN,
    "WithoutEdgeFeatures": WithoutEdgeFeatures,
}

NO_SENTENCES = "none"

NOT_MADE = (LookupError, TypeError, ValueError, AttributeError, RuntimeError)
"""What Python and torch raise where a value makes no sense; a RecursionError is a RuntimeError."""

SUPPORTS = {
    "count": Int(2, 4096),
    "bandwidth": float,
    "receptive_field": Int(1, 10**6),
    "learned": bool,
}

PICKLES = (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""How a file of torch.save (an archive) and a pickle of protocol 2 to 5 start."""


def save(model: GrammarGNN, path: str | Path) -> None:
    """Write a network into one file, whole or not at all.

    The memory budget is not written: it belongs to a machine.

    Raises:
        LoweringError: The network has parts a file cannot describe.
        DataError: The file cannot be written.
    """
    try:
        replace_file(Path(path), to_bytes(model), shared=True)
    except OSError as error:
        raise DataError(f"cannot write {str(path)!r}: {error.strerror or error}") from error


def to_bytes(model: GrammarGNN) -> bytes:
    """What the file of a network holds.

    Raises:
        LoweringError: The network has parts a file cannot describe.
    """
    metadata = _described(model)
    tensors = {
        name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()
    }
    metadata["checksum"] = checksum(tensors, metadata)
    return _in_order(safetensors.save(tensors, metadata))


def load(path: str | Path, device: str | torch.device = "cpu") -> GrammarGNN:
    """The network a file holds, in the dtype it was saved in.

    Raises:
        DataError: No such file, another kind of file, one of a newer g2n2, a damaged one, or one
            whose operations are others here. Operations that are not known are registered.
    """
    tensors, metadata = _read(path)
    version = metadata.get("format", "")
    if version not in map(str, range(1, FORMAT + 1)):
        newer = version.isdecimal() and len(version) < 10 and int(version) > FORMAT
        raise DataError(
            f"{path} has format {version}, written by g2n2 {metadata.get('g2n2')}; this g2n2 "
            f"({__version__}) reads formats 1 to {FORMAT}: upgrade g2n2"
            if newer
            else f"{path} is a safetensors file, but not of a g2n2 network: model.save writes those"
        )
    if metadata.get("checksum") != checksum(tensors, metadata):
        raise _damaged(path, "its checksum does not match its content")
    _register_operations(path, metadata)
    try:
        with torch.device("meta"):  # no memory, no random numbers: the weights come from the file
            model = _network(metadata)
    except (G2N2Error, *NOT_MADE) as error:
        raise DataError(f"{path} describes a network that cannot be made: {error}") from error
    _refuse_other_weights(path, model, tensors)
    model.load_state_dict({k: v.to(device, copy=True) for k, v in tensors.items()}, assign=True)
    return model


def checksum(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    """sha256 of the metadata and of every tensor's name, dtype, shape and bytes."""
    described = {name: text for name, text in metadata.items() if name != "checksum"}
    total = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name, value in sorted(tensors.items()):
        total.update(f"{name} {value.dtype} {list(value.shape)} ".encode())
        total.update(value.contiguous().flatten().view(torch.uint8).numpy().data)
    return total.hexdigest()


def _in_order(content: bytes) -> bytes:
    """The same file with its metadata sorted, which safetensors writes in an order of chance."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors start at a multiple of 8 bytes
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def _described(model: GrammarGNN) -> dict[str, str]:
    """The metadata of a network, but for the checksum."""
    kind = GrammarGNN if type(model) is G2N2 else type(model)
    if kind not in KINDS.values():
        raise LoweringError(
            f"a file describes {' or '.join(KINDS)}, not {kind.__name__}: save its state_dict() "
            "with safetensors, beside the code that makes it"
        )
    plan = model.plan
    text = str(plan.grammar)
    sentences = {} if plan.grammar.sentence_rules else {"sentences": NO_SENTENCES}
    if _grammar({"grammar": text, "name": "", **sentences}) != plan.grammar:
        raise LoweringError(f"the grammar does not read back from its own text:\n{text}")
    bodies = [rule.body for rule in plan.grammar.all_rules]
    operations = described([*bodies, *(definition for _, definition in plan.grammar.supports)])
    options = {
        **model.options,
        "width": _plain(model.options["width"]),
        "readout": plan.readout.mode,
        "pooling": _plain(readout_options(model.options["readout"], model.options["pooling"])[1]),
        "preset": asdict(plan.preset),  # by value: its name may mean something else one day
        "typical_size": model.typical_size,
    }
    return {
        "format": str(FORMAT),
        "g2n2": __version__,
        "kind": kind.__name__,
        "name": plan.grammar.name,
        "grammar": text,
        **sentences,
        **({"operations": json.dumps(operations, ensure_ascii=False)} if operations else {}),
        "options": json.dumps(options),
        "supports": json.dumps(_supports_options(model.supports)),
        "plan": plan_text(plan),
        "formula": model.formula,
    }


def _register_operations(path: str | Path, metadata: dict[str, str]) -> None:
    """Make known the operations a file needs: a signature is all there is to one."""
    try:
        for entry in json.loads(metadata.get("operations", "[]")):
            register(from_description(entry))
    except (GrammarError, TypeError, ValueError) as error:
        raise DataError(
            f"{path} needs an operation that is another one here: {error}; load it in a process "
            "that has not registered the other"
        ) from error


def _plain(value: Any) -> Any:
    """A mapping as a dict, which JSON can write."""
    return dict(value) if hasattr(value, "items") else value


def _supports_options(supports: nn.Module | None) -> dict[str, Any] | None:
    if supports is None or type(supports) is SquaredDistances:  # made where a rule names D
        return None
    if type(supports) is not SpectralSupports:
        raise LoweringError(
            f"supports given by {type(supports).__name__} are code, which a file cannot hold: "
            "define them in the grammar (a line such as `C = AA`), use SpectralSupports, or save "
            "state_dict() with safetensors, beside the code that makes them"
        )
    return {
        "count": supports.count,
        "bandwidth": supports.bandwidth,
        "receptive_field": supports.receptive_field,
        "learned": supports.mix is not None,
    }


def _network(metadata: dict[str, str]) -> GrammarGNN:
    """A network as the metadata say, without weights."""
    texts = dict.fromkeys(("options", "grammar", "name", "supports", "formula"), str)
    check(metadata, {**texts, "kind": tuple(KINDS)}, "metadata", "the file")
    options = json.loads(metadata["options"])
    if metadata["format"] == "1":
        options |= {"readout": "pooled-only", "pooling": options["readout"]}
    preset = options.pop("preset")
    preset = Preset(**{**preset, "decision": tuple(preset["decision"])})
    if options["decision"] is not None:
        options["decision"] = tuple(options["decision"])
    grammar = _grammar(metadata)
    designed = json.loads(metadata["supports"])
    if designed is not None:
        check(designed, SUPPORTS, "supports", "its metadata")
    supports = None if designed is None else SpectralSupports(**designed)
    model = KINDS[metadata["kind"]](grammar, **options, preset=preset, supports=supports)
    model.formula = metadata["formula"]
    return model


def _grammar(metadata: dict[str, str]) -> Grammar:
    """The grammar as it was: text without S reads as one with the default read-out."""
    grammar = Grammar.parse(metadata["grammar"], metadata["name"])
    without = metadata.get("sentences") == NO_SENTENCES
    return replace(grammar, readout=()) if without else grammar


def _read(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Every tensor and the metadata of a safetensors file."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, file.metadata() or {}
    except SafetensorError as error:
        with open(path, "rb") as start:
            pickled = start.read(2) in PICKLES
        if pickled:
            raise DataError(
                f"{path} was written by pickle or torch.save, and g2n2 never unpickles: make the "
                "network, load its state_dict() yourself and write it with model.save"
            ) from error
        raise _damaged(path, f"it is no whole safetensors file ({error})") from error
    except OSError as error:
        raise DataError(f"cannot read {str(path)!r}: {error.strerror or error}") from error


def _damaged(path: str | Path, why: str) -> DataError:
    return DataError(f"{path} is damaged: {why}; nothing was loaded. Copy or save it again")


def _refuse_other_weights(path: str | Path, model: GrammarGNN, tensors: dict[str, Tensor]) -> None:
    """Every tensor the network has, of its shape, and no other."""
    expected = {name: list(value.shape) for name, value in model.state_dict().items()}
    got = {name: list(value.shape) for name, value in tensors.items()}
    for name in sorted(expected.keys() | got.keys()):
        if expected.get(name) != got.get(name):
            raise _damaged(
                path,
                f"the weight {name} has shape {got.get(name, 'none')}, the network it describes "
                f"needs {expected.get(name, 'none of that name')}",
            )
    refuse_endless(path, tensors)


def refuse_endless(path: str | Path, tensors: Mapping[str, Tensor]) -> None:
    """Refuse weights no prediction can be made with.

    Raises:
        DataError: One is no floating-point number, or not finite; the message names the weight.
    """
    for name, value in tensors.items():
        if not value.is_floating_point():
            raise _damaged(path, f"the weight {name} is of {value.dtype}, not floating-point")
        if not bool(torch.isfinite(value).all()):
            raise _damaged(path, f"the weight {name} holds NaN or infinity")
