"""Every grammar of the paper, and a few beyond it, as literal text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ..errors import DataError, GrammarError
from ..input_files import read_text_file, special_kind
from ..language.patterns import Assumption
from .fragments import NAMED, Fragment, Typing
from .grammar import Grammar, Level
from .rules import ARROWS

TEXTS: dict[str, str] = {
    "G_L1": """
        S → (V_r)(V_c) | diag(S) | SS
        V_c → MV_c | (V_r)ᵀ | V_cS | 1
        V_r → V_rM | (V_c)ᵀ | SV_r
        M → MM | Mᵀ | diag(V_c) | (V_c)(V_r) | A
    """,
    "r-G_L1": "V_c → diag(V_c)V_c | AV_c | 1",
    "G_L3": """
        S → (V_r)(V_c) | diag(S) | SS | (S⊙S)
        V_c → (V_c⊙V_c) | MV_c | (V_r)ᵀ | V_cS | 1
        V_r → (V_r⊙V_r) | V_rM | (V_c)ᵀ | SV_r
        M → (M⊙M) | MM | Mᵀ | diag(V_c) | (V_c)(V_r) | A
    """,
    "i-G_L3": """
        V_c → MV_c | (V_r)ᵀ | 1
        V_r → V_rM | (V_c)ᵀ
        M → (M⊙M) | MM | Mᵀ | diag(V_c) | A
    """,
    "r-G_L3": """
        V_c → MV_c | 1
        M → (M⊙M) | MM | diag(V_c) | A
    """,
    "r-G_L3 ∪ {Mᵀ}": """
        V_c → MV_c | 1
        M → (M⊙M) | MM | Mᵀ | diag(V_c) | A
    """,
    "r-G_L3 ∖ {M⊙M}": """
        V_c → MV_c | 1
        M → MM | diag(V_c) | A
    """,
    "r-G_L3 ∖ {MM}": """
        V_c → MV_c | 1
        M → (M⊙M) | diag(V_c) | A
    """,
    "r-G_L3 ∖ {diag(V_c)}": """
        V_c → MV_c | 1
        M → (M⊙M) | MM | A
    """,
    "r-G_L3 ∖ {diag(V_c)} ∪ {I}": """
        V_c → MV_c | 1
        M → (M⊙M) | MM | I | A
    """,
    "r-G_L3 ∖ {MV_c}": """
        V_c → 1
        M → (M⊙M) | MM | diag(V_c) | A
    """,
    "four-rule": "M → (M⊙M) | MM | I | A",
    "GCN": """
        V_c → CV_c | 1
        C = diag(inv(sqrt((A + I)1)))(A + I)diag(inv(sqrt((A + I)1)))
    """,
    "GNNML1": "V_c → (V_c⊙V_c) | AV_c | 1",
    "PPGN": "M → MM | diag(1) | A",
    "2-IGN (as printed)": """
        M → V_c1ᵀ | (M⊙J) | (M⊙I) | A
        V_c → MV_c | 1
    """,
    "2-IGN": """
        M → V_c1ᵀ | 1V_cᵀ | Mᵀ | (M⊙J) | (M⊙I) | A
        V_c → MV_c | 1
    """,
    "TriMul": "M → MMᵀ | MᵀM | A",
}

MARKED_TEXTS: dict[str, str] = {
    "r-G_L1Σ": "V_c′ → diag(V_c′)V_c′ | AV_c′ | 1 | v",
    "r-G_L3Σ": """
        V_c′ → M′V_c′ | 1 | v
        M′ → (M′⊙M′) | M′M′ | diag(V_c′) | A
    """,
    "r-G_L1ΣΣ": """
        V_c″ → diag(V_c″)V_c″ | AV_c″ | 1 | u | v
        S′ → Σv. 1ᵀV_c″ | S′S′
        S → Σu. S′
    """,
    "r-G_L3ΣΣ": """
        V_c″ → M″V_c″ | 1 | u | v
        M″ → (M″⊙M″) | M″M″ | diag(V_c″) | A
        S′ → Σv. 1ᵀV_c″ | S′S′
        S → Σu. S′
    """,
    "L3Σ (full)": """
        V_c → MV_c | 1 | Σv. V_c′
        M → (M⊙M) | MM | diag(V_c) | A | Σv. M′ | Σv. V_c′V_c′ᵀ
        V_c′ → M′V_c′ | v | V_c
        M′ → (M′⊙M′) | M′M′ | diag(V_c′) | M
    """,
}

POSITION_TEXTS: dict[str, str] = {
    "r-G_L3+D": """
        V_c → MV_c | 1
        M → (M⊙M) | MM | diag(V_c) | A
        S → 1ᵀV_c | V_cᵀDV_c | V_cᵀCV_c | 1ᵀ(C⊙I)V_c
        C = −1/2×(I − inv(1ᵀ1)×(1·1ᵀ))D(I − inv(1ᵀ1)×(1·1ᵀ))
    """,
}
"""Grammars that name D, the squared distances between nodes with positions."""

NOTES: dict[str, str] = {
    "G_L1": "exhaustive, 1-WL; appendix A.1",
    "r-G_L1": "reduced, 1-WL; Theorem 4",
    "G_L3": "exhaustive, 3-WL; Theorem 1",
    "i-G_L3": "on the way from G_L3 to r-G_L3",
    "r-G_L3": "reduced, 3-WL; Theorem 2; the grammar of G²N²",
    "r-G_L3 ∪ {Mᵀ}": "with the transpose back; Q1",
    "r-G_L3 ∖ {M⊙M}": "ablation; Q1",
    "r-G_L3 ∖ {MM}": "ablation; Q1",
    "r-G_L3 ∖ {diag(V_c)}": "ablation; Q1",
    "r-G_L3 ∖ {diag(V_c)} ∪ {I}": "the same ablation with I kept; Q1",
    "r-G_L3 ∖ {MV_c}": "ablation; Q1",
    "four-rule": "as strong as r-G_L3 on simple graphs; not in the paper",
    "GCN": "Kipf and Welling; appendix A.3",
    "GNNML1": "1-WL; appendix A.3",
    "PPGN": "Maron et al.; 3-WL with f, below it as a language",
    "2-IGN (as printed)": "cannot make 1vᵀ or Nᵀ; appendix A.3",
    "2-IGN": "corrected: reaches all fifteen basis operators",
    "TriMul": "AlphaFold's triangle multiplicative update; not in the paper",
    "r-G_L1Σ": "one mark over L1, pooled; not in the paper",
    "r-G_L3Σ": "one mark over L3, pooled: beyond 3-WL; not in the paper",
    "r-G_L1ΣΣ": "two marks over L1, nested: beyond 3-WL; not in the paper",
    "r-G_L3ΣΣ": "two marks over L3, nested; not in the paper",
    "L3Σ (full)": "one mark over L3, sums of every sort; not in the paper",
    "r-G_L3+D": "r-G_L3 with moments of learned charges as sentences; needs positions",
    "MPNN-k": "message passing with k supports C_1 … C_k, for any k",
    "GNNML3-k": "GNNML3 with k supports, for any k",
}

_ALIASES = {"g2n2": "r-G_L3", "rgl3mt": "r-G_L3 ∪ {Mᵀ}", "2ignprinted": "2-IGN (as printed)"}
_FAMILIES = {
    "MPNN": "V_c → {products} | 1",
    "GNNML3": "V_c → {products} | (V_c⊙V_c) | 1",
}


def catalogue(marks: bool = False, positions: bool = False) -> dict[str, Grammar]:
    """All named grammars, the two families with three supports each.

    Those with marks, and those that name the squared distances D, only where they are asked for.

    >>> from g2n2 import catalogue
    >>> print(catalogue()["GNNML1"])
    V_c → (V_c⊙V_c) | AV_c | 1
    S → 1ᵀV_c
    """
    texts = TEXTS | (MARKED_TEXTS if marks else {}) | (POSITION_TEXTS if positions else {})
    named = {name: Grammar.parse(text, name) for name, text in texts.items()}
    return named | {f"{family}-3": _family(family, 3) for family in _FAMILIES}


def find_grammar(text: str) -> Grammar:
    """A grammar from its name, a printed name, a fragment, its own rules, or a file of them.

    A fragment stands for its exhaustive grammar (L3 is G_L3), and so does the printed name
    `G_{·, Tr}`; `r-G_{·, Tr}` is derived anew.

    >>> from g2n2 import find_grammar
    >>> find_grammar("g2n2").name, len(find_grammar("V → AV | 1").rules)
    ('r-G_L3', 2)

    Raises:
        GrammarError: No such grammar; the message lists the names and the nearest ones.
    """
    if any(arrow in text for arrow in ARROWS):
        base, sign, rest = set_expression(text)
        if sign:
            grammar = find_grammar(base)
            return grammar | rest if sign in "|∪+" else grammar - rest
        return given_rules(text)
    if not text.strip():
        raise GrammarError(f"no grammar is named; {_known()}")
    named = named_grammar(text)
    if named is not None:
        return named
    if (printed := printed_name(text)) is not None:
        return printed.grammar()
    if (listed := _listed_fragment(text)) is not None:
        return listed.exhaustive()
    if (rules := file_text(text)) is not None:
        return Grammar.parse(without_braces(rules), Path(text).stem)
    if "/" in text or Path(text).suffix in (".json", ".txt"):
        raise GrammarError(f"there is no file {text!r}, and no grammar is called so; {_known()}")
    names = [
        *TEXTS,
        *MARKED_TEXTS,
        *POSITION_TEXTS,
        "MPNN-k",
        "GNNML3-k",
        "1-WL",
        "2-WL",
        "3-WL",
        "4-WL",
        "2-FWL",
    ]
    by_plain = {_plain(name): name for name in names}
    near = [by_plain[n] for n in get_close_matches(_plain(text), by_plain, n=3, cutoff=0.6)]
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise GrammarError(f"no grammar is called {text[:60]!r}; {hint}{_known()}")


def given_rules(text: str) -> Grammar:
    """The grammar of these rules, which are its name too; one pair of braces may stand around."""
    grammar = Grammar.parse(without_braces(text))
    return grammar.named(grammar.in_short)


def without_braces(text: str) -> str:
    """Rules without the one pair of braces of the name that stands for them."""
    if (whole := re.fullmatch(r"\s*\{([^{}]*)\}\s*", text)) is None:
        return text
    if whole[1].rstrip().endswith("…"):
        raise GrammarError(
            f"{text.strip()!r} ends in …, where the name of a grammar leaves out rules: give them "
            "all"
        )
    return whole[1]


def named_grammar(text: str) -> Grammar | None:
    """The grammar of the catalogue with that name; every sign of the text has to be part of it."""
    wanted = _plain(text)
    if wanted in _ALIASES:
        return find_grammar(_ALIASES[wanted])
    for name, rules in (TEXTS | MARKED_TEXTS | POSITION_TEXTS).items():
        plain = _plain(name)
        if wanted in (plain, re.sub(r"[{}]", "", plain), re.sub(r"[(){}]", "", plain)):
            return Grammar.parse(rules, name)
    if m := re.fullmatch(r"(mpnn|gnnml3)k?([0-9]{1,2})?", wanted):
        return _family(m[1].upper(), int(m[2] or 3))
    return None


def _known() -> str:
    names = ", ".join([*TEXTS, *MARKED_TEXTS, *POSITION_TEXTS, "MPNN-k", "GNNML3-k"])
    return (
        f"known: {names}. Or give the rules themselves, for instance 'V → AV | 1', "
        "or operations, for instance '· ᵀ 1 ⊙'."
    )


@dataclass(frozen=True)
class PrintedName:
    """What a name such as `r-G_{·, Tr}` says."""

    fragment: Fragment  # the operations
    typing: Typing = "paper"  # which rules the exhaustive grammar has
    reduced: bool = False  # whether it is that of a reduced grammar
    assume: Assumption = "symmetric"  # what the reduction knows of A
    level: Level = "graph"  # whose outputs it compares

    def grammar(self) -> Grammar:
        """The grammar of that name, reduced anew."""
        every = self.fragment.exhaustive(self.typing)
        if not self.reduced:
            return every
        reduced = every.reduce(assume=self.assume, level=self.level, alternatives=False).reduced
        name = reduced_name(every.name, self.assume, self.level)
        return reduced if reduced == every else reduced.named(name)


_ASSUMED: dict[Assumption, str] = {
    "symmetric": "",
    "none": " for directed graphs",
    "simple": " for simple graphs",
}
_LEVELS: dict[Level, str] = {"graph": "", "node": " at node level", "pair": " at pair level"}


def reduced_name(name: str, assume: Assumption, level: Level) -> str:
    """What a reduced grammar is called: for another A or level it is another grammar."""
    return f"r-{name}{_ASSUMED[assume]}{_LEVELS[level]}"


def printed_name(text: str) -> PrintedName | None:
    """What a printed name says; None where the text is no such name."""
    rest = text.strip()
    level: Level = "graph"
    assume: Assumption = "symmetric"
    for named_level, end in _LEVELS.items():
        if end and rest.endswith(end):
            level, rest = named_level, rest.removesuffix(end)
    for what, end in _ASSUMED.items():
        if end and rest.endswith(end):
            assume, rest = what, rest.removesuffix(end)
    m = re.fullmatch(rf"(r-)?G_\s*(\{{[^{{}}]*\}}|{'|'.join(NAMED)})(\s*\(full typing\))?", rest)
    if m is None or (rest != text.strip() and not m[1]):
        return None
    typing: Typing = "full" if m[3] else "paper"
    return PrintedName(Fragment.parse(m[2]), typing, bool(m[1]), assume, level)


def fragment_of(text: str) -> Fragment | None:
    """The fragment where `find_grammar` takes a text for one; None where it is something else."""
    rules = any(arrow in text for arrow in ARROWS)
    if rules or not text.strip() or named_grammar(text) or printed_name(text):
        return None
    return _listed_fragment(text)


def _listed_fragment(text: str) -> Fragment | None:
    """The fragment a text lists; it means to by a comma, a brace or one known operation."""
    if any(sign in text for sign in "∪∖\\") or "G_" in text:  # a changed grammar's name
        return None
    try:
        return Fragment.parse(text)
    except GrammarError:
        words = [word for word in re.split(r"[\s,;{}()]+", text) if word]
        meant = any(sign in text for sign in ",{") or any(map(_is_operation, words))
        if meant and file_text(text) is None:
            raise
        return None


def _is_operation(word: str) -> bool:
    try:
        return bool(Fragment.parse(word).operations)
    except GrammarError:
        return False


def file_text(name: str) -> str | None:
    """What a file holds, or None where there is no such file or the system refuses the name."""
    if kind := special_kind(name):
        if kind == "a folder":
            return None
        raise GrammarError(f"{name} is {kind}: save the grammar to a file, and name that")
    try:
        if not Path(name).is_file():
            return None
    except OSError:
        return None
    try:
        return read_text_file(name, "a grammar is written `V → AV | 1`")
    except DataError as fault:
        raise GrammarError(str(fault)) from None


def set_expression(text: str) -> tuple[str, str, str]:
    """Split `r-G_L3 ∪ M → Mᵀ` into grammar, sign and rules; empty where it is no such text."""
    m = re.fullmatch(
        r"\s*([^→|]+?)\s+([|∪+∖\\-])\s*\{?\s*((?:S|V\w*|V_[cr]|R|M)[′″']*\s*(?:→|->).+?)\}?\s*",
        text,
    )
    return (m[1], m[2], m[3]) if m else ("", "", "")


def _family(family: str, supports: int) -> Grammar:
    if not 1 <= supports <= 99:
        raise GrammarError(f"{family}-k takes 1 to 99 supports, got {supports}")
    products = " | ".join(f"C_{i}V_c" for i in range(1, supports + 1))
    return Grammar.parse(_FAMILIES[family].format(products=products), f"{family}-{supports}")


def _plain(name: str) -> str:
    """A name without case, spaces, hyphens and underscores, set signs spelt one way.

    Nothing else is dropped, so that a name with a sign too many is nobody's name.
    """
    name = re.sub(r"\s[-−]\s*(?=\{)", "∖", name)  # r-G_L3 - {MM}
    name = re.sub(r"\s\+\s*(?=\{)", "∪", name).replace("\\", "∖")
    plain = unicodedata.normalize("NFKC", name).casefold()  # σ and ς are one letter
    return re.sub(r"[\s_\-‐‑–]", "", plain).replace("mark", "σ").replace("∑", "σ")
