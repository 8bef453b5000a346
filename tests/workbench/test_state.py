"""The permalink restores what a page shows, and takes nothing it should not."""

from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

from g2n2.workbench.languages import Fault, read_language
from g2n2.workbench.pairs import drawn_graph
from g2n2.workbench.state import RANGES, TABS, TESTS, State, from_query

states = st.builds(
    State,
    language=st.text(max_size=200),
    g=st.text(max_size=40),
    h=st.text(max_size=40),
    test=st.sampled_from(TESTS),
    tab=st.sampled_from(TABS),
    **{name: st.integers(*bounds) for name, bounds in RANGES.items()},
)


@given(states)
def test_a_permalink_restores_the_state(state):
    values = dict(parse_qsl(state.query(), keep_blank_values=True, errors="surrogatepass"))
    assert from_query(values) == state


def test_nonsense_is_brought_into_range():
    state = from_query({"nodes": "1e9", "width": "-5", "layers": "99", "test": "5-WL", "odd": "1"})
    assert state == State(width=1, layers=8)


def test_text_that_is_too_long_is_cut_and_still_refused():
    state = from_query({"language": "A" * 10**6, "g": "C" * 10**6})
    assert len(state.language) < 3000
    assert isinstance(read_language(state.language), Fault)
    assert "longer than" in drawn_graph(state.g).fault
