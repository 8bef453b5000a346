"""Data: readers of many formats, `GraphSet` (ragged, on the host), `GraphBatch` (on the device)."""
