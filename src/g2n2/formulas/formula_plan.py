"""Formulas as weights, before any tensor exists: how a network of a grammar computes given terms.

Theorem 3 of the paper as a constructor. `formula_to_atoms` writes a term as a combination of atoms
(rule applications), `atoms_to_schedule` assigns the atoms to layers, and `schedule_to_weights`
turns the schedule into weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from ..compiler.grammar_to_plan import steps_of
from ..compiler.inputs import InputPlan, plan_inputs
from ..compiler.marks import copies_meet, inside
from ..compiler.presets import find_preset
from ..compiler.readout_plan import PARTS, Pooling, is_pooled, readout_options
from ..errors import LoweringError
from ..grammars.coercion import GrammarLike, as_grammar
from ..grammars.grammar import Grammar
from ..grammars.matching import EYE, ROW_OF_ONES, instances, joined, spread, transposed, written_out
from ..grammars.rules import Rule, is_linear
from ..grammars.words import parse_word
from ..language.printing import to_text
from ..language.sorts import SORTS, M, R, S, Sort, V
from ..language.terms import ONE, Apply, Number, Term, apply, combination, has_mark_sum, multilinear
from .atoms_to_schedule import Combination, Pointwise, Stage, combined, layer_of, stages, work
from .formula_to_atoms import Realiser, as_traces, rules_text, simpler, sums
from .marked_formulas import multiplies_sentences, under_marks
from .piecewise_linear import IDENTITY, relu_units

Formula = Term | str
Occurrence = tuple[Rule, tuple[Combination, ...]]
"""A rule of S and what it is applied to."""


@dataclass(frozen=True)
class Reading:
    """One output: what is read out of the last memories, and a constant."""

    # parts of the read-out, and the combination taken of each; a rule of S that is linear in its
    # one variable is a part too, called as it is printed
    parts: dict[str, Combination]
    # other rules of S on their operands, and the number of times each is taken
    applications: dict[Occurrence, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)  # what is added

    @property
    def final(self) -> tuple[Combination, ...]:
        """What the last memories must hold."""
        operands = (operand for _, combinations in self.applications for operand in combinations)
        return (*self.parts.values(), *operands)

    @property
    def work(self) -> tuple[int, int]:
        return work(self.final)


@dataclass(frozen=True)
class Requirements:
    """What a network must have to compute some terms.

    Attributes:
        depth: Layers.
        width: Channels of each variable's memory, by the letter `width=` takes.
        copies: The most occurrences of a rule one layer needs; never above the width.
    """

    depth: int
    width: Mapping[str, int]
    copies: Mapping[str, int]

    def __str__(self) -> str:
        widths = ", ".join(f"{letter} {width}" for letter, width in self.width.items())
        copies = ", ".join(f"{rule} ×{count}" for rule, count in self.copies.items())
        return f"depth {self.depth}; width {widths}; " + (
            f"rules {copies}" if copies else "no rule"
        )


@dataclass(frozen=True)
class Marked:
    """What terms inside marks were, for messages."""

    grammar: Grammar  # with its marks
    terms: Sequence[Term]  # with their sums over them


class FormulaPlan:
    """Terms as readings of a network's last memories."""

    def __init__(
        self,
        realiser: Realiser,
        inputs: InputPlan,
        terms: Sequence[Term],
        pooled: bool = True,
        sentence_rules: Sequence[Rule] = (),
        added: Sequence[Fraction] | None = None,
        marked: Marked | None = None,
    ) -> None:
        self.added = added  # to the sums over a mark, for each term; None without marks
        self.realiser, self.inputs, self.pooled, self.marked = realiser, inputs, pooled, marked
        self.sentence_rules = [(rule, written_out(rule.body)) for rule in sentence_rules]
        self.terms = tuple(written_out(term) for term in terms)
        self.readings = tuple(self._reading(number) for number in range(len(terms)))
        self.final = [c for reading in self.readings for c in reading.final]
        self.depth = max(1, *map(layer_of, self.final)) if self.final else 1

    def stages(self, depth: int) -> tuple[Stage, ...]:
        """The layers of a network of that depth."""
        return stages(self.final, depth, dict(self.inputs.widths))

    def occurrences(self) -> dict[Rule, list[Occurrence]]:
        """The rules of S that are applied to the last memories, each occurrence once."""
        by_rule: dict[Rule, dict[Occurrence, None]] = {}
        for reading in self.readings:
            for occurrence in reading.applications:
                by_rule.setdefault(occurrence[0], {})[occurrence] = None
        return {rule: list(occurrences) for rule, occurrences in by_rule.items()}

    def requirements(self) -> Requirements:
        """The least depth, and the widths at that depth."""
        grammar = self.realiser.grammar
        heads = [sort for sort in SORTS if any(rule.head == sort for rule in grammar.rules)]
        width, copies = dict.fromkeys(heads, 1), dict[str, int]()
        for stage in self.stages(self.depth):
            for sort in heads:
                width[sort] = max(width[sort], len(stage.after[sort]), self._mlp(stage, sort))
            for rule, atoms in stage.applications.items():
                width[rule.head] = max(width[rule.head], len(atoms))
                copies[str(rule)] = max(copies.get(str(rule), 0), len(atoms))
        for rule, occurrences in self.occurrences().items():
            if rule.holes:
                width[S] = max(width.get(S, 1), len(occurrences))
                copies[str(rule)] = max(copies.get(str(rule), 0), len(occurrences))
        return Requirements(self.depth, {s.letter: w for s, w in width.items()}, copies)

    def units(self, stage: Stage, sort: Sort) -> int:
        """Hidden units a layer's MLP needs for one memory."""
        count = 0
        for channel in stage.after[sort].channels:
            earlier, atoms = stage.parted(channel)
            linear = earlier or any(not isinstance(atom.made, Pointwise) for atom, _ in atoms)
            count += len(IDENTITY) if linear else 0
        for atom in stage.pointwise(sort):
            assert isinstance(atom.made, Pointwise)
            count += len(relu_units(atom.made.functions, self.realiser.domain)[0])
        return count

    def _mlp(self, stage: Stage, sort: Sort) -> int:
        """The width at which the hidden layer, twice the MLP's input, has units enough."""
        half = ceil(self.units(stage, sort) / 2)
        steps = sum(
            rule.head == sort and all(len(stage.before[hole]) for hole in rule.holes)
            for rule in steps_of(self.realiser.grammar)
        )
        if stage.number > 1:
            return ceil(half / (1 + steps))
        return ceil(max(0, half - self.inputs.widths[sort]) / max(steps, 1))

    def _reading(self, number: int) -> Reading:
        reading = self._best(self.terms[number])
        if reading is None:
            raise LoweringError(self._refusal(number))
        return reading

    def _refusal(self, number: int) -> str:
        """Why nothing makes a term, in the words of the formula: with its marks."""
        given = self.terms[number] if self.marked is None else self.marked.terms[number]
        summand, part = self._unmade_summand(given)
        name = self.realiser.grammar.name or "this grammar"
        if multiplies_sentences(part):
            return (
                f"{to_text(summand)} multiplies sentences, and no rule of {name} does; "
                "networks of a grammar with S → SS, such as G_L3, hold products of sentences "
                "without marks"
            )
        blamed = self.realiser.blamed(part)
        shown = to_text(blamed)
        if self.marked is not None:
            binders = " ".join(f"Σ{mark}." for mark in self.marked.grammar.marks)
            shown = f"{binders} {shown}" if blamed.sort == S else f"{shown} below {binders}"
            asked = to_text(summand)
            shown += f" for the summand {asked}" if asked not in (shown, to_text(given)) else ""
        return (
            f"{to_text(given)} cannot be written into a network of {name}: nothing makes "
            f"{shown}; {self._rules_text(blamed.sort)}"
        )

    def _unmade_summand(self, given: Term) -> tuple[Term, Term]:
        """The first summand that nothing makes, as it is in the formula and below the marks."""
        if self.marked is None:
            part = self._unmade(given) or given
            return part, part
        for _, sentence in combination(given):
            below = written_out(under_marks(sentence, self.marked.grammar.marks)[0])
            if (unmade := self._unmade(below)) is not None:
                return sentence, unmade
        return given, given

    def _unmade(self, term: Term) -> Term | None:
        """The first summand that nothing makes."""
        return next((part for _, part in combination(term) if self._best(part) is None), None)

    def _rules_text(self, sort: Sort) -> str:
        """The rules of a sort as the user wrote them, with their marks."""
        if self.marked is None:
            return rules_text(self.realiser.grammar, (sort,))
        whole = self.marked.grammar
        deepest = sort.within(whole.scope)
        heads = [head for head in whole.variables if head.plain == S] if sort == S else [deepest]
        return rules_text(whole, heads)

    def _best(self, term: Term) -> Reading | None:
        """The reading of least work; None where nothing makes the term."""
        readings = list(self._direct(term))
        if not self.realiser.by_rules or not readings:
            readings += self._linear(term)
            if self.pooled:
                readings += self._pooled(term) if term.sort == S else self._local(term)
        if term.sort == S and not (self.pooled and readings):
            readings += self._by_sentences(term)
        if not readings:
            traces = [r for trace in as_traces(term) if (r := self._best(trace)) is not None]
            readings += traces or [
                r for other in simpler(term) if (r := self._best(other)) is not None
            ]
        return min(readings, key=lambda reading: reading.work, default=None)

    def _direct(self, term: Term) -> Iterator[Reading]:
        """From the memory of the term's own sort."""
        part = {S: "scalars", V: "H", R: "R", M: "C"}.get(term.sort)
        if part is None:
            raise LoweringError(
                f"{term} is {term.sort.english}, and a network has no memory for those"
            )
        yield from self._part(part, term)

    def _part(self, part: str, term: Term) -> Iterator[Reading]:
        if (combination := self.realiser.realise(term)) is not None:
            yield Reading({part: combination})

    def _linear(self, term: Term) -> Iterator[Reading]:
        match term:
            case Number(value=value):
                yield Reading({}, constant=value)
            case Apply(op="add", args=(x, y)):
                left, right = self._best(x), self._best(y)
                if left is not None and right is not None:
                    yield _total((Fraction(1), left), (Fraction(1), right))
            case Apply(op="scale", args=(Number(value=value), x)):
                if (inner := self._best(x)) is not None:
                    yield _total((value, inner))

    def _pooled(self, term: Term) -> Iterator[Reading]:
        """A sentence as a sum over nodes, the diagonal, or all of a matrix."""
        op, run = spread(term)
        if isinstance(term, Apply) and term.op == "trace" and term.args[0].sort == M:
            yield from self._part("diagonal", term.args[0])
        if op != "matmul":
            return
        if run == (ROW_OF_ONES, ONE):
            yield from self._part("diagonal", EYE)
        for row, column in sums(run):
            if row == (ROW_OF_ONES,):
                yield from self._part("nodes", joined(op, column))
            else:
                product = apply("hadamard", transposed(joined(op, row)), joined(op, column))
                yield from self._part("nodes", product)
            if column == (ONE,):
                yield from self._part("rows", joined(op, row))
            if row == (ROW_OF_ONES,) and column[-1] == ONE and len(column) > 1:
                combination = self.realiser.realise(joined(op, column[:-1]))
                if combination is not None:
                    yield Reading({"diagonal": combination, "off-diagonal": combination})
        pushed = tuple(transposed(transposed(factor)) for factor in run)
        if pushed != run and (reading := self._best(joined(op, pushed))) is not None:
            yield reading

    def _by_sentences(self, term: Term) -> Iterator[Reading]:
        """By a rule of S on the last memories; what is linear in a zero is zero."""
        for rule, body in self.sentence_rules:
            for parts in instances(body, term):
                operands = [self.realiser.realise(part) for part in parts]
                if not all(operands):
                    if None not in operands and multilinear(rule.body):
                        yield Reading({})
                    continue
                combinations = tuple(c for c in operands if c is not None)
                if is_linear(rule.body):
                    yield Reading({str(rule): combinations[0]})
                else:
                    yield Reading({}, {(rule, combinations): Fraction(1)})
        op, run = spread(term)
        for row, column in sums(run) if op == "matmul" else ():
            if row != (ROW_OF_ONES,):  # rᵀc = 1ᵀ(r⊙c)
                product = apply("hadamard", transposed(joined(op, row)), joined(op, column))
                yield from self._by_sentences(apply("matmul", ROW_OF_ONES, product))

    def _local(self, term: Term) -> Iterator[Reading]:
        """A vector as row sums or a diagonal of C, which grammars without columns need."""
        op, run = spread(term)
        if term.sort == R:
            yield from self._part("H", transposed(term))
        if term.sort == V and op == "matmul" and run[-1] == ONE:
            yield from self._part("row sums C", joined(op, run[:-1]))
            inner, factors = spread(run[0])
            columns = any(rule.head == V for rule in self.realiser.grammar.rules)
            if not columns and len(run) == 2 and inner == "hadamard" and factors[-1] == EYE:
                yield from self._part("diag C", joined(inner, factors[:-1]))


def _total(*readings: tuple[Fraction, Reading]) -> Reading:
    applications: dict[Occurrence, Fraction] = {}
    for x, reading in readings:
        for occurrence, number in reading.applications.items():
            applications[occurrence] = applications.get(occurrence, Fraction(0)) + x * number
    parts = dict.fromkeys(name for _, reading in readings for name in reading.parts)
    return Reading(
        {
            name: combined((x, reading.parts.get(name, ())) for x, reading in readings)
            for name in parts
        },
        applications,
        sum((x * reading.constant for x, reading in readings), Fraction(0)),
    )


def plan_formulas(
    grammar: Grammar,
    inputs: InputPlan,
    terms: Formula | Sequence[Formula],
    domain: Sequence[int] | None = None,
    names: Mapping[str, int] | None = None,
    by_rules: bool = False,
    symmetric: bool | None = None,
    pooled: bool = True,
    sentence_rules: Sequence[Rule] = (),
) -> FormulaPlan:
    """Plan how a network with these inputs computes terms; see `Realiser` for the options.

    `pooled` says whether its read-out sums memories, `sentence_rules` which rules of S it applies
    to them; where it does both, rules of S are taken for what sums do not give.
    """
    given = [terms] if isinstance(terms, (Term, str)) else list(terms)
    if not given:
        raise LoweringError("no formula is given; write for instance 1ᵀ(A²⊙A)1")
    parsed = [parse_word(grammar, x) if isinstance(x, str) else x for x in given]
    if copies_meet(grammar):
        raise LoweringError(
            f"in {grammar.name or 'the grammar'} words leave or enter a mark before the end, and "
            "formulas are written into networks that sum over marks at the end: take a grammar "
            "such as r-G_L3Σ"
        )
    words, added, marked = inside(grammar), None, None
    if grammar.scope:
        marked = Marked(grammar, parsed)
        summed = [under_marks(term, grammar.marks) for term in parsed]
        parsed, added = [term for term, _ in summed], [constant for _, constant in summed]
    for term in parsed:
        if has_mark_sum(term):
            raise LoweringError(
                f"{term} sums over marks (Σ), and {grammar.name or 'the grammar'} does not: take a "
                "grammar with a mark, such as r-G_L3Σ"
            )
    realiser = Realiser(words, inputs, domain, names, by_rules, symmetric)
    return FormulaPlan(realiser, inputs, parsed, pooled, sentence_rules, added, marked)


def requirements(
    grammar: GrammarLike,
    terms: Formula | Sequence[Formula],
    *,
    domain: Sequence[int] | None = None,
    directed: bool = False,
    by_rules: bool = False,
    symmetric: bool | None = None,
    readout: str = "pooled",
) -> Requirements:
    """The depth and width a network of the preset `paper` needs to compute terms.

    >>> from g2n2 import requirements
    >>> needed = requirements("r-G_L3", "1ᵀ(A²⊙A)1")
    >>> needed.depth, dict(needed.width)
    (2, {'V': 1, 'M': 2})

    Args:
        grammar: Any grammar, its name or its rules.
        terms: One term or several, or their texts.
        domain: Integers on which functions other than ReLU and |x| must be exact.
        directed: Whether Aᵀ is an input.
        by_rules: Apply a rule wherever one fits, even where a linear map or the MLP would do.
        symmetric: Whether Aᵀ is A; where None, whether the network takes undirected graphs only.
        readout: The network's: `pooled`, or `grammar` for the rules of S alone.

    Raises:
        LoweringError: The grammar does not make a part of a term; the message names it.
    """
    chosen = as_grammar(grammar)
    words = inside(chosen)
    mode, _ = readout_options(readout, None)
    inputs = plan_inputs(words, find_preset("paper"), 0, 0, directed, marks=chosen.marks)
    heads = {rule.head for rule in words.rules}
    pools: list[tuple[str, Pooling]] = [
        (name, "sum") for name, part in PARTS.items() if part.memory in heads
    ]
    sentence_rules = [
        r for r in words.sentence_rules if mode == "grammar" or not is_pooled(r, pools, True)
    ]
    sentence_rules = [] if mode == "pooled-only" else sentence_rules
    plan = plan_formulas(
        chosen, inputs, terms, domain, None, by_rules, symmetric, mode != "grammar", sentence_rules
    )
    return plan.requirements()
