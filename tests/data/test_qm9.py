"""QM9 as a GraphSet: literal molecules, features, units, options."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from g2n2.data import qm9_build
from g2n2.data.graph_set import GraphSet
from g2n2.data.qm9 import build_qm9, find_target, load_qm9, read_cache
from g2n2.errors import DataError

pytest.importorskip("rdkit", reason="rdkit is not installed")

METHANE, AMMONIA, ETHYNE, FORMALDEHYDE, METHANOL = 0, 1, 3, 5, 7
BENZENE = 208  # gdb_214


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory, qm9pack: Path) -> Path:
    """The first 300 molecules."""
    path = tmp_path_factory.mktemp("qm9") / "first.cache"
    build_qm9(path, rows=300, processes=1, progress=False)
    return path


def bond_sums(graphs: GraphSet, index: int) -> list[float]:
    """Single, double, triple, aromatic bonds of one molecule."""
    span = slice(*graphs.edge_offsets[index : index + 2])
    return [float(count) / 2 for count in graphs.edge_features[span].sum(axis=0)]


def test_methane_is_methane(cache: Path) -> None:
    graphs = load_qm9(track="distance", cache=cache).check()
    assert graphs.ids[METHANE] == "gdb_1"
    assert graphs.sizes[METHANE] == 5
    assert graphs.adjacency(METHANE).sum(axis=0).tolist() == [4, 1, 1, 1, 1]
    # μ 0 D, α 13.21, HOMO −0.3877 … U0 −40.47893 Ha … Cv 6.469, as the raw file states.
    expected = [
        0, 13.21, -0.3877, 0.1171, 0.5048, 35.3641, 0.044749,
        -40.47893, -40.476062, -40.475117, -40.498597, 6.469,
    ]  # fmt: skip
    assert graphs.targets[METHANE].tolist() == expected
    assert graphs.positions is not None
    exact = [
        [-0.0126981359, 1.0858041578, 0.0080009958],
        [0.002150416, -0.0060313176, 0.0019761204],
    ]
    np.testing.assert_allclose(graphs.positions[:2], exact, rtol=0, atol=6e-6)


@pytest.mark.parametrize(
    ("features", "index", "expected"),
    [
        ("pyg", METHANE, [4, 0, 0, 0]),
        ("pyg", AMMONIA, [3, 0, 0, 0]),
        ("pyg", ETHYNE, [2, 0, 1, 0]),
        ("pyg", FORMALDEHYDE, [2, 1, 0, 0]),
        ("pyg", METHANOL, [5, 0, 0, 0]),
        ("pyg", BENZENE, [9, 3, 0, 0]),
        ("sanitized", BENZENE, [6, 0, 0, 6]),
        ("ppgn", BENZENE, [6, 0, 0, 6]),
    ],
)
def test_bonds_of_known_molecules(
    cache: Path, features: str, index: int, expected: list[int]
) -> None:
    assert bond_sums(load_qm9(features, cache=cache), index) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("features", "index", "expected"),
    [
        # one-hot H C N O F, Z, aromatic, sp, sp2, sp3, hydrogens (, donor, acceptor)
        ("pyg", METHANE, [0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 4]),
        ("sanitized", METHANE, [0, 1, 0, 0, 0, 6, 0, 0, 0, 1, 4]),
        ("sanitized", ETHYNE, [0, 1, 0, 0, 0, 6, 0, 1, 0, 0, 1]),
        ("pyg", BENZENE, [0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 1]),
        ("sanitized", BENZENE, [0, 1, 0, 0, 0, 6, 1, 0, 1, 0, 1]),
        ("ppgn", AMMONIA, [0, 0, 1, 0, 0, 7, 0, 0, 0, 1, 3, 1, 0]),
        ("ppgn", METHANE, [0, 1, 0, 0, 0, 6, 0, 0, 0, 1, 4, 0, 0]),
    ],
)
def test_first_atom_of_known_molecules(
    cache: Path, features: str, index: int, expected: list[int]
) -> None:
    graphs = load_qm9(features, cache=cache)  # type: ignore[arg-type]
    assert graphs.node_features[graphs.node_offsets[index]].tolist() == expected
    assert len(graphs.node_names) == len(expected)


def test_the_oxygen_of_an_alcohol_gives_and_takes_that_of_a_carbonyl_only_takes(
    cache: Path,
) -> None:
    graphs = load_qm9("ppgn", cache=cache)
    for index, expected in ((METHANOL, [1, 1]), (FORMALDEHYDE, [0, 1])):
        atoms = graphs.node_features[slice(*graphs.node_offsets[index : index + 2])]
        oxygen = atoms[atoms[:, 3] == 1]
        assert oxygen[:, 11:].tolist() == [expected]
        assert atoms[atoms[:, 3] == 0, 11:].sum() == 0


def test_tracks_are_named_and_differ_by_geometry(cache: Path) -> None:
    bonds, distance = (load_qm9(track=track, cache=cache) for track in ("bonds", "distance"))
    assert (bonds.name, distance.name) == ("QM9 (bonds)", "QM9 (distance)")
    assert (bonds.source["track"], distance.source["track"]) == ("bonds", "distance")
    assert bonds.positions is None
    assert distance.positions is not None
    assert not bonds.directed
    assert any("300 of 130,831" in note for note in bonds.notes)


def test_edges_are_ordered_as_in_pyg(cache: Path) -> None:
    graphs = load_qm9(cache=cache)
    owner = np.repeat(np.arange(len(graphs)), graphs.edge_counts)
    assert (np.diff((owner * 100 + graphs.edges[0]) * 100 + graphs.edges[1]) > 0).all()


def test_energies_come_in_mev_when_asked_and_nothing_else_changes(cache: Path) -> None:
    wanted = ["U0", "r2", "GAP"]
    hartree = load_qm9(targets=wanted, cache=cache)
    mev = load_qm9(targets=wanted, energy_unit="meV", cache=cache)
    assert [column.name for column in mev.columns] == ["u0", "r2", "gap"]
    assert [column.unit for column in hartree.columns] == ["hartree", "a₀²", "hartree"]
    assert [column.unit for column in mev.columns] == ["meV", "a₀²", "meV"]
    # −40.47893 Ha × 27211.386245988 meV/Ha, by hand.
    assert mev.targets[METHANE] == pytest.approx([-1101487.7990, 35.3641, 13736.30778], rel=1e-9)
    assert load_qm9(targets="R2", cache=cache).targets[METHANE].tolist() == [35.3641]


def test_two_spawned_processes_build_what_one_does(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qm9_build, "_CHUNK", 8)
    one, two = tmp_path / "one", tmp_path / "two"
    build_qm9(one, rows=30, processes=1, progress=False)
    build_qm9(two, rows=30, processes=2, progress=False)
    assert one.read_bytes() == two.read_bytes()
    assert len(read_cache(two)[0]["sizes"]) == 30


def test_a_worker_of_another_program_builds_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    """Such a process is a daemon, and Python lets those start no other."""
    monkeypatch.setattr(qm9_build, "current_process", lambda: SimpleNamespace(daemon=True))
    monkeypatch.setattr(qm9_build, "ProcessPoolExecutor", None)
    build_qm9(tmp_path / "cache", rows=10, processes=2, progress=False)
    assert (tmp_path / "cache").is_file()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            {"features": "gilmer"},
            "got 'gilmer', expected one of 'pyg', 'ppgn', 'sanitized', 'smiles'",
        ),
        ({"track": "3d"}, "track of QM9: got '3d', expected one of 'bonds', 'distance'"),
        ({"energy_unit": "eV"}, "got 'eV', expected one of 'hartree', 'meV'"),
        ({"targets": "U1"}, "no target 'U1'; choose among: mu (μ), alpha (α), homo (ε_homo)"),
    ],
)
def test_an_unknown_option_is_named_with_the_known_ones(
    options: dict[str, str], complaint: str
) -> None:
    with pytest.raises(DataError) as caught:
        load_qm9(**options)  # type: ignore[arg-type]
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("written", "name"),
    [("R2", "r2"), ("R²", "r2"), ("U0", "u0"), ("U₀", "u0"), ("u", "u"), ("U298", "u"), ("Δε", "gap"),
     ("C_v", "cv"), ("Cv", "cv"), ("ε_HOMO", "homo"), ("μ", "mu"), (" ZPVE ", "zpve"), ("G", "g")],
)  # fmt: skip
def test_targets_are_found_by_name_and_symbol(written: str, name: str) -> None:
    assert find_target(written).name == name
