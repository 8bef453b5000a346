"""The independent checker: accepts a certificate, or names the first obligation that fails.

It shares no code with the search: it works out itself which obligations are owed, builds its own
patterns by joining index slots, and checks that each witness is a word of the smaller grammar and
that the given bijection is an isomorphism. It imports terms, parsing and
the table of operations, nothing else of ours. A certificate declares the operations it uses beyond
the built-in ones; they are known while it is checked, and no others are.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from html import escape
from typing import Any

from ..errors import G2N2Error
from ..language.operations import Operation
from ..language.registry import registered
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import ONE, Apply, Hole, apply, has_mark_sum, holes, leaves, subterms
from .checker_patterns import SIGNATURES, WITHOUT_PATTERN, Refused, require
from .full_marks_checker import check_full, check_words
from .marked_checker import check_marked
from .obligation_checker import FUNCTIONS, Judge, Rule, keys, parse_rule

_SIGNATURE = re.compile(r"([a-z1]{2,}(,[a-z1]{2,})*)?->[a-z1]{2,}")
_LONGEST_FAILURE = 300
_KINDS = ("simulation", "inclusion", "marked simulation", "marked inclusion")
_FORMS = ("exact", "plain", "shape", "action", "broadcast", "diagonal")


@dataclass(frozen=True)
class CheckResult:
    """What the checker found.

    Attributes:
        valid: Whether every link holds.
        checked: How many obligations were checked.
        cited: Lemmas the certificate rests on besides.
        failure: The first thing that fails.
        claims: What each checked link says: equal power or inclusion, of what A, at which level.
        operations: The operations it declares, with their signatures: part of what it claims.
    """

    valid: bool
    checked: int
    cited: tuple[str, ...]
    failure: str = ""
    claims: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        listed = {
            "valid": ("yes" if self.valid else "no",),
            "obligations checked": (str(self.checked),),
            "shows": self.claims,
            "cited, not checked": self.cited,
            "failure": (self.failure,) * bool(self.failure),
        }
        rows = "".join(
            f"<tr><th>{name}</th><td>{escape('; '.join(texts))}</td></tr>"
            for name, texts in listed.items()
            if texts
        )
        return f"<table><caption>certificate</caption>{rows}</table>"


def check(content: Any) -> CheckResult:
    """Check a certificate as read from JSON; never raises on a bad one."""
    cited: list[str] = []
    claims: list[str] = []
    checked = 0
    declared: dict[str, str] = {}
    try:
        require(isinstance(content, dict), "the certificate is not an object")
        operations = _operations(content.get("operations", []))
        declared = {operation.name: operation.signature for operation in operations}
        with registered(*operations, alone=True):
            keys(
                {key: value for key, value in content.items() if key != "operations"},
                {"format", "from", "to", "links", "digest"},
                "the certificate",
            )
            require(content["format"] == "g2n2 certificate 1", "unknown certificate format")
            at = content["from"]
            require(isinstance(content["links"], list), "the links are not a list")
            for end in ("from", "to"):
                require(isinstance(content[end], list), f"the grammar under {end!r} is not a list")
                for text in content[end]:
                    require(isinstance(text, str), "a rule is not text")
                    parse_rule(text)
            for number, link in enumerate(content["links"], 1):
                require(isinstance(link, dict), f"link {number} is not an object")
                require(link.get("from") == at, f"link {number} starts at another grammar")
                if link.get("kind") == "lemma":
                    cited.append(_check_lemma(link))
                else:
                    checked += _check_simulation(link, f"link {number}", declared)
                    cited += _function_words(link)
                    claims.append(_claim(link))
                at = link["to"]
            require(at == content["to"], "the last link ends at another grammar")
            require(
                content["digest"] == _digest(content), "the digest does not fit: a field was edited"
            )
    except Refused as fault:
        return CheckResult(False, checked, tuple(cited), _shown(str(fault)))
    except (
        G2N2Error, KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError
    ) as fault:  # fmt: skip
        text = _shown(str(fault).split("\n")[0])
        return CheckResult(False, checked, tuple(cited), f"malformed certificate: {text}")
    if not content["links"]:
        claims.append("no rule was removed, so nothing had to be proved")
    shown = tuple(f"{name} {signature}" for name, signature in declared.items())
    return CheckResult(True, checked, tuple(cited), claims=tuple(claims), operations=shown)


def _shown(failure: str) -> str:
    """A failure may quote a rule or a term; it never repeats a file."""
    line = "".join(c if c.isprintable() else " " for c in failure[:_LONGEST_FAILURE])
    return line if len(failure) <= _LONGEST_FAILURE else line[:-3] + "..."


def _operations(entries: Any) -> list[Operation]:
    """The operations a certificate declares; none of them may be built in."""
    require(isinstance(entries, list), "the operations are not a list")
    operations: list[Operation] = []
    for entry in entries:
        keys(entry, {"name", "symbol", "signature"}, "an operation")
        require(all(isinstance(x, str) for x in entry.values()), "an operation is not text")
        name, signature = entry["name"], entry["signature"]
        built_in = {*SIGNATURES, *WITHOUT_PATTERN, "one"}
        require(name not in built_in, f"{name} is built in: a certificate cannot redefine it")
        require(name not in (x.name for x in operations), f"{name} is declared twice")
        require(bool(_SIGNATURE.fullmatch(signature)), f"{name}: {signature!r} is no signature")
        operations.append(Operation(name, entry["symbol"], signature))
        require(
            operations[-1].signature == signature, f"{name}: letters are named a, b, c in order"
        )
    return operations


def _claim(link: dict[str, Any]) -> str:
    """What a simulation or inclusion link says, once it is checked."""
    both_ways = link["kind"].endswith("simulation")
    what = "equal power" if both_ways else "no more power than the second"
    assumptions = {
        "none": "any A",
        "symmetric": "symmetric A",
        "simple": "symmetric 0/1 A without loops",
    }
    return f"{what}, {assumptions[link['assume']]}, {link['level']} level"


def _check_lemma(link: dict[str, Any]) -> str:
    """The side conditions of the cited lemma: what is dropped, and that functions are free."""
    keys(link, {"kind", "lemma", "status", "from", "to"}, "a lemma link")
    lemma = "sums and pointwise functions are free"
    require(link["lemma"] == lemma and link["status"] == "cited", "unknown lemma")
    larger, smaller = link["from"], link["to"]
    require(len(set(larger)) == len(larger), "a grammar lists a rule twice")
    dropped = [text for text in larger if text not in smaller]
    require(len(set(smaller)) == len(smaller), "a grammar lists a rule twice")
    require(set(smaller) <= set(larger), "the lemma adds rules")
    rules = {parse_rule(text) for text in larger}
    require(not any(map(_has_marks, rules)), "the lemma is not about grammars with marks")
    for text in dropped:
        head, body = parse_rule(text)
        plain = isinstance(body, Apply) and all(isinstance(a, Hole) for a in body.args)
        require(plain, f"the lemma does not cover {text}")
        assert isinstance(body, Apply)
        require(body.op == "add" or bool(body.function), f"the lemma does not cover {text}")
        if body.function and head != S:
            require(_powers(head, rules), f"f is not free here: no Hadamard powers for {text}")
    kept = [part for text in smaller for part in subterms(parse_rule(text)[1])]
    clean = not any(isinstance(t, Apply) and (t.op == "add" or t.function) for t in kept)
    require(clean, "the lemma must drop every sum and function at once")
    return f"{lemma}: {'; '.join(dropped)}"


def _powers(head: Sort, rules: set[Rule]) -> bool:
    """Whether Hadamard powers can be made, the zeroth among them: 1, and 1·1ᵀ for matrices."""
    v, r, m = Hole(V), Hole(R), Hole(M)
    if head == M:
        needed = {(M, apply("hadamard", m, m)), (M, v @ r), (R, v.T), (V, ONE)}
        return needed <= rules
    diag = apply("diag", v)
    ways = [{(V, apply("hadamard", v, v))}, {(V, m @ v), (M, diag)}, {(V, diag @ v)}]
    needed = {(V, ONE), (R, v.T), (V, r.T)} if head == R else {(V, ONE)}
    return any(way | needed <= rules for way in ways)


def _check_simulation(link: dict[str, Any], where: str, declared: dict[str, str]) -> int:
    fields = {"kind", "status", "from", "to", "assume", "level", "proof"}
    require(link.get("kind") in _KINDS, f"{where}: unknown kind")
    both_ways, marked = link["kind"].endswith("simulation"), link["kind"].startswith("marked")
    keys(link, fields | {"converse"} if both_ways else fields, where)
    require(link["status"] == "checked", f"{where}: unknown status")
    for text in (*link["from"], *link["to"]):
        require(isinstance(text, str), f"{where}: a rule is not text")
    distinct = all(len(set(map(parse_rule, link[end]))) == len(link[end]) for end in ("from", "to"))
    require(distinct, f"{where}: a grammar lists a rule twice")
    require(link["assume"] in ("none", "symmetric", "simple"), f"{where}: unknown assumption")
    require(link["level"] in ("graph", "node", "pair"), f"{where}: unknown level")
    larger = [parse_rule(text) for text in link["from"]]
    smaller = [parse_rule(text) for text in link["to"]]
    total = 0
    directions = [("proof", larger, smaller)]
    if both_ways:
        directions.append(("converse", smaller, larger))
    sums = any(_has_marks(rule) for rule in (*larger, *smaller))
    require(marked or not sums, f"{where}: a link between grammars with marks is another kind")
    require(not marked or link["level"] == "graph", f"{where}: marks are about graphs")
    for part, big, small in directions:
        proof = link[part]
        if marked:
            named = proof if isinstance(proof, dict) else {}
            how = check_words if "outside" in named else check_marked
            how = check_full if "sums" in named else how
            total += how(big, small, proof, link["assume"], declared, f"{where}, {part}")
            continue
        keys(proof, {"form", "transpose_lemma", "obligations"}, f"{where}, {part}")
        require(proof["form"] in _FORMS, f"{where}: unknown form")
        require(isinstance(proof["transpose_lemma"], bool), f"{where}: transpose_lemma")
        judge = Judge(big, small, proof["form"], link["assume"], proof["transpose_lemma"], declared)
        silent = {"action": ("pair",), "broadcast": ("node", "pair"), "diagonal": ("node", "pair")}
        require(
            link["level"] not in silent.get(proof["form"], ()),
            f"{where}: the {proof['form']} form says nothing at {link['level']} level",
        )
        total += judge.check_all(proof["obligations"], link["level"], f"{where}, {part}")
    return total


def _has_marks(rule: Rule) -> bool:
    head, body = rule
    scopes = {head.scope, *(hole.scope for hole in holes(body))}
    named = {leaf.name for leaf in leaves(body)} & {"y", "z"}
    return scopes != {0} or bool(named) or has_mark_sum(body)


def _function_words(link: dict[str, Any]) -> list[str]:
    """Columns u0, u1 … stand for pointwise functions of columns: allowed where f_V is free."""
    used, strange = (
        sorted({t.name for _, body in map(parse_rule, link[end]) for t in leaves(body)} & FUNCTIONS)
        for end in ("from", "to")
    )
    require(not strange, f"{', '.join(strange)}: a function of columns in the smaller grammar")
    if not used:
        return []
    smaller = {parse_rule(text) for text in link["to"]}
    require(_powers(V, smaller), f"{', '.join(used)}: functions of columns are not free here")
    return [f"functions of columns are free: {', '.join(used)}"]


def _digest(content: dict[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
