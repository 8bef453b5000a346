"""Networks with marks: what they tell apart, and that copies, chunks and orbits change nothing."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from torch import nn

from g2n2 import GrammarGNN, GraphBatch
from g2n2.compiler.plan_to_text import plan_text
from g2n2.errors import LoweringError
from g2n2.graphs.families import rook_graph, shrikhande_graph
from g2n2.nn import memory_budget
from g2n2.testing import assert_padding_invariant, assert_permutation_equivariant

ROOK, SHRIKHANDE = (nx.from_numpy_array(g) for g in (rook_graph(4), shrikhande_graph()))
MARKED = ("r-G_L3Σ", "r-G_L1Σ", "r-G_L1ΣΣ")
FULL = "L3Σ (full)"


def network(grammar: str, **options: object) -> GrammarGNN:
    torch.manual_seed(0)
    options = {"width": 6, "layers": 3} | options
    return GrammarGNN(grammar, **options).double()  # type: ignore[arg-type]


def batch_of(*graphs: nx.Graph) -> GraphBatch:
    return GraphBatch.of([nx.convert_node_labels_to_integers(g) for g in graphs]).to(torch.float64)


def gradients(model: GrammarGNN, batch: GraphBatch) -> list[torch.Tensor]:
    model.zero_grad()
    model(batch).square().sum().backward()
    return [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]


@pytest.mark.parametrize(
    ("grammar", "apart"),
    [("r-G_L3", False), ("r-G_L1Σ", False), ("r-G_L3Σ", True), ("r-G_L1ΣΣ", True)],
)
def test_marks_go_beyond_3_wl(grammar: str, apart: bool) -> None:
    rook, shrikhande = network(grammar, layers=4)(batch_of(ROOK, SHRIKHANDE)).tolist()
    assert (abs(rook[0] - shrikhande[0]) > 1e-7) == apart


def test_layers_before_the_marks_are_bounded_by_their_own_verdict() -> None:
    """One marked layer after three that see no mark tells less apart than four marked ones."""
    model = network("r-G_L3Σ", trunk=3, layers=1)
    rook, shrikhande = model(batch_of(ROOK, SHRIKHANDE)).tolist()
    assert abs(rook[0] - shrikhande[0]) < 1e-9
    verdict = model.power().of_network()
    relations = {s.against: s.relation for s in verdict.statements}
    assert relations["3-WL"] not in ("strictly above", "not bounded by", "incomparable with")
    assert "3 + 1 layer" in verdict.statements[0].about
    assert not any("upper bound" in note for note in verdict.notes)


def test_leaves_without_a_mark_leave_an_upper_bound() -> None:
    verdict = network("r-G_L1Σ", layers=2, marks="heavy").power().of_network()
    assert any("on graphs with such vertices it is an upper bound" in x for x in verdict.notes)
    (first, _) = verdict.statements
    assert first.relation == "not bounded by", "C6 and 2·C3 have no leaves"
    assert "an upper bound of it" in first.evidence[1]


@pytest.mark.parametrize(
    "options",
    [
        {"marks": "orbits"},
        {"marks": "heavy", "trunk": 2, "layers": 1},
        {"trunk": 1, "layers": 2, "preset": "paper"},
    ],
)
@pytest.mark.parametrize("grammar", MARKED)
def test_executors_agree_on_unequal_graphs_with_features(
    grammar: str, options: dict[str, object]
) -> None:
    torch.manual_seed(1)
    sizes = (1, 2, 7, 5, 7)
    graphs = [nx.gnp_random_graph(n, 0.5, seed=n) for n in sizes]
    nodes = [torch.randn(n, 2) for n in sizes]
    batch = GraphBatch.of(graphs, nodes=nodes).to(torch.float64)
    backends = ("reference", "packed")
    models = [network(grammar, node_features=2, backend=b, **options) for b in backends]
    outputs = [model(batch) for model in models]
    torch.testing.assert_close(*outputs, rtol=1e-10, atol=1e-10)
    for left, right in zip(*(gradients(model, batch) for model in models), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("grammar", "options"),
    [*((grammar, {}) for grammar in [*MARKED, FULL]), ("r-G_L3Σ", {"marks": "orbits"})],
)
def test_weights_in_half_precision(grammar: str, options: dict[str, str]) -> None:
    graphs = [nx.gnp_random_graph(n, 0.5, seed=n) for n in (1, 5, 3)]
    batch = GraphBatch.of(graphs, nodes=[torch.ones(n, 2) for n in (1, 5, 3)])
    model = network(grammar, node_features=2, **options).float()
    expected, half = model(batch), model.bfloat16()(batch.to(torch.bfloat16))
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("grammar", MARKED)
def test_neither_numbering_nor_padding_nor_batch_mates_count(grammar: str) -> None:
    model = network(grammar, trunk=1, layers=2).eval()
    graph = nx.convert_node_labels_to_integers(nx.lollipop_graph(4, 3))
    assert_permutation_equivariant(model, batch_of(graph))
    assert_padding_invariant(model, batch_of(graph))
    alone, beside = model(batch_of(graph)), model(batch_of(graph, nx.complete_graph(9)))[:1]
    torch.testing.assert_close(alone, beside, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("grammar", MARKED)
def test_one_mark_an_orbit_gives_the_sum_over_all(grammar: str) -> None:
    batch = batch_of(nx.petersen_graph(), nx.star_graph(4), nx.disjoint_union(ROOK, SHRIKHANDE))
    every, orbits = network(grammar), network(grammar, marks="orbits")
    torch.testing.assert_close(every(batch), orbits(batch), rtol=1e-11, atol=1e-11)


def test_heavy_marks_leave_leaves_out() -> None:
    star, path = nx.star_graph(4), nx.path_graph(2)
    every, heavy = network("r-G_L3Σ"), network("r-G_L3Σ", marks="heavy")
    assert not torch.allclose(every(batch_of(star)), heavy(batch_of(star)))
    torch.testing.assert_close(every(batch_of(path)), heavy(batch_of(path)))


@pytest.mark.parametrize("grammar", ["r-G_L3Σ", "r-G_L1ΣΣ"])
def test_copies_computed_a_few_at_a_time_give_the_same(
    grammar: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = batch_of(nx.cycle_graph(4), nx.path_graph(3))
    model = network(grammar)
    whole, slopes = model(batch), gradients(model, batch)
    monkeypatch.setattr(memory_budget, "COPIES_BYTES", 1)
    torch.testing.assert_close(model(batch), whole, rtol=1e-11, atol=1e-11)
    for left, right in zip(gradients(model, batch), slopes, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-11)


def test_memories_of_a_network_with_marks_are_refused() -> None:
    model, batch = network("r-G_L3Σ"), batch_of(nx.path_graph(3))
    with pytest.raises(LoweringError, match="memories are those of marked copies"):
        model.final(*model.checked(batch))


@pytest.mark.parametrize(
    ("grammar", "options", "message"),
    [
        ("r-G_L3", {"marks": "orbits"}, "r-G_L3 has none"),
        ("r-G_L3Σ", {"marks": "colours"}, "Shrikhande"),
        ("r-G_L3", {"trunk": 1}, "has no marks"),
        ("r-G_L3Σ", {"trunk": -1}, "0 to"),
        ("r-G_L3Σ", {"task": "node"}, "not for each node"),
        (FULL, {"trunk": 1}, "leave trunk out"),
        ("V′ → AV′ | v ; S → Σv. 1ᵀV′", {"trunk": 1}, "starts from a mark"),
        (FULL, {"marks": "orbits"}, "their entries are permuted"),
        (FULL, {"marks": "heavy"}, "marks on leaves would be missing"),
        ("V″ → AV″ | u | V′ ; V′ → Σv. V″ | u ; S → Σu. 1ᵀV′", {}, "networks have one mark"),
        ("V′ → AV′ | v ; V → A(Σv. V′) | 1 ; S → 1ᵀV", {}, "give the sum a rule of its own"),
    ],
)
def test_what_networks_cannot_do_is_said(
    grammar: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(LoweringError, match=message):
        network(grammar, **options)


def test_layers_before_the_marks_need_no_memory_of_each_variable() -> None:
    """Without V′ → 1 only matrices are computed before the marks; nothing is read out there."""
    rules = "V′ → M′V′ | v ; M′ → M′M′ | A ; S → Σv. 1ᵀV′"
    model, batch = network(rules, trunk=1, layers=2), batch_of(nx.path_graph(4), nx.path_graph(1))
    expected = model(batch)
    model.backend = "reference"
    torch.testing.assert_close(model(batch), expected)
    assert "H⁰ = v ‖ Av" in plan_text(model.plan)


def test_a_run_with_marks_reads_edge_features_and_names_its_fragment() -> None:
    from g2n2.training.config import RunConfig, with_chosen_rules
    from g2n2.training.setup import takes_edges

    assert takes_edges(RunConfig("x.csv", grammar="r-G_L3Σ"))
    assert not takes_edges(RunConfig("x.csv", grammar="r-G_L1Σ"))
    chosen, other = with_chosen_rules(RunConfig("x.csv", grammar="L1Σ"), exhaustive=False)
    assert "V_c′ → AV_c′" in " ".join(chosen.rules)
    assert other is None, "the exhaustive grammar may have no network with the same options"


def test_sums_over_marks_start_with_what_copies_are_read_out_to() -> None:
    """The MLP in front of a sum is added: without it, the sum of what is read stays."""
    model, batch = network("r-G_L3Σ", typical_size=4.0), batch_of(nx.path_graph(4))
    assert model.marks is not None
    read: list[torch.Tensor] = []
    model.marks.mixer[0].register_forward_pre_hook(lambda _, given: read.append(given[0]))
    decided: list[torch.Tensor] = []
    model.readout.decision[0].register_forward_pre_hook(lambda _, given: decided.append(given[0]))
    with torch.no_grad():
        model.marks.mixer[-1].weight.zero_()
        model(batch)
    torch.testing.assert_close(decided[0], read[0].sum(0, keepdim=True) / 4.0)


@pytest.mark.parametrize("grammar", MARKED)
def test_fresh_networks_differ_on_graphs_as_much_with_marks_as_without(grammar: str) -> None:
    """What the decision layers read at first, and what each MLP in front of a sum adds to it."""
    graphs = batch_of(*(nx.gnp_random_graph(8, 0.3 + 0.05 * seed, seed=seed) for seed in range(8)))
    spread, added = {}, []

    def look(mixer: nn.Module, given: tuple[torch.Tensor], made: torch.Tensor) -> None:
        added.append(float(made.square().mean().sqrt() / given[0].square().mean().sqrt()))

    for name in ("r-G_L3", grammar):
        model = network(name, width=16, typical_size=8.0)
        model.readout.decision[0].register_forward_pre_hook(
            lambda _, given, name=name: spread.update({name: float(given[0].std(0).mean())})
        )
        for mixer in model.marks.mixers if model.marks is not None else ():
            mixer.register_forward_hook(look)
        with torch.no_grad():
            model(graphs)
    assert 0.5 < spread[grammar] / spread["r-G_L3"] < 4
    assert added
    assert all(0.5 < ratio < 2 for ratio in added), added


@pytest.mark.parametrize("backend", ["reference", "packed"])
def test_sentences_name_their_mark(backend: str) -> None:
    """vᵀA²v is the degree of v, and vᵀV′ what V′ → v makes of the mark: its weight."""
    options = {"width": 1, "layers": 1, "preset": "paper", "readout": "grammar"}
    rules = "V′ → v ; S → Σv. vᵀA²v | Σv. vᵀV′"
    model = network(rules, functions="free", backend=backend, **options)
    assert model.marks is not None
    read: list[torch.Tensor] = []
    model.marks.mixer[0].register_forward_pre_hook(lambda _, given: read.append(given[0]))
    model(batch_of(nx.star_graph(3)))
    (weight,) = (x.item() for name, x in model.named_parameters() if name.startswith("layers"))
    assert read[0].tolist() == [[3, weight], *[[1, weight]] * 3]


@pytest.mark.parametrize("backend", ["reference", "packed"])
@pytest.mark.parametrize(
    ("rules", "own", "other"),
    [
        ("V′ → AV′ | u", "Σu. uᵀV′ | Σu. uᵀA³u", "Σu. uᵀV′ | Σv. vᵀA³v"),
        ("V″ → AV″ | u | w", "Σu. Σw. wᵀV″ | Σu. Σw. uᵀA²w", "Σu. Σw. wᵀV″ | Σw. Σu. wᵀA²u"),
        (
            "V → AV | 1 | Σu. V′ ; V′ → AV′ | u | V",
            "1ᵀV | Σu. uᵀV′ | Σu. uᵀA³u",
            "1ᵀV | Σu. uᵀV′ | Σx. xᵀA³x",
        ),
    ],
)
def test_a_sum_without_variables_may_call_its_mark_by_any_letter(
    rules: str, own: str, other: str, backend: str
) -> None:
    batch = batch_of(nx.lollipop_graph(4, 2), nx.path_graph(3))
    one, same = (network(f"{rules} ; S → {x}", backend=backend)(batch) for x in (own, other))
    torch.testing.assert_close(one, same, rtol=0, atol=0)


def test_a_sentence_may_sum_over_more_marks_than_words_have() -> None:
    batch, rules = batch_of(nx.lollipop_graph(4, 2)), "V′ → AV′ | v ; S → Σv. vᵀV′ | Σv. Σw. vᵀA²w"
    one, other = (network(rules, backend=x)(batch) for x in ("reference", "packed"))
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("backend", ["reference", "packed"])
@pytest.mark.parametrize(
    ("sentence", "renamed"),
    [
        ("Σv. Σw. vᵀA²w", "Σw. Σv. wᵀA²v"),
        ("Σv. (Σw. vᵀA²w)×(Σu. vᵀA³u)", "Σw. (Σv. wᵀA²v)×(Σu. wᵀA³u)"),
        ("Σu. Σw. (uᵀA²u)×(uᵀA³w)", "Σw. Σv. (wᵀA²w)×(wᵀA³v)"),
    ],
)
def test_the_letters_of_sums_do_not_matter(backend: str, sentence: str, renamed: str) -> None:
    batch = batch_of(nx.lollipop_graph(4, 2))
    one, other = (
        network(f"V′ → AV′ | v ; S → Σv. vᵀV′ | {text}", backend=backend)(batch)
        for text in (sentence, renamed)
    )
    assert torch.equal(one, other)
