"""Text to tokens: names, numbers, powers and the spellings of each operation."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..errors import ParseError
from .sorts import V
from .terms import MARKS, MAX_DEPTH, Hole, Leaf, Term

Vocabulary = Mapping[str, Term]
"""The names a text may use, and what each stands for."""

OPERAND = ("a name", "1", "a number and ×", "diag(", "Tr(", "(")
"""What may stand where a term begins."""

_BINDER = re.compile(r"(?:Σ|∑|mark\b)")
_BOUND = re.compile(rf"(?:Σ|∑|mark\b)\s*([{MARKS}])\s*\.")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+|/0*[1-9][0-9]*)?")
_SUPPORT = re.compile(r"C(?:_\{?([0-9]{1,3}|k)\}?|([₀₁₂₃₄₅₆₇₈₉]{1,3}))")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_POWER = re.compile(r"\^\s*(?:\{\s*([0-9]+)\s*\}|([0-9]+))")
_TRANSPOSE = re.compile(r"ᵀ|'|⊤|\^\s*(?:T|⊤|\{\s*T\s*\})")
_SYMBOLS = {
    "·": "·", "@": "·", "∙": "·", "⋅": "·",
    "×": "×",
    "⊙": "⊙", "∘": "⊙", "*": "*",
    "+": "+", "-": "−", "−": "−",
    "(": "(", ")": ")", ",": ",",
}  # fmt: skip
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "01234567890123456789")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: a symbol, or one of name, number, function, power, binder, end."""

    kind: str
    text: str
    start: int
    value: Term | None = None


def support_names(text: str) -> set[str]:
    """The supports C_1, C_2 … a text speaks of, in any spelling."""
    return {_support_name(m) for m in _SUPPORT.finditer(text)}


def _support_name(match: re.Match[str]) -> str:
    return f"C_{match[1] or match[2].translate(_DIGITS)}"


def scope_end(text: str, at: int) -> int:
    """Where the primes of a variable end."""
    return len(text) - len(text[at:].lstrip("′″"))


def scope_of(variable: str) -> int:
    """How many marks are in scope, by the primes: 1 for V′, 2 for V″ or V′′."""
    return variable.count("′") + 2 * variable.count("″")


def tokens_of(text: str, names: Vocabulary, functions: Collection[str]) -> list[Token]:
    """Split a text."""
    names = {**names, **{m[1]: Leaf(m[1], V) for m in _BOUND.finditer(text)}}
    longest_first = sorted(names, key=len, reverse=True)
    calls = _calls(frozenset(functions))
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token, end = _token(text, at, longest_first, names, functions, calls)
        tokens.append(token)
        at = end
    tokens.append(Token("end", "the end", len(text)))
    return tokens


@lru_cache(maxsize=100)
def _calls(functions: frozenset[str]) -> re.Pattern[str]:
    """The names that take operands, each before its bracket."""
    names = "|".join(map(re.escape, sorted(functions, key=len, reverse=True)))
    return re.compile(rf"({names})[ \t]*(?=\()")


def _token(
    text: str,
    at: int,
    longest_first: list[str],
    names: Vocabulary,
    functions: Collection[str],
    calls: re.Pattern[str],
) -> tuple[Token, int]:
    if m := _TRANSPOSE.match(text, at):
        return Token("ᵀ", m[0], at), m.end()
    if m := _SUPERSCRIPT.match(text, at):
        return Token("power", m[0].translate(_DIGITS), at), m.end()
    if m := _POWER.match(text, at):
        return Token("power", m[1] or m[2], at), m.end()
    if text.startswith(".*", at):
        return Token("⊙", ".*", at), at + 2
    if text[at] in _SYMBOLS:
        return Token(_SYMBOLS[text[at]], text[at], at), at + 1
    if m := _BOUND.match(text, at):
        return Token("binder", m[1], at), m.end()
    if m := _BINDER.match(text, at):
        message = "after Σ stands a mark, one letter from u to z, and a dot, as in Σv. vᵀAv"
        raise ParseError(message, text, m.end(), ("a mark and a dot",))
    if m := _NUMBER.match(text, at):
        return Token("number", m[0], at), m.end()
    if m := calls.match(text, at):
        return Token("function", m[1], at), m.end()
    if (m := _SUPPORT.match(text, at)) and (name := _support_name(m)) in names:
        return Token("name", m[0], at, names[name]), m.end()
    for name in longest_first:
        if text.startswith(name, at):
            value, end = names[name], at + len(name)
            if isinstance(value, Hole):
                end = scope_end(text, end)
                value = Hole(value.sort.within(scope_of(text[at:end])))
            return Token("name", text[at:end], at, value), end
    word = re.match(r"[^\Wᵀ⁰¹²³⁴⁵⁶⁷⁸⁹]+|.", text[at:], re.DOTALL)
    assert word is not None
    listed = ", ".join(names)
    if word[0] == "^":
        hint = f"after it stands T or a power from 1 to {MAX_DEPTH}"
    elif text[at + len(word[0]) :].lstrip(" \t").startswith("("):
        hint = (
            f"known here are {', '.join(sorted(functions))}; an operation of your own has to be "
            "registered first: g2n2.register(Operation(…)), or --plugin MODULE"
        )
    elif word[0] in functions:
        hint = f"what it is applied to stands in brackets: {word[0]}(…)"
    elif len(word[0]) > 1 and word[0].isalpha():
        hint = (
            f"the names here are {listed}, and functions are written with brackets: "
            f"{', '.join(sorted(functions))}"
        )
    else:
        hint = f"the names here are {listed}"
    raise ParseError(f"unknown {word[0][:20]!r}; {hint}", text, at, OPERAND)
