"""Text to terms.

    sum       product-level terms joined by + and −
    hadamard  joined by ⊙, `.*` or `*`; `*` after a number or a scalar is ×
    product   joined by ·, @, × or nothing at all
    postfix   ᵀ ^T ' and powers
    primary   a name, `1`, a number before × or *, a function call, a bracket, or
              `Σv. e` (`mark v. e`), where e reaches as far right as it can

`1` is always the ones vector; the number one is `1.0`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from ..errors import ParseError, SortError
from .operations import FUNCTIONS, OPERATIONS
from .sorts import M, R, S, V
from .terms import (
    DISTANCES,
    FREE_VARIABLES,
    HOLLOW,
    IDENTITY,
    MARKS,
    MAX_DEPTH,
    MAX_SIZE,
    ONE,
    A,
    Hole,
    Leaf,
    Number,
    Term,
    apply,
    call,
    mark_sum,
    power,
)
from .tokens import OPERAND, Token, Vocabulary, support_names, tokens_of

MAX_NESTING = 60
MAX_LENGTH = 20_000

CONSTANTS: dict[str, Term] = {"A": A, "I": IDENTITY, "J": HOLLOW}
TERM_NAMES: Vocabulary = {**CONSTANTS, **FREE_VARIABLES}
GRAMMAR_NAMES: Vocabulary = {
    **CONSTANTS,
    **{name: Hole(V) for name in ("V", "V_c", "Vc")},
    **{name: Hole(R) for name in ("R", "V_r", "Vr")},
    "S": Hole(S),
    "M": Hole(M),
    "C": Leaf("C", M),
    "D": DISTANCES,
}

_CONTINUATION = ("·", "@", "×", "⊙", "*", "+", "−", "ᵀ", "a power", ")", "the end")


def parse(text: str, names: Vocabulary = TERM_NAMES) -> Term:
    """Parse a term such as `1ᵀ(A²⊙A)1` or `1^T (A^2 * A) 1`.

    >>> from g2n2 import parse
    >>> print(parse("1^T (A^2 * A) 1"))
    1ᵀ(A²⊙A)1

    Raises:
        ParseError: With a caret at the fault and what was expected there.
        SortError: The text is well formed but an operation is applied to the wrong sizes.
    """
    if len(text) > MAX_LENGTH:
        raise ParseError(f"the text has {len(text)} characters; the limit is {MAX_LENGTH}")
    if not text.strip():
        raise ParseError("the text is empty; write a term such as 1ᵀA1")
    calls = {call: op.name for op in OPERATIONS.values() for call in op.spellings}
    return _Parser(text, names, tokens_of(text, names, {*calls, *FUNCTIONS}), calls).whole()


TermLike: TypeAlias = Term | str
"""A term, as `as_term` takes it."""


def as_term(term: TermLike, names: Vocabulary = TERM_NAMES) -> Term:
    """A term from itself or from its text: where terms enter public functions."""
    if isinstance(term, str):
        return parse(term, names)
    if not isinstance(term, Term):
        raise ParseError(
            f"got {type(term).__name__}, expected a term or its text, such as '1ᵀ(A²⊙A)1'"
        )
    return term


def parse_body(text: str, more: Vocabulary | None = None) -> Term:
    """Parse the right-hand side of a rule: S, V_c, V_r and M are grammar variables."""
    supports = {name: Leaf(name, M) for name in support_names(text)}
    return parse(text, {**GRAMMAR_NAMES, **supports, **(more or {})})


class _Parser:
    """Recursive descent, one method per precedence level."""

    def __init__(
        self, text: str, names: Vocabulary, tokens: list[Token], calls: Mapping[str, str]
    ) -> None:
        self.text, self.names, self.tokens, self.calls = text, names, tokens, calls
        self.at = 0
        self.nesting = 0
        self.marks: list[str] = []

    def whole(self) -> Term:
        term = self.sum()
        if self.next.kind == ")":
            raise self.error("this bracket closes nothing", _CONTINUATION)
        if self.next.kind != "end":
            raise self.error(f"{self.next.text!r} cannot stand here", _CONTINUATION)
        return term

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def peek(self, ahead: int) -> str:
        at = min(self.at + ahead, len(self.tokens) - 1)
        return self.tokens[at].kind

    def advance(self) -> Token:
        token = self.next
        self.at += 1
        return token

    def error(
        self, message: str, expected: tuple[str, ...] = (), at: int | None = None
    ) -> ParseError:
        position = self.next.start if at is None else at
        return ParseError(message, self.text, position, expected)

    def build(self, start: int, make: Callable[[], Term]) -> Term:
        """Run a term constructor, adding the place in the text to a sort error."""
        try:
            return make()
        except SortError as fault:
            raise SortError(str(ParseError(str(fault), self.text, start))) from None

    def sum(self) -> Term:
        term = self.negative() if self.next.kind == "−" else self.hadamard()
        while self.next.kind in ("+", "−"):
            sign = self.next
            if sign.kind == "+":
                self.advance()
                summand = self.hadamard()
            else:
                summand = self.negative()
            term = self.build(sign.start, lambda a=term, b=summand: apply("add", a, b))  # type: ignore[misc]
        return term

    def negative(self) -> Term:
        """What follows a minus sign: −2×X is a number times X, −X is −1 times X."""
        if self.peek(1) == "number" and self.peek(2) in ("×", "*"):
            return self.hadamard()
        sign = self.advance()
        term = self.hadamard()
        return self.build(sign.start, lambda: apply("scale", Number(Fraction(-1)), term))

    def hadamard(self) -> Term:
        term = self.starred() or self.product()
        while self.next.kind in ("⊙", "*"):
            sign = self.advance()
            right = self.starred() or self.product()
            op = "scale" if sign.kind == "*" and term.sort == S else "hadamard"
            term = self.build(sign.start, lambda o=op, a=term, b=right: apply(o, a, b))  # type: ignore[misc]
        return term

    def starred(self) -> Term | None:
        """`2 * X`: a number times everything up to the next ⊙, * or sum."""
        signed = self.next.kind == "−"
        is_one = not signed and self.next.text == "1"
        if self.peek(signed) != "number" or self.peek(signed + 1) != "*" or is_one:
            return None
        start = self.next.start
        number = self.number(signed)
        self.advance()
        self.deeper(start)
        right = self.starred() or self.product()
        self.nesting -= 1
        return self.build(start, lambda: apply("scale", number, right))

    def product(self) -> Term:
        term = self.factor()
        while True:
            start, kind = self.next.start, self.next.kind
            if kind == "·":
                self.advance()
                op = "matmul"
            elif kind == "×":
                self.advance()
                op = "scale"
            elif kind in ("name", "number", "function", "binder", "("):
                op = "matmul"
            else:
                return term
            right = self.factor()
            term = self.build(start, lambda o=op, a=term, b=right: apply(o, a, b))  # type: ignore[misc]

    def factor(self) -> Term:
        """A postfix expression, with any `2 ×` in front of it."""
        signed = self.next.kind == "−" and self.peek(1) == "number"
        is_one = not signed and self.next.text == "1"
        if self.peek(signed) == "number" and self.peek(signed + 1) == "×" and not is_one:
            start = self.next.start
            number = self.number(signed)
            self.advance()
            self.deeper(start)
            right = self.factor()
            self.nesting -= 1
            return self.build(start, lambda: apply("scale", number, right))
        return self.postfix()

    def number(self, signed: bool) -> Number:
        if signed:
            self.advance()
        token = self.advance()
        if len(token.text) > 60:
            raise self.error("a number has at most 60 digits", at=token.start)
        value = Fraction(token.text)
        return Number(-value if signed else value)

    def postfix(self) -> Term:
        term = self.primary()
        while self.next.kind in ("ᵀ", "power"):
            token = self.advance()
            if token.kind == "ᵀ":
                term = self.build(token.start, lambda a=term: apply("transpose", a))  # type: ignore[misc]
                continue
            exponent = int(token.text) if len(token.text) < 6 else MAX_DEPTH + 1
            if not 1 <= exponent <= MAX_DEPTH:
                shown = token.text if len(token.text) < 6 else token.text[:5] + "…"
                message = f"the power {shown} is outside 1 to {MAX_DEPTH}; X⁰ is written I"
                raise self.error(message, at=token.start)
            if exponent * term.size > MAX_SIZE:
                message = f"this power makes a term of more than {MAX_SIZE} nodes"
                raise self.error(message, at=token.start)
            term = self.build(token.start, lambda a=term, k=exponent: power(a, k))  # type: ignore[misc]
        return term

    def primary(self) -> Term:
        token = self.next
        if token.kind == "name":
            return self.named(token)
        if token.kind == "binder":
            return self.mark_sum(token)
        if token.kind == "number":
            return self.one_or_number(token)
        if token.kind == "function":
            return self.called(token)
        if token.kind == "(":
            self.advance()
            return self.bracketed(token)
        what = "the text ends" if token.kind == "end" else f"{token.text!r} cannot stand"
        raise self.error(f"{what} where a term should be", OPERAND)

    def named(self, token: Token) -> Term:
        assert token.value is not None
        name = token.text
        if name in MARKS and name not in self.marks:
            if name not in self.names:
                raise self.error(f"{name} is a mark, and this stands outside its Σ{name}", OPERAND)
            token = replace(token, value=self.names[name])
        self.advance()
        assert token.value is not None
        return token.value

    def mark_sum(self, binder: Token) -> Term:
        self.advance()
        self.deeper(binder.start)
        self.marks.append(binder.text)
        body = self.sum()
        self.marks.pop()
        self.nesting -= 1
        return self.build(binder.start, lambda: mark_sum(binder.text, body))

    def one_or_number(self, token: Token) -> Term:
        self.advance()
        if token.text == "1":
            return ONE
        if token.text == "1.0":
            return Number(Fraction(1))
        if set(token.text) == {"1"}:
            raise self.error("1 is the ones vector; two of them are written 1·1ᵀ", ("1·1ᵀ",))
        raise self.error(
            f"the number {token.text[:20]} must stand left of × or *; the ones vector is 1",
            ("×", "*"),
        )

    def called(self, name: Token) -> Term:
        """A function or an operation on its operands: diag(v), tri(X, Y, Z), e()."""
        self.advance()
        self.advance()
        operation = self.calls.get(name.text)
        arity = 1 if operation is None else OPERATIONS[operation].arity
        operands: list[Term] = []
        if self.next.kind != ")" or arity:
            self.deeper(name.start)
            operands.append(self.sum())
            while self.next.kind == "," and len(operands) < arity:
                self.advance()
                operands.append(self.sum())
            self.nesting -= 1
        if len(operands) < arity and self.next.kind == ")":
            few = f"{name.text} takes {arity} operands, got {len(operands)}"
            raise self.error(few, (", and another term",))
        if self.next.kind == "," and operands:
            many = "no operand" if not arity else f"{arity} operand{'s' if arity > 1 else ''}"
            raise self.error(f"{name.text} takes {many}, and here is one more", (")",))
        self.closed(name)
        if operation is None:
            return self.build(name.start, lambda: call(name.text, operands[0]))
        return self.build(name.start, lambda: apply(operation, *operands))

    def bracketed(self, opening: Token) -> Term:
        self.deeper(opening.start)
        term = self.sum()
        self.closed(opening)
        self.nesting -= 1
        return term

    def closed(self, opening: Token) -> None:
        """Step over the bracket that closes what was opened."""
        if self.next.kind != ")":
            message = "this bracket is never closed"
            if self.next.kind != "end":
                message = f"{self.next.text!r} cannot stand inside this bracket"
                raise self.error(message, _CONTINUATION)
            raise self.error(message, (")",), at=opening.start)
        self.advance()

    def deeper(self, start: int) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            message = f"brackets and multiples are nested more than {MAX_NESTING} deep"
            raise self.error(message, at=start)
