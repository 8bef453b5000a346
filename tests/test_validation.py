"""What a file says, read as a declared type or refused by name."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pytest

from g2n2.errors import DataError
from g2n2.validation import read_as


@dataclass(frozen=True)
class Part:
    kind: Literal["node", "edge"]
    between: tuple[float, float]


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    counts: Mapping[str, int]
    note: str | None = None
    rest: Any = ()


WHOLE = Whole((Part("node", (0.5, 2.0)), Part("edge", (1.0, 1.0))), {"a": 3}, "x", [1])


def test_what_asdict_writes_is_read_back_and_what_has_a_default_may_be_absent() -> None:
    content = json.loads(json.dumps(asdict(WHOLE)))
    assert read_as(Whole, content, "whole", "a file") == WHOLE
    later = {"parts": [], "counts": {}, "of a later version": 3}
    assert read_as(Whole, later, "whole", "a file") == Whole((), {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": 3}, "whole.parts should be a list, got 3"),
        ({"parts": [3]}, "whole.parts[0] should be a table, got 3"),
        ({"parts": [{"kind": "node"}]}, "whole.parts[0] has no between"),
        (
            {"parts": [{"kind": "graph", "between": [1, 2]}]},
            "whole.parts[0].kind should be node or edge, got 'graph'",
        ),
        (
            {"parts": [{"kind": "edge", "between": [1, 2, 3]}]},
            "whole.parts[0].between should have 2 numbers",
        ),
        (
            {"parts": [{"kind": "edge", "between": [1, True]}]},
            "whole.parts[0].between[1] should be a finite number, got True",
        ),
        ({"counts": {"a": -1}}, "whole.counts.a should be a whole number from 0"),
        ({"counts": {"a": 1.5}}, "whole.counts.a should be a whole number from 0"),
        ({"note": 3}, "whole.note should be text or None, got 3"),
    ],
)
def test_anything_else_is_refused_by_its_place(change: dict[str, Any], message: str) -> None:
    content = {**json.loads(json.dumps(asdict(WHOLE))), **change}
    with pytest.raises(DataError) as caught:
        read_as(Whole, content, "whole", "a file")
    assert str(caught.value).startswith("a file is damaged: ")
    assert message in str(caught.value)
