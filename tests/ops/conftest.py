"""Every test of kernels multiplies bfloat16 as a GPU does."""

import pytest


@pytest.fixture(autouse=True)
def _bfloat16(bfloat16_in_the_interpreter):
    pass
