"""The registry: what the floors are, and what a user may ask for."""

import subprocess
import sys

import pytest

from g2n2.bench.cases import CASES, GROUPS, Floor, cases_for
from g2n2.errors import DataError

GIB = 1024**3
FLOORS = {
    "train-32-bf16": ("graphs_per_second", 50_000, False),
    "train-128-bf16": ("graphs_per_second", 100_000, False),
    "train-512-bf16": ("graphs_per_second", 150_000, False),
    "train-128-tf32": ("graphs_per_second", 50_000, False),
    "qm9-epoch": ("epoch_seconds", 1.5, True),
    "infer-2048-bf16": ("graphs_per_second", 500_000, False),
    "large-900": ("peak_bytes", 6 * GIB, True),
    "large-4000": ("peak_bytes", 80 * GIB, True),
    "cpu-train-32": ("× block-diagonal", 8, False),
    "cpu-infer-32": ("× block-diagonal", 8, False),
}


@pytest.mark.parametrize("name", FLOORS)
def test_every_floor_has_a_case_of_that_shape(name):
    case = next(case for case in CASES if case.name == name)
    assert case.floor == Floor(*FLOORS[name])
    assert case.layers == 3
    assert case.width == (32 if name.startswith("large") else 64)
    if name[-1].isdigit() or name.endswith(("bf16", "tf32")):
        asked = [int(part) for part in name.split("-") if part.isdecimal()]
        assert asked == [case.nodes or case.batch]
    assert case.kind == {"infer": "infer", "qm9": "epoch"}.get(
        name.removeprefix("cpu-").split("-")[0], "train"
    )


def test_a_name_means_one_case_and_no_group():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert not set(names) & set(GROUPS)


def test_the_tables_reach_as_far_as_they_should():
    ends = {}
    for group in ("nodes", "batch", "width"):
        values = [getattr(case, group) for case in CASES if case.group == group]
        assert values == sorted(values)
        ends[group] = (values[0], values[-1])
    assert ends == {"nodes": (10, 4000), "batch": (1, 4096), "width": (16, 256)}
    assert [c.nodes for c in CASES if c.group == "product"] == [18, 64, 128, 256, 512, 1024]


def test_a_floor_can_be_a_bound_from_either_side():
    assert Floor("graphs_per_second", 10).met(10)
    assert not Floor("graphs_per_second", 10).met(9.9)
    assert Floor("epoch_seconds", 1.5, at_most=True).met(1.4)
    assert not Floor("epoch_seconds", 1.5, at_most=True).met(1.6)


def test_a_cpu_computes_in_32_bits_and_leaves_out_what_needs_a_gpu():
    cases = cases_for("cpu")
    assert {case.precision for case in cases} == {"32"}
    assert {case.group for case in cases} == {"large", "cpu", "nodes", "batch", "width"}
    assert "large-4000" not in {case.name for case in cases}


def test_a_group_and_a_case_can_be_asked_for_together():
    names = [case.name for case in cases_for("cuda", ["width", "train-32-bf16"])]
    assert names == ["train-32-bf16", *(f"width-{w}" for w in (16, 32, 64, 128, 256))]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [("trainin", "did you mean training"), ("train-32-bf16", "runs on cuda, and this is cpu")],
)
def test_what_cannot_be_measured_is_refused_in_words(wanted, said):
    with pytest.raises(DataError, match=said):
        cases_for("cpu", [wanted])


def test_quick_cases_are_small():
    for case in CASES:
        small = case.quick()
        assert (small.batch, small.width, small.nodes) <= (4, 8, 16)


def test_the_registry_needs_no_torch():
    code = (
        "import sys; from g2n2.bench import cases, molecules, work, results, tables, pages; "
        "molecules.drawn_molecules(5); print('torch' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "False"
