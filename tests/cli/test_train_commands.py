"""From a user's CSV to predictions on the command line, and what a user may get wrong."""

import csv
import inspect
import json
import os
import random
import re
import shlex
import subprocess
import sys

import pytest
from test_commands import run
from typer.testing import CliRunner

from g2n2 import cli
from small_runs import no_pictures

pytest.importorskip("rdkit", reason="the molecules are made with RDKit")

PARTS = ("C", "CC", "c1ccccc1", "C1CCCCC1", "C(=O)O", "N", "O", "C#N", "C(=O)N", "CCO", "S")
QUICK = ("--width", "8", "--layers", "1", "--threads", "1", "--device", "cpu")


def molecules(count, seed):
    """Distinct SMILES with the logP RDKit computes."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import Crippen

    draw, found = random.Random(seed), {}
    with rdBase.BlockLogs():
        while len(found) < count:
            text = "".join(draw.choice(PARTS) for _ in range(draw.randint(2, 4)))
            molecule = Chem.MolFromSmiles(text)
            if molecule is not None:
                found[Chem.MolToSmiles(molecule)] = Crippen.MolLogP(molecule)
    return list(found.items())


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a user's molecules and a run trained on them, as a user would."""
    folder = tmp_path_factory.mktemp("user")
    found = molecules(160, seed=1)
    rows = [(f"mol-{i}", text, f"{logp:.4f}") for i, (text, logp) in enumerate(found[:120])]
    write(folder / "molecules.csv", ("name", "smiles", "logp"), rows)
    fresh = [(f"new-{i}", text) for i, (text, _) in enumerate(found[120:])]
    fresh[3] = ("new-3", "C1CC(")
    write(folder / "new.csv", ("name", "smiles"), fresh)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code, text = run("train", "molecules.csv", "--target", "logp", "--epochs", "8", *QUICK)
    assert code == 0, text
    return folder, text


@pytest.fixture
def here(place, monkeypatch):
    """That folder, in which further runs draw nothing."""
    monkeypatch.chdir(place[0])
    with no_pictures():
        yield place[0]


def test_training_says_what_it_does_and_what_to_type_next(place):
    folder, text = place
    assert "molecules holds 120 graphs: 96 train, 12 validation, 12 test." in text
    assert "Column smiles gives the molecules." in text
    assert re.search(r"epoch 8/8  loss \S+  validation MAE \S+  [\d,]+ graphs/s", text)
    assert "guessing the mean" in text
    assert "g2n2 predict runs/molecules-logp-001 FILE --out preds.csv" in text
    made = {path.name for path in (folder / "runs/molecules-logp-001").iterdir()}
    assert made >= {
        "config.json",
        "data.json",
        "split.json",
        "metrics.csv",
        "result.json",
        "test.csv",
        "best.safetensors",
        "checkpoint.pt",
        "tensorboard",
        "learning_curve.png",
        "parity.png",
    }


def test_predictions_keep_ids_order_and_every_row(here):
    code, text = run("predict", "runs/molecules-logp-001", "new.csv", "--out", "preds.csv")
    assert code == 0, text
    assert "39 predictions written to preds.csv" in text
    assert "1 record has no prediction: new-3, 'C1CC(': RDKit cannot parse it" in text
    rows = read("preds.csv")
    assert [row["id"] for row in rows] == [f"new-{i}" for i in range(40)]
    assert rows[3]["logp"] == ""
    assert rows[3]["note"] == "not predicted: 'C1CC(': RDKit cannot parse it"
    without = [row for row in rows if "no interval" in row["note"]]
    assert len(without) < 4
    for row in (row for row in rows if row["id"] != "new-3"):
        if row in without:
            assert row["logp low"] == row["logp high"] == ""
            continue
        assert float(row["logp low"]) < float(row["logp"]) < float(row["logp high"])
        assert all("training" in part for part in row["note"].split("; ") if part)


def test_predictions_say_which_columns_are_read(here):
    (source,) = here.glob("runs/molecules-logp-001")
    write(here / "two.csv", ("smiles", "product"), [("CCO", "C=O"), ("CCC", "CCF")])
    words = ("predict", str(source), "two.csv", "--out", "two-out.csv")
    text = CliRunner().invoke(cli.app, words).stderr
    assert [row["id"] for row in read(here / "two-out.csv")] == ["CCO", "CCC"]
    assert "note: Column smiles gives the molecules." in text
    assert "note: Column smiles gives the ids." in text
    assert "product looks like SMILES too; --smiles product" in text
    words = ("predict", str(source), "new.csv", "--out", "three.csv")
    text = CliRunner().invoke(cli.app, words).stderr
    assert "Column name gives the ids." in text


def test_evaluate_on_a_part_and_on_a_file(here):
    code, text = run("evaluate", "runs/molecules-logp-001", "--json")
    assert code == 0
    stored = json.loads((here / "runs/molecules-logp-001/result.json").read_text())
    found = json.loads(text)["scores"]["logp"]
    assert found == pytest.approx(stored["test"]["logp"], rel=1e-6)
    rows = [row.values() for row in read("molecules.csv")[:30]]
    write(here / "part.csv", ("name", "smiles", "logp"), rows)
    arguments = ("--on", "part.csv", "--out", "part-preds.csv", "--json")
    code, text = run("evaluate", "runs/molecules-logp-001", *arguments)
    assert code == 0, text
    errors = [abs(float(r["true logp"]) - float(r["logp"])) for r in read("part-preds.csv")]
    found = json.loads(text)["scores"]["logp"]["mae"]
    assert found == pytest.approx(sum(errors) / len(errors), rel=1e-4)
    inside = [
        float(r["logp low"]) <= float(r["true logp"]) <= float(r["logp high"])
        for r in read("part-preds.csv")
    ]
    told = json.loads(text)["reliability"]["logp"]
    assert told["coverage"] == pytest.approx(sum(inside) / len(inside))
    code, again = run("evaluate", "runs/molecules-logp-001", "part.csv", *arguments[2:])
    assert json.loads(again)["scores"] == json.loads(text)["scores"]
    write(here / "odd.csv", ("smiles", "logp"), [("CCCO", 1), ("XX", 2), ("[Na]CC", 1)])
    words = ["evaluate", "runs/molecules-logp-001", "--on", "odd.csv"]
    notes = CliRunner().invoke(cli.app, words).stderr
    assert "1 record cannot be read, and no score counts them; the first, record 2: 'XX'" in notes
    assert "scores count 1 graph with an element never seen in training" in notes
    assert "note: Column smiles gives the molecules." in notes
    found = CliRunner().invoke(cli.app, [*words, "--json", "--out", "odd-preds.csv"])
    told = json.loads(found.stdout)["reliability"]["logp"]
    assert (told["rows"], told["far"]) == (1, 1), "no interval is given for sodium"
    assert [bool(row["logp low"]) for row in read("odd-preds.csv")] == [True, False]
    rows = [("a", "CCCO", "CC=O", 1), ("a", "CC", "C#N", 1)]
    write(here / "twice.csv", ("name", "smiles", "product", "logp"), rows)
    words = ["evaluate", "runs/molecules-logp-001", "twice.csv", "--out", "twice-preds.csv"]
    notes = CliRunner().invoke(cli.app, words).stderr
    assert "product looks like SMILES too" in notes
    assert "Column name gives no ids, as 'a' occurs more than once" in notes
    assert "Predictions are named by the cells of name all the same." in notes
    assert [row["id"] for row in read("twice-preds.csv")] == ["a", "a"]


def test_targets_of_a_file_are_read_as_those_of_the_run(here):
    # two numbers that would be classes elsewhere: the error is that of the numbers
    write(here / "two.csv", ("smiles", "logp"), [("CCCO", -1), ("CCCCO", 1), ("CCN", 1)])
    words = ("evaluate", "runs/molecules-logp-001", "two.csv", "--out", "two-preds.csv", "--json")
    code, text = run(*words)
    assert code == 0, text
    rows = read("two-preds.csv")
    assert [float(row["true logp"]) for row in rows] == [-1, 1, 1]
    errors = [abs(float(row["true logp"]) - float(row["logp"])) for row in rows]
    assert json.loads(text)["scores"]["logp"]["mae"] == pytest.approx(sum(errors) / 3, rel=1e-4)
    write(here / "words.csv", ("smiles", "logp"), [("CCCO", "low"), ("CCN", "high"), ("CC", "low")])
    code, text = run("evaluate", "runs/molecules-logp-001", "words.csv")
    assert code == 2
    assert "target 'logp', line 2: 'low' is not a number" in text


def test_a_run_is_repeated_from_its_own_config(here):
    code, text = run("train", "--config", "runs/molecules-logp-001/config.json")
    assert code == 0, text
    for name in ("metrics.csv", "best.safetensors", "test.csv", "split.json"):
        first, second = (here / f"runs/molecules-logp-00{n}" / name for n in (1, 2))
        assert first.read_bytes() == second.read_bytes(), name


def test_classes_come_with_probabilities(here):
    rows = [
        (row["name"], row["smiles"], "greasy" if float(row["logp"]) > 1 else "wet")
        for row in read("molecules.csv")
    ]
    write(here / "kinds.csv", ("name", "smiles", "kind"), rows)
    arguments = ("--target", "kind", "--epochs", "2", "--out", "kinds", *QUICK)
    code, text = run("train", "kinds.csv", *arguments)
    assert code == 0, text
    assert "guessing the commonest" in text
    write(here / "few.csv", ("smiles", "kind"), [("CCCO", "WET"), ("CCN", "Wet"), ("CC", "greasy")])
    code, text = run("evaluate", "kinds", "few.csv", "--out", "few-preds.csv")
    assert code == 0, text
    assert [row["true kind"] for row in read("few-preds.csv")] == ["wet", "wet", "greasy"]
    code, text = run("predict", "kinds", "new.csv", "--out", "kinds-preds.csv")
    assert code == 0, text
    found = read("kinds-preds.csv")
    assert list(found[0]) == ["id", "kind", "p(kind=wet)", "note"]
    for row in found:
        if row["kind"]:
            assert (row["kind"] == "wet") == (float(row["p(kind=wet)"]) >= 0.5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train"], "say what to train on"),
        (["train", "molecule.csv"], "no file or folder 'molecule.csv'"),
        (["train", "mutga"], "your own data; did you mean mutag"),
        (["train", "molecules.csv", "--target", "logd"], "no column 'logd'; did you mean logp?"),
        (["train", "molecules.csv", "--width", "0"], "width must be at least 1"),
        (["train", "molecules.csv", "--track", "bonds"], "no option 'track' for your own graphs"),
        (["train", "molecules.csv", "--option", "hydrogen=true"], "name; did you mean hydrogens?"),
        (["train", "molecules.csv", "--option", "x"], "should read KEY=VALUE"),
        (["train", "molecules.csv", "--grammar", "r-G_L9"], "r-G_L9"),
        (["train", "molecules.csv", "--baseline", "PPGM"], "did you mean PPGN"),
        (["train", "molecules.csv", "--baseline", "GIN", "--grammar", "L1"], "leave out --baseline"),
        (["train", "molecules.csv", "--split", "column:part"], "no column 'part'"),
        (["train", "--config", "none.toml"], "no file 'none.toml': check the path"),
        (["train", "--config", "typo.toml"], "no setting called 'wdith'; did you mean width?"),
        (["train", "molecules.csv", "--out", "runs/molecules-logp-001"], "holds a run already"),
        (["train", "--resume", "runs/molecules-logp-001", "--width", "9"], "leave out width"),
        (["train", "--resume", "nowhere"], "nowhere is no run folder"),
        (["predict", "nowhere", "new.csv"], "nowhere is no run folder: there is nothing at"),
        (["predict", "qm8", "new.csv"], "make one: g2n2 train; by name there is qm9"),
        (["predict", "new.csv", "new.csv"], "new.csv is no run folder: it is a file; make one"),
        (["predict", "runs/molecules-logp-001", "none.csv"], "no file or folder 'none.csv'"),
        (["predict", "runs/molecules-logp-001", "cycle.g6"], "lacks the node features H, B, C"),
        (["evaluate", "runs/molecules-logp-001", "--on", "new.csv"], "no column 'logp'"),
        (["predict", "runs/molecules-logp-001", "new.csv", "--out", "new.csv"], "would overwrite"),
        (["predict", "runs/molecules-logp-001", "new.csv", "--out", "link.csv"], "would overwrite"),
        (["predict", "runs/molecules-logp-001", "new.csv", "--out", "molecules.csv"], "overwrite"),
        (["evaluate", "runs/molecules-logp-001", "--on", "molecules.csv", "--out", "molecules.csv"],
         "name another file"),
        (["evaluate", "runs/molecules-logp-001", "--out", "molecules.csv"], "name another file"),
        (["evaluate", "runs/molecules-logp-001", "--on", "tests"], "expected test, validation"),
        (["evaluate", "runs/molecules-logp-001", "tests"], "tests: expected a file that is there"),
        (["evaluate", "runs/molecules-logp-001", "new.csv", "--on", "test"], "leave one out"),
        (["predict", "runs/molecules-logp-001", "new.csv", "--out", "p.csv.gz"], "ending .csv"),
        (["predict", "runs/molecules-logp-001", "new.csv", "--out", "p.tsv"], "ending .csv"),
        (["evaluate", "runs/molecules-logp-001", "--out", "p.JSON"], "give --out the ending .csv"),
        (["sweep", "plain.toml", "--trials", "2"], "has no table [sweep]"),
    ],
)  # fmt: skip
def test_mistakes_are_named(here, words, message):
    (here / "typo.toml").write_text('dataset = "molecules.csv"\nwdith = 3\n')
    (here / "plain.toml").write_text('dataset = "molecules.csv"\n')
    (here / "cycle.g6").write_text("Cr\n")
    if not (here / "link.csv").exists():
        (here / "link.csv").symlink_to("new.csv")
    before = {path: path.read_bytes() for path in here.glob("*.csv")}
    code, text = run(*words)
    assert code == 2, text
    assert message in " ".join(text.split())
    assert {path: path.read_bytes() for path in here.glob("*.csv")} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "file"], "cannot make the folder file: it is there and is no folder"),
        (["--out", "fifo"], "it is there and is no folder; name a new one"),
        (["--out", "/dev/null"], "it is there and is no folder; name a new one"),
        (["--out", "dangling"], "it is there and is no folder; name a new one"),
        (["--out", "/no-such-folder/run"], "the folder /no-such-folder does not exist; make it"),
        (["--split", "nope"], "no split is called 'nope'; expected random, scaffold"),
        (["--split", "fold:"], "no split is called 'fold:'"),
        (["--split", "file:none.json"], "no file 'none.json' to split by: check the path"),
        (["--config", "far.toml"], "no distance channel is called 'metres'; known: raw"),
        (["--preset", "nope"], "no preset is called 'nope'"),
        (["--recipe", "nope"], "no recipe is called 'nope'"),
        (["--grammar", "r-G_L9"], "r-G_L9"),
    ],
)
def test_what_can_be_known_without_the_data_is_refused_before_it_is_read(
    here, monkeypatch, words, message
):
    def read_nothing(_config):
        raise AssertionError("the data was read")

    monkeypatch.setattr("g2n2.training.session.load_graphs", read_nothing)
    (here / "far.toml").write_text('distance = ["metres"]\n')
    (here / "file").touch()
    if not (here / "fifo").exists():
        os.mkfifo(here / "fifo")
        (here / "dangling").symlink_to("nothing")
    runs = {path.name for path in (here / "runs").iterdir()}
    code, text = run("train", "molecules.csv", "--target", "logp", *words)
    assert code == 2, text
    assert message in " ".join(text.split())
    assert {path.name for path in (here / "runs").iterdir()} == runs


def test_ids_that_repeat_are_kept_and_said(here):
    names = ("twice", "twice", "m2", "m3", "m4")
    texts = [row["smiles"] for row in read("molecules.csv")[:5]]
    rows = [(name, text, f"c{i}") for i, (name, text) in enumerate(zip(names, texts, strict=True))]
    write(here / "twice.csv", ("name", "smiles", "comment"), rows)
    code, text = run("predict", "runs/molecules-logp-001", "twice.csv", "--out", "twice-preds.csv")
    assert code == 0, text
    assert "the id 'twice' stands in several rows of twice.csv" in " ".join(text.split())
    assert [row["id"] for row in read("twice-preds.csv")] == list(names)


def test_bad_rows_are_skipped_by_name_or_refused(here):
    rows = [row.values() for row in read("molecules.csv")]
    write(here / "bad.csv", ("name", "smiles", "logp"), [*rows, ("mol-bad", "CC(", "1.0")])
    arguments = ("train", "bad.csv", "--target", "logp", "--epochs", "1", "--out", "bad", *QUICK)
    code, text = run(*arguments, "--on-bad", "refuse")
    assert code == 2
    assert "line 122 (mol-bad)" in text
    code, text = run(*arguments)
    assert code == 0, text
    assert "1 of 121 records is skipped: line 122 (mol-bad)" in text


def test_nodes_of_an_edge_list_go_to_predictions(here):
    """Degrees of the nodes of random graphs, in files named as the reader wants them."""
    draw = random.Random(0)
    edges, nodes = [], []
    for graph in range(30):
        pairs = {tuple(sorted(draw.sample(range(6), 2))) for _ in range(8)}
        edges += [(f"g{graph}", *pair) for pair in sorted(pairs)]
        degrees = [sum(node in pair for pair in pairs) for node in range(6)]
        nodes += [(f"g{graph}", node, 1.0, degree) for node, degree in enumerate(degrees)]
    write(here / "net.csv", ("graph", "source", "target"), edges)
    write(here / "net_nodes.csv", ("graph", "node", "size", "degree"), nodes)
    arguments = ("--target", "degree", "--epochs", "2", "--task", "regression", "--out", "net")
    code, text = run("train", "net.csv", *arguments, *QUICK)
    assert code == 0, text
    assert "Target degree of each node" in text
    code, text = run("predict", "net", "net.csv", "--out", "net-preds.csv")
    assert code == 0, text
    rows = read("net-preds.csv")
    assert [(r["id"], r["node"]) for r in rows] == [(g, str(n)) for g, n, *_ in nodes]
    write(here / "odd.csv", ("graph", "source", "target"), edges)
    write(here / "odd_nodes.csv", ("graph", "node", "two"), [row[:3] for row in nodes])
    code, text = run("predict", "net", "odd.csv")
    assert code == 2
    assert "lacks the node feature size and has unknown to the run the node feature two" in text


def test_datasets_are_listed_without_torch():
    code, text = run("datasets")
    assert code == 0
    assert "qm9" in text
    listed = json.loads(run("datasets", "--json")[1])
    assert {row["name"] for row in listed} >= {"qm9", "mutag", "zinc", "regular"}
    one = json.loads(run("datasets", "QM9", "--json")[1])[0]
    assert one["graphs"] == 130_831
    assert "track" in one["options"]
    program = (
        "import sys; from g2n2.cli import app; app(['datasets'], standalone_mode=False); "
        "assert not {'torch', 'rdkit', 'lightning', 'pandas'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_training_does_not_load_what_proves_the_power_of_its_grammar():
    program = (
        "import sys; from g2n2.cli import app, train_commands; from g2n2.training import session; "
        "session.with_rules(session.RunConfig('x', grammar='r-G_L3')); "
        "found = {name.split('.')[1] for name in sys.modules if name.startswith('g2n2.')}; "
        "assert not {'power', 'reduction', 'verdict', 'pipeline', 'placement'} & found, found"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_derived_grammar_goes_straight_into_training(here):
    """Derive, train on the certificate, predict: nothing is typed twice."""
    assert run("derive", "· Tr", "--out", "mine.json")[0] == 0
    train = ("train", "molecules.csv", "--target", "logp", "--epochs", "1", *QUICK)
    code, text = run(*train, "--grammar", "mine.json", "--out", "derived")
    assert code == 0, text
    assert "The network of r-G_{·, Tr} (preset modern) has 1 layer" in text
    assert "Verdict" not in text
    (pointer,) = [line for line in text.splitlines() if line.startswith("power:")]
    code, verdict = run(*shlex.split(pointer)[2:4])
    assert code == 0, verdict
    assert "as this network of unlimited width: 1 layer" in verdict
    written = json.loads((here / "derived" / "config.json").read_text())
    assert written["grammar"] == "r-G_{·, Tr}"
    assert written["rules"] == ["M → MM", "M → A", "S → Tr(M)"]
    (here / "mine.json").unlink()
    code, text = run("train", "--resume", "derived")
    assert code == 0, text
    assert run("predict", "derived", "new.csv", "--out", "derived.csv")[0] == 0


def test_one_class_is_nothing_to_learn(here):
    write(here / "one.csv", ("smiles", "txt"), [(f"{'C' * n}O", "a") for n in range(1, 21)])
    code, text = run("train", "one.csv", "--target", "txt", *QUICK, "--out", "one")
    assert code == 2
    assert "every known value of txt is one class (a)" in text


@pytest.mark.parametrize("command", [("compile", "r-G_L3"), ("train", "molecules.csv")])
@pytest.mark.parametrize("marks", ["all", "orbits", "3"])
def test_marks_of_a_grammar_without_any_are_refused(here, command, marks):
    code, text = run(*command, "--marks", marks)
    assert code == 2
    assert "r-G_L3 has none" in text


def test_every_form_of_a_grammar_is_trained_and_used(here):
    """What names no grammar of the catalogue: the rules recorded in the run are what counts."""
    (here / "g.txt").write_text("V → AV | MV | 1\nM → (M⊙M) | A\nS → 1ᵀV\n")
    code, text = run("derive", "· ᵀ 1 ⊙", "--out", "cert.json")
    assert code == 0, text
    for form in ("g.txt", "r-G_L1 ∪ V → AᵀV", "r-G_L3Σ - V′ → 1", "cert.json"):
        folder = f"form-{form.partition(' -')[0].partition('.')[0].replace(' ', '')}"
        short = ("--target", "logp", "--limit", "40", "--epochs", "1", "--threads", "1")
        given = ("--grammar", form, "--width", "4", "--layers", "1", "--out", folder)
        for words in (
            ("train", "molecules.csv", *short, *given),
            ("evaluate", folder),
            ("predict", folder, "new.csv", "--out", "form.csv"),
            ("explain", folder, "--smiles", "CCO"),
            ("train", "--resume", folder),
            ("train", "molecules.csv", *short, "--from", folder, "--out", f"{folder}-2"),
            ("evaluate", f"{folder}-2"),
        ):
            code, text = run(*words)
            assert code == 0, (form, words, text)


def test_directed_graphs_need_a_word_that_reads_the_transpose(here):
    edges = [(g, n, (n + 1) % (3 + g % 3)) for g in range(20) for n in range(3 + g % 3)]
    write(here / "arcs.csv", ("graph", "source", "target"), edges)
    write(here / "arcs_graphs.csv", ("graph", "y"), [(g, 3 + g % 3) for g in range(20)])
    words = ("train", "arcs.csv", "--option", "directed=true", "--epochs", "1", *QUICK)
    code, text = run(*words, "--grammar", "r-G_L1ΣΣ", "--out", "arcs")
    assert code == 2
    assert "training into" not in text
    (advised,) = re.findall(r"as in '(.*)'", text)
    code, text = run(*words, "--grammar", advised, "--out", "arcs")
    assert code == 0, text


def test_training_on_a_fragment_says_both_sizes(here):
    train = ("train", "molecules.csv", "--target", "logp", "--epochs", "1", *QUICK)
    code, text = run(*train, "--grammar", "· Tr", "--out", "fragment")
    assert code == 0, text
    said = " ".join(text.split())
    assert (
        "stands for its reduced grammar, 2 rules and 1 read-out rule; G_{·, Tr} has 5 rules and would have"
        in said
    )
    code, text = run(*train, "--grammar", "· Tr", "--exhaustive", "--out", "exhaustive")
    assert code == 0, text
    rules = json.loads((here / "exhaustive" / "config.json").read_text())["rules"]
    assert len(rules) == 5
    code, text = run(*train, "--baseline", "GIN", "--exhaustive", "--out", "no")
    assert (code, "a fragment of --grammar" in text) == (2, True)
    code, text = run(*train, "--grammar", "3-WL", "--out", "no")
    assert (code, "r-G_L3 is a grammar of that power" in text) == (2, True)


def test_a_run_ends_in_its_minutes_and_says_how_long_it_would_take(here):
    words = ("molecules.csv", "--target", "logp", *QUICK, "--out", "timed")
    code, text = run("train", *words, "--epochs", "5000", "--minutes", "0.003")
    assert code == 0, text
    said = " ".join(text.split())
    assert re.search(r"This takes about \d+ \w+.* on this CPU; in its 0.003 min the learning", said)
    assert re.search(r"the minutes were over in epoch \d+ of 5,000", said)
    assert "Test:" in text
    assert (here / "timed/result.json").exists()


def test_a_run_starts_from_another(here):
    (source,) = here.glob("runs/molecules-logp-001")
    words = ("molecules.csv", "--target", "logp", "--from", str(source), "--epochs", "1")
    code, text = run("train", *words, "--freeze", "1", "--threads", "1", "--out", "tuned")
    assert code == 0, text
    assert "1 layer frozen" in " ".join(text.split())
    kept = json.loads((here / "tuned/config.json").read_text())
    assert (kept["start"], kept["freeze"], kept["width"]) == (str(source), 1, 8)
    assert "Test: 12 graphs of molecules never trained on" in " ".join(text.split())
    code, text = run("predict", "tuned", "new.csv", "--out", "tuned.csv")
    assert code == 0, text


def test_test_graphs_of_which_a_start_was_trained_on_are_called_so(here):
    (source,) = here.glob("runs/molecules-logp-001")
    words = ("molecules.csv", "--target", "logp", "--from", str(source), "--epochs", "1")
    code, text = run("train", *words, "--split", "random", "--seed", "5", "--out", "other")
    assert code == 0, text
    before, after = (
        json.loads((folder / "split.json").read_text()) for folder in (source, here / "other")
    )
    seen = len({*before["train"]} & {*after["test"]})
    shown = " ".join(text.split())
    assert f"Test: 12 graphs of molecules, {seen} of which {source} was trained on" in shown
    assert "never trained on" not in shown


MOST_FILES = 77
"""Files of the package a reader meets who follows a run on a CSV from the command to its scores."""


def test_a_run_calls_functions_of_few_files(place, tmp_path):
    package, called = f"{os.path.dirname(cli.__path__[0])}{os.sep}", set()

    def importing(frame):
        while frame is not None and frame.f_code.co_name != "<module>":
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(package)

    def profile(frame, event, _):
        code = frame.f_code
        function = code.co_flags & inspect.CO_OPTIMIZED  # no module, no class body
        ours = code.co_filename.startswith(package) and code.co_filename not in called
        if event == "call" and function and ours and not importing(frame):
            called.add(code.co_filename)

    folder, _ = place
    words = ("train", str(folder / "molecules.csv"), "--epochs", "1", "--out", str(tmp_path / "r"))
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        code, output = run(*words, *QUICK)
    finally:
        sys.setprofile(before)
    assert code == 0, output
    assert {"loop.py", "packed.py", "molecules.py"} <= {os.path.basename(path) for path in called}
    assert len(called) <= MOST_FILES, sorted(path.removeprefix(package) for path in called)
