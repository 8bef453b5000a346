"""NetworkPlan: every map, rule and memory of a network, with no tensor made.

    inputs ──► layer ──► … ──► layer ──► read-out ──► decision
               for each variable: select operands, apply rules, concatenate with the memory, mix

A memory holds the words of one variable: M in `[B, N, N, S]`, V_c and V_r in `[B, N, F]`, S in
`[B, K]`. A rule without variables (A, 1, I) is an input and not a step. A rule whose operand's
memory is still empty cannot be applied yet: its step appears in the first layer where it can.

With marks the memories are those of the copies of a graph, one for each marked node, and B counts
copies. Where copies meet, there are memories of the graph (C, H) and of its copies (C′, H′).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Literal, NamedTuple, get_args

from ..grammars.free_functions import CONSTANTS, free_functions
from ..grammars.grammar import Grammar
from ..grammars.network_rules import Mixing, summed
from ..grammars.rules import Rule, crosses
from ..language.patterns import normal_form
from ..language.sorts import M, R, S, Sort, V, primes
from ..language.terms import IDENTITY, ONE, Hole, Term, apply, fill, multilinear
from .inputs import InputPlan, ScopedInputs
from .marks import MarkPlan, by_scope, inside, outside
from .presets import Preset
from .readout_plan import Pooling, ReadoutPlan, is_pooled

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

    @property
    def plain(self) -> RuleStep:
        """The step as one outside all marks."""
        selectors = tuple(replace(each, sort=each.sort.plain) for each in self.selectors)
        return replace(self, rule=self.rule.plain, selectors=selectors)


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

    def within(self, scope: int) -> LayerPlan:
        """The updates of one scope, without the rules that cross from one to the other."""
        updates = tuple(
            replace(
                update,
                sort=update.sort.plain,
                steps=tuple(step.plain for step in update.steps if not crosses(step.rule)),
            )
            for update in self.updates
            if update.sort.scope == scope
        )
        norms = tuple((sort.plain, width) for sort, width in self.norms if sort.scope == scope)
        return LayerPlan(updates, norms)


Describes = Literal["exactly", "but for leaves", "from above", "not at all"]
"""How well a test describes a network: `but for leaves` exactly on graphs without vertices of one
neighbour and from above on others, `from above` where the network may see less, `not at all` where
a layer is no round of the test."""
_WORSE = get_args(Describes)


@dataclass(frozen=True)
class WLTestOptions:
    """How `power.grammar_test` is called to describe a network, and how well that does."""

    functions: dict[Sort, Mixing]  # what the mixing of each memory can compute
    # what it can compute in the last layer, where that differs
    last_functions: dict[Sort, Mixing] | None
    # what stands between the inputs and the first layer's rules
    inputs: Literal["values", "colours", "functions"]
    describes: Describes
    trunk: int = 0  # rounds before the marks


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
    scoped: ScopedInputs | None = None  # where marked copies meet, what each scope starts with

    @cached_property
    def words(self) -> Grammar:
        """The grammar whose words the memories hold.

        Inside its marks, where it has some and copies do not meet.
        """
        return self.grammar if self.scoped else inside(self.grammar)

    @cached_property
    def scopes(self) -> tuple[Grammar, ...]:
        """Its rules, those outside a mark and those inside apart where copies meet."""
        return by_scope(self.grammar) if self.scoped else (self.words,)

    @property
    def trunk(self) -> tuple[LayerPlan, ...]:
        """The layers before the marks."""
        return self.marks.trunk if self.marks else ()

    @property
    def first_widths(self) -> dict[Sort, int]:
        """Channels of each memory before the embeddings: inputs, or what the trunk makes of them.

        Those that a mark decides are the last.
        """
        if self.scoped is not None:
            outer, inner = self.scoped.outside.widths, self.scoped.inside.widths
            marked = self.inputs.marked.widths
            return {**outer, **{s.within(1): inner[s] + width for s, width in marked.items()}}
        if not self.marks or not self.trunk:
            return dict(self.inputs.widths)
        shared = dict(self.inputs.unmarked.widths)
        shared |= {sort: linear.width_out for sort, linear in self.marks.embeddings}
        for layer in self.trunk:
            shared |= layer.widths()
        return {s: shared.get(s, 0) + width for s, width in self.inputs.marked.widths.items()}

    def widths_before(self, layer: int) -> dict[Sort, int]:
        """Channels of the memories that a layer reads, counted from 0; M first, no empty ones."""
        widths = self.first_widths
        widths |= {sort: linear.width_out for sort, linear in self.embeddings}
        for earlier in self.layers[:layer]:
            widths |= earlier.widths()
        return {sort: width for sort, width in widths.items() if width}

    @property
    def shown_layer(self) -> int:
        """The number, from 0, of the layer to draw: the last of those that update all memories."""
        most = max(len(layer.updates) for layer in self.layers)
        return max(k for k, layer in enumerate(self.layers) if len(layer.updates) == most)

    @property
    def last_widths(self) -> dict[Sort, int]:
        """Channels of the memories that are read out."""
        return self.widths_before(len(self.layers))

    def test_grammar(self) -> Grammar:
        """The grammar whose test describes the network.

        Its rules are those of the layers and the terminals the compiler adds (I beside diag(V_c),
        Aᵀ, and the constant where a linear map has a bias). Its read-out are the rules of S applied
        to the last memories, pooling as `S → 1ᵀV_c | V_r1 | Tr(M) | 1ᵀ(M⊙J)1` as far as there are
        such memories, and all entries of M where a norm sums them and no rule does. For outputs of
        nodes and edges those are the rules of S that `context` gives,
        and the grammar's own without it.
        """
        words = self._test_of_words()
        return outside(words, self.grammar) if self.marks and not self.scoped else words

    def pooled_rules(self) -> tuple[Rule, ...]:
        """The rules of S that pooling adds to those of the grammar, summed over its marks."""
        added = [r for r in self._test_of_words().sentence_rules if r not in self.words.all_rules]
        marks = () if self.scoped else self.grammar.marks
        return tuple(summed(rule, marks) for rule in added)

    def _test_of_words(self) -> Grammar:
        """The grammar of the test; inside its marks, where it has some and copies do not meet."""
        grammar, readout = self.words, self.readout
        terms = dict(self.inputs.terms)
        given = [
            Rule(sort.within(scope), terms[x])
            for scope, inputs in self._inputs
            for sort, names in ((M, inputs.matrix), (V, inputs.column))
            for x in names
            if x in terms
        ]
        present = set(grammar.rules)
        for scope in range(len(self.scopes)):
            if Rule(M.within(scope), apply("diag", ONE)) in present:
                present.add(Rule(M.within(scope), IDENTITY))
        mixing = self.functions()
        given += [rule for rule in self.added_rules() if mixing[rule.head.plain] == "linear"]
        rules = (*grammar.rules, *(rule for rule in given if rule not in present))
        sentences = grammar.readout
        if readout.task == "graph" or readout.context:
            applied = [*readout.pool_rules(), *(step.rule for step in readout.steps)]
            applied = [rule for rule in applied if rule not in rules]
            sentences = tuple(dict.fromkeys(applied + [ALL_PAIRS] * self._norm_sees_more))
        name = grammar.name
        if name and readout.pool_rules():
            name += ", pooled"
        return replace(grammar, rules=rules, readout=sentences, name=name)

    @property
    def _inputs(self) -> list[tuple[int, InputPlan]]:
        """The inputs of each scope; those that a mark decides by themselves where copies meet."""
        if self.scoped is None:
            return [(0, self.inputs)]
        return [(0, self.scoped.outside), (1, self.scoped.inside), (1, self.inputs.marked)]

    def functions(self) -> dict[Sort, Mixing]:
        """What the mixing of each memory can compute, the same outside a mark and inside.

        An MLP with biases: any function. Without: one that keeps zero, and where neither norm nor
        SiLU breaks it, one with f(tx) = t·f(x). One linear map: a linear one. An MLP in a selector
        counts as one in the mixing: a bound from above.
        """
        by_sort: dict[Sort, Mixing] = {}
        for sort in dict.fromkeys(variable.plain for variable in self.last_widths):
            if not self._computes_functions(sort):
                by_sort[sort] = "linear"
            elif self._has_bias(sort):
                by_sort[sort] = "any"
            elif self._is_normed(sort) or self.preset.activation != "relu":
                by_sort[sort] = "zero"
            else:
                by_sort[sort] = "homogeneous"
        return by_sort

    def added_rules(self) -> tuple[Rule, ...]:
        """The rules X → X⊙X and X → constant that MLPs and biases add to the words.

        With them the words of the grammar tell apart, in the limit, what networks do. A bias on S
        stands for no word, so it is not among them.
        """
        rules = []
        for variable in self.last_widths:
            sort = variable.plain
            free = free_functions(self.scopes[variable.scope], sort)
            if self._computes_functions(sort) and not free.mlp:
                square = apply("hadamard", Hole(sort), Hole(sort))
                rules.append(Rule(sort, square).within(variable.scope))
            if self._has_bias(sort) and not free.bias and sort in CONSTANTS:
                rules.append(Rule(variable, CONSTANTS[sort]))
        return tuple(rules)

    def test_options(self) -> WLTestOptions:
        """How the test that describes the network is run.

        A norm in front of the first layer reads inputs as colours, an MLP in a selector computes
        any function of them.
        """
        mixing, norms = self.functions(), dict(self.layers[0].norms)
        by_graph = self._is_normed_by_graph and mixing[M] == "any"
        matrices = [sort for sort in self.widths_before(0) if sort.plain == M]
        values = any(sort not in norms or by_graph for sort in matrices)
        inputs: Literal["values", "colours", "functions"] = "values"
        if self._has_mlp_selectors:
            inputs = "functions"
        elif norms and not values:
            inputs = "colours"
        describes = max((how for how, _ in self._limits()), key=_WORSE.index, default=_WORSE[0])
        return WLTestOptions(mixing, self._last_functions(), inputs, describes, len(self.trunk))

    def _last_functions(self) -> dict[Sort, Mixing] | None:
        """What the mixing of the last layer can compute, where that differs.

        No norm follows the last layer, so there ReLU MLPs without biases also keep multiples.
        """
        mixing = self.functions()
        if not self.preset.normalised or self.preset.activation != "relu":
            return None
        last: dict[Sort, Mixing] = {
            sort: "homogeneous" if kind == "zero" else kind for sort, kind in mixing.items()
        }
        return None if last == mixing else last

    def exceptions(self) -> tuple[str, ...]:
        """Why the test bounds the network from above only, or does not describe it at all."""
        return tuple(reason for _, reason in self._limits())

    def _limits(self) -> Iterator[tuple[Describes, str]]:
        """What a reader of the test has to know: how well it describes the network, and why."""
        preset, readout = self.preset, self.readout
        mixing, pooling = self.functions(), {*self._pooling().values()}
        if preset.node_update == "bilinear":
            yield (
                "not at all",
                "nodes are updated with the new C and ReLU stands between layers, so a layer is no "
                "round of the test: what is said of the network rests on theorems alone",
            )
        if self._has_mlp_selectors:
            yield (
                "from above",
                "the functions are in the selectors and the last map of a layer is linear, so the "
                "last memories are sums of rules and no functions of them: the test is an upper "
                "bound",
            )
        if self.marks and self.marks.chosen == "heavy":  # what leaves see needs a layer more
            yield (
                "but for leaves",
                "the test marks every vertex, and this network none with one neighbour: on graphs "
                "with such vertices it is an upper bound",
            )
        inner = S.within(1)
        if self.scoped and inner in self.last_widths and not self._feeds_back(inner):
            yield (
                "from above",
                "scalars inside the mark are computed in a layer and read out after it, and the "
                "test computes them where they are read: it is an upper bound",
            )
        if self.marks and not self.scoped and S in self.last_widths:
            yield (
                "not at all",
                "scalars inside the marks feed back into words: the test, which reads them out "
                "alone, does not describe this network",
            )
        if "max" in pooling:
            yield (
                "from above",
                "a maximum sees which values there are and not how often: the test, which counts, "
                "is an upper bound",
            )
        if "mean" in pooling:
            yield (
                "from above",
                "mean pooling does not see how many nodes there are: the test, which counts, is an "
                "upper bound",
            )
        unread = [str(rule) for rule in self.words.sentence_rules if not self._pools(rule)]
        if unread and readout.mode == "pooled-only" and readout.task == "graph":
            yield (
                "exactly",
                f"the read-out applies no rule of S to the last memories ({', '.join(unread)}): it "
                "can see less than the words of the grammar",
            )
        if readout.task != "graph":
            outputs = {"node": "nodes", "edge": "pairs"}[readout.task]
            yield (
                "exactly",
                (f"the test compares graphs, and this network gives outputs for {outputs}"),
            )
        if self._last_functions() is not None:
            yield (
                "exactly",
                "MLPs without biases map 0 to 0; after the last layer, which no norm follows, they "
                "also map multiples to multiples (measured on networks, not proved)",
            )
        if self._norm_sees_more:
            yield (
                "from above",
                "one norm for all pairs of a graph shows every entry a sum over them, which the "
                f"read-out does not: the test, with {ALL_PAIRS} beside it, is an upper bound",
            )
        if self._is_normed_by_graph and self.marks:
            yield (
                "not at all",
                "one norm for all pairs of a marked copy shows every entry a sum over them, which "
                "the sums over marks need not: the test does not describe this network",
            )
        if self._is_normed_by_graph and mixing[M] == "zero":
            yield (
                "from above",
                "one norm for all pairs of a graph leaves the multiples within it: the test, "
                "which takes them apart, is an upper bound",
            )
        if preset.product_scale and not self._sees_size():
            yield (
                "exactly",
                "products are divided by √n, so graphs of different sizes may be told apart where "
                "no word does: the test holds for graphs of one size",
            )
        names = [name for parts in self.inputs.parts.values() for name in parts]
        features = [name for name in ("X", "E", "diag(X)") if name in names]
        if preset.normalised and features:
            yield (
                "exactly",
                f"features ({', '.join(features)}) are normalised before the first layer: the "
                "verdict is about graphs without features",
            )

    def reads_sentences(self) -> bool:
        """Whether the read-out contains every rule of S."""
        applied = {step.rule for step in self.readout.steps}
        return all(rule in applied or self._pools(rule) for rule in self.words.sentence_rules)

    def _pools(self, rule: Rule) -> bool:
        """Whether what is pooled gives what a rule of S would."""
        return is_pooled(rule, self.readout.pools, len(self.readout.maps) > 1)

    def _feeds_back(self, variable: Sort) -> bool:
        """Whether words of other variables use those of this one."""
        return any(variable in r.holes and r.head != variable for r in self.grammar.rules)

    def _pooling(self) -> dict[str, Pooling]:
        """How each part that is read out is pooled; scalars are not."""
        pools = dict(self.readout.pools) if self.readout.pooled_width else {}
        return {part: how for part, how in pools.items() if part != "scalars"}

    def _is_normed(self, sort: Sort) -> bool:
        return any(read.plain == sort for layer in self.layers for read, _ in layer.norms)

    @property
    def _is_normed_by_graph(self) -> bool:
        return self.preset.pair_norm == "graph" and self._is_normed(M)

    @property
    def _norm_sees_more(self) -> bool:
        """Whether a norm sums functions of the entries of M that no rule of S sums.

        Graphs that the sums of all functions of all entries do not tell apart have the same norms
        in every layer: a memory keeps the words it has.
        """
        return self._is_normed_by_graph and not {"diagonal", "off-diagonal"} <= {*self._pooling()}

    @property
    def _updates(self) -> list[MemoryUpdate]:
        return [update for layer in self.layers for update in layer.updates]

    @property
    def _selectors(self) -> list[Selector]:
        return [s for update in self._updates for step in update.steps for s in step.selectors]

    @property
    def _has_mlp_selectors(self) -> bool:
        return any(len(selector.maps) > 1 for selector in self._selectors)

    def _mlps(self, sort: Sort) -> list[tuple[Linear, ...]]:
        """The maps that mix the memory of a variable, and those of the selectors that read it."""
        mixers = [update.mixer for update in self._updates if update.sort.plain == sort]
        return mixers + [each.maps for each in self._selectors if each.sort.plain == sort]

    def _computes_functions(self, sort: Sort) -> bool:
        """Whether anything but a linear map is applied to the entries of a memory."""
        several = any(len(maps) > 1 for maps in self._mlps(sort))
        return several or self.preset.between or self._is_normed(sort)

    def _has_bias(self, sort: Sort) -> bool:
        return any(linear.bias for maps in self._mlps(sort) for linear in maps)

    def _sees_size(self) -> bool:
        """Whether a rule of S, applied to constants, gives a power of the number of nodes."""
        fillings: dict[Sort, list[Term]] = {}
        for sort, mixing in self.functions().items():
            constant = sort in CONSTANTS and free_functions(self.scopes[0], sort).constant
            if sort in CONSTANTS and (mixing == "any" or constant):
                fillings.setdefault(sort, []).append(CONSTANTS[sort])
        if free_functions(self.scopes[0], M).identity:
            fillings.setdefault(M, []).append(IDENTITY)
        for rule in self.test_grammar().sentence_rules:
            if not multilinear(rule.body):
                continue
            for operands in product(*(fillings.get(hole, []) for hole in rule.holes)):
                (pattern,) = normal_form(fill(rule.body, list(operands)), "none")
                if pattern.vertices and not pattern.edges:
                    return True
        return False

    def _repr_html_(self) -> str:
        from .plan_to_text import plan_html

        return plan_html(self)


SYMBOLS: dict[Sort, str] = {M: "C", V: "H", R: "R", S: "s"}
"""C and H as in the paper; R holds rows and s scalars, where a grammar has them."""

AXES: dict[Sort, tuple[str, ...]] = {M: ("B", "N", "N"), V: ("B", "N"), R: ("B", "N"), S: ("B",)}

LEGEND = "B graphs of N nodes; the last number counts channels"


def symbol(sort: Sort) -> str:
    """The name of a variable's memory: C, H, or inside a mark C′, H′."""
    return SYMBOLS[sort.plain] + primes(sort.scope)


class NumberedSelector(NamedTuple):
    """One selector of a layer with its number: L1, L2, …"""

    number: int
    step: RuleStep
    operand: int
    selector: Selector


def shape(sort: Sort, channels: int | str) -> str:
    """`[B, N, N, 64]` for a matrix memory of 64 channels; with an axis for the mark inside one."""
    graphs, *nodes = AXES[sort.plain]
    return f"[{', '.join((graphs, *['N'] * sort.scope, *nodes, str(channels)))}]"


def numbered_selectors(part: LayerPlan | ReadoutPlan) -> list[NumberedSelector]:
    """The selectors of a layer or of a read-out, numbered as in the paper."""
    updates = part.updates if isinstance(part, LayerPlan) else (part,)
    selectors = [
        (step, operand, selector)
        for update in updates
        for step in update.steps
        for operand, selector in enumerate(step.selectors)
    ]
    order = list(SYMBOLS)
    selectors.sort(key=lambda item: (item[2].sort.scope, order.index(item[2].sort.plain)))
    return [NumberedSelector(number, *item) for number, item in enumerate(selectors, start=1)]
