"""How numbers look."""

import pytest

from g2n2.reports.cited import Cited
from g2n2.reports.numbers import Entry, Notes, best_of_columns, best_of_rows, entry, significant
from g2n2.reports.standings import Measured


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0000951, "0.0000951"),
        (0.00012345, "0.000123"),
        (16.07, "16.1"),
        (1234.5, "1234"),
        (0.0, "0"),
        (-0.5, "−0.500"),
        (0.9996, "1.000"),
    ],
)
def test_three_digits_and_no_exponent(value, text):
    assert significant(value) == text


@pytest.mark.parametrize(
    ("measured", "text"),
    [
        (Measured(0.342, 0.0123, 3, False), "0.342 ± 0.012"),
        (Measured(0.342, None, 1, False), "0.342"),
        (Measured(0.342, None, 1, True), "0.342 ◐"),
        (None, "–"),
    ],
)
def test_deviation_has_as_many_places_and_partial_is_marked(measured, text):
    assert entry(measured).text == text


def test_the_best_is_bold_by_row_or_by_column_and_a_lone_number_is_not():
    rows = [("a", [Entry("1", 1), Entry("2", 2)]), ("b", [Entry("3", 3), Entry("–")])]
    assert best_of_rows(("", "x", "y"), rows, "lower").rows == (
        ("a", "**1**", "2"),
        ("b", "3", "–"),
    )
    assert best_of_columns(("", "x", "y"), rows, "higher").rows == (
        ("a", "1", "2"),
        ("b", "**3**", "–"),
    )


def test_numbers_printed_alike_are_bold_together():
    row = [Entry("0.101", 0.1008), Entry("0.101 ◐", 0.1012), Entry("0.10", 0.1), Entry("0.101")]
    texts = best_of_rows(("", *"abcd"), [("x", row)], "higher").rows[0]
    assert texts == ("x", "**0.101**", "**0.101 ◐**", "0.10", "0.101")  # the last is no number


def test_notes_are_lettered_once():
    notes = Notes()
    texts = [notes.entry(Cited("1", 1.0, note=note)).text for note in ("odd", "", "even", "odd")]
    assert texts == ["1 (a)", "1", "1 (b)", "1 (a)"]
    assert str(notes) == "(a) odd. (b) even."


def test_a_misprint_is_compared_as_what_was_likely_meant():
    shown = Notes().entry(Cited("0.0000151", 1.51e-5, note="misprint", likely=1.51e-4))
    assert (shown.text, shown.value) == ("0.0000151 (a)", 1.51e-4)
