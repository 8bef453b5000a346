"""An open page and its events, without a browser."""

import asyncio
import re

import pytest

from g2n2.workbench.session import Session
from g2n2.workbench.state import State


class NoJobs:
    """Computations that never end."""

    async def run(self, *arguments, **options):
        await asyncio.Event().wait()


def ticked(language, *events):
    """What is ticked on a page after some events; None where there are no boxes."""
    sent = []

    async def page():
        session = Session(NoJobs(), sent.append, State(language=language))
        session.start()
        for action, value in events:
            session.receive({"action": action, "value": value})
        session.close()

    asyncio.run(page())
    boxes = [m["html"]["ticks"] for m in sent if "ticks" in m.get("html", {})]
    return set(re.findall(r'data-tick="(\w+)" checked', boxes[-1])) if boxes else None


L1 = {"matmul", "transpose", "one", "diag"}


@pytest.mark.parametrize("text", ["", "M → (M", "no language"])
def test_operations_can_be_ticked_on_a_page_that_starts_with_a_fault(text):
    assert ticked(text) == set()
    assert ticked(text, ("tick", ["diag", True])) == {"diag"}


def test_a_tick_after_a_fault_changes_the_operations_that_are_shown():
    assert ticked("L1", ("language", "L1 oops"), ("tick", ["hadamard", True])) == L1 | {"hadamard"}
    assert ticked("L1", ("language", "M → (M"), ("tick", ["diag", False])) == L1 - {"diag"}


def test_an_empty_text_has_nothing_ticked():
    assert ticked("·", ("tick", ["matmul", False])) == set()
    assert ticked("L1", ("language", " "), ("tick", ["diag", True])) == {"diag"}
