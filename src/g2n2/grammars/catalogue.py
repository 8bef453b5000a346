"""Every grammar of the paper, and a few beyond it, as literal text."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from ..errors import GrammarError
from .fragments import Fragment
from .grammar import Grammar
from .rules import ARROWS

GIVEN = "given"
"""The name of a grammar that comes as its own text."""

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
    "MPNN-k": "message passing with k supports C_1 … C_k, for any k",
    "GNNML3-k": "GNNML3 with k supports, for any k",
}

_ALIASES = {"g2n2": "r-G_L3", "rgl3mt": "r-G_L3 ∪ {Mᵀ}", "2ignprinted": "2-IGN (as printed)"}
_FAMILIES = {
    "MPNN": "V_c → {products} | 1",
    "GNNML3": "V_c → {products} | (V_c⊙V_c) | 1",
}


def catalogue() -> dict[str, Grammar]:
    """All named grammars, the two families with three supports each.

    >>> print(catalogue()["GNNML1"])
    V_c → (V_c⊙V_c) | AV_c | 1
    S → 1ᵀV_c
    """
    named = {name: Grammar.parse(text, name) for name, text in TEXTS.items()}
    return named | {f"{family}-3": _family(family, 3) for family in _FAMILIES}


def find_grammar(text: str) -> Grammar:
    """A grammar from its name, a fragment's name (L3 is G_L3), its own text, or a file of it.

    >>> find_grammar("g2n2").name, len(find_grammar("V → AV | 1").rules)
    ('r-G_L3', 2)

    Raises:
        GrammarError: No such grammar; the message lists the names and the nearest one.
    """
    if any(arrow in text for arrow in ARROWS):
        base, sign, rest = _set_expression(text)
        if sign:
            grammar = find_grammar(base)
            return grammar | rest if sign in "|∪+" else grammar - rest
        return Grammar.parse(text, GIVEN)
    wanted = _plain(text)
    if wanted in _ALIASES:
        return find_grammar(_ALIASES[wanted])
    for name in TEXTS:
        if _plain(name) == wanted:
            return Grammar.parse(TEXTS[name], name)
    if m := re.fullmatch(r"(mpnn|gnnml3)k?(\d{1,2})?", wanted):
        return _family(m[1].upper(), int(m[2] or 3))
    if _is_fragment(text):
        return Fragment.parse(text).exhaustive()
    if (rules := _file_text(text)) is not None:
        return Grammar.parse(rules, Path(text).stem)
    names = [*TEXTS, "MPNN-k", "GNNML3-k"]
    close = get_close_matches(wanted, [_plain(n) for n in names], n=1, cutoff=0.5)
    near = next((n for n in names if close and _plain(n) == close[0]), None)
    hint = f"did you mean {near}? " if near else ""
    raise GrammarError(
        f"no grammar is called {text[:60]!r}; {hint}Known: {', '.join(names)}. "
        "Or give the rules themselves, for instance 'V → AV | 1'."
    )


def _is_fragment(text: str) -> bool:
    """Whether the text lists operations; one with a comma or brace means to, even misspelt."""
    if "," in text or "{" in text:
        return True
    try:
        return bool(Fragment.parse(text).operations)
    except GrammarError:
        return False


def _file_text(name: str) -> str | None:
    """What a file holds, or None where there is no such file or the system refuses the name."""
    try:
        return Path(name).read_text(encoding="utf-8-sig") if Path(name).is_file() else None
    except UnicodeDecodeError:
        raise GrammarError(f"{name} is not text; a grammar is written `V → AV | 1`") from None
    except OSError:
        return None


def _set_expression(text: str) -> tuple[str, str, str]:
    """Split `r-G_L3 ∪ M → Mᵀ` into grammar, sign and rules; empty where it is no such text."""
    m = re.fullmatch(
        r"\s*([^→|]+?)\s+([|∪+∖\\-])\s*\{?\s*((?:S|V\w*|V_[cr]|R|M)\s*(?:→|->).+?)\}?\s*", text
    )
    return (m[1], m[2], m[3]) if m else ("", "", "")


def _family(family: str, supports: int) -> Grammar:
    if not 1 <= supports <= 99:
        raise GrammarError(f"{family}-k takes 1 to 99 supports, got {supports}")
    products = " | ".join(f"C_{i}V_c" for i in range(1, supports + 1))
    return Grammar.parse(_FAMILIES[family].format(products=products), f"{family}-{supports}")


def _plain(name: str) -> str:
    """A name without case, punctuation or the two spellings of set signs."""
    name = (
        name.replace("∪", "plus").replace("∖", "minus").replace("\\", "minus").replace("⊙", "had")
    )
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("ᵀ", "t").replace("²", "2"))
