"""The demonstration: what it writes, what it claims, and that it touches nothing else."""

import json
import os
import re
import shutil
import time
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from typer.testing import CliRunner

from g2n2.cli import app
from g2n2.demo import findings
from g2n2.demo.findings import TrainedNetwork, claims, compare_tests, r2_text
from g2n2.demo.page import inline, page
from g2n2.demo.run import claim_folder
from g2n2.errors import DataError

pytest.importorskip("torch_geometric", reason="GIN needs the extra pyg")
pytest.importorskip("matplotlib", reason="figures need the extra plot")

WRITTEN = {
    "certificate.json", "demo.json", "derived", "figure.png", "figure.svg", "gin", "layer.svg", "report.html", "report.md",
}  # fmt: skip
RULES_OF_THE_PAPER = "V_c → MV_c | 1\nM → (M⊙M) | MM | diag(V_c) | A\nS → 1ᵀV_c"


def run(*words):
    return CliRunner().invoke(app, ["demo", *map(str, words)])


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "out"
    return run("--quick", "--seed", 3, "--out", out), out


def test_quick_run_writes_everything_and_claims_nothing(quick):
    result, out = quick
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == WRITTEN
    assert "too briefly to claim" in result.output
    assert f"Open {out}/report.html" in result.output
    for run_folder in ("derived", "gin"):
        assert (out / run_folder / "best.safetensors").is_file()


def test_scores_are_printed_and_are_those_of_the_test_graphs(quick):
    import csv

    result, out = quick
    told = json.loads((out / "demo.json").read_text("utf-8"))
    for name, label in (("derived", "derived from L3"), ("gin", "GIN")):
        rows = list(csv.DictReader((out / name / "test.csv").open(encoding="utf-8")))
        assert len(rows) == 12
        for target in ("triangle", "4_cycle"):
            got = np.array([float(row[f"{target} [count]"]) for row in rows])
            true = np.array([float(row[f"true {target} [count]"]) for row in rows])
            r2 = 1 - ((got - true) ** 2).sum() / ((true - true.mean()) ** 2).sum()
            assert told["scores"][name][target]["r2"] == pytest.approx(r2, abs=1e-5)
            line = next(x for x in result.output.splitlines() if x.strip().startswith(f"{label}  "))
            assert f"{r2:.3f}".replace("-0.000", "0.000").replace("-", "−") in line


RULES = ("V_c → MV_c", "V_c → 1", "M → (M⊙M)", "M → MM", "M → diag(V_c)", "M → A", "S → 1ᵀV_c")


def test_the_network_is_the_derived_grammar_by_its_rules(quick):
    _, out = quick
    config = json.loads((out / "derived" / "config.json").read_text("utf-8"))
    assert config["grammar"] == RULES_OF_THE_PAPER
    assert config["baseline"] is None
    gin = json.loads((out / "gin" / "config.json").read_text("utf-8"))
    assert gin["baseline"] == "GIN"
    assert set(config["rules"]) == {*RULES}
    changed = {key for key in config if config[key] != gin[key]}
    assert changed == {"grammar", "rules", "baseline"}


def test_certificate_passes_the_checker_and_is_about_l3(quick):
    _, out = quick
    checked = CliRunner().invoke(app, ["check", str(out / "certificate.json"), "--fragment", "L3"])
    assert checked.exit_code == 0, checked.output
    rules = json.loads((out / "certificate.json").read_text("utf-8"))["to"]
    assert set(rules) == {*RULES}


def test_the_page_stands_alone(quick):
    _, out = quick
    page_text = (out / "report.html").read_text("utf-8")
    assert "://" not in page_text
    assert not re.search(r"<(script|link|img|iframe)\b|@import|url\((?!#)", page_text)
    assert 'name="viewport"' in page_text
    assert "prefers-color-scheme: dark" in page_text
    assert page_text.count("<svg") == 3
    identifiers = re.findall(r'\bid="([^"]+)"', page_text)
    assert len(identifiers) == len(set(identifiers))


def test_reports_say_the_same(quick):
    _, out = quick
    text = (out / "report.md").read_text("utf-8")
    page_text = (out / "report.html").read_text("utf-8")
    for phrase in (
        "1-WL gives all 60 graphs one colour",
        "derived from L3",
        "too briefly to claim anything",
        RULES_OF_THE_PAPER,
        "1ᵀ(A²⊙A)1   = 6 × triangles",
        "on 60 of 60 graphs",
    ):
        assert phrase in text
        assert phrase in page_text
    assert "![" in text
    assert "(figure.png)" in text


def test_pictures_are_pictures(quick):
    import xml.etree.ElementTree as ET

    _, out = quick
    image = (out / "figure.png").read_bytes()
    assert image.startswith(b"\x89PNG")
    assert len(image) < 150_000
    assert ET.parse(out / "figure.svg").getroot().tag.endswith("svg")


@pytest.fixture(scope="module")
def again(quick, tmp_path_factory):
    """A second run into what the first one left, held to the claims it cannot meet."""
    out = tmp_path_factory.mktemp("again") / "out"
    shutil.copytree(quick[1], out)
    (out / "mine.txt").write_text("keep")
    (out / "derived" / "stray").write_text("old")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "QUICK", replace(findings.QUICK, claims=True))
        return run("--quick", "--seed", 3, "--out", out), out


def test_running_again_replaces_its_own_files_only(quick, again):
    _, out = again
    assert {path.name for path in out.iterdir()} == WRITTEN | {"mine.txt"}
    assert (out / "mine.txt").read_text() == "keep"
    assert not (out / "derived" / "stray").exists()
    same_seed = (quick[1] / "figure.svg").read_bytes()
    assert (out / "figure.svg").read_bytes() == same_seed


def test_a_claim_that_fails_is_said_and_ends_with_code_1(again):
    result, out = again
    assert result.exit_code == 1, result.output
    assert "✗ does not hold: derived from L3: R² ≥ 0.95" in result.output
    report = (out / "report.md").read_text("utf-8")
    assert "**does not hold**" in report
    assert "cannot see" not in report


def test_a_folder_of_others_is_refused_untouched(tmp_path):
    (tmp_path / "derived").mkdir()
    (tmp_path / "derived" / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="no demonstration left there"):
        claim_folder(tmp_path)
    assert (tmp_path / "derived" / "thesis.txt").read_text() == "mine"
    with pytest.raises(DataError, match="cannot write"):
        claim_folder(tmp_path / "derived" / "thesis.txt")


def test_a_link_in_the_folder_is_unlinked_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.txt").write_text("mine")
    out = claim_folder(tmp_path / "out")
    os.symlink(elsewhere, out / "derived")
    claim_folder(out)
    assert not (out / "derived").exists()
    assert (elsewhere / "thesis.txt").read_text() == "mine"


def contestant(name, triangles, cycles):
    scores = {"triangle": {"r2": triangles, "mae": 0.1}, "4_cycle": {"r2": cycles, "mae": 0.1}}
    return TrainedNetwork(name, None, scores, np.zeros((2, 2)), np.zeros((2, 2)), 1)


@pytest.mark.parametrize(
    ("derived", "gin", "expected"),
    [
        ((0.95, 0.99), (0.0, -0.2), (True, True)),
        ((0.99, 0.9499), (0.0, 0.0), (False, True)),
        ((0.9, 0.99), (0.05, 0.05), (False, True)),
        ((0.99, 0.99), (0.0, 0.051), (True, False)),
        ((float("nan"), 0.99), (0.0, float("nan")), (False, False)),
    ],
)
def test_claims_hold_for_each_target_or_not_at_all(derived, gin, expected):
    made = claims(contestant("derived", *derived), contestant("GIN", *gin))
    assert tuple(claim.holds for claim in made) == expected


def test_what_the_graphs_look_like():
    """Five prisms and five other cubic graphs, beside counts by networkx."""
    from g2n2.data.benchmarks import labelled
    from g2n2.grammars.catalogue import find_grammar
    from g2n2.graphs import adjacency

    prism, other = nx.circular_ladder_graph(5), nx.petersen_graph()
    graphs = [adjacency(nx.to_numpy_array(g)) for g in [prism] * 5 + [other] * 5]
    splits = {"train": np.arange(3), "validation": np.arange(3, 4), "test": np.arange(4, 10)}
    made = labelled("cubic", graphs, splits, {}, ("triangle", "4_cycle"))
    seen = compare_tests(made, find_grammar("r-G_L3"))
    assert (seen.one_wl, seen.three_wl, seen.seen_before) == (1, 2, 1)
    assert [s.graphs for s in seen.sentences] == [10, 10]
    wrong = replace(made, targets=made.targets + 1)
    assert [s.graphs for s in compare_tests(wrong, find_grammar("r-G_L3")).sentences] == [0, 0]


def test_a_report_becomes_a_page():
    report = (
        "# T & U\n\n## A < B\n\n`a<b` **c** *d e* f*g*h\n\n```text\nx & y\n\nz\n```\n\n"
        "| n | v |\n| --- | ---: |\n| a | `1` |\n\n![what it *shows*](figure.png)\n"
    )
    made = page(report, {"figure.png": "<svg/>"})
    assert "<h1>T &amp; U</h1>" in made
    body = made[made.index("</h1>") + 5 : made.index("</body>")]
    assert body.split("\n") == [
        "",
        "<h2>A &lt; B</h2>",
        "<p><code>a&lt;b</code> <strong>c</strong> <em>d e</em> f*g*h</p>",
        "<pre>x &amp; y",
        "",
        "z</pre>",
        '<div class="scroll"><table><tr><th>n</th><th>v</th></tr><tr><td>a</td><td><code>1</code></td></tr></table></div>',
        '<figure><div class="row"><svg/></div><figcaption>what it <em>shows</em></figcaption></figure>',
        "",
    ]


def test_small_numbers_are_written_properly():
    assert r2_text(-0.0001) == "0.000"
    assert r2_text(-0.25) == "−0.250"


def test_a_drawing_becomes_part_of_a_page():
    whole = (
        '<?xml version="1.0"?><svg xmlns="http://x" viewBox="0 0 1 1"><metadata>http://y</metadata>'
        '<g id="a" style="fill: #1f2430"/><use href="#a" clip-path="url(#a)"/></svg>'
    )
    assert inline(whole, "words", "p-") == (
        '<svg viewBox="0 0 1 1" role="img" aria-label="words">'
        '<g id="p-a" style="fill: currentColor"/><use href="#p-a" clip-path="url(#p-a)"/></svg>'
    )


@pytest.mark.slow
def test_the_real_demonstration_holds_its_claims(tmp_path):
    wall, cpu = time.monotonic(), time.process_time()
    result = run("--out", tmp_path / "out")
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    print(f"\n{wall:.0f} s, of which {cpu:.0f} s on processors\n{result.output}")
    assert result.exit_code == 0, result.output
    told = json.loads((tmp_path / "out" / "demo.json").read_text("utf-8"))
    for target in ("triangle", "4_cycle"):
        assert told["scores"]["derived"][target]["r2"] >= 0.95
        assert told["scores"]["gin"][target]["r2"] <= 0.05
    assert told["colours"]["1-WL"] == 1
    assert cpu < 180
