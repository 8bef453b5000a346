"""The benchmark tables of docs/performance.md: cases, reference networks, recorded figures."""
