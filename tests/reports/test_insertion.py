"""Marked parts of pages: filled, found stale, refused where they are broken."""

import pytest

from g2n2.errors import DataError
from g2n2.reports.insertion import insert

PAGE = "before\n<!-- results:q1 -->\nold\n<!-- /results:q1 -->\nafter\n"


def test_only_what_stands_between_markers_changes():
    made = insert(PAGE, {"q1": r"new \1 |x|"}, "page.md")
    assert made == PAGE.replace("old", r"new \1 |x|")
    assert insert(made, {"q1": r"new \1 |x|"}, "page.md") == made


def test_an_empty_pair_on_successive_lines_is_filled():
    page = "<!-- results:q1 -->\n<!-- /results:q1 -->"
    assert insert(page, {"q1": "x"}, "p") == "<!-- results:q1 -->\nx\n<!-- /results:q1 -->"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("<!-- results:q9 -->\n<!-- /results:q9 -->", r"results:q9; there are q1"),
        ("<!-- results:q1 -->", "results:q1 has no partner"),
        ("<!-- results:q1 -->\n<!-- /results:q2 -->", "has no partner"),
    ],
)
def test_broken_markers_are_named(page, message):
    with pytest.raises(DataError, match=message):
        insert(page, {"q1": "x"}, "page.md")
