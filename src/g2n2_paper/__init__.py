"""The paper's experiments, their records, reports and benchmark tables.

This package imports `g2n2` and is never imported by it. It is not part of the wheel: run it from a
clone, as `g2n2-paper` (made by `make env`) or `python -m g2n2_paper`.
"""
