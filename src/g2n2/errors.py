"""The `G2N2Error` family: raised for mistakes of a user, and shown without a traceback.

Each class also derives from the built-in exception that a caller would catch. A message says what
was given, in the user's notation, what was expected, and what to do next.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class G2N2Error(Exception):
    """Root of every error this package raises on purpose."""


class G2N2Warning(UserWarning):
    """What is worth a word and no error: how something was read that has two readings."""


class ParseError(G2N2Error, ValueError):
    """Text that is not a term, a rule or a fragment.

    Attributes:
        text: The offending text.
        position: 0-based offset of the fault.
        expected: What could have stood there, in the user's notation.
    """

    def __init__(
        self, message: str, text: str = "", position: int = 0, expected: tuple[str, ...] = ()
    ) -> None:
        self.text, self.position, self.expected = text, position, expected
        super().__init__(_with_caret(message, text, position, expected))


class SortError(G2N2Error, TypeError):
    """An operation applied to sizes it is not defined on."""


class GrammarError(G2N2Error, ValueError):
    """A grammar that cannot be built, named or used as asked."""


class ReductionError(G2N2Error, ValueError):
    """A certificate that cannot be read, or that speaks of another grammar."""


class LoweringError(G2N2Error, NotImplementedError):
    """A grammar no network can be compiled from as asked, or a formula it cannot hold."""


class ShapeError(G2N2Error, ValueError):
    """A tensor of another size than the network was compiled for."""


class MemoryBudgetError(ShapeError, MemoryError):
    """A batch that would not fit into memory, refused before it is allocated."""


class TrainingError(G2N2Error, RuntimeError):
    """A run that cannot go on, with what was saved and how to go on."""


class DataError(G2N2Error, ValueError):
    """A graph, a dataset or a file that is not what it should be."""


def guess(name: str, known: Iterable[str]) -> str:
    """`; did you mean graph8c?` in any case, and nothing where no known name is near."""
    by_lower = {one.lower(): one for one in known}
    near = [by_lower[key] for key in get_close_matches(name.lower(), by_lower, n=2, cutoff=0.5)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _with_caret(message: str, text: str, position: int, expected: tuple[str, ...]) -> str:
    """Append the text, a caret below the fault, and what was expected there."""
    if not text:
        return message
    window = 60
    start = max(0, position - window)
    shown = "".join(c if c.isprintable() else " " for c in text[start : position + window])
    lines = [message, "  " + shown, "  " + " " * (position - start) + "^"]
    if expected:
        lines.append("expected " + ", ".join(expected))
    return "\n".join(lines)
