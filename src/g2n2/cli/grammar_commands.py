"""grammars, words, tree: the catalogue and what a grammar generates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import show
from .options import HELP, AsJson, AssumeOption, Reduce, of_words

if TYPE_CHECKING:
    from ..grammars.grammar import Grammar
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
    size: Annotated[int, typer.Option(min=0, max=30, help="Most operations of a word.")] = 6,
    sort: Annotated[
        str, typer.Option(help="Which words: S for sentences, V, R, M; V' inside a mark.")
    ] = "S",
    limit: Annotated[int, typer.Option(min=1, help="Most words listed.")] = 200,
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
    words = list(enumerate_words(chosen, wanted, size, assume, limit + 1))
    cut = len(words) > limit
    words = words[:limit]
    if json:
        content = [{"word": str(word.term), "size": word.size} for word in words]
        answer = {"grammar": chosen.name, "note": taken.note, "sort": sort}
        show.as_json({**answer, "words": content, "cut": cut})
        return
    if taken.note:
        show.say(taken.note)
    for word in words:
        show.say(to_latex(word.term) if latex else f"{word.size:>3}  {word.term}")
    if cut:
        show.say(f"… only the first {limit} are shown; --limit shows more")
    if not words:
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
