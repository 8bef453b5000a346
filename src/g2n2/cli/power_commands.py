"""separate, power, wl: what a grammar, or a WL test, can tell apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from ..described import counted
from ..errors import DataError
from . import show
from .options import HELP_OR_TEST, AsJson, Reduce, of_words_or_test

if TYPE_CHECKING:
    from ..grammars.grammar import Grammar
    from ..graphs import Adjacency
    from ..power.colours import ColourHistory
    from ..power.separation import Engine, Separation
    from ..power.table import PowerRow
    from ..power.wl_tests import WLTest
    from ..verdict import Verdict


Graph = Annotated[
    str, typer.Argument(help="graph6, SMILES (its skeleton), a name such as 2C3, or a file.")
]
Readout = Annotated[
    str, typer.Option(help="'network' (1ᵀV, Tr(M), 1ᵀM1) or rules such as 'S → VᵀV'.")
]
WithF = Annotated[bool, typer.Option("--with-f", help="Allow sums and pointwise functions.")]
Directed = Annotated[bool, typer.Option(show_default=False, help="The graphs are directed.")]


def separate(
    first: Graph,
    second: Graph,
    grammar: Annotated[str, typer.Option(help=HELP_OR_TEST)] = "r-G_L3",
    reduce: Reduce = None,
    readout: Readout = "",
    engine: Annotated[
        str,
        typer.Option(
            metavar="[auto|closure|random_probes]",
            help="closure covers all words; random_probes samples them, for large graphs.",
        ),
    ] = "auto",
    layers: Annotated[
        int | None,
        typer.Option(min=1, max=40, help="Maximum number of layers. [all; 8 for random_probes]"),
    ] = None,
    with_f: WithF = False,
    directed: Directed = False,
    json: AsJson = False,
) -> None:
    """Whether a grammar tells two graphs apart, and by which sentence."""
    from ..graphs import read_graph
    from ..power.separation import separate as run
    from ..power.wl_tests import WLTest
    from ..reduction.compare import with_functions

    taken = of_words_or_test(grammar, reduce)
    graphs = read_graph(first, directed), read_graph(second, directed)
    if isinstance(taken, WLTest):
        _separate_by_test(taken, graphs, json)
        return
    chosen = with_functions(taken.grammar) if with_f else taken.grammar
    separation = run(
        chosen,
        *graphs,
        engine=cast("Engine", engine),
        readout=readout or None,
        directed=directed,
        layers=layers,
    )
    if json:
        values = separation.values and [_number(value) for value in separation.values]
        sentence = None if separation.sentence is None else str(separation.sentence)
        found = {**vars(separation), "sentence": sentence, "values": values, "note": taken.note}
        show.as_json({"grammar": chosen.name, **found})
    else:
        if taken.note:
            show.say(taken.note)
        _say_separation(separation, chosen.name, graphs, (first, second))


def _separate_by_test(test: WLTest, graphs: tuple[Adjacency, Adjacency], json: bool) -> None:
    """A WL test in the place of a grammar: colours decide, and there is no sentence."""
    refinement = test.refine(graphs)
    if not json:
        _say_refinement(refinement, test.name, graphs)
        return
    verdict = "different" if refinement.separated() else "same"
    answer = {"grammar": test.name, "verdict": verdict, "sentence": None, "values": None}
    show.as_json({**answer, **_rounds(refinement)})


def _rounds(refinement: ColourHistory) -> dict[str, int | None]:
    return {"rounds": refinement.rounds, "separated_at": refinement.separated_at()}


def _say_refinement(
    refinement: ColourHistory, name: str, graphs: tuple[Adjacency, Adjacency]
) -> None:
    from ..graphs import are_isomorphic
    from ..power.separation import ISOMORPHIC

    if refinement.separated():
        why = (
            "" if len({*map(len, graphs)}) == 1 else "; the graphs have different numbers of nodes"
        )
        show.say(f"different ({name}, from round {refinement.separated_at()} on){why}")
        return
    show.say(f"same ({name}, stable after {counted(refinement.rounds, 'round')})")
    if are_isomorphic(*graphs):
        show.say(f"  {ISOMORPHIC}")


def power(
    grammars: Annotated[
        list[str], typer.Argument(help=f"{HELP_OR_TEST} Or a run folder. Several may be given.")
    ],
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="atlas, graph8c, sr25, csl, exp, brec, cfi, or a graph6 file. Without a suite: "
            "what holds for all graphs."
        ),
    ] = None,
    readout: Readout = "",
    layers: Annotated[
        int | None,
        typer.Option(min=1, max=40, help="Maximum number of layers. [until one gains no pair]"),
    ] = None,
    with_f: WithF = False,
    reduce: Reduce = None,
    pairs: Annotated[
        bool, typer.Option(show_default=False, help="The graphs of a file are consecutive pairs.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with the suites' files.")] = None,
    markdown: Annotated[
        bool, typer.Option(show_default=False, help="Print the table as Markdown.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the pairs told apart by each number of layers.")
    ] = None,
    json: AsJson = False,
) -> None:
    """What grammars or trained networks tell apart: hard pairs, and bounds for all graphs."""
    from ..api import network_of
    from ..data.suites import SUITE_NAMES, find_suite
    from ..figures import check_plot
    from ..grammars.coercion import told_apart
    from ..power import table
    from ..power.table import draw_plot
    from ..power.wl_tests import WLTest
    from ..reduction.compare import with_functions
    from ..verdict import Verdict

    if plot is not None:
        check_plot(plot)
    if suites := [text for text in grammars if text.lower() in SUITE_NAMES]:
        raise DataError(
            f"{suites[0]} is a suite and no grammar; write: --suite {suites[0].lower()}"
        )
    networks = {text: network_of(text) for text in grammars if _is_saved(text)}
    taken = [of_words_or_test(text, reduce) for text in grammars if text not in networks]
    notes = [one.note for one in taken if not isinstance(one, WLTest) and one.note]
    texts = [text for text in grammars if text not in networks]
    asked = told_apart([one if isinstance(one, WLTest) else one.grammar for one in taken], texts)
    verdict = sum((network.power() for network in networks.values()), Verdict())
    if not suite:
        verdict += _power_verdict([], asked, with_f)
        show.as_json(verdict.to_json()) if json else show.say(str(verdict))
        if layers is not None and not json:
            show.say(
                "\n--layers counts layers on a suite, and what is said here holds for any number "
                "of them: add --suite, such as --suite csl"
            )
        return
    asked = told_apart([*asked, *(network.plan.grammar for network in networks.values())])
    chosen = [
        with_functions(one) if with_f and not isinstance(one, WLTest) else one for one in asked
    ]
    rows: list[PowerRow] = []
    for name in suite:
        with show.waiting(f"loading {name}"):
            loaded = find_suite(name, pairs, data)
            table.wl_classes(loaded, 1)
            table.wl_classes(loaded, 2)
        for grammar in chosen:
            if isinstance(grammar, WLTest):
                with show.waiting(f"{grammar.name} on {loaded.name}"):
                    rows.append(table.wl_row(grammar, loaded))
                continue
            with progress(f"{grammar.name} on {loaded.name}", len(loaded.graphs)) as advance:
                rows.append(table.power_row(grammar, loaded, readout or None, layers, advance))
    if json:
        placed = [] if readout else asked  # another read-out is another grammar
        show.as_json([_row_json(row, placed, with_f) for row in rows])
    elif markdown:
        show.say(table.PowerTable(rows).to_markdown())
    else:
        show.table(table.HEADERS, [table.cells(row) for row in rows], narrow=1)
        show.say(table.LEGEND)
        for row in rows:
            show.say(f"\n{row.grammar} on {row.suite}, told apart by layers 0, 1, 2 …")
            show.say("  " + " ".join(map(str, row.by_layer)))
            for category, (apart, total) in row.by_category.items():
                show.say(f"  {category}: {apart} of {total}")
        for note in notes:
            show.say(f"\n{note}")
        show.say(f"\n{verdict + _power_verdict(rows, [] if readout else asked, with_f)}")
    if plot is not None:
        draw_plot(rows, plot)


def _is_saved(text: str) -> bool:
    return text.endswith(".safetensors") or (Path(text) / "config.json").is_file()


def _power_verdict(rows: list[PowerRow], asked: list[Grammar | WLTest], with_f: bool) -> Verdict:
    """What was measured on the suites, and what holds for all graphs."""
    from ..placement import wl_statements
    from ..power.wl_tests import WLTest
    from ..verdict import Verdict, grammar_verdict, suite_statements

    verdict = Verdict(tuple(s for row in rows for s in suite_statements(row)))
    for one in asked:
        if isinstance(one, WLTest):
            continue
        if with_f and one.sentence_rules:
            verdict += Verdict(wl_statements(one, True, f"{one.name} with functions, in the limit"))
        else:
            verdict += grammar_verdict(one, one.name)
    return verdict


def _row_json(row: PowerRow, asked: list[Grammar | WLTest], with_f: bool) -> dict[str, Any]:
    same_grammar = [one for one in asked if row.grammar in (one.name, f"{one.name} with f")]
    return {**row.to_json(), "verdict": _power_verdict([row], same_grammar[:1], with_f).to_json()}


def wl(
    first: Graph,
    second: Graph,
    k: Annotated[int, typer.Option("--k", min=1, max=3, help="Nodes in a coloured tuple.")] = 1,
    variant: Annotated[
        Literal["wl", "fwl"], typer.Option(help="k-FWL (folklore) is as strong as (k+1)-WL.")
    ] = "wl",
    marks: Annotated[
        int, typer.Option(min=0, max=2, help="Number of marked nodes: 1 for Σ2-FWL and the like.")
    ] = 0,
    directed: Directed = False,
    json: AsJson = False,
) -> None:
    """Whether a Weisfeiler-Leman test tells two graphs apart."""
    from ..graphs import read_graph
    from ..power.refinement import refine
    from ..power.wl_tests import WLTest

    graphs = read_graph(first, directed), read_graph(second, directed)
    name = f"{'Σ' * marks}{k}-{variant.upper()}"
    refinement: ColourHistory
    if marks and (test := WLTest.find(name)) is not None:
        refinement = test.refine(graphs)
    else:
        refinement = refine(graphs, k=k, variant=variant)
    if json:
        answer = {"k": k, "variant": variant, "separated": refinement.separated()}
        answer |= {"marks": marks} if marks else {}
        show.as_json({**answer, **_rounds(refinement)})
    else:
        _say_refinement(refinement, name, graphs)


@contextmanager
def progress(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, shown once the work takes more than two seconds."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bars:
        bar = bars.add_task(text, total=total, visible=False)
        started = bars.get_time()

        def advance(done: int) -> None:
            bars.update(bar, advance=done, visible=bars.get_time() - started > 2)

        yield advance


_LONGEST_GRAPH = 100
"""Characters of a graph6 or a list of arcs that is still shown."""


def _named(graph: Adjacency, typed: str, which: str) -> str:
    """`C6 (EhEG)`: the name of a graph, where it has one, and its graph6; as typed if that is long.

    `which` is what it is called where neither is short: `the first graph`.
    """
    from ..graphs import to_graph6
    from ..graphs.names import graph_name, graph_text

    name = graph_name(graph)
    text = graph_text(graph) if name is None else f"{name} ({to_graph6(graph)})"
    return next((t for t in (text, name or typed) if len(t) <= _LONGEST_GRAPH), which)


_COMPARED = {
    "closure": "all words were compared, by a basis of their span",
    "random_probes": "random combinations of words were compared",
}


def _say_separation(
    found: Separation, name: str, graphs: tuple[Adjacency, Adjacency], typed: tuple[str, str]
) -> None:
    show.say(f"{found.verdict} ({name}, read-out {found.readout})")
    if found.sentence is None:
        if found.primes:
            which = _COMPARED[found.engine]
            if found.engine == "closure" and found.verdict != "same":
                which = which.replace("all words", "all words of so many layers")
            show.say(f"  {which}, modulo {' and '.join(map(str, found.primes))}")
        if found.note:
            show.say(f"  {found.note}")
        return
    parts = found.definitions()
    for part in parts[:-1]:
        show.say(f"  {part}")
    show.say(f"  {parts[-1].term}")
    if found.values is not None:
        modulo = f" modulo {found.modulus}" if found.modulus else ""
        named = map(_named, graphs, typed, ("the first graph", "the second graph"))
        values = zip(found.values, named, strict=True)
        shown = " and ".join(f"{value} on {graph}" for value, graph in values)
        show.say(f"  is {shown}{modulo}")
    shortest = "no shorter sentence differs" if found.shortest else "not proved shortest"
    shown = "" if found.depth is None else f"{counted(found.depth, 'layer')}; "
    show.say(f"  {shown}{shortest}")


def _number(value: int | Fraction) -> int | str:
    """An integer as one; JSON has no fractions."""
    return int(value) if value == int(value) else str(value)
