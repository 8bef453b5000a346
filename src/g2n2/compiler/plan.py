"""NetworkPlan: every map, rule and memory of a network, with no tensor made.

    inputs ──► layer ──► … ──► layer ──► read-out ──► decision
               for each variable: select operands, apply rules, concatenate with the memory, mix

A memory holds the words of one variable: M in `[B, N, N, S]`, V_c and V_r in `[B, N, F]`, S in
`[B, K]`. A rule without variables (A, 1, I) is an input and not a step. A rule whose operand's
memory is still empty cannot be applied yet: its step appears in the first layer where it can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Literal, NamedTuple

from ..grammars.free_functions import CONSTANTS, free_functions
from ..grammars.grammar import Grammar
from ..grammars.network_rules import Mixing
from ..grammars.rules import Rule
from ..language.patterns import normal_form
from ..language.sorts import M, R, S, Sort, V
from ..language.terms import IDENTITY, ONE, Hole, Term, apply, fill, multilinear
from .inputs import InputPlan
from .marks import MarkPlan, inside, outside
from .presets import Preset
from .readout_plan import ReadoutPlan, is_pooled

ALL_PAIRS = Rule.parse("S → 1ᵀM1")


@dataclass(frozen=True)
class Linear:
    """A linear map over channels."""

    width_in: int
    width_out: int
    bias: bool = False

    @property
    def parameters(self) -> int:
        return (self.width_in + self.bias) * self.width_out


@dataclass(frozen=True)
class Selector:
    """What brings one operand of a rule out of a memory."""

    sort: Sort
    maps: tuple[Linear, ...]


@dataclass(frozen=True)
class RuleStep:
    """One rule in one layer: `copies` occurrences, one selector for each operand.

    In a read-out a rule that is linear in its one variable has no selector: each channel of the
    memory is an occurrence.
    """

    rule: Rule
    copies: int
    selectors: tuple[Selector, ...]


@dataclass(frozen=True)
class MemoryUpdate:
    """How a layer makes the new memory of one variable.

    `mix` concatenates the memory with the outputs of the steps and sends them through the MLP
    `mixer`. `bilinear` is the node update of the released code, whose one map has a weight for
    each pair of channels of the new C and of H; it has no steps.
    """

    sort: Sort  # of the variable
    width_in: int  # channels of the memory before
    steps: tuple[RuleStep, ...]  # the rules that are applied
    mixer: tuple[Linear, ...]  # the maps of the MLP, or one linear map
    kind: Literal["mix", "bilinear"] = "mix"  # `mix` or `bilinear`
    residual: bool = False  # whether the memory before is added to what the MLP gives

    @property
    def width_out(self) -> int:
        return self.mixer[-1].width_out


@dataclass(frozen=True)
class LayerPlan:
    """One layer: the updates of its memories, the matrix memory first."""

    updates: tuple[MemoryUpdate, ...]  # one for each memory it makes
    norms: tuple[tuple[Sort, int], ...] = ()  # the memories it reads normalised, and their channels

    def widths(self) -> dict[Sort, int]:
        return {update.sort: update.width_out for update in self.updates}


@dataclass(frozen=True)
class WLTestOptions:
    """How `power.grammar_test` is called to describe a network, and how well that does."""

    functions: dict[Sort, Mixing]  # what the mixing of each memory can compute
    # what it can compute in the last layer, where that differs
    last_functions: dict[Sort, Mixing] | None
    # what stands between the inputs and the first layer's rules
    inputs: Literal["values", "colours", "functions"]
    # `exactly`; `from above` where the network may see less; `not at all` where a layer is no round
    # of the test
    describes: Literal["exactly", "from above", "not at all"]


@dataclass(frozen=True)
class NetworkPlan:
    """A whole network, ready to be costed, drawn or built."""

    grammar: Grammar  # what it is the network of
    preset: Preset  # all that the grammar does not say
    inputs: InputPlan  # what the memories start with
    # the linear map of each memory before the first layer
    embeddings: tuple[tuple[Sort, Linear], ...]
    layers: tuple[LayerPlan, ...]  # in the order they run
    readout: ReadoutPlan  # what is read out of the last memories
    # whether MLPs stand only on memories where a function adds nothing to the words
    # (`functions="free"`); `added_rules` says what they add elsewhere
    only_free: bool = False
    marks: MarkPlan | None = None  # for a grammar with marks, the sums over them

    @cached_property
    def words(self) -> Grammar:
        """The grammar whose words the memories hold: inside its marks, where it has some."""
        return inside(self.grammar) if self.marks else self.grammar

    @property
    def trunk(self) -> tuple[LayerPlan, ...]:
        """The layers before the marks."""
        return self.marks.trunk if self.marks else ()

    @property
    def first_widths(self) -> dict[Sort, int]:
        """Channels of each memory before the embeddings: inputs, or what the trunk makes of them.

        Those that a mark decides are the last.
        """
        if not self.marks or not self.trunk:
            return dict(self.inputs.widths)
        shared = dict(self.inputs.unmarked.widths)
        shared |= {sort: linear.width_out for sort, linear in self.marks.embeddings}
        for layer in self.trunk:
            shared |= layer.widths()
        return {s: shared.get(s, 0) + width for s, width in self.inputs.marked.widths.items()}

    def widths_before(self, layer: int) -> dict[Sort, int]:
        """Channels of each memory that a layer reads, counted from 0, M first; empty ones left out.

        After the last layer: `plan.widths_before(len(plan.layers))`.
        """
        widths = self.first_widths
        widths |= {sort: linear.width_out for sort, linear in self.embeddings}
        for earlier in self.layers[:layer]:
            widths |= earlier.widths()
        return {sort: width for sort, width in widths.items() if width}

    def test_grammar(self) -> Grammar:
        """The grammar whose test describes the network.

        Its rules are those of the layers and the terminals the compiler adds (I beside diag(V_c),
        Aᵀ, and the constant where a linear map has a bias). Its read-out are the rules of S applied
        to the last memories, pooling as `S → 1ᵀV_c | V_r1 | Tr(M) | 1ᵀ(M⊙J)1` as far as there are
        such memories, and all entries of M where a norm sums them and no rule does. For outputs of
        nodes and edges those are the rules of S that `context` gives,
        and the grammar's own without it.
        """
        grammar, readout = self.words, self.readout
        terms = dict(self.inputs.terms)
        parts = ((M, self.inputs.matrix), (V, self.inputs.column))
        given = [Rule(sort, terms[x]) for sort, names in parts for x in names if x in terms]
        present = set(grammar.rules)
        if Rule(M, apply("diag", ONE)) in present:
            present.add(Rule(M, IDENTITY))
        mixing = self.functions()
        given += [rule for rule in self.added_rules() if mixing[rule.head] == "linear"]
        rules = (*grammar.rules, *(rule for rule in given if rule not in present))
        sentences = grammar.readout
        if readout.task == "graph" or readout.context:
            applied = (*readout.pool_rules(), *(step.rule for step in readout.steps))
            sentences = tuple(rule for rule in dict.fromkeys(applied) if rule not in rules)
            if _norm_sees_more(self):
                sentences = tuple(dict.fromkeys((*sentences, ALL_PAIRS)))
        name = grammar.name
        if name and readout.pool_rules():
            name += ", pooled"
        made = replace(grammar, rules=rules, readout=sentences, name=name)
        return outside(made, self.grammar) if self.marks else made

    def functions(self) -> dict[Sort, Mixing]:
        """What the mixing of each memory can compute.

        An MLP with biases: any function. Without: one that keeps zero, and where neither norm nor
        SiLU breaks it, one with f(tx) = t·f(x). One linear map: a linear one. An MLP in a selector
        counts as one in the mixing: a bound from above.
        """
        by_sort: dict[Sort, Mixing] = {}
        for sort in self.widths_before(len(self.layers)):
            if not _computes_functions(self, sort):
                by_sort[sort] = "linear"
            elif _has_bias(self, sort):
                by_sort[sort] = "any"
            elif _is_normed(self, sort) or self.preset.activation != "relu":
                by_sort[sort] = "zero"
            else:
                by_sort[sort] = "homogeneous"
        return by_sort

    def test_options(self) -> WLTestOptions:
        """How the test that describes the network is run.

        A norm in front of the first layer reads inputs as colours, an MLP in a selector computes
        any function of them. No norm follows the last layer, so there ReLU MLPs without biases also
        keep multiples.
        """
        preset, mixing, by_graph = self.preset, self.functions(), _is_normed_by_graph(self)
        last: dict[Sort, Mixing] | None = None
        if preset.normalised and preset.activation == "relu" and "zero" in mixing.values():
            last = {
                sort: "homogeneous" if kind == "zero" else kind for sort, kind in mixing.items()
            }
        in_selectors = any(len(selector.maps) > 1 for selector in _selectors(self))
        if preset.node_update == "bilinear":
            describes: Literal["exactly", "from above", "not at all"] = "not at all"
        elif by_graph and self.marks:
            describes = "not at all"
        elif (
            in_selectors
            or bool(self.trunk)
            or _other_pooling(self)
            or self.trunk
            or _norm_sees_more(self)
            or (by_graph and mixing[M] == "zero")
        ):
            describes = "from above"
        else:
            describes = "exactly"
        norms = dict(self.layers[0].norms)
        values = M in self.widths_before(0) and (
            M not in norms or (by_graph and mixing[M] == "any")
        )
        normed = bool(norms) and not values
        inputs: Literal["values", "colours", "functions"] = (
            "functions" if in_selectors else "colours" if normed else "values"
        )
        return WLTestOptions(mixing, last, inputs, describes)

    def added_rules(self) -> tuple[Rule, ...]:
        """The rules X → X⊙X and X → constant that MLPs and biases add to the words.

        With them the words of the grammar tell apart, in the limit, what networks do. A bias on S
        stands for no word, so it is not among them.
        """
        rules = []
        for sort in self.widths_before(len(self.layers)):
            free = free_functions(self.words, sort)
            if _computes_functions(self, sort) and not free.mlp:
                rules.append(Rule(sort, apply("hadamard", Hole(sort), Hole(sort))))
            if _has_bias(self, sort) and not free.bias and sort in CONSTANTS:
                rules.append(Rule(sort, CONSTANTS[sort]))
        return tuple(rules)

    def exceptions(self) -> tuple[str, ...]:
        """Why the test bounds the network from above only, or does not describe it at all."""
        preset, readout, other = self.preset, self.readout, _other_pooling(self)
        names = [name for parts in self.inputs.parts.values() for name in parts]
        features = [name for name in ("X", "E", "diag(X)") if name in names]
        unread = [str(rule) for rule in self.words.sentence_rules if not _is_read(self, rule)]
        outputs = {"node": "nodes", "edge": "pairs"}.get(readout.task, "")
        reasons = (
            (
                preset.node_update == "bilinear",
                "nodes are updated with the new C and ReLU stands between layers, so a layer is no "
                "round of the test: what is said of the network rests on theorems alone",
            ),
            (
                any(len(s.maps) > 1 for s in _selectors(self)),
                "the functions are in the selectors and the last map of a layer is linear, so the "
                "last memories are sums of rules and no functions of them: the test is an upper "
                "bound",
            ),
            (
                bool(self.trunk),
                f"the first {len(self.trunk)} of its layers do not see the marks, and the test "
                "marks before all of them: it is an upper bound",
            ),
            (
                "max" in other,
                "a maximum sees which values there are and not how often: the test, which counts, "
                "is an upper bound",
            ),
            (
                "mean" in other,
                "mean pooling does not see how many nodes there are: the test, which counts, is an "
                "upper bound",
            ),
            (
                bool(unread) and readout.mode == "pooled-only" and readout.task == "graph",
                f"the read-out applies no rule of S to the last memories ({', '.join(unread)}): it "
                "can see less than the words of the grammar",
            ),
            (
                readout.task != "graph",
                f"the test compares graphs, and this network gives outputs for {outputs}",
            ),
            (
                self.test_options().last_functions is not None,
                "MLPs without biases map 0 to 0; after the last layer, which no norm follows, they "
                "also map multiples to multiples (measured on networks, not proved)",
            ),
            (
                _norm_sees_more(self),
                "one norm for all pairs of a graph shows every entry a sum over them, which the "
                f"read-out does not: the test, with {ALL_PAIRS} beside it, is an upper bound",
            ),
            (
                _is_normed_by_graph(self) and bool(self.marks),
                "one norm for all pairs of a marked copy shows every entry a sum over them, which "
                "the sums over marks need not: the test does not describe this network",
            ),
            (
                _is_normed_by_graph(self) and self.functions()[M] == "zero",
                "one norm for all pairs of a graph leaves the multiples within it: the test, "
                "which takes them apart, is an upper bound",
            ),
            (
                preset.product_scale and not _sees_size(self),
                "products are divided by √n, so graphs of different sizes may be told apart where "
                "no word does: the test holds for graphs of one size",
            ),
            (
                preset.normalised and bool(features),
                f"features ({', '.join(features)}) are normalised before the first layer: the "
                "verdict is about graphs without features",
            ),
        )
        return tuple(text for holds, text in reasons if holds)

    def reads_sentences(self) -> bool:
        """Whether the read-out contains every rule of S."""
        applied = {step.rule for step in self.readout.steps}
        return all(r in applied or _is_read(self, r) for r in self.words.sentence_rules)

    def _repr_html_(self) -> str:
        from .plan_to_text import plan_html

        return plan_html(self)


def _is_normed(plan: NetworkPlan, sort: Sort) -> bool:
    return any(read == sort for layer in plan.layers for read, _ in layer.norms)


def _is_normed_by_graph(plan: NetworkPlan) -> bool:
    return plan.preset.pair_norm == "graph" and _is_normed(plan, M)


def _norm_sees_more(plan: NetworkPlan) -> bool:
    """Whether a norm sums functions of the entries of M that no rule of S sums.

    Graphs that the sums of all functions of all entries do not tell apart have the same norms in
    every layer: a memory keeps the words it has.
    """
    pooled = dict(plan.readout.pools) if plan.readout.pooled_width else {}
    return _is_normed_by_graph(plan) and not {"diagonal", "off-diagonal"} <= set(pooled)


def _other_pooling(plan: NetworkPlan) -> list[str]:
    """Ways of pooling other than the sum, which the test takes all for sums."""
    ways = dict(plan.readout.pools) if plan.readout.pooled_width else {}
    return sorted({how for part, how in ways.items() if how != "sum" and part != "scalars"})


def _selectors(plan: NetworkPlan) -> list[Selector]:
    steps = [step for layer in plan.layers for update in layer.updates for step in update.steps]
    return [selector for step in steps for selector in step.selectors]


def _computes_functions(plan: NetworkPlan, sort: Sort) -> bool:
    """Whether anything but a linear map is applied to the entries of a memory."""
    mixers = [u.mixer for layer in plan.layers for u in layer.updates if u.sort == sort]
    selectors = [s.maps for s in _selectors(plan) if s.sort == sort]
    several = any(len(maps) > 1 for maps in (*mixers, *selectors))
    return several or plan.preset.between or _is_normed(plan, sort)


def _has_bias(plan: NetworkPlan, sort: Sort) -> bool:
    mixers = [u.mixer for layer in plan.layers for u in layer.updates if u.sort == sort]
    selectors = [s.maps for s in _selectors(plan) if s.sort == sort]
    return any(linear.bias for maps in (*mixers, *selectors) for linear in maps)


def _is_read(plan: NetworkPlan, rule: Rule) -> bool:
    return is_pooled(rule, plan.readout.pools, len(plan.readout.maps) > 1)


def _sees_size(plan: NetworkPlan) -> bool:
    """Whether a rule of S, applied to constants, gives a power of the number of nodes."""
    fillings: dict[Sort, list[Term]] = {}
    for sort, mixing in plan.functions().items():
        if sort in CONSTANTS and (mixing == "any" or free_functions(plan.words, sort).constant):
            fillings.setdefault(sort, []).append(CONSTANTS[sort])
    if free_functions(plan.words, M).identity:
        fillings.setdefault(M, []).append(IDENTITY)
    for rule in plan.test_grammar().sentence_rules:
        if not multilinear(rule.body):
            continue
        for operands in product(*(fillings.get(hole, []) for hole in rule.holes)):
            (pattern,) = normal_form(fill(rule.body, list(operands)), "none")
            if pattern.vertices and not pattern.edges:
                return True
    return False


SYMBOLS: dict[Sort, str] = {M: "C", V: "H", R: "R", S: "s"}
"""C and H as in the paper; R holds rows and s scalars, where a grammar has them."""

AXES: dict[Sort, tuple[str, ...]] = {M: ("B", "N", "N"), V: ("B", "N"), R: ("B", "N"), S: ("B",)}

LEGEND = "B graphs of N nodes; the last number counts channels"


class NumberedSelector(NamedTuple):
    """One selector of a layer with its number: L1, L2, …"""

    number: int
    step: RuleStep
    operand: int
    selector: Selector


def shape(sort: Sort, channels: int | str) -> str:
    """`[B, N, N, 64]` for a matrix memory of 64 channels."""
    return f"[{', '.join((*AXES[sort], str(channels)))}]"


def numbered_selectors(part: LayerPlan | ReadoutPlan) -> list[NumberedSelector]:
    """The selectors of a layer or of a read-out, numbered as in the paper."""
    updates = part.updates if isinstance(part, LayerPlan) else (part,)
    selectors = [
        (step, operand, selector)
        for update in updates
        for step in update.steps
        for operand, selector in enumerate(step.selectors)
    ]
    selectors.sort(key=lambda item: list(SYMBOLS).index(item[2].sort))
    return [NumberedSelector(number, *item) for number, item in enumerate(selectors, start=1)]
