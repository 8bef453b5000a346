"""A dropped certificate or network file: its grammar, its plan, and whether it checks out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..compiler.plan_to_text import plan_text
from ..errors import G2N2Error
from ..reduction.certificates import read_certificate
from ..reduction.checker import check
from .chain import Report

MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class FileReport:
    """What a file holds."""

    name: str  # of the file
    kind: str  # `certificate`, `network`, or empty where it is neither
    holds: bool  # whether the checker accepts it, or the checksum fits; False where it is neither
    verdict: str  # that in words, to be read after the name
    language: str = ""  # the text of its grammar, to go on with; empty where there is none
    details: str = ""  # more lines: claims, or the plan
    layers: int = 0  # of a network, else 0
    width: int = 0  # of a network, else 0


def inspect_file(path: str, name: str, report: Report) -> FileReport:
    """Read a file by its ending; whatever is wrong with it is said in the report."""
    try:
        if name.lower().endswith(".json"):
            report(0.2, "checking the certificate")
            return _certificate(Path(path), name)
        if name.lower().endswith(".safetensors"):
            report(0.2, "loading the network")
            return _network(path, name)
    except G2N2Error as fault:
        text = str(fault).split("\n")[0].removeprefix(f"{path} ").replace(path, name)
        return FileReport(name, "", False, text)
    text = "is neither a certificate (.json) nor a network (.safetensors)"
    return FileReport(name, "", False, text)


def _certificate(path: Path, name: str) -> FileReport:
    content = read_certificate(path)
    outcome = check(content)
    rules = content.get("from")
    language = "\n".join(map(str, rules)) if isinstance(rules, list) and outcome.valid else ""
    if not outcome.valid:
        return FileReport(name, "certificate", False, f"the checker refuses it: {outcome.failure}")
    verdict = f"valid: {outcome.checked} obligations checked"
    lines = [f"shows: {claim}" for claim in outcome.claims]
    lines += [f"cited: {cited}" for cited in outcome.cited]
    lines += ["", "from", *_by_variable(content["from"]), "to", *_by_variable(content["to"])]
    return FileReport(name, "certificate", True, verdict, language, "\n".join(lines))


def _by_variable(rules: list[str]) -> list[str]:
    """`  M → MM | A`: the rules of each variable on one line."""
    bodies: dict[str, list[str]] = {}
    for rule in rules:
        head, _, body = rule.partition(" → ")
        bodies.setdefault(head, []).append(body)
    return [f"  {head} → {' | '.join(alternatives)}" for head, alternatives in bodies.items()]


def _network(path: str, name: str) -> FileReport:
    from ..nn.files import load

    plan = load(path).plan
    width = max(plan.layers[-1].widths().values())
    return FileReport(
        name,
        "network",
        True,
        f"whole: its checksum fits; a network of {plan.grammar.name or 'a given grammar'}",
        "\n".join(plan.grammar.lines()),
        plan_text(plan),
        len(plan.layers),
        width,
    )
