"""The paper's experiments, their records, reports and benchmark tables.

An entry of a table begins in `report/templates`: `ours("q1", "train/{}", "parameters")` is that
metric of a cell's records, and `q1.py` says what the cell runs. Entries of more than one metric are
methods in `report/entries.py`, numbers inside sentences are in `report/facts.py`.

This package imports `g2n2` and is never imported by it. It is not part of the wheel: run it from a
clone, as `g2n2-paper` (made by `make env`) or `python -m g2n2_paper`.
"""
