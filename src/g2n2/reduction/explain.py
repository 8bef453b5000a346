"""A reduction as steps: each removed rule, the identity that allows it, the paper's argument."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..grammars.fragments import Fragment
from ..grammars.grammar import Grammar, Rule
from ..language.sorts import M, R, S, V
from ..language.terms import Apply, Hole, Leaf, Term, apply, fill, has_mark_sum, operators
from .full_marks import law_text
from .invariants import Form
from .lemmas import Lemma
from .marks import MarkedProof, inside_depth
from .reduce import Link, Simulation, unused_rules
from .simulation import SimulationWitness

MAX_IDENTITIES = 8


@dataclass(frozen=True)
class ProofStep:
    """Rules removed for one reason.

    Attributes:
        title: The reason in two or three words.
        removed: The rules that go.
        added: The rules that take their place.
        reason: Why, in a sentence.
        identities: The equations the certificate checks, without the scalars carried along.
        status: `checked` by patterns, or `cited`.
        paper: Where and how the paper argues it, if it is about this grammar.
        ours: Where our argument differs from the paper's.
    """

    title: str
    removed: tuple[Rule, ...]
    added: tuple[Rule, ...]
    reason: str
    identities: tuple[str, ...]
    status: str
    paper: str
    ours: str


_REASONS: dict[str, str] = {
    "sums and functions": "a word with sums is a sum of words; f of a word is a combination of its "
    "Hadamard powers",
    "unused": "no sentence uses it",
    "scalars": "a scalar is a product of sentences and factors out of every word",
    "read-out": "every such sentence is a product of the sentences read out",
    "derivable": "the other rules make it",
    "outer products": "an outer product is carried as a second shape of a matrix, closed under "
    "every use",
    "rows and transposes": "a row is a transposed column, and the set of words is closed under ᵀ",
    "matrices": "a matrix only acts on columns, and its action is a column rule",
    "simpler form": "the same rule with a row written as a transposed column",
    "outside": "a word without the mark is a word inside it, and its sentences are sums over marks",
    "products in a sum": "a sentence with the mark is uᵀz, and so is a product of such; factors "
    "without it leave the sum (z is the mark)",
}

LAWS_OF_STEPS = {
    "outside": ("unit", "return"),
    "products in a sum": ("reroot", "merge", "absorb", "sum", "turn"),
}
"""The laws of marks on which a step of a proof rests; its identities are these."""

_ANY_FRAGMENT = {
    "sums and functions": (
        "§2, citing Geerts: + × f add no power",
        "f is free sort by sort, only where the Hadamard powers can be made",
    )
}
_QUOTES: dict[str, dict[str, tuple[str, str]]] = {
    "L1": {
        **_ANY_FRAGMENT,
        "scalars": (
            "Theorem 4: a scalar only comes from a dot product",
            "the factor is carried along, which covers V_cS, SV_r and products of sentences",
        ),
        "read-out": (
            "Theorem 4: V_c becomes the start variable",
            "the read-out is part of the grammar and named",
        ),
        "matrices": (
            "Theorem 4: MV_c is mandatory, so MM and V_cV_r go by associativity",
            "both actions, m·x and mᵀ·x, are carried",
        ),
    },
    "L3": {
        **_ANY_FRAGMENT,
        "scalars": (
            "Theorem 2: a scalar only comes from a dot product",
            "the factor is carried along, which covers V_cS, SV_r and products of sentences",
        ),
        "read-out": (
            "Theorem 2: V_c becomes the start variable",
            "the read-out is part of the grammar and named",
        ),
        "derivable": ("Theorem 2: diag(v)w = v⊙w", ""),
        "outer products": (
            "Proposition 2, and 'subsequent mandatory operations MM or MV_c'",
            "the use under ⊙ with another outer product is covered too; the paper leaves it out",
        ),
        "rows and transposes": (
            "'the remaining M rules preserve symmetry'",
            "that is false for MM; what holds is (m0m1)ᵀ = m1ᵀm0ᵀ: the set is closed, not each "
            "word",
        ),
    },
}
"""What the paper says of its two exhaustive grammars, step by step, and where we differ."""


def steps(links: Iterable[Link]) -> list[ProofStep]:
    """The steps of a chain of links, in the order in which a proof reads best."""
    chain = list(links)
    quotes = _quotes(chain)
    return [step for link in chain for step in _link_steps(link, quotes)]


def _quotes(chain: list[Link]) -> dict[str, tuple[str, str]]:
    """The paper's sentences where the chain starts from one of the paper's grammars."""
    if not chain:
        return {}
    start = chain[0].smaller if isinstance(chain[0], Lemma) else chain[0].larger
    name = next((n for n in _QUOTES if Fragment(n).exhaustive() == start), None)
    return _QUOTES[name] if name else {}


def _link_steps(link: Link, quotes: dict[str, tuple[str, str]]) -> list[ProofStep]:
    if isinstance(link, Lemma):
        title = "sums and functions"
        return [_step(title, link.removed, (), (), "cited", quotes)]
    if isinstance(link.proof, MarkedProof):
        return _marked_steps(link, link.proof)
    larger, smaller = link.larger.all_rules, link.smaller.all_rules
    removed = [r for r in larger if r not in smaller]
    added = [r for r in smaller if r not in larger]
    groups: dict[str, list[Rule]] = {title: [] for title in _REASONS}
    for rule in removed:
        groups[_title(rule, link)].append(rule)
    homes = {rule: _home(rule, groups) for rule in added}
    return [
        _step(
            title,
            tuple(rules),
            tuple(rule for rule, home in homes.items() if home == title),
            _identities(title, rules, link),
            "checked",
            quotes,
        )
        for title, rules in groups.items()
        if rules
    ]


def _marked_steps(link: Simulation, proof: MarkedProof) -> list[ProofStep]:
    """The rules inside all marks as in any reduction, then those outside, then the sums."""
    kept, depth = link.smaller.all_rules, inside_depth(link.larger)
    inside = Simulation(proof.inside, proof.inside)
    groups: dict[str, list[Rule]] = {title: [] for title in _REASONS}
    plain_rules: dict[str, list[Rule]] = {title: [] for title in _REASONS}
    for rule in (rule for rule in link.larger.all_rules if rule not in kept):
        plain = _unprimed(rule)
        if has_mark_sum(rule.body):
            title = "products in a sum"
        elif rule.head.scope < depth or isinstance(rule.body, Hole):
            title = "outside"
        elif rule.head.plain == S and S in plain.holes:
            title = "products in a sum"
        else:
            title = _title(plain, inside)
            plain_rules[title].append(plain)
        groups[title].append(rule)
    added = [rule for rule in kept if rule not in link.larger.all_rules]
    sums = [rule for rule in added if rule.head.plain == S]
    homes = {rule: _home(Rule(rule.head.plain, rule.body), groups) for rule in added}
    homes |= dict.fromkeys(sums, "products in a sum" if groups["products in a sum"] else "outside")
    return [
        _step(
            title,
            tuple(rules),
            tuple(rule for rule in added if homes[rule] == title),
            _law_identities(proof, LAWS_OF_STEPS[title])
            if title in LAWS_OF_STEPS
            else _identities(title, plain_rules[title], inside),
            "checked",
            {},
        )
        for title, rules in groups.items()
        if rules
    ]


def innermost_names(grammar: Grammar) -> dict[str, str]:
    """From a rule of the proof inside all marks, `M → MM`, to its name there, `M′ → M′M′`."""
    depth = inside_depth(grammar)
    inside = [rule for rule in grammar.all_rules if rule.head.scope == depth]
    return {str(_unprimed(rule)): str(rule) for rule in inside}


def _unprimed(rule: Rule) -> Rule:
    """A rule inside marks as it reads in a grammar without them."""
    return Rule(rule.head.plain, fill(rule.body, [Hole(x.plain) for x in rule.holes]))


def _law_identities(proof: MarkedProof, kinds: tuple[str, ...]) -> tuple[str, ...]:
    shown = (
        f"{w.obligation.term} = {law_text(w)}"
        for w in proof.laws
        if w.obligation.kind in kinds and str(w.obligation.term) != law_text(w)
    )
    return tuple(dict.fromkeys(shown))


def _step(
    title: str,
    removed: tuple[Rule, ...],
    added: tuple[Rule, ...],
    identities: tuple[str, ...],
    status: str,
    quotes: dict[str, tuple[str, str]],
) -> ProofStep:
    paper, ours = quotes.get(title, ("", ""))
    return ProofStep(title, removed, added, _REASONS[title], identities, status, paper, ours)


def _title(rule: Rule, link: Simulation) -> str:
    """Which argument removes a rule."""
    claim = link.proof.claim
    if rule in unused_rules(claim):
        return "unused"
    if S in rule.holes:
        return "scalars"
    if rule.head == S:
        return "read-out"
    if rule.head == M and rule.holes == (V, R) and claim.form != "action":
        same_shape = any(r.head == M and r.holes == (V, V) for r in claim.smaller.rules)
        return "simpler form" if same_shape else "outer products"
    outer = rule.head == M and rule.holes == (V, R)
    rows = R in (rule.head, *rule.holes) or operators(rule.body) == {"transpose"}
    if rows and not outer:
        return "rows and transposes"
    return "matrices" if claim.form == "action" else "derivable"


def _home(rule: Rule, groups: dict[str, list[Rule]]) -> str:
    """The step in which a new rule takes over."""
    wanted = (
        ["read-out", "scalars"] if rule.head == S else ["simpler form", "matrices", "derivable"]
    )
    for title in (*wanted, *groups):
        if groups.get(title):
            return title
    return wanted[0]


def _identities(title: str, rules: list[Rule], link: Simulation) -> tuple[str, ...]:
    """The non-trivial equations behind a step, each once."""
    shown = dict.fromkeys(
        text
        for w in link.proof.witnesses
        if w.obligation.rule in rules
        or (title == "rows and transposes" and w.obligation.kind == "transpose")
        or (title == "outer products" and "vwᵀ" in w.obligation.choice)
        if (text := _identity(w, link.proof.claim.form))
    )
    return tuple(shown)[:MAX_IDENTITIES]


def _identity(witness: SimulationWitness, form: Form) -> str:
    """One equation without the scalars the form carries, or nothing where it says x = x.

    The exact form and the transpose lemma carry none: there a scalar is a word like any other.
    """
    obligation, words = witness.obligation, witness.words
    strict = form == "exact" or obligation.kind == "transpose"
    left = obligation.term if strict else _without_scalars(obligation.term)
    factors = [f for f in witness.factors if not (isinstance(f, Leaf) and f.name[0] == "s")]
    if left is None:
        return ""
    right: Term | None = None
    if len(words) == 2:
        right = words[0] @ words[1].T
    elif words:
        stands_for_row = left.sort == R and words[0].sort == V
        right = words[0].T if stands_for_row else words[0]
    for factor in reversed(factors):
        right = factor if right is None else apply("scale", factor, right)
    return f"{left} = {right}" if right is not None and right != left else ""


def _without_scalars(term: Term) -> Term | None:
    """The term without its factors s0, s1 …; None where nothing else is in it."""
    if isinstance(term, Leaf):
        return None if term.name[0] == "s" else term
    if isinstance(term, Apply):
        args = [arg for arg in map(_without_scalars, term.args) if arg is not None]
        if not args:
            return None
        if len(args) < len(term.args):
            return args[0]
        return Apply(term.op, tuple(args), term.sort, term.function)
    return term
