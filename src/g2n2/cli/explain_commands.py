"""explain: what the atoms and bonds, or nodes and edges, of a graph add to a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..atomic_files import check_output, refuse_overwriting, replace_file
from ..described import counted, shown_number, signed
from ..errors import DataError
from . import show
from .options import OptionList, parsed_options

if TYPE_CHECKING:
    from ..data.graph_set import GraphSet
    from ..training.explain_run import GraphContributions
    from ..training.run import Run as TrainedRun

SHOWN = 3
"""Contributions of a graph on the screen."""
REFERENCE = 100
"""Held-out graphs that give the average node and the values of words."""
LONGEST = 36
"""Characters of a name in a drawing."""


def explain(
    run: Annotated[Path, typer.Argument(help="A run folder, or qm9.")],
    file: Annotated[str | None, typer.Argument(help="Graphs in a format g2n2 train reads.")] = None,
    smiles: Annotated[
        list[str] | None, typer.Option(help="A molecule, such as CCO; repeat for several.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="What to explain, if the run predicts several.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A drawing (.svg) of molecules, or a table (.csv). [explanation.*]"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of graphs.")] = 24,
    check: Annotated[
        int, typer.Option(min=0, max=1000, help="Held-out graphs to check on; 0 for none.")
    ] = 20,
    words: Annotated[int, typer.Option(min=0, max=20, help="Number of words to name.")] = 3,
    option: OptionList = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """What each atom and bond adds to a prediction, drawn on the molecule, and checked.

    Contributions are relative to an average atom and bond. The check hides atoms one by one.
    """
    from ..data.splits import smiles_of
    from ..training.explain_run import Explainer, held_out, target_index
    from ..training.run import Run as TrainedRun

    trained = TrainedRun(run, device)
    column = trained.task.columns[target_index(trained, target)]
    graphs = _graphs(trained, file, smiles, option, limit)
    drawn = smiles_of(graphs) is not None
    out = out or Path(f"explanation.{'svg' if drawn else 'csv'}")
    if out.suffix not in (".svg", ".csv"):
        raise DataError(f"--out {out}: end the name in .svg (a drawing) or .csv (a table)")
    if out.suffix == ".svg" and not drawn:
        raise DataError("only molecules are drawn: end the name of --out in .csv")
    check_output(out)
    refuse_overwriting(out, *([file] if file else []), trained.config.dataset)
    try:
        reference = held_out(trained, max(check, REFERENCE))
    except DataError as fault:
        typer.echo(f"note: no check on held-out graphs ({fault})", err=True)
        reference, check = graphs, 0
    explainer = Explainer(trained, target, reference)
    unit = column.unit if trained.task.kind == "regression" else ""
    explained: list[ExplainedGraph] = []
    for number, one in enumerate(explainer.graphs(graphs)):
        label = smiles[int(one.id)] if smiles else one.id  # as the user wrote it
        if one.unseen:
            show.say(f"{label}: not explained, as it is not predicted: {one.note}")
            continue
        symbols = _symbols(graphs, number)
        nodes = [graphs.node_name(number, node) for node in range(len(one.nodes))]
        explained.append(ExplainedGraph(label, number, one, symbols, nodes))
        show.say(f"{label}: {one.name} {_text(one.value)} {unit}".rstrip())
        for part, value in explained[-1].largest()[:SHOWN]:
            show.say(f"  {_text(value, sign=True):>10}  {part}")
        if one.note:
            show.say(f"  note: {one.note}")
    if not explained:
        raise DataError(
            "no graph to explain: each has an element the run was not trained on; the network has "
            "no trained weights for it"
        )
    hydrogens = any("H" in one.symbols for one in explained)
    if hydrogens:
        show.say("hydrogens count with the atom they are on; --out NAME.csv has each by itself")
    is_drawing = out.suffix == ".svg"
    text = drawing(graphs, explained, unit, hydrogens) if is_drawing else table(explained)
    replace_file(out, text.encode(), shared=True)
    show.say(f"\n{counted(len(explained), 'molecule' if drawn else 'graph')} in {out}")
    if check:
        chosen = reference.select(list(range(min(check, len(reference)))))
        show.say(str(explainer.agreement(chosen)))
    if words:
        try:
            name, found = explainer.words(reference, words)
        except DataError as fault:
            show.say(f"no words are named: {fault}")
            return
        (output,) = found.outputs
        name = f"the logit of {name}" if name.startswith("p(") else name
        show.say(f"words {name} follows on {counted(len(reference), 'held-out graph')}:")
        for word in output.words:
            show.say(f"  {word.share:6.1%}  {word.word}")
        rest = max(0.0, 1.0 - output.total)
        show.say(f"  {rest:6.1%}  not explained; one word by chance: {output.chance:.1%}")


def _graphs(
    trained: TrainedRun,
    file: str | None,
    smiles: list[str] | None,
    option: list[str] | None,
    limit: int,
) -> GraphSet:
    """The graphs to explain."""
    from ..data.reading import SMILES

    if (file is None) == (not smiles):
        raise DataError("say what to explain: g2n2 explain RUN FILE, or --smiles CCO")
    options = parsed_options(option)
    if smiles:
        graphs = trained.read([f"{SMILES}{text}" for text in smiles], options)
    else:
        graphs = trained.read(str(file), options)
    for sentence in graphs.notes:
        typer.echo(f"note: {sentence}", err=True)
    if len(graphs) > limit:
        typer.echo(f"note: the first {limit} of {len(graphs):,} graphs; see --limit", err=True)
    return graphs.select(list(range(min(limit, len(graphs)))))


@dataclass(frozen=True, eq=False)
class ExplainedGraph:
    """A graph with what its nodes and edges add to a prediction."""

    label: str  # what the user calls it
    number: int  # of the graph in its set
    found: GraphContributions
    symbols: list[str]  # the element of each atom; empty if it is no molecule
    nodes: list[str | int]  # what the user calls its nodes

    def largest(self) -> list[tuple[str, float]]:
        """Atoms and bonds, or nodes and edges, with what they add, the largest first.

        A hydrogen counts with the atom it is on. What adds nothing is left out.
        """
        one = self.found.folded(self.symbols) if self.symbols else self.found
        atom, bond = ("atom", "bond") if self.symbols else ("node", "edge")
        names = [f"{symbol}{k}" for k, symbol in enumerate(self.symbols)]
        names = names or list(map(str, self.nodes))
        parts = [(f"{atom} {names[k]}", x) for k, x in enumerate(one.nodes.tolist())]
        for (a, b), x in zip(one.ends.T.tolist(), one.edges.tolist(), strict=True):
            parts.append((f"{bond} {names[a]}–{names[b]}", x))
        return sorted((part for part in parts if part[1]), key=lambda part: -abs(part[1]))


def _symbols(graphs: GraphSet, number: int) -> list[str]:
    """The element of each atom; empty if the graphs are no molecules."""
    from ..data.readers.molecules import ELEMENTS, symbols_of

    return symbols_of(graphs, number) if {*ELEMENTS} <= {*graphs.node_names} else []


def drawing(graphs: GraphSet, explained: list[ExplainedGraph], unit: str, hydrogens: bool) -> str:
    """The molecules as SVG."""
    from ..data.readers.molecules import molecule_of
    from ..graphs.molecule_svg import ColouredMolecule, draw_molecules

    coloured = []
    for graph in explained:
        one = graph.found.folded(graph.symbols)
        bonds = {(a, b): float(x) for (a, b), x in zip(one.ends.T.tolist(), one.edges, strict=True)}
        label = graph.label if len(graph.label) <= LONGEST else f"{graph.label[: LONGEST - 3]}..."
        text = f"{label}\n{one.name} {_text(one.value)} {unit}".rstrip()
        text += "\n(see its note)" if one.note else ""
        molecule = molecule_of(graphs, graph.number)
        coloured.append(ColouredMolecule(molecule, one.nodes, bonds, text))
    is_class = explained[0].found.name.startswith("p(")
    what = f" in {unit}" if unit else " in logits" if is_class else ""
    caption = (
        f"Red raises the prediction, blue lowers it: numbers{what}, compared with an average atom "
        "and bond."
    )
    if hydrogens:
        caption += " Hydrogens count with the atom they are on."
    return draw_molecules(coloured, caption)


def table(explained: list[ExplainedGraph]) -> str:
    """CSV: a row for each node and edge."""
    from ..training.evaluate import csv_lines

    rows: list[dict[str, Any]] = []
    for graph in explained:
        one = graph.found
        for k, value in enumerate(one.nodes.tolist()):
            element = {"element": graph.symbols[k]} if graph.symbols else {}
            rows.append({"id": one.id, "node": graph.nodes[k], **element, "contribution": value})
        for (a, b), value in zip(one.ends.T.tolist(), one.edges.tolist(), strict=True):
            ends = {"source": graph.nodes[a], "target": graph.nodes[b]}
            rows.append({"id": one.id, **ends, "contribution": value})
    columns = ["id", "node", "element", "source", "target", "contribution"]
    return csv_lines(rows, columns, header=True).decode()


def _text(value: float, sign: bool = False) -> str:
    return shown_number(signed(value, 3) if sign else f"{value:.5g}")
