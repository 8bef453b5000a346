"""grammars, words, tree, eval, equal: the catalogue, what a grammar generates, values of terms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..described import number_text
from ..errors import DataError
from . import show
from .options import HELP, AsJson, AssumeOption, Reduce, of_words

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..grammars.grammar import Grammar
    from ..language.equality import Equality
    from ..language.sorts import Sort


def grammars(
    name: Annotated[str, typer.Argument(help="Show this one only.")] = "",
    json: AsJson = False,
    latex: Annotated[bool, typer.Option(show_default=False, help="Print LaTeX.")] = False,
) -> None:
    """The grammars known by name."""
    from ..grammars.catalogue import NOTES, catalogue

    chosen = {name: of_words(name).grammar} if name else catalogue(marks=True, positions=True)
    if json:
        show.as_json(
            [
                {
                    "name": grammar.name or label,
                    "rules": [str(rule) for rule in grammar.rules],
                    "readout": [str(rule) for rule in grammar.sentence_rules],
                    "supports": {c: str(term) for c, term in grammar.supports},
                    "note": _note(grammar.name or label, NOTES),
                }
                for label, grammar in chosen.items()
            ]
        )
        return
    for label, grammar in chosen.items():
        if latex:
            show.say(grammar.to_latex())
            continue
        note = _note(grammar.name or label, NOTES)
        show.title(f"{grammar.name or label}" + (f": {note}" if note else ""))
        show.grammar(grammar)
        for sort in grammar.unreachable():
            show.say(f"  note: no sentence uses {sort.variable}")


def words(
    grammar: Annotated[str, typer.Argument(help=HELP)],
    size: Annotated[
        int, typer.Option(min=0, max=30, help="Maximum number of operations in a word.")
    ] = 6,
    sort: Annotated[
        str, typer.Option(help="Which words: S for sentences, V, R, M; V' inside a mark.")
    ] = "S",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of words.")] = 200,
    assume: AssumeOption = "symmetric",
    reduce: Reduce = None,
    json: AsJson = False,
    latex: Annotated[bool, typer.Option(show_default=False, help="Print LaTeX.")] = False,
) -> None:
    """The words of a grammar, shortest first, equal ones once."""
    from ..grammars.words import enumerate_words, variable_named
    from ..language.printing import to_latex

    taken = of_words(grammar, reduce)
    chosen = taken.grammar
    wanted = variable_named(sort)
    found = enumerate_words(chosen, wanted, size, assume, limit + 1)
    if json:
        with show.waiting(f"words of {chosen.name}"):
            words = list(found)
        content = [{"word": str(word.term), "size": word.size} for word in words[:limit]]
        answer = {"grammar": chosen.name, "note": taken.note, "sort": sort}
        show.as_json({**answer, "words": content, "cut": len(words) > limit})
        return
    if taken.note:
        show.say(taken.note)
    number = 0
    for number, word in enumerate(found, 1):  # each as it is found: long ones take their time
        if number > limit:
            show.say(f"… only the first {limit} are shown; --limit shows more")
            return
        show.say(to_latex(word.term) if latex else f"{word.size:>3}  {word.term}")
    if not number:
        show.say(_no_words(chosen, wanted, size))


def _no_words(grammar: Grammar, sort: Sort, size: int) -> str:
    """That there are no words, and what would give some where no size does."""
    from ..language.sorts import S
    from ..verdict import advice

    if sort == S and not grammar.sentence_rules:
        return f"no sentences: {advice(grammar)}"
    if not grammar.of_sort(sort):
        have = ", ".join(other.variable for other in grammar.variables)
        return f"no word of {sort.variable}: {grammar.name} has no rule for it, but for {have}"
    return f"no word of {sort.variable} with at most {size} operations; raise --size"


def tree(
    sentence: Annotated[str, typer.Argument(help="A term, for instance '1ᵀA1'.")],
    grammar: Annotated[str, typer.Option(help=HELP)] = "G_L3",
    reduce: Reduce = None,
    dot: Annotated[
        bool, typer.Option(show_default=False, help="Print Graphviz instead of text.")
    ] = False,
) -> None:
    """How a grammar derives a sentence: its derivation tree."""
    from ..grammars.derivations import derive_word, tree_dot, tree_text
    from ..grammars.words import parse_word

    chosen = of_words(grammar, reduce).grammar
    derivation = derive_word(chosen, parse_word(chosen, sentence))
    show.say(tree_dot(derivation) if dot else tree_text(derivation))


def _note(name: str, notes: dict[str, str]) -> str:
    family = name.rsplit("-", 1)[0] + "-k"
    return notes.get(name, notes.get(family, ""))


def eval_(
    term: Annotated[str, typer.Argument(help="A term, for instance '1ᵀ(A²⊙A)1'.")],
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

    parsed = parse(term)
    if bool(graph6) == (graph is not None):
        raise DataError("give one graph: graph6, a SMILES, a name, a file, or --graph6 STRING")
    matrix = parse_graph6(graph6) if graph is None else read_graph(graph, directed)
    if mod:
        _require_prime(mod)
    value = evaluate_mod(parsed, matrix, mod) if mod else run(parsed, matrix)
    if json:
        listed = [[x if _finite(x) else str(x) for x in row] for row in value.tolist()]
        only = listed[0][0] if value.size == 1 and parsed.sort.boundary == 0 else listed
        show.as_json({"term": str(parsed), "sort": parsed.sort.letter, "value": only})
    else:
        show.say(show.matrix_text(value))


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
    row, column = case.entry
    place = "" if case.matrix.shape[0] == 1 else f", entry ({row + 1},{column + 1})"
    show.say(
        f"  for example{place}: {number_text(case.left)} against {number_text(case.right)}, where"
    )
    show.say(_named_matrix("A", case.matrix))
    for name, value in case.variables.items():
        show.say(_named_matrix(name, value))


def _named_matrix(name: str, value: npt.NDArray[Any]) -> str:
    rows = show.matrix_text(value).split("\n")
    return "\n".join(
        f"    {name if i == 0 else ' ' * len(name)}  {row}" for i, row in enumerate(rows)
    )


def _finite(x: Any) -> bool:
    """JSON has no infinities; they go out as text."""
    return isinstance(x, int) or x - x == 0


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
