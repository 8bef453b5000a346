"""The left panel: text typed by the user, read as operations, a name, or the rules of a grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import G2N2Error, ParseError
from ..grammars.catalogue import named_grammar, printed_name, set_expression, without_braces
from ..grammars.fragments import Fragment
from ..grammars.grammar import NO_SENTENCES, Grammar
from ..grammars.rules import ARROWS, parse_rules
from ..language.operations import OPERATIONS
from ..language.parsing import parse_body

MOST_CHARACTERS = 2000
MOST_RULES = 60

EXAMPLES: dict[str, tuple[str, str]] = {
    "L1": ("L1", "{·, ᵀ, 1, diag}: as strong as 1-WL"),
    "L3": ("L3", "{·, ᵀ, 1, diag, ⊙}: as strong as 3-WL, the grammar of G²N²"),
    "L3 and a mark": ("L3Σ", "L3 with sums over marked nodes: beyond 3-WL"),
    "PPGN": ("PPGN", "products of matrices, Maron et al."),
    "GNNML1": ("GNNML1", "message passing with ⊙, Balcilar et al."),
    "2-IGN": ("2-IGN", "invariant graph network, corrected"),
    "triangle update": ("TriMul", "AlphaFold's triangle multiplicative update"),
}
"""For each entry of the example menu the text it stands for, and a line about it."""

OWN = "V_c → MV_c | 1\nM → (M⊙M) | A\nS → 1ᵀV_c"
"""What `your own` starts from."""

GIVEN = "given"
"""What a grammar is called that comes as its own rules; the page says `the given grammar`."""

_ARROW = re.compile("|".join(map(re.escape, ARROWS)))
_WORD = re.compile(r"[^\s,;{}()]+")
_SUPPORT = re.compile(r"(?:where\s+)?C(?:_\d+)?\s*=")


@dataclass(frozen=True)
class Language:
    """A grammar, and the operations it is the exhaustive grammar of, where it is one."""

    grammar: Grammar
    fragment: Fragment | None = None

    @property
    def operations(self) -> frozenset[str]:
        """The operations to tick."""
        return self.fragment.operations if self.fragment else self.grammar.operations


@dataclass(frozen=True)
class Fault:
    """Why a text is no language, and the characters it is about: `text[start:end]`."""

    message: str
    start: int
    end: int


def read_language(text: str) -> Language | Fault:
    """The grammar a text stands for, or what is wrong with it and where; reads no file."""
    if len(text) > MOST_CHARACTERS:
        message = f"the text has {len(text):,} characters; the workbench takes {MOST_CHARACTERS:,}"
        return Fault(message, MOST_CHARACTERS, len(text))
    if not text.strip():
        return Fault("tick an operation, or write one, such as · or ⊙", 0, len(text))
    try:
        language = _language(text)
    except G2N2Error as fault:
        return _located(text, fault)
    rules = len(language.grammar.all_rules)
    if rules > MOST_RULES:
        message = f"this grammar has {rules} rules; the workbench takes {MOST_RULES}"
        return Fault(message, 0, len(text))
    return language


def fragment_text(operations: frozenset[str]) -> str:
    """What stands in the text for ticked operations: `L3`, `L3Σ`, or their symbols."""
    for name in ("L1", "L3", "L3Σ"):
        if Fragment(name).operations == operations:
            return name
    return " ".join(op.symbol for name, op in OPERATIONS.items() if name in operations)


def _language(text: str) -> Language:
    if _ARROW.search(text):
        base, sign, rules = set_expression(text)
        if not sign:
            return Language(Grammar.parse(without_braces(text), GIVEN))
        grammar = _language(base).grammar
        return Language(grammar | rules if sign in "|∪+" else grammar - rules)
    if (known := named_grammar(text)) is not None:
        return Language(known)
    if (printed := printed_name(text)) is not None:
        return Language(printed.grammar())
    fragment = Fragment(text)
    return Language(fragment.exhaustive(), fragment)


def _located(text: str, fault: G2N2Error) -> Fault:
    """The first piece of a text that is itself at fault; the whole text where none is."""
    message = str(fault).split("\n")[0]
    if not _ARROW.search(text):
        for word in _WORD.finditer(text):
            try:
                Fragment(word[0])
            except G2N2Error as inner:
                symbols = ", ".join(op.symbol for op in OPERATIONS.values())
                expected = f"; known are {symbols}, and names such as L3 and PPGN"
                shown = str(inner).split(";")[0].split(" in ")[0]
                return Fault(shown + expected, word.start(), word.end())
        if lone := re.match("the bracket '(.)' is never", message):
            place = text.rindex(lone[1])
            return Fault(message.split(" in ")[0], place, place + 1)
        return Fault(message, 0, len(text))
    if whole := re.fullmatch(r"(\s*)\{([^{}]*)\}\s*", text):
        text = f"{whole[1]} {whole[2]} "  # without braces around it; places stay
    for start, line in _lines(text):
        if (found := _fault_in_line(start, line)) is not None:
            return found
    if (endless := re.match("(V_c|V_r|M|S) never becomes a word", message)) is not None:
        variable = endless[1] + ("|V(?!_)" if endless[1] == "V_c" else "")
        head = re.search(rf"(?:^|[\n;])\s*({variable})\s*(?:{_ARROW.pattern})", text)
        named = head or re.search(rf"({variable})", text)
        if named is not None:
            return Fault(message, named.start(1), named.end(1))
    return Fault(message, 0, len(text))


def _lines(text: str) -> list[tuple[int, str]]:
    """The statements of a grammar's text and where each starts, comments left out."""
    return [
        (piece.start(), piece[0].split("#")[0])
        for piece in re.finditer(r"[^\n;]+", text)
        if piece[0].split("#")[0].strip()
    ]


def _fault_in_line(start: int, line: str) -> Fault | None:
    arrow = _ARROW.search(line)
    if arrow is None:
        if _SUPPORT.match(line.strip()):
            return None
        if not line.lstrip().startswith("|"):
            return _fault(start, line, "no arrow here; a rule is written M → MM | A")
        head, body_at = "", 0
    else:
        if NO_SENTENCES.fullmatch(line.strip()):
            return None
        head, body_at = line[: arrow.start()], arrow.end()
        try:
            parse_rules(f"{head} → 1ᵀ1")
        except G2N2Error as fault:
            if "is not a variable" in str(fault):
                return _fault(start, head or line[:1], str(fault))
    for piece in re.finditer(r"[^|]*", line[body_at:]):
        at = start + body_at + piece.start()
        if not piece[0].strip():
            blank = piece.start() > 0 or not line[body_at:].lstrip().startswith("|")
            if blank and not (head == "" and piece.end() == 0) and piece.end() > piece.start():
                return Fault("an alternative is empty", at, at + max(1, len(piece[0])))
            continue
        if (found := _fault_in_body(at, head, piece[0])) is not None:
            return found
    return None


def _fault_in_body(at: int, head: str, body: str) -> Fault | None:
    try:
        parse_body(body)
    except ParseError as fault:
        message = str(fault).split("\n")[0]
        if fault.expected:
            message += f"; expected {', '.join(fault.expected)}"
        place = at + min(fault.position, len(body))
        return Fault(message, place, place + 1)
    except G2N2Error as fault:
        return _under_caret(at, body, str(fault))
    if not head:
        return None
    try:
        parse_rules(f"{head} → {body}")
    except G2N2Error as fault:
        return _fault(at, body, str(fault))
    return None


def _under_caret(at: int, body: str, message: str) -> Fault:
    """A fault whose message shows a window of the text and a caret below it."""
    first, *rest = message.split("\n")
    if len(rest) >= 2 and "^" in rest[1]:
        window, column = rest[0][2:], rest[1].index("^") - 2
        place = at + max(0, body.find(window)) + column
        return Fault(first, place, place + 1)
    return _fault(at, body, first)


def _fault(at: int, piece: str, message: str) -> Fault:
    """A fault of a whole piece of text, blanks at its ends left out."""
    start = at + len(piece) - len(piece.lstrip())
    return Fault(message, start, max(start + 1, at + len(piece.rstrip())))
