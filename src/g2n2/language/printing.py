"""Terms to Unicode, ASCII and LaTeX; what is printed parses back to the same tree."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from .operations import OPERATIONS
from .sorts import S
from .terms import Apply, Hole, Leaf, MarkSum, Number, Term

BINDER, SUM, HADAMARD, PRODUCT, POSTFIX, ATOM = range(6)
"""How tightly a printed text binds; an operand that binds more loosely gets brackets."""

_DIGITS_UP = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SUPERSCRIPTS = str.maketrans("0123456789", _DIGITS_UP)
_DECIMALS = 16
"""More decimals are written as a fraction."""


@dataclass(frozen=True)
class Style:
    """What one notation writes for each operation."""

    transpose: str
    hadamard: str
    scalar_hadamard: str
    scale: str
    scale_binds: int
    minus: str
    gap: str
    brackets: tuple[str, str]
    functions: str  # a format with {name} and {arg}
    mark_sum: str  # a format with {mark} and {body}
    latex: bool = False


TEXT = Style("ᵀ", "⊙", "⊙", "×", PRODUCT, "−", "", ("(", ")"), "{name}({arg})", "Σ{mark}. {body}")
ASCII = Style(
    "^T", " * ", " .* ", " * ", HADAMARD, "-", " ", ("(", ")"), "{name}({arg})",
    "mark {mark}. {body}",
)  # fmt: skip
LATEX = Style(
    r"^{\mathsf T}",
    r" \odot ",
    r" \odot ",
    r" \times ",
    PRODUCT,
    "-",
    " ",
    (r"\left(", r"\right)"),
    r"\mathrm{{{name}}}\left({arg}\right)",
    r"\sum_{{{mark}}} {body}",
    latex=True,
)


def to_text(term: Term, powers: bool = True) -> str:
    """The term in the paper's Unicode notation."""
    return _Printer(TEXT, powers).show(term)[0]


def to_ascii(term: Term, powers: bool = True) -> str:
    """The term in plain ASCII."""
    return _Printer(ASCII, powers).show(term)[0]


def to_latex(term: Term, powers: bool = True) -> str:
    """The term as LaTeX, without dollar signs."""
    return _Printer(LATEX, powers).show(term)[0]


def decimal(value: Fraction) -> str:
    """An exact number: a decimal where a short one is exact, else a fraction such as `1/3`.

    The number one is `1.0`, because `1` is the ones vector.
    """
    if value == 1:
        return "1.0"
    if value.denominator == 1:
        return str(value.numerator)
    digits = next((d for d in range(1, _DECIMALS) if (value * 10**d).denominator == 1), None)
    if digits is None:
        return str(value)
    whole, rest = divmod(abs(int(value * 10**digits)), 10**digits)
    return f"{'-' if value < 0 else ''}{whole}.{rest:0{digits}d}"


class _Printer:
    def __init__(self, style: Style, powers: bool) -> None:
        self.style, self.powers = style, powers

    def show(self, term: Term) -> tuple[str, int]:
        """The text of a term and how tightly it binds."""
        match term:
            case Leaf(name=name):
                return self._name(name), ATOM
            case Hole():
                return self._variable(term), ATOM
            case Number(value=value):
                return decimal(value).replace("-", self.style.minus), ATOM
            case MarkSum(mark=mark, body=body):
                text = self.style.mark_sum.format(mark=mark, body=self.show(body)[0])
                return text, BINDER
            case Apply(op="matmul", args=(a, b)):
                return self._product(term, a, b)
            case Apply(op="transpose", args=(a,)):
                return self._base(a) + self.style.transpose, POSTFIX
            case Apply(op="hadamard", args=(a, b)):
                sign = self.style.scalar_hadamard if a.sort == S else self.style.hadamard
                return self._operand(a, HADAMARD) + sign + self._operand(b, PRODUCT), HADAMARD
            case Apply(op="scale", args=(a, b)):
                binds = self.style.scale_binds
                # In (v·1.0)×X the sign must not read as belonging to the number alone.
                misread = not isinstance(a, Number) and isinstance(_rightmost(a), Number)
                left = self._operand(a, ATOM if misread else binds)
                return left + self.style.scale + self._operand(b, binds + 1), binds
            case Apply(op="add", args=(a, b)):
                return self._operand(a, SUM) + self._summand(b), SUM
            case Apply(op=op, args=args, function=function):
                operands = ", ".join(self.show(arg)[0] for arg in args)
                name = function or self._operation(op)
                return self.style.functions.format(name=name, arg=operands), ATOM
        raise AssertionError(f"no notation for {term!r}")

    def _operation(self, op: str) -> str:
        operation = OPERATIONS[op]
        if self.style is TEXT:
            return operation.symbol
        name = operation.ascii_symbol
        return name.replace("_", r"\_") if self.style.latex else name

    def _operand(self, term: Term, least: int) -> str:
        text, binds = self.show(term)
        return text if binds >= least else self._bracket(text)

    def _base(self, term: Term) -> str:
        """What an exponent or a transpose is written on."""
        text, binds = self.show(term)
        if binds == POSTFIX and self.style.latex:
            return f"{{{text}}}"
        return text if binds >= POSTFIX else self._bracket(text)

    def _bracket(self, text: str) -> str:
        return text.join(self.style.brackets)

    def _product(self, term: Term, a: Term, b: Term) -> tuple[str, int]:
        base, exponent = _as_power(term) if self.powers else (term, 1)
        if exponent > 1:
            text, sign = self._base(base), self._exponent(exponent)
            if text[-1] in _DIGITS_UP and sign[0] in _DIGITS_UP:
                text = self._bracket(text)  # (A²)² must not read A²²
            return text + sign, POSTFIX
        left, right = self._operand(a, PRODUCT), self._operand(b, POSTFIX)
        if isinstance(a, Hole) and isinstance(b, Hole) and a.sort.boundary == b.sort.boundary == 1:
            return self._bracket(left) + self._bracket(right), PRODUCT  # (V_c)(V_r), as printed
        if self.style.latex:
            return f"{left} {right}", PRODUCT
        clash = left[-1].isdecimal() and right[0].isdecimal()
        return left + ("·" if clash and not self.style.gap else self.style.gap) + right, PRODUCT

    def _summand(self, term: Term) -> str:
        """A second summand with its sign: subtraction is adding a negative multiple."""
        match term:
            case Apply(op="scale", args=(Number(value=value), b)) if value < 0:
                if value == -1:
                    text, binds = self.show(b)
                    reads_as_number = text.startswith(f"1{self.style.scale}")  # - 1 * u is −1×u
                    if binds <= SUM or isinstance(_leftmost(b), Number) or reads_as_number:
                        text = self._bracket(text)
                    return f" {self.style.minus} {text}"
                binds = self.style.scale_binds
                times = self.style.scale + self._operand(b, binds + 1)
                return f" {self.style.minus} {decimal(-value)}{times}"
        return " + " + self._operand(term, HADAMARD)

    def _exponent(self, exponent: int) -> str:
        if self.style is TEXT:
            return str(exponent).translate(_SUPERSCRIPTS)
        return f"^{{{exponent}}}" if self.style.latex else f"^{exponent}"

    def _variable(self, hole: Hole) -> str:
        if self.style is TEXT:
            return hole.variable.variable
        return self._name(hole.sort.variable) + "'" * hole.scope

    def _name(self, name: str) -> str:
        if not self.style.latex:
            return name
        if name == "1":
            return r"\mathbf 1"
        if name == "I":
            return r"\mathrm I"
        if "_" in name:
            base, index = name.split("_", 1)
            return f"{base}_{{{index}}}"
        if len(name) > 1 and name[1:].isdigit():
            return f"{name[0]}_{{{name[1:]}}}"
        return name


def _as_power(term: Term) -> tuple[Term, int]:
    """The base and exponent of a left-nested product of equal factors."""
    exponent, base = 1, term
    if isinstance(term, Apply) and term.op == "matmul":
        base = term.args[1]
        while isinstance(term, Apply) and term.op == "matmul" and term.args[1] == base:
            exponent, term = exponent + 1, term.args[0]
        if term != base:
            return base, 1
    return base, exponent


def _rightmost(term: Term) -> Term:
    while isinstance(term, Apply) and term.op in ("matmul", "hadamard", "scale"):
        term = term.args[1]
    return term


def _leftmost(term: Term) -> Term:
    while isinstance(term, Apply) and term.op in ("matmul", "hadamard", "scale", "transpose"):
        term = term.args[0]
    return term
