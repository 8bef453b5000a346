"""Memory of one training step on a large graph, measured in a process of its own."""

import os
import subprocess
import sys

import pytest

from g2n2.compiler.costs import NetworkCost
from g2n2.nn import GrammarGNN
from g2n2.nn.memory_budget import COPIES_BYTES

GIB = 1024**3

STEP = """
import sys
import networkx as nx, torch
from g2n2.data.batch import GraphBatch
from g2n2.nn import GrammarGNN
from peak_memory import peak_bytes
side, marks = int(sys.argv[2]), {"marks": 24} if "Σ" in sys.argv[4] else {}
model = GrammarGNN(
    sys.argv[4], width=32, layers=3, preset=sys.argv[1], backend=sys.argv[3], **marks
)
optimiser = torch.optim.Adam(model.parameters())
model(GraphBatch.of([nx.grid_2d_graph(side, side)])).sum().backward()
optimiser.step()
assert all(bool(torch.isfinite(p).all()) for p in model.parameters())
print(peak_bytes())
"""


def peak(preset, side, backend, grammar="r-G_L3"):
    """Bytes a process took at most for one training step on a square grid."""
    process = subprocess.run(
        [sys.executable, "-c", STEP, preset, str(side), backend, grammar],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return int(process.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["paper", "modern"])
def test_a_grid_of_576_nodes_trains_within_2_5_gib(preset):
    assert peak(preset, 24, "packed") < 2.5 * GIB  # of 6 GiB at 900 nodes


@pytest.mark.slow
def test_more_marked_copies_of_196_nodes_than_are_computed_at_once_train_within_2_gib():
    cost = NetworkCost(GrammarGNN("r-G_L3Σ", width=32).plan, 1, 196)
    assert 24 * cost.activation_bytes() / 196 > COPIES_BYTES, "else all are computed at once"
    assert peak("modern", 14, "packed", "r-G_L3Σ") < 2 * GIB
