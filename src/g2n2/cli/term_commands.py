"""eval, equal: the value of a term on a graph, and whether two terms are equal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..described import shown_number
from ..errors import DataError
from . import show
from .options import AsJson, AssumeOption

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..language.equality import Equality


def eval_(
    sentence: Annotated[str, typer.Argument(help="A term, for instance '1ᵀ(A²⊙A)1'.")],
    graph: Annotated[
        Path | None, typer.Argument(help="graph6, SMILES, a name such as C6, or a file.")
    ] = None,
    graph6: Annotated[str, typer.Option(help="The graph as a graph6 string.")] = "",
    directed: Annotated[
        bool, typer.Option(show_default=False, help="Read the edge list as directed.")
    ] = False,
    mod: Annotated[int, typer.Option(help="Compute exactly modulo this prime.")] = 0,
    json: AsJson = False,
) -> None:
    """The value of a term on a graph, by the reference interpreter."""
    from ..graphs import parse_graph6, read_graph
    from ..language.evaluation import evaluate as run
    from ..language.evaluation import evaluate_mod
    from ..language.parsing import parse

    term = parse(sentence)
    if bool(graph6) == (graph is not None):
        raise DataError("give one graph: --graph6 STRING, or a file with an edge list")
    matrix = parse_graph6(graph6) if graph is None else read_graph(graph, directed)
    if mod:
        _require_prime(mod)
    value = evaluate_mod(term, matrix, mod) if mod else run(term, matrix)
    if json:
        listed = [[x if _finite(x) else str(x) for x in row] for row in value.tolist()]
        only = listed[0][0] if value.size == 1 and term.sort.boundary == 0 else listed
        show.as_json({"term": str(term), "sort": term.sort.letter, "value": only})
    else:
        show.say(_value_text(value))


def equal(
    left: Annotated[str, typer.Argument(help="A term.")],
    right: Annotated[str, typer.Argument(help="Another term.")],
    assume: AssumeOption = "symmetric",
    json: AsJson = False,
) -> None:
    """Whether two terms are equal on every graph: exit 0 equal, 1 not."""
    from ..language.equality import decide
    from ..language.parsing import parse
    from ..narration import assumption

    a, b = parse(left), parse(right)
    equality = decide(a, b, assume)
    if json:
        show.as_json(_equality_json(equality, str(a), str(b), assume))
    elif equality.equal:
        show.say(f"equal ({assumption(assume)})\n  {equality.argument}")
    else:
        verdict = "not equal" if equality.counterexample or a.sort != b.sort else "not proved equal"
        show.say(f"{verdict} ({assumption(assume)})\n  {equality.argument}")
        if equality.counterexample is not None:
            _say_counterexample(equality)
    raise typer.Exit(0 if equality.equal else 1)


def _require_prime(number: int) -> None:

    if number < 2 or any(number % d == 0 for d in range(2, min(number, int(number**0.5) + 1))):
        raise DataError(f"{number} is not a prime; use for instance 2147483647")


def _say_counterexample(found: Equality) -> None:
    case = found.counterexample
    assert case is not None
    place = "" if found.counterexample is None else _place(case.entry, case.matrix)
    show.say(f"  for example{place}: {_number(case.left)} against {_number(case.right)}, where")
    show.say(_named_matrix("A", case.matrix))
    for name, value in case.variables.items():
        show.say(_named_matrix(name, value))


def _place(entry: tuple[int, ...], matrix: npt.NDArray[Any]) -> str:
    return "" if matrix.shape[0] == 1 else f", entry ({entry[0] + 1},{entry[1] + 1})"


def _named_matrix(name: str, value: npt.NDArray[Any]) -> str:
    rows = _value_text(value).split("\n")
    return "\n".join(
        f"    {name if i == 0 else ' ' * len(name)}  {row}" for i, row in enumerate(rows)
    )


def _value_text(value: npt.NDArray[Any]) -> str:
    cells = [[_number(x) for x in row] for row in value]
    width = max(len(cell) for row in cells for cell in row)
    return "\n".join(" ".join(cell.rjust(width) for cell in row) for row in cells)


def _finite(x: Any) -> bool:
    """JSON has no infinities; they go out as text."""
    return isinstance(x, int) or x - x == 0


def _number(x: Any) -> str:
    """An integer as one, anything else with enough digits to tell it apart."""
    if isinstance(x, int):
        return shown_number(str(x))
    value = float(x)
    whole = value.is_integer() and abs(value) < 2**53
    return shown_number(str(int(value)) if whole else repr(value))


def _equality_json(found: Equality, left: str, right: str, assume: str) -> dict[str, Any]:
    case = found.counterexample
    return {
        "left": left,
        "right": right,
        "assumptions": {"A": assume},
        "equal": found.equal,
        "argument": found.argument,
        "counterexample": None
        if case is None
        else {
            "A": case.matrix.tolist(),
            "variables": {name: value.tolist() for name, value in case.variables.items()},
            "entry": list(case.entry),
            "left": float(case.left),
            "right": float(case.right),
        },
    }
