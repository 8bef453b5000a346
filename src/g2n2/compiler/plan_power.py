"""What a plan's network can tell apart, as a grammar: what its WL test is read off.

A network with linear selectors, MLPs and sums tells apart what the test of its grammar does, with
the rules of S its read-out applies and with what its MLPs can compute on each memory.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Literal

from ..grammars.grammar import Grammar
from ..grammars.rules import Rule
from ..language.patterns import normal_form
from ..language.sorts import M, Sort
from ..language.terms import IDENTITY, ONE, Hole, Term, apply, fill, multilinear
from .free_functions import CONSTANTS, FreeFunctions, free_functions
from .grammar_to_plan import UPDATE_ORDER
from .memories import widths_before
from .plan import Mixing, NetworkPlan, Selector, WLTestOptions
from .readout_plan import is_pooled

_READ = {"graph": "", "node": "nodes", "edge": "pairs"}


def test_grammar(plan: NetworkPlan) -> Grammar:
    """The grammar whose test describes a network.

    Its rules are those of the layers and the terminals the compiler adds (I beside diag(V_c), Aᵀ,
    and the constant where a linear map has a bias). Its read-out are the rules of S that are
    applied to the last memories: pooling counts as `S → 1ᵀV_c | V_r1 | Tr(M) | 1ᵀ(M⊙J)1`, as far as
    there are such memories. For outputs of nodes and edges those are the rules of S that `context`
    gives, and the grammar's own without it.
    """
    grammar, readout = plan.grammar, plan.readout
    terms = dict(plan.inputs.terms)
    given = [Rule(M, terms[name]) for name in plan.inputs.matrix if name in terms]
    known = set(grammar.rules)
    if Rule(M, apply("diag", ONE)) in known:
        known.add(Rule(M, IDENTITY))
    mixing = functions(plan)
    given += [rule for rule in added_rules(plan) if mixing[rule.head] == "linear"]
    rules = (*grammar.rules, *(rule for rule in given if rule not in known))
    sentences = grammar.readout
    if readout.task == "graph" or readout.context:
        applied = (*readout.pool_rules(), *(step.rule for step in readout.steps))
        sentences = tuple(rule for rule in dict.fromkeys(applied) if rule not in rules)
    name = grammar.name
    if name and readout.pool_rules():
        name += ", pooled"
    return replace(grammar, rules=rules, readout=sentences, name=name)


def functions(plan: NetworkPlan) -> dict[Sort, Mixing]:
    """What the mixing of each memory can compute.

    An MLP with biases: any function. Without: one that keeps zero, and where neither norm nor SiLU
    breaks it, one with f(tx) = t·f(x). One linear map: a linear one. An MLP in a selector counts as
    one in the mixing: a bound from above.
    """
    found: dict[Sort, Mixing] = {}
    for sort in _memories(plan):
        if not _computes_functions(plan, sort):
            found[sort] = "linear"
        elif _has_bias(plan, sort):
            found[sort] = "any"
        elif plan.preset.normalised or plan.preset.activation != "relu":
            found[sort] = "zero"
        else:
            found[sort] = "homogeneous"
    return found


def test_options(plan: NetworkPlan) -> WLTestOptions:
    """How the test is run that describes a network.

    A norm in front of the first layer reads inputs as colours, an MLP in a selector computes any
    function of them. No norm follows the last layer, so there ReLU MLPs without biases also keep
    multiples.
    """
    preset, mixing = plan.preset, functions(plan)
    last: dict[Sort, Mixing] | None = None
    if preset.normalised and preset.activation == "relu" and "zero" in mixing.values():
        last = {sort: "homogeneous" if kind == "zero" else kind for sort, kind in mixing.items()}
    in_selectors = any(len(selector.maps) > 1 for selector in _selectors(plan))
    if preset.node_update == "bilinear":
        describes: Literal["exactly", "from above", "not at all"] = "not at all"
    elif in_selectors or _other_pooling(plan):
        describes = "from above"
    else:
        describes = "exactly"
    normed = any(layer.norms for layer in plan.layers[:1])
    inputs: Literal["values", "colours", "functions"] = (
        "functions" if in_selectors else "colours" if normed else "values"
    )
    return WLTestOptions(mixing, last, inputs, describes)


def _other_pooling(plan: NetworkPlan) -> list[str]:
    """Ways of pooling other than the sum, which the test takes all for sums."""
    ways = dict(plan.readout.pools) if plan.readout.pooled_width else {}
    return sorted({how for part, how in ways.items() if how != "sum" and part != "scalars"})


def added_rules(plan: NetworkPlan) -> tuple[Rule, ...]:
    """The rules X → X⊙X and X → constant that stand for MLPs and biases and are no words already.

    With them the words of the grammar tell apart, in the limit, what networks do. A bias on S
    stands for no word, so it is not among them.
    """
    rules = []
    for sort in _memories(plan):
        free = _free(plan, sort)
        if _computes_functions(plan, sort) and not free.mlp:
            rules.append(Rule(sort, apply("hadamard", Hole(sort), Hole(sort))))
        if _has_bias(plan, sort) and not free.bias and sort in CONSTANTS:
            rules.append(Rule(sort, CONSTANTS[sort]))
    return tuple(rules)


def exceptions(plan: NetworkPlan) -> tuple[str, ...]:
    """Why the test only bounds a network from above, or does not describe it; empty if exact."""
    preset, readout = plan.preset, plan.readout
    reasons = []
    if preset.node_update == "bilinear":
        reasons.append(
            "nodes are updated with the new C and ReLU stands between layers, so a layer is no "
            "round of the test: what is said of the network rests on theorems alone"
        )
    if any(len(s.maps) > 1 for s in _selectors(plan)):
        reasons.append(
            "the functions are in the selectors and the last map of a layer is linear, so the last "
            "memories are sums of rules and no functions of them: the test is an upper bound"
        )
    other = _other_pooling(plan)
    if "max" in other:
        reasons.append(
            "a maximum sees which values there are and not how often: the test, which counts, is "
            "an upper bound"
        )
    if "mean" in other:
        reasons.append(
            "mean pooling does not see how many nodes there are: the test, which counts, is an "
            "upper bound"
        )
    unread = [str(rule) for rule in plan.grammar.sentence_rules if not _is_read(plan, rule)]
    if unread and readout.mode == "pooled-only" and readout.task == "graph":
        reasons.append(
            f"the read-out applies no rule of S to the last memories ({', '.join(unread)}): it can "
            "see less than the words of the grammar"
        )
    if readout.task != "graph":
        reasons.append(
            f"the test compares graphs, and this network gives outputs for {_READ[readout.task]}"
        )
    if test_options(plan).last_functions is not None:
        reasons.append(
            "MLPs without biases map 0 to 0; after the last layer, which no norm follows, they "
            "also map multiples to multiples (measured on networks, not proved)"
        )
    if preset.product_scale and not _sees_size(plan):
        reasons.append(
            "products are divided by √n, so graphs of different sizes may be told apart where no "
            "word does: the test holds for graphs of one size"
        )
    features = [n for n in ("X", "E", "diag(X)") if any(n in p for p in plan.inputs.parts.values())]
    if preset.normalised and features:
        reasons.append(
            f"features ({', '.join(features)}) are normalised before the first layer: the verdict "
            "is about graphs without features"
        )
    return tuple(reasons)


def reads_sentences(plan: NetworkPlan) -> bool:
    """Whether the read-out contains every rule of S."""
    applied = {step.rule for step in plan.readout.steps}
    return all(r in applied or _is_read(plan, r) for r in plan.grammar.sentence_rules)


def _memories(plan: NetworkPlan) -> list[Sort]:
    """The variables that have a memory after the last layer, M first."""
    has = widths_before(plan, len(plan.layers))
    return [sort for sort in UPDATE_ORDER if sort in has]


def _free(plan: NetworkPlan, sort: Sort) -> FreeFunctions:
    return free_functions(plan.grammar, sort)


def _selectors(plan: NetworkPlan) -> list[Selector]:
    steps = [step for layer in plan.layers for update in layer.updates for step in update.steps]
    return [selector for step in steps for selector in step.selectors]


def _computes_functions(plan: NetworkPlan, sort: Sort) -> bool:
    """Whether anything but a linear map is applied to the entries of a memory."""
    mixers = [u.mixer for layer in plan.layers for u in layer.updates if u.sort == sort]
    selectors = [s.maps for s in _selectors(plan) if s.sort == sort]
    norms = any(read == sort for layer in plan.layers for read, _ in layer.norms)
    return norms or plan.preset.between or any(len(maps) > 1 for maps in (*mixers, *selectors))


def _has_bias(plan: NetworkPlan, sort: Sort) -> bool:
    mixers = [u.mixer for layer in plan.layers for u in layer.updates if u.sort == sort]
    selectors = [s.maps for s in _selectors(plan) if s.sort == sort]
    return any(linear.bias for maps in (*mixers, *selectors) for linear in maps)


def _is_read(plan: NetworkPlan, rule: Rule) -> bool:
    return is_pooled(rule, plan.readout.pools, len(plan.readout.maps) > 1)


def _sees_size(plan: NetworkPlan) -> bool:
    """Whether a rule of S, applied to constants, gives a power of the number of nodes."""
    fillings: dict[Sort, list[Term]] = {}
    for sort, mixing in functions(plan).items():
        if sort in CONSTANTS and (mixing == "any" or _free(plan, sort).constant):
            fillings.setdefault(sort, []).append(CONSTANTS[sort])
    if _free(plan, M).identity:
        fillings.setdefault(M, []).append(IDENTITY)
    for rule in test_grammar(plan).sentence_rules:
        if not multilinear(rule.body):
            continue
        for operands in product(*(fillings.get(hole, []) for hole in rule.holes)):
            (pattern,) = normal_form(fill(rule.body, list(operands)), "none")
            if pattern.vertices and not pattern.edges:
                return True
    return False
