"""Settings of a run from files and the command line: the command line wins, then the file."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..grammars.catalogue import GIVEN
from ..grammars.grammar import Grammar
from ..grammars.rules import ARROWS
from ..input_files import read_text_file
from ..pipeline import choose_grammar
from .config import RunConfig, respelled


def read_settings(path: str | Path) -> dict[str, Any]:
    """The settings of a TOML file, or of a JSON file such as a run's `config.json`.

    Raises:
        DataError: It cannot be read, or is neither.
    """
    kind = "JSON" if str(path).lower().endswith(".json") else "TOML"
    try:
        text = read_text_file(path, f"expected settings in {kind}")
        found = json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:  # both decoders'
        raise DataError(f"{path} is not {kind}: {error}") from None
    if not isinstance(found, dict):
        raise DataError(f"{path} holds no settings: expected names and values")
    return found


def merged(
    file: str | Path | None, said: Mapping[str, Any], options: Mapping[str, Any]
) -> RunConfig:
    """The config of a file overridden by what was said on the command line.

    Args:
        file: TOML or JSON, or None.
        said: Settings given; None or empty means not given.
        options: Options of the data set or reader, added to those of the file one by one.

    Raises:
        DataError: A setting is unknown, of the wrong type, or makes no sense, or a grammar and a
            baseline are both said.
    """
    values = respelled(read_settings(file)) if file is not None else {}
    source = str(file) if file is not None else "the command line"
    given = respelled({k: value for k, value in said.items() if value not in (None, (), [])})
    together = dict(values.get("options") or {}) | dict(options)
    _refuse_both(given, "--baseline or --grammar")
    if given.get("baseline") or "grammar" in given:
        values.pop("rules", None)
    if given.get("baseline"):
        values.pop("grammar", None)
    if "grammar" in given:
        values.pop("baseline", None)
    if values.get("grammar") != RunConfig.grammar:  # a run's own file has it beside a baseline
        _refuse_both(values, f"one of them in {file}")
    return rooted(RunConfig.from_dict({**values, **given, "options": together}, source))


def _refuse_both(settings: Mapping[str, Any], leave_out: str) -> None:
    if settings.get("baseline") and settings.get("grammar"):
        raise DataError(
            f"the baseline {settings['baseline']} takes the place of the grammar "
            f"{settings['grammar']}: leave out {leave_out}"
        )


def with_rules(config: RunConfig) -> RunConfig:
    """The config with the rules of its grammar written down, under the grammar's name.

    Raises:
        GrammarError: There is no such grammar.
        DataError: Several processes would read the grammar from one pipe.
    """
    return with_chosen_rules(config, exhaustive=False)[0]


def with_chosen_rules(config: RunConfig, *, exhaustive: bool) -> tuple[RunConfig, Grammar | None]:
    """As `with_rules`; beside it the grammar a fragment also has, where it was reduced."""
    if config.baseline or config.rules:
        return config, None
    if config.grammar.strip() == "-" and config.devices > 1:
        raise DataError(
            "several processes cannot read one pipe: write the derivation to a file "
            "(g2n2 derive … --out FILE), and give --grammar FILE"
        )
    chosen = choose_grammar(config.grammar, reduce=not exhaustive, exhaustive=exhaustive)
    name, rules = _recorded(config, chosen.grammar), rules_of(chosen.grammar)
    return replace(config, grammar=name, rules=rules), None if exhaustive else chosen.other


def _recorded(config: RunConfig, grammar: Grammar) -> str:
    """What a run calls its grammar: its name, or its text where it has none."""
    has_text = grammar.name == GIVEN and config.grammar.strip() != "-"
    return config.grammar if has_text else grammar.name


def rules_of(grammar: Grammar) -> tuple[str, ...]:
    """A grammar's rules and supports, one text each."""
    supports = (f"{name} = {term}" for name, term in grammar.supports)
    return (*(str(rule) for rule in grammar.all_rules), *supports)


def run_grammar(config: RunConfig) -> Grammar:
    """The grammar of a run: its rules where it has them down, else what its name stands for."""
    known = with_rules(config)
    grammar = Grammar.parse("\n".join(known.rules), _printed(known.grammar))
    silent = not any(rule.startswith("S ") for rule in known.rules)
    return replace(grammar, readout=()) if silent else grammar


def _printed(name: str) -> str:
    """A grammar's name; one that is its own text has none."""
    return GIVEN if any(arrow in name for arrow in ARROWS) else name


def rooted(config: RunConfig) -> RunConfig:
    """The config with a path that holds wherever the run is taken up; a name stays one."""
    from ..data.catalogue import DATASETS

    known = {row.name.replace("_", "-") for row in DATASETS}
    path = Path(config.dataset)
    if config.dataset.lower().replace("_", "-") in known or not os.path.exists(path):
        return config
    return replace(config, dataset=str(path.resolve()))


def first_process() -> bool:
    """Whether this is the process that speaks and writes, before Fabric can be asked."""
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))) == 0


def new_run_folder(config: RunConfig, root: str | Path = "runs") -> Path:
    """The next run folder, made at once, so that no other process has the same one.

    Only the first process of a run makes it; the others are told its name later.

    Raises:
        DataError: It cannot be made.
    """
    while True:
        folder = next_run_folder(config, root)
        if not first_process():
            return folder
        try:
            Path(root).mkdir(parents=True, exist_ok=True)
            folder.mkdir()
        except FileExistsError:
            if Path(root).is_dir():
                continue  # another process was faster
            raise DataError(f"{root} is no folder; name the run folder with --out") from None
        except OSError as error:
            raise DataError(
                f"cannot make {folder} ({error.strerror}); name a folder with --out"
            ) from None
        return folder


def next_run_folder(config: RunConfig, root: str | Path = "runs") -> Path:
    """`runs/<dataset>-<target>-NNN` with the next free number."""
    name = Path(config.dataset).name.partition(".")[0].lower() or "run"
    targets = "-".join(config.target[:3]).lower()
    stem = "-".join(filter(None, (name, targets)))
    stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in stem)
    taken = [path.name.rpartition("-")[2] for path in Path(root).glob(f"{stem}-[0-9]*")]
    numbers = [int(text) for text in taken if text.isdecimal()]
    return Path(root) / f"{stem}-{max(numbers, default=0) + 1:03d}"
