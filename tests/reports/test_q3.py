"""Q3's tables: three statistics, ranks counted anew, the aim."""

import pytest
from scipy.stats import sem

from g2n2.experiments.q3.settings import PLANS
from g2n2.experiments.q3.statistics import GIN
from g2n2.reports.q3 import accuracy, rank, section
from g2n2.reports.standings import read_results
from made_up_records import write

SETS = ("MUTAG", "PTC", "PROTEINS", "NCI1", "IMDB-BINARY", "IMDB-MULTI")
BARS = (92.2, 68.2, 77.4, 83.5, 77.8, 54.3)
EPOCHS = PLANS["full"].epochs


def folds(
    folder,
    name,
    accuracy,
    model="G2N2",
    nested=10,
    epochs=EPOCHS,
    whole=10,
    by_fold=None,
    asked=10,
    **more,
):
    metrics = {
        "accuracy, GIN's protocol (%)": accuracy,
        "deviation over folds, GIN's protocol (%)": 5.0,
        "accuracy, best epoch of each fold (%)": accuracy + 3.0,
        "deviation over folds, best epoch of each fold (%)": 4.0,
        "accuracy, nested validation (%)": accuracy - 2.0 if nested else None,
        "deviation over folds, nested validation (%)": 6.0 if nested else None,
    }
    curves, own = [[accuracy, accuracy - 4.0]] * whole, by_fold or [1.0] * nested
    detail = {"test curves": curves, "nested": own}
    changes = {"done": whole + len(own), "planned": 2 * asked, "unit": "runs of folds", **more}
    config = {"folds": asked, "epochs": epochs}
    write(folder, "q3", f"{name}/{model}", metrics, detail=detail, config=config, **changes)


def made(folder):
    return section(read_results(folder))


def test_statistics_are_named_and_only_what_lacks_folds_is_partial(tmp_path):
    folds(tmp_path, "MUTAG", 90.0, nested=4)
    _, statistics = (block for block in made(tmp_path).blocks if hasattr(block, "rows"))
    assert [row[:2] for row in statistics.rows[:3]] == [
        ("G²N², GIN's protocol", "90.0 ± 5.0"),
        ("G²N², best epoch of each fold", "93.0 ± 4.0"),
        ("G²N², nested validation", "88.0 ± 6.0 ◐ (4 folds)"),
    ]
    said = [block.text for block in made(tmp_path).blocks if hasattr(block, "text")]
    assert any("lies 3.0 points above" in text for text in said)
    assert any("GIN's protocol 4.0 above the last epoch, at most 4.0" in text for text in said)
    partial = f"1 × 14 of 20 runs of folds, partial with {EPOCHS} epochs"
    assert any(partial in text for text in said)


def test_more_epochs_stand_beside_those_of_the_plan(tmp_path):
    folds(tmp_path, "MUTAG", 86.0, model="GIN")
    folds(tmp_path, "MUTAG", 90.0, model="GIN/350-epochs", epochs=350, nested=0)
    *_, table = (block for block in made(tmp_path).blocks if hasattr(block, "rows"))
    assert table.rows == (
        ("GIN on MUTAG, 30 epochs", "82.0 ± 0.0", "86.0 ± 5.0", "89.0 ± 4.0", "84.0 ± 6.0"),
        ("GIN on MUTAG, 350 epochs", "86.0 ± 0.0", "90.0 ± 5.0", "93.0 ± 4.0", "–"),
        ("GIN on MUTAG, cited", "", "89.4 ± 5.6", "", ""),
    )
    (path,) = (tmp_path / "q3").glob("MUTAG-GIN.s0*.json")
    path.write_text(path.read_text().replace('"epochs": 30', '"epochs": 10'))
    *_, table = (block for block in made(tmp_path).blocks if hasattr(block, "rows"))
    assert table.rows[0][:2] == ("GIN on MUTAG, 10 epochs", "82.0 ± 0.0 ◐")
    compared = next(block for block in made(tmp_path).blocks if hasattr(block, "rows"))
    assert not any("90.0" in text for text in compared.rows[-2]), "plans are not mixed"


def test_the_input_of_the_gin_code_is_named(tmp_path):
    folds(tmp_path, "IMDB-MULTI", 52.0, model="GIN/350-epochs/one-hot", epochs=350)
    *_, table = (block for block in made(tmp_path).blocks if hasattr(block, "rows"))
    assert [row[0] for row in table.rows] == [
        "GIN on IMDB-MULTI, 30 epochs, degrees as a number",
        "GIN on IMDB-MULTI, 350 epochs, degrees as classes",
        "GIN on IMDB-MULTI, cited",
    ]
    assert [row[2] for row in table.rows] == ["–", "52.0 ± 5.0", "52.3 ± 2.8"]


def test_earlier_settings_are_marked(tmp_path):
    folds(tmp_path, "MUTAG", 90.0)
    assert not accuracy(read_results(tmp_path).of("q3"), "MUTAG", "G2N2", GIN).partial
    (path,) = (tmp_path / "q3").glob("*.json")
    path.write_text(path.read_text().replace(f'"epochs": {EPOCHS}', '"epochs": 7'))
    assert accuracy(read_results(tmp_path).of("q3"), "MUTAG", "G2N2", GIN).partial


CITED = "G²N², cited; best epoch of each fold, if the released script made it"


def test_ours_is_compared_with_the_paper_by_the_statistic_of_the_paper(tmp_path):
    folds(tmp_path, "MUTAG", 89.5)  # best epoch of each fold: 92.5, as printed
    folds(tmp_path, "PTC", 68.0)  # 71.0 where 72.3 is printed
    found = made(tmp_path)
    said = "is at least the paper's on MUTAG, 1.3 points below it at most, of the 2 sets with all folds."
    assert any(said in block.text for block in found.blocks if hasattr(block, "text"))
    table, sentence = found.fragments["q3-statistics"]
    assert table.rows[-1][:2] == (CITED, "92.5 ± 4.3")
    assert said in sentence.text


def test_cells_of_earlier_settings_are_marked_in_sentences_and_left_out_of_averages(tmp_path):
    folds(tmp_path, "NCI1", 83.0, epochs=7)
    folds(tmp_path, "PTC", 60.0, epochs=7)
    said = "at least the paper's on NCI1 ◐, 9.3 ◐ points below it at most, of the 2 sets with all folds."
    assert said in made(tmp_path).fragments["q3-statistics"][1].text
    texts = [block.text for block in made(tmp_path).blocks if hasattr(block, "text")]
    assert any("cannot be said before a cell was run whole" in text for text in texts)
    folds(tmp_path, "MUTAG", 89.5)
    texts = [block.text for block in made(tmp_path).blocks if hasattr(block, "text")]
    assert any("for the same 1 cells; partial ones" in text for text in texts)


def test_one_fold_has_no_deviation(tmp_path):
    folds(tmp_path, "MUTAG", 90.0, nested=1)
    _, statistics = (block for block in made(tmp_path).blocks if hasattr(block, "rows"))
    assert [row[1] for row in statistics.rows[:3]] == [
        "90.0 ± 5.0",
        "93.0 ± 4.0",
        "88.0 ◐ (1 fold)",
    ]


@pytest.mark.parametrize(
    ("whole", "compared", "alone", "run"),
    [
        (10, "**99.0 ± 5.0**", "99.0 ± 5.0", "on 1 of 1 run"),
        (3, "–", "99.0 ± 5.0 ◐ (3 folds)", "–"),
    ],
)
def test_a_mean_of_some_folds_is_compared_with_nothing(tmp_path, whole, compared, alone, run):
    folds(tmp_path, "MUTAG", 99.0, whole=whole, nested=0)
    found = made(tmp_path)
    table, statistics = (block for block in found.blocks if hasattr(block, "rows"))
    (row,) = (row for row in table.rows if row[0] == "G²N², ours")
    assert (row[1], statistics.rows[0][1]) == (compared, alone)
    assert found.aims[0].found == run
    assert (found.fragments["q3-statistics"][1].text == "") == (whole < 10)


def test_the_paper_counts_one_rank_too_good():
    counted = [rank("G²N²", name, ()) for name in SETS]
    assert counted == [1, 1, 1, 5, 3, 2]  # IMDB-BINARY: GSN 77.8, GNTK 76.9, G²N² 76.8
    kernels = ("WL kernel", "GNTK")
    assert [rank("G²N²", name, kernels) for name in SETS] == [1, 1, 1, 3, 2, 2]


def test_four_of_six_sets_are_enough(tmp_path):
    for name, bar in list(zip(SETS, BARS, strict=True))[:4]:
        folds(tmp_path, name, bar)
    assert made(tmp_path).aims[0].verdict == "met"
    folds(tmp_path, "MUTAG", 92.1)
    assert made(tmp_path).aims[0].verdict == "open: not all run yet"
    folds(tmp_path, "PTC", 60.0)
    folds(tmp_path, "PROTEINS", 60.0)
    assert made(tmp_path).aims[0].verdict == "**missed**"
    assert "short on MUTAG by 0.1, PTC by 8.2, PROTEINS by 17.4" in made(tmp_path).aims[0].found


def test_settings_that_were_given_up_are_shown_apart(tmp_path):
    folds(tmp_path / "withdrawn", "MUTAG", 87.8)
    *_, title, table = section(read_results(tmp_path)).blocks
    assert "Given up" in title.text
    assert table.rows[0][:2] == ("G²N², GIN's protocol", "87.8 ± 5.0")
    assert section(read_results(tmp_path)).aims[0].verdict == "not run yet"


def paired(folder):
    blocks = made(folder).blocks
    at = next(i for i, b in enumerate(blocks) if "Fold by fold" in getattr(b, "text", ""))
    rows = {name: entries for name, *entries in blocks[at + 1].rows}
    return rows, blocks[at + 2].text


def test_networks_are_compared_fold_by_fold(tmp_path):
    own = [90.0, 70.0, 80.0, 60.0, 75.0, 85.0, 65.0, 95.0, 55.0, 50.0]
    apart = {"GIN": [1.0, 3.0] * 5, "PPGN": [5.0, -3.0] * 5, "GNNML1": [-1.0, -2.0] * 5}
    folds(tmp_path, "MUTAG", 80.0, by_fold=own)
    for model, steps in apart.items():
        by_fold = [mine - step for mine, step in zip(own, steps, strict=True)]
        folds(tmp_path, "MUTAG", 80.0, model=model, by_fold=by_fold)
    folds(tmp_path, "MUTAG", 80.0, model="GNNML3", nested=9)
    rows, said = paired(tmp_path)
    # Nadeau and Bengio: tests of a ninth of the training graphs make the error √(1 + 10/9) larger.
    error = {model: sem(steps) * (1 + 10 / 9) ** 0.5 for model, steps in apart.items()}
    assert rows["G²N² less GIN"][0] == f"+2.0 ± {error['GIN']:.1f}" == "+2.0 ± 0.5"
    assert rows["G²N² less PPGN"][0] == f"+1.0 ± {error['PPGN']:.1f}"
    assert rows["G²N² less GNNML1"][0] == f"−1.5 ± {error['GNNML1']:.1f}"
    assert rows["G²N² less GNNML3"][0] == "–", "nine folds are compared with none"
    assert all(entry == "–" for entries in rows.values() for entry in entries[1:])
    assert "G²N² is on MUTAG above GIN; on MUTAG below GNNML1. The other 1 of 3" in said


def test_no_difference_is_called_one_where_there_is_none(tmp_path):
    folds(tmp_path, "PTC", 60.0, by_fold=[50.0, 70.0] * 5)
    folds(tmp_path, "PTC", 60.0, model="GIN", by_fold=[51.0, 69.0] * 5)
    rows, said = paired(tmp_path)
    assert rows["G²N² less GIN"][1] == "+0.0 ± 0.5"
    assert said.startswith("No difference, of 1, can be told from zero")


def test_ours_are_placed_among_the_published_rows(tmp_path):
    for model in ("G2N2", "PPGN", "GIN", "GNNML1", "GNNML3"):
        for name in SETS:
            folds(tmp_path, name, 80.0, model=model)
    folds(tmp_path, "PTC", 60.0, model="GIN")
    said = [block.text for block in made(tmp_path).blocks if hasattr(block, "text")]
    (placed,) = (text for text in said if "would be number" in text)
    # Counted by hand in Table 6: rows above 80.0, and above 83.0, but that of G²N².
    assert "number 10, 1, 1, 8, 1, 1 by GIN's protocol and number 10, 1, 1, 5, 1, 1 by" in placed
    assert "GIN on PROTEINS and IMDB-BINARY and IMDB-MULTI;" in placed
    folds(tmp_path / "less", "PTC", 60.0)
    assert not any(
        "would be number" in getattr(b, "text", "") for b in made(tmp_path / "less").blocks
    )


def test_only_runs_on_the_same_graphs_are_paired_and_others_are_marked(tmp_path):
    own = [50.0, 70.0] * 5
    folds(tmp_path, "PTC", 60.0, by_fold=own)
    folds(tmp_path, "PTC", 60.0, model="GIN", by_fold=[40.0, 61.0] * 5, epochs=EPOCHS + 1)
    folds(tmp_path, "PTC", 60.0, model="PPGN", by_fold=[None] * 10)
    folds(tmp_path, "PTC", 60.0, model="GNNML1", by_fold=[1e9] * 10)
    folds(tmp_path, "PTC", 60.0, model="GNNML3", by_fold=[40.0, 61.0] * 5, data={"PTC": "other"})
    rows, said = paired(tmp_path)
    assert rows["G²N² less GIN"][1] == "+9.5 ± 0.2 ◐"
    assert "on PTC above GIN ◐." in said
    for model in ("PPGN", "GNNML1", "GNNML3"):
        assert rows[f"G²N² less {model}"][1] == "–"


def test_few_folds_tell_nothing_apart(tmp_path):
    for model, by_fold in (("G2N2", [60.0, 61.0]), ("GIN", [50.0, 50.0])):
        folds(tmp_path, "PTC", 60.0, model=model, by_fold=by_fold, whole=2, asked=2)
    assert paired(tmp_path)[1].startswith("No difference")
