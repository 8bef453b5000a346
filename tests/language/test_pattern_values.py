"""Patterns evaluated modulo a prime against the reference interpreter."""

from random import Random

import numpy as np
import pytest

from g2n2.language.evaluation import evaluate_mod
from g2n2.language.modular import PRIMES
from g2n2.language.pattern_values import evaluate, joint_size
from g2n2.language.patterns import Edge, Pattern, normal_form
from g2n2.language.terms import FREE_VARIABLES
from strategies import LINEAR_TERMS, random_inputs, random_terms

PRIME = PRIMES[0]


def as_stack(value, sort_boundary):
    """One graph's integers as residues `[1, 1] + [n] * axes`."""
    array = np.array([int(x) % PRIME for x in np.ravel(value)], dtype=np.float64)
    nodes = round(len(array) ** (1 / sort_boundary)) if sort_boundary else 1
    return array.reshape(1, 1, *(nodes,) * sort_boundary)


@pytest.mark.parametrize("seed", range(6))
def test_terms_have_the_values_of_the_interpreter(seed):
    rng = Random(seed)
    for term in random_terms(seed, 40, LINEAR_TERMS, 8):
        nodes = rng.randint(1, 5)
        adjacency, variables = random_inputs(rng, nodes, "none")
        values = {"A": as_stack(adjacency, 2)} | {
            name: as_stack(variables[name], leaf.sort.boundary)
            for name, leaf in FREE_VARIABLES.items()
        }
        form = tuple(normal_form(term, "none").items())
        found = evaluate(form, term.sort.boundary, values, nodes, 1, PRIME)
        expected = evaluate_mod(term, adjacency, PRIME, variables)
        assert [int(x) for x in found.ravel()] == [int(x) for x in expected.ravel()], str(term)


def test_patterns_beyond_matrix_products():
    rng = np.random.default_rng(0)
    values = {name: rng.integers(0, PRIME, (3, 2, 4, 4)).astype(float) for name in "xyzuvw"}
    integers = {name: value.astype(np.int64).astype(object) for name, value in values.items()}
    # The complete graph on four vertices, one of them on the boundary: no two-factor step at first.
    ends = dict(zip("xyzuvw", [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], strict=True))
    pattern = Pattern(4, tuple(Edge(name, False, pair) for name, pair in ends.items()), (2,))
    found = evaluate([(pattern, 1)], 1, values, 4, 2, PRIME)
    expected = np.zeros((3, 2, 4), dtype=object)
    for a, b, c, d in np.ndindex(4, 4, 4, 4):
        index = {0: a, 1: b, 2: c, 3: d}
        term = 1
        for name, (i, j) in ends.items():
            term = term * integers[name][:, :, index[i], index[j]]
        expected[:, :, c] += term
    assert (found.astype(np.int64) == expected % PRIME).all()
    assert joint_size([(pattern, 1)]) == 4


def test_a_vertex_at_two_boundary_positions_is_a_diagonal():
    values = {"v": np.arange(1.0, 4.0).reshape(1, 1, 3)}
    pattern = Pattern(1, (Edge("v", False, (0,)),), (0, 0))
    assert np.array_equal(
        evaluate([(pattern, 1)], 2, values, 3, 1, PRIME)[0, 0], np.diag([1, 2, 3])
    )
