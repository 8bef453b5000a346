"""Certificates: a reduction as JSON, with every obligation, its factors, words and bijection.

Vertices of a term's pattern are numbered by first appearance, reading its leaves from left to right
(a matrix leaf has two, row then column; a column, a row and 1 have one; I has one; an operation
that broadcasts adds one for each letter, after those of its operands). A bijection lists for each
vertex of the obligation's term the vertex of "factors, then words" it stands for. `operations`
lists name, symbol and signature of the operations that are not built in, where there are any.
A link between grammars with marks has the proof `inside` them, where the marks are columns y and z,
and the `laws` that bring it out of the sums (see `marks`); Σz keeps the vertex of z. With `sums`
`all`, sums also bring columns and matrices out (see `full_marks`). Where words are words, there is
a proof `inside` and one `outside`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic_files import write_output
from ..errors import DataError, GrammarError, ReductionError
from ..grammars.grammar import Grammar
from ..grammars.registry import register
from ..input_files import parse_json, printable, read_text_file
from ..language.printing import to_text
from ..language.registry import described, from_description
from .lemmas import LEMMA, Lemma
from .marks import MarkedProof
from .simulation import Proof, SimulationWitness

if TYPE_CHECKING:
    from .reduce import Link

FORMAT = "g2n2 certificate 1"

Json = dict[str, Any]


def certificate(
    larger: Grammar, smaller: Grammar, links: Iterable[Link | Proof | MarkedProof]
) -> Json:
    """The certificate of a chain of links from one grammar to another."""
    chain = list(links)
    claims = (link.claim if isinstance(link, Proof | MarkedProof) else link for link in chain)
    ends = [end for claim in claims for end in (claim.larger, claim.smaller)]
    content: Json = {
        "format": FORMAT,
        "from": _rules(larger),
        "to": _rules(smaller),
        "links": [_link(link) for link in chain],
    }
    bodies = (rule.body for grammar in (larger, smaller, *ends) for rule in grammar.all_rules)
    if operations := described(bodies):
        content["operations"] = operations
    return {**content, "digest": digest(content)}


def digest(content: Json) -> str:
    """A checksum over all other fields: it tells an edited file from one we wrote."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def write_certificate(content: Json, path: Path) -> None:
    """Write a certificate; the file appears whole or not at all."""
    try:
        write_output(path, (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode())
    except DataError as fault:
        raise ReductionError(str(fault)) from None


def read_certificate(path: Path, register_operations: bool = False) -> Json:
    """Read a certificate that `derive --out` wrote, or the one in what `derive --json` printed.

    The checker reads the operations a certificate declares itself; `register_operations` makes them
    known here too, to go on with its grammars.
    """
    try:
        text = read_text_file(path, "expected a certificate, which is JSON")
    except DataError as fault:
        raise ReductionError(str(fault)) from None
    content = parse_certificate(text, str(path))
    if register_operations:
        declare_operations(content, str(path))
    return content


def parse_certificate(text: str, source: str) -> Json:
    """The certificate that JSON text is, or that holds as a derivation."""
    if not text.strip():
        raise ReductionError(
            f"{source} is empty; write a certificate with `g2n2 derive FRAGMENT --out FILE`, or "
            "pipe one in: g2n2 derive FRAGMENT --json | g2n2 check -"
        )
    try:
        data = parse_json(text)
    except ValueError as fault:
        raise ReductionError(f"{source} is not JSON: {fault}") from None
    return certificate_in(data, source)


def certificate_in(data: Any, source: str) -> Json:
    """The certificate that read JSON is, or that it holds as a derivation."""
    proof = proof_of(data)
    if proof is None:
        raise ReductionError(
            f"{source} is neither a certificate of this version ({FORMAT!r}) nor a derivation; "
            "write one with `g2n2 derive FRAGMENT --out FILE` or `--json`"
        )
    if proof is not data:
        require_agreement(data, proof, source)
    return proof


def proof_of(data: Any) -> Json | None:
    """A certificate, or the one that a derivation holds; None where there is none."""
    derived = isinstance(data, dict) and "certificate" in data
    proof = data["certificate"] if derived else data
    return proof if isinstance(proof, dict) and proof.get("format") == FORMAT else None


def require_agreement(derivation: Json, proof: Json, source: str) -> None:
    """Refuse a derivation whose own rules are not those of its certificate."""
    parts = [derivation.get("reduced"), derivation.get("readout")]
    listed = [part for part in parts if isinstance(part, list)]
    shown = {str(rule) for part in listed for rule in part}
    end = proof.get("to")
    if len(listed) < len(parts) or not isinstance(end, list) or shown != set(map(str, end)):
        raise ReductionError(
            f"{source} was changed: its rules are not those of its certificate; derive it again"
        )


def declare_operations(content: Json, source: str) -> None:
    """Register the operations a certificate declares."""
    try:
        for entry in content.get("operations", []):
            register(from_description(entry))
    except (GrammarError, TypeError) as fault:
        raise ReductionError(f"{source} cannot be used here: {printable(str(fault))}") from None


def _link(link: Link | Proof | MarkedProof) -> Json:
    """One link: cited, proved both ways, or (a bare proof) proved one way."""
    if isinstance(link, Lemma):
        ends = {"from": _rules(link.larger), "to": _rules(link.smaller)}
        return {"kind": "lemma", "lemma": LEMMA, "status": "cited", **ends}
    one_way = isinstance(link, Proof | MarkedProof)
    proof = link if isinstance(link, Proof | MarkedProof) else link.proof
    claim = proof.claim
    kind = "inclusion" if one_way else "simulation"
    shown = {
        "kind": f"marked {kind}" if isinstance(proof, MarkedProof) else kind,
        "status": "checked",
        "from": _rules(claim.larger),
        "to": _rules(claim.smaller),
        "assume": claim.assume,
        "level": claim.level,
        "proof": _proof(proof),
    }
    if isinstance(link, Proof | MarkedProof):
        return shown
    return {**shown, "converse": _proof(link.converse)}


def _rules(grammar: Grammar) -> list[str]:
    return [str(rule) for rule in grammar.all_rules]


def _proof(proof: Proof | MarkedProof) -> Json:
    if isinstance(proof, MarkedProof) and proof.outside:
        return {"inside": _proof(proof.inside), "outside": _proof(proof.outside)}
    if isinstance(proof, MarkedProof):
        sums = {"sums": "all"} if proof.how == "full" else {}
        return {"inside": _proof(proof.inside), "laws": list(map(_entry, proof.laws)), **sums}
    return {
        "form": proof.claim.form,
        "transpose_lemma": proof.transposed,
        "obligations": list(map(_entry, proof.witnesses)),
    }


def _entry(witness: SimulationWitness) -> Json:
    obligation = witness.obligation
    return {
        "kind": obligation.kind,
        "rule": str(obligation.rule),
        "choice": list(obligation.choice),
        "term": to_text(obligation.term),
        "factors": [to_text(f) for f in witness.factors],
        "words": [to_text(f) for f in witness.words],
        "bijection": list(witness.bijection),
    }
