"""Grammar + widths -> NetworkPlan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from ..errors import GrammarError, LoweringError
from ..grammars.free_functions import free_functions
from ..grammars.grammar import Grammar
from ..grammars.rules import Rule, crosses, is_linear, mentions
from ..language.operations import OPERATIONS
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import DISTANCES, MARKS, leaves, operators
from ..validation import MOST_LAYERS, MOST_WIDTH
from .inputs import plan_inputs, plan_scoped_inputs
from .marks import (
    MarkPlan,
    Marks,
    by_scope,
    check_marks,
    check_meeting,
    check_trunk,
    copies_meet,
    has_function_between,
    inside,
    with_named_marks,
)
from .plan import LayerPlan, Linear, MemoryUpdate, NetworkPlan, RuleStep, Selector
from .presets import Preset, find_preset, with_pair_norm
from .readout_plan import Task, plan_readout, readout_options

UPDATE_ORDER = (M, V, R, S)
"""The matrix memory first: the released code updates nodes with the new C."""


def plan_network(
    grammar: Grammar,
    *,
    node_features: int = 0,
    edge_features: int = 0,
    width: int | Mapping[str, int] = 64,
    layers: int = 3,
    out: int = 1,
    task: Task = "graph",
    preset: str | Preset = "paper",
    readout: str | Mapping[str, str] | None = None,
    pooling: str | Mapping[str, str] | None = None,
    functions: str = "mlp",
    pair_bias: bool | None = None,
    pair_norm: str | None = None,
    decision: tuple[int, ...] | None = None,
    context: bool = False,
    directed: bool = False,
    marks: Marks = "all",
    trunk: int = 0,
    supports: bool = False,
) -> NetworkPlan:
    """Plan the network of a grammar; the options are those of `GrammarGNN`.

    `supports` says whether values of supports without a definition (C_1, …) will be given.

    Raises:
        GrammarError: What is given is no grammar.
        LoweringError: The grammar cannot be compiled as asked; all reasons at once.
    """
    if not isinstance(grammar, Grammar):
        raise GrammarError(f"a grammar is a name, its rules or a Grammar, got {grammar!r}")
    check_marks(marks, grammar)
    check_trunk(trunk, grammar)
    chosen = with_pair_norm(find_preset(preset), pair_norm)
    for name, value in (("context", context), ("directed", directed)):
        if value not in (True, False):
            raise LoweringError(f"{name} is true or false, got {value!r}")
    _check_count("node_features", node_features, 0)
    _check_count("edge_features", edge_features, 0)
    _check_count("out", out, 1)
    _check_count("layers", layers, 1, MOST_LAYERS)
    name = grammar.name or "this grammar"
    if reasons := unsupported(grammar, chosen, supports, marks):
        raise LoweringError(f"{name} cannot be compiled:\n  " + "\n  ".join(reasons))
    grammar = with_named_marks(grammar)
    only_free = functions == "free"
    features = node_features, edge_features, directed, only_free
    whole, scoped = grammar, None
    if copies_meet(grammar):
        if trunk:
            raise LoweringError(
                f"the copies of {name} meet in every layer, and the graph has memories of its own "
                "there: leave trunk out, or take a grammar that sums at the end, such as r-G_L3Σ"
            )
        scopes = by_scope(grammar)
        inputs, scoped = plan_scoped_inputs(grammar, chosen, *features)
        given = dict(scoped.outside.widths)
        inner = scoped.inside.widths
        given |= {s.within(1): inner[s] + w for s, w in inputs.marked.widths.items()}
    else:
        grammar = inside(grammar)
        scopes = (grammar,)
        inputs = plan_inputs(grammar, chosen, *features, whole.marks)
        given = dict(inputs.widths)
    mode, pooling = readout_options(readout, pooling)
    mode = mode or chosen.readout
    mixing = _mixing(scopes, chosen, functions, pair_bias)
    target = _widths(grammar, width)
    scalars = target[S] if _has_memory(grammar, S) else target.pop(S, 1)
    planner = _LayerPlanner(grammar, chosen, mixing, target)
    first: Embeddings = ()
    before: tuple[LayerPlan, ...] = ()
    widths = given
    if trunk:
        if not any(inputs.unmarked.widths.values()):
            raise LoweringError(
                f"every word of {name} starts from a mark, so no layer can stand before the marks: "
                "leave trunk out, or add a rule such as V_c′ → 1"
            )
        first, before, widths = planner.stack(inputs.unmarked.widths, trunk)
        widths = {sort: width + inputs.marked.widths[sort] for sort, width in widths.items()}
    embeddings, planned, widths = planner.stack(widths, layers)
    maps = chosen.decision if decision is None else _decision(decision)
    if mode == "grammar":
        _refuse_unreadable(grammar, widths, task, context)
    steps = planner.sentences(widths, scalars)
    widths = {sort: channels for sort, channels in widths.items() if not sort.scope}
    final = plan_readout(widths, task, chosen, pooling, maps, out, context, mode, steps)
    plan = NetworkPlan(whole, chosen, inputs, embeddings, planned, final, only_free)
    if not whole.scope:
        return plan
    if scoped:
        read = {hole for step in final.steps for hole in step.rule.holes}
        *earlier, last = planned
        kept = tuple(x for x in last.updates if not x.sort.scope or x.sort in read)
        planned = (*earlier, replace(last, updates=kept))  # nobody reads the others
        meeting = MarkPlan(whole.marks, (), marks)
        return replace(plan, layers=planned, marks=meeting, scoped=scoped)
    return _with_marks(plan, MarkPlan(whole.marks, (), marks, first, before), max(target.values()))


Embeddings = tuple[tuple[Sort, Linear], ...]


def _with_marks(plan: NetworkPlan, marks: MarkPlan, width: int) -> NetworkPlan:
    """The plan of a network on marked copies, with sums over them before its decision layers."""
    readout = plan.readout
    if readout.task != "graph":
        name = plan.grammar.name or "this grammar"
        raise LoweringError(
            f"{name} sums over marks, which leaves an output for each graph, not for each "
            f'{readout.task}: use task="graph", or a grammar without marks'
        )
    first = readout.graph_width
    mixers = []
    for function in has_function_between(plan.grammar):
        last = first if plan.preset.normalised else width  # an MLP that is added to what it reads
        sizes = (first, 2 * width, last) if function else ()
        mixers.append(tuple(Linear(a, b, True) for a, b in pairwise(sizes)))
        first = last if function else first
    return replace(
        plan,
        readout=replace(readout, maps=readout.maps_from(first)),
        marks=replace(marks, mixers=tuple(mixers)),
    )


def steps_of(grammar: Grammar) -> tuple[Rule, ...]:
    """The rules a layer applies: those with a variable in their body, the read-out aside."""
    return tuple(rule for rule in grammar.rules if rule.holes)


def undefined_supports(grammar: Grammar) -> tuple[str, ...]:
    """The supports a grammar names and does not define."""
    defined = {"A", "1", "I", "J", *MARKS, *(name for name, _ in grammar.supports)}
    definitions = [term for _, term in grammar.supports]
    bodies = [*(rule.body for rule in grammar.all_rules), *definitions]
    named = [leaf.name for body in bodies for leaf in leaves(body)]
    return tuple(dict.fromkeys(name for name in named if name not in defined))


class _Mixing(NamedTuple):
    """Whether the MLP of a memory is one, and whether it has biases."""

    mlp: bool
    bias: bool


def _mixing(
    scopes: Sequence[Grammar], preset: Preset, functions: str, pair_bias: bool | None
) -> dict[Sort, _Mixing]:
    """The kind of MLP each variable's memory gets, the same outside a mark and inside."""
    if functions not in ("mlp", "free"):
        raise LoweringError(f"functions is mlp or free, got {functions!r}")
    if pair_bias is not None and not isinstance(pair_bias, bool):
        raise LoweringError(f"pair_bias is true, false or the preset's (None), got {pair_bias!r}")
    if functions == "free" and preset.node_update == "bilinear":
        raise LoweringError(
            f"the preset {preset.name} has its ReLUs between all layers, so its functions cannot "
            "be only the free ones; use another preset, such as paper"
        )
    pairs = preset.mixer_bias and preset.pair_bias if pair_bias is None else pair_bias
    mixing = {}
    for sort in UPDATE_ORDER:
        bias = pairs if sort == M else preset.mixer_bias
        if functions == "mlp":
            mixing[sort] = _Mixing(True, bias)
        else:
            free = [free_functions(words, sort) for words in scopes]
            mlp = all(each.mlp for each in free)
            mixing[sort] = _Mixing(mlp, bias and mlp and all(each.bias for each in free))
    return mixing


def _has_memory(grammar: Grammar, sort: Sort) -> bool:
    return any(rule.head == sort for rule in grammar.rules)


@dataclass(frozen=True)
class _LayerPlanner:
    """Plans layers whose memories have the `target` widths."""

    grammar: Grammar
    preset: Preset
    mixing: Mapping[Sort, _Mixing]
    target: Mapping[Sort, int]

    def stack(
        self, given: Mapping[Sort, int], layers: int
    ) -> tuple[Embeddings, tuple[LayerPlan, ...], dict[Sort, int]]:
        """The embeddings of some memories, the layers that follow, and the channels these leave."""
        widths = dict(given)
        embeddings: Embeddings = ()
        if self.preset.embedding:
            embeddings = tuple((s, Linear(w, self.target[s])) for s, w in widths.items() if w)
            widths |= {sort: linear.width_out for sort, linear in embeddings}
        planned = []
        for _ in range(layers):
            planned.append(self.layer(widths))
            widths |= planned[-1].widths()
        return embeddings, tuple(planned), widths

    def layer(self, widths: Mapping[Sort, int]) -> LayerPlan:
        """A layer that reads memories of these widths."""
        updates = (self._update(sort, widths) for sort in self.target)
        read = {s: width for s, width in widths.items() if width and self.mixing[s.plain].mlp}
        if self.preset.pair_norm == "none":
            read = {sort: width for sort, width in read.items() if sort.plain != M}
        norms = tuple(read.items()) if self.preset.normalised else ()
        return LayerPlan(tuple(filter(None, updates)), norms)

    def _update(self, sort: Sort, widths: Mapping[Sort, int]) -> MemoryUpdate | None:
        preset, target, width_in = self.preset, self.target[sort], widths[sort]
        if sort == V and preset.node_update == "bilinear":
            linear = Linear(self.target[M] * width_in, target, bias=True)
            return MemoryUpdate(V, width_in, (), (linear,), "bilinear")
        rules = [rule for rule in steps_of(self.grammar) if rule.head == sort]
        steps = tuple(
            self._step(rule, widths, target)
            for rule in sorted(rules, key=crosses)
            if all(widths[hole] for hole in rule.holes)
        )
        total = width_in + sum(step.copies for step in steps)
        if not total:
            return None
        # The released code doubles the number of blocks and not their true widths: 8e for G²N².
        width = total if preset.copies == "written" else (1 + len(steps)) * width_in
        mixing = self.mixing[sort.plain]
        hidden = preset.hidden * width if mixing.mlp else 0
        sizes = [total, *([hidden] if hidden else []), target]
        mixer = tuple(Linear(a, b, mixing.bias) for a, b in pairwise(sizes))
        residual = preset.normalised and width_in == target
        return MemoryUpdate(sort, width_in, steps, mixer, residual=residual)

    def _step(self, rule: Rule, widths: Mapping[Sort, int], written: int) -> RuleStep:
        read = max(widths[rule.head], *(widths[hole] for hole in rule.holes))
        copies = written if self.preset.copies == "written" else read
        selectors = []
        for hole in rule.holes:
            mlp, bias = self.mixing[hole.plain]
            mlp = mlp and self.preset.selector == "mlp"
            maps = [Linear(widths[hole], copies, mlp and bias)]
            maps += [Linear(copies, copies, bias)] * mlp
            selectors.append(Selector(hole, tuple(maps)))
        return RuleStep(rule, copies, tuple(selectors))

    def sentences(self, widths: Mapping[Sort, int], written: int) -> tuple[RuleStep, ...]:
        """The rules of S on the last memories, as far as those hold what the rules need.

        A rule without variables is a step only where no memory of S starts with it.
        """
        steps = []
        for rule in sorted(self.grammar.sentence_rules, key=crosses):
            if not rule.holes:
                steps += [RuleStep(rule, 1, ())] * (not widths[S])
            elif all(widths[hole] for hole in rule.holes):
                if is_linear(rule.body):
                    steps.append(RuleStep(rule, widths[rule.holes[0]], ()))
                else:
                    steps.append(self._step(rule, widths, written))
        return tuple(steps)


def _refuse_unreadable(
    grammar: Grammar, widths: Mapping[Sort, int], task: Task, context: bool
) -> None:
    """Refuse a read-out by the grammar's own rules where it has none for the task."""
    name = grammar.name or "this grammar"
    other = 'or use readout="pooled"'
    if (task == "graph" or context) and not grammar.sentence_rules:
        raise LoweringError(
            f"{name} has no sentences, so its own rules read nothing out of a graph; "
            f"{_sentence_givers(grammar)} would give some, {other}"
        )
    needed = {"node": V, "edge": M}.get(task)
    if needed is not None and not widths[needed]:
        raise LoweringError(
            f"{name} has no words of {needed.variable}, which an output for each {task} reads with "
            f'readout="grammar"; choose a grammar with {needed.variable}, {other}'
        )
    usable = (all(widths[hole] for hole in rule.holes) for rule in grammar.sentence_rules)
    if (task == "graph" or context) and not any(usable):
        raise LoweringError(
            f"after so few layers no rule of S of {name} has all its operands; use more layers, "
            f"{other}"
        )


def _sentence_givers(grammar: Grammar) -> str:
    """`Tr (S → Tr(M))`: operations a grammar lacks with which its words would end in scalars."""
    givers = []
    for rule in map(Rule.parse, ("S → Tr(M)", "S → 1ᵀV_c", "S → V_r1")):
        if _has_memory(grammar, rule.holes[0]):
            missing = operators(rule.body) - grammar.operations
            symbols = [OPERATIONS[op].symbol for op in sorted(missing)]
            givers.append(f"{' and '.join(symbols)} ({rule})" if symbols else str(rule))
    return " or ".join(givers)


def _widths(grammar: Grammar, width: int | Mapping[str, int]) -> dict[Sort, int]:
    """The channels of each variable's memory; S also where a rule of S needs occurrences."""
    heads = {rule.head for rule in grammar.rules}
    heads |= {S for rule in grammar.readout if rule.holes and not is_linear(rule.body)}
    scopes = range(max((sort.scope for sort in heads), default=0) + 1)
    sorts = [x for x in (s.within(k) for k in scopes for s in UPDATE_ORDER) if x in heads]
    if isinstance(width, Mapping):
        shorter = {"V_c": "V", "V_r": "R", "'": "′"}
        named = {
            reduce(lambda text, pair: text.replace(*pair), shorter.items(), letter): channels
            for letter, channels in width.items()
        }
        if unknown := set(named) - {x for sort in sorts for x in (sort.letter, sort.plain.letter)}:
            raise LoweringError(
                f"width names {', '.join(sorted(unknown))}, but the variables are "
                + ", ".join(sort.variable for sort in sorts)
            )
        rest = max(named.values(), default=64)
        widths = {s: named.get(s.letter, named.get(s.plain.letter, rest)) for s in sorts}
    else:
        widths = dict.fromkeys(sorts, width)
    for given in widths.values():
        _check_count("a width", given, 1, MOST_WIDTH)
    return widths


def _decision(widths: object) -> tuple[int, ...]:
    """Hidden widths of the decision layers, checked."""
    if not isinstance(widths, Sequence) or isinstance(widths, str):
        raise LoweringError(f"decision lists hidden widths, such as (512, 256), got {widths!r}")
    _check_count("the number of decision layers", len(widths), 0, MOST_LAYERS)
    for width in widths:
        _check_count("a decision layer's width", width, 1, MOST_WIDTH)
    return tuple(widths)


def _check_count(name: str, value: object, least: int, most: int = 10**6) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise LoweringError(f"{name} must be a whole number, at least {least}, got {value!r}")
    if value > most:
        raise LoweringError(f"{name} must be at most {most}, got {value}")


def unsupported(
    grammar: Grammar, preset: str | Preset = "paper", supports: bool = False, marks: Marks = "all"
) -> list[str]:
    """Everything that keeps a grammar from being compiled, one sentence each; empty if nothing."""
    chosen = find_preset(preset)
    reasons = []
    if not copies_meet(grammar):
        grammar = inside(grammar)
    elif reasons := check_meeting(grammar, marks):
        return reasons
    if not supports:
        for name in undefined_supports(grammar):
            if name == DISTANCES.name:  # given by the positions of the nodes
                continue
            rules = ", ".join(str(r) for r in grammar.all_rules if mentions(r.body, {name}))
            reasons.append(
                f"{rules}: {name} has no definition; add a line such as `{name} = A`, or give "
                "the values with supports="
            )
    if chosen.node_update == "bilinear":
        heads = {rule.head for rule in grammar.rules}
        node_rules = [r.body_text() for r in steps_of(grammar) if r.head == V]
        if heads != {M, V} or node_rules != ["MV_c"]:
            reasons.append(
                "the preset official is the released code of r-G_L3: it needs the variables M and "
                "V_c, and MV_c as the only rule of V_c; use another preset for this grammar"
            )
    return reasons
