"""The permalink restores what a page shows, and takes nothing it should not."""

from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

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
    assert len(from_query({"language": "A" * 10**6}).language) < 3000
