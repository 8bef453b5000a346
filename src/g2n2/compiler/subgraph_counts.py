"""Ready formulas: counts of small subgraphs and powers of Laplacians, as words over A, 1 and I.

A count is of subgraphs, not necessarily induced, each once, in simple graphs. It is a linear
combination of sentences of r-G_L3 exactly if every homomorphic image of the subgraph has treewidth
at most 2: cycles up to C₇ and paths of up to 7 vertices, but not K₄, C₈ or the path of 8.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import combinations

import networkx as nx

from ..errors import LoweringError
from ..language.parsing import parse
from ..language.terms import ONE, Term, power
from .homomorphisms import automorphisms, homomorphisms, images, product_of

MOST_VERTICES = 9
"""The patterns tried have at most as many partitions as the ninth Bell number, 21,147."""

LAPLACIAN = "diag(A1) − A"
NORMALISED_LAPLACIAN = "diag(inv(sqrt(A1)))(diag(A1) − A)diag(inv(sqrt(A1)))"
"""Zero in the rows of isolated nodes, for inv(0) = 0."""


def subgraph_count(pattern: nx.Graph, induced: bool = False) -> Term:
    """The sentence that counts the subgraphs isomorphic to a connected pattern, each once.

    Args:
        pattern: A simple graph, such as `nx.cycle_graph(6)`.
        induced: Count induced subgraphs only, which works up to three vertices.

    Raises:
        LoweringError: No sentence of r-G_L3 counts it; the message says why.
    """
    _check(pattern)
    total: dict[nx.Graph, Fraction] = {}
    for sign, larger in _supergraphs(pattern) if induced else [(1, pattern)]:
        for image, count in images(larger):
            total[image] = total.get(image, Fraction(0)) + sign * count
    copies = automorphisms(pattern)
    return _sentence([(image, x / copies) for image, x in total.items()], pattern, induced)


def _sentence(parts: list[tuple[nx.Graph, Fraction]], pattern: nx.Graph, induced: bool) -> Term:
    """`Σ number × (1ᵀ column)`."""
    sentences = []
    for image, number in parts:
        column = homomorphisms(image)
        if column is None:
            raise LoweringError(_beyond(pattern, image, induced))
        sentences.append(number * product_of([ONE.T, column]))
    return reduce(lambda a, b: a + b, sentences)


def _supergraphs(pattern: nx.Graph) -> list[tuple[int, nx.Graph]]:
    """Inclusion and exclusion over the edges a pattern lacks."""
    lacking = list(nx.complement(pattern).edges)
    found = []
    for count in range(len(lacking) + 1):
        for extra in combinations(lacking, count):
            larger = pattern.copy()
            larger.add_edges_from(extra)
            found.append(((-1) ** count, larger))
    return found


def _check(pattern: nx.Graph) -> None:
    size = pattern.number_of_nodes()
    if not 1 <= size <= MOST_VERTICES:
        raise LoweringError(f"a pattern has 1 to {MOST_VERTICES} vertices, got {size}")
    if pattern.is_directed() or nx.number_of_selfloops(pattern):
        raise LoweringError("a pattern is a simple undirected graph, without loops")
    if not nx.is_connected(pattern):
        raise LoweringError(
            "the pattern is not connected: its count needs products of sentences, which r-G_L3 "
            "does not have; count its parts apart"
        )


def _beyond(pattern: nx.Graph, image: nx.Graph, induced: bool) -> str:
    size, edges = image.number_of_nodes(), image.number_of_edges()
    shown = f"K{size}" if edges == size * (size - 1) // 2 else f"{size} vertices, {edges} edges"
    whose = (
        "induced counts subtract those of every denser pattern, among whose images"
        if induced
        else "among the pattern's homomorphic images"
    )
    return (
        f"no sentence of r-G_L3 counts this pattern of {pattern.number_of_nodes()} vertices and "
        f"{pattern.number_of_edges()} edges: {whose} is one of treewidth 3 or more ({shown}), and "
        "3-WL sees treewidth 2 only"
    )


def laplacian_power(exponent: int, normalised: bool = False) -> Term:
    """`(diag(A1) − A)^k`; the normalised one needs the degrees as `domain=` to be written."""
    if exponent < 1:
        raise LoweringError(f"the power of a Laplacian is at least 1, got {exponent}; L⁰ is I")
    return power(parse(NORMALISED_LAPLACIAN if normalised else LAPLACIAN), exponent)


def _diamond() -> nx.Graph:
    return nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])


FORMULAS: dict[str, Callable[[], Term]] = {
    **{f"C{k}": lambda k=k: subgraph_count(nx.cycle_graph(k)) for k in range(3, 8)},  # type: ignore[misc]
    **{f"P{k}": lambda k=k: subgraph_count(nx.path_graph(k)) for k in range(2, 8)},  # type: ignore[misc]
    **{f"star {k}": lambda k=k: subgraph_count(nx.star_graph(k)) for k in range(2, 7)},  # type: ignore[misc]
    "tailed triangle": lambda: subgraph_count(nx.lollipop_graph(3, 1)),
    "chordal cycle": lambda: subgraph_count(_diamond()),
    "Laplacian": lambda: laplacian_power(1),
    "normalised Laplacian": lambda: laplacian_power(1, normalised=True),
}
"""Formulas by name: Ck a cycle and Pk a path of k vertices, `star k` one of k leaves."""


@lru_cache(maxsize=64)
def formula(name: str) -> Term:
    """A formula of FORMULAS by its name; `Laplacian^3` is a power.

    >>> from g2n2 import evaluate, formula
    >>> float(evaluate(formula("C4"), "D~{")[0, 0])  # cycles of length 4 in K5
    15.0

    Raises:
        LoweringError: There is none of that name, or it is out of reach (K4, C8, P8).
    """
    wanted = name.strip()
    if wanted in FORMULAS:
        return FORMULAS[wanted]()
    if m := re.fullmatch(r"(normalised )?Laplacian ?\^ ?(\d{1,2})", wanted):
        return laplacian_power(int(m[2]), normalised=bool(m[1]))
    makers = {"C": nx.cycle_graph, "P": nx.path_graph, "K": nx.complete_graph}
    makers["star "] = nx.star_graph
    if (m := re.fullmatch(r"(C|P|K|star )(\d{1,3})", wanted)) and int(m[2]) > (m[1] == "C") * 2:
        return subgraph_count(makers[m[1]](int(m[2])))
    raise LoweringError(
        f"no formula is called {name!r}; known: {', '.join(FORMULAS)}, Laplacian^k, "
        "normalised Laplacian^k"
    )
