"""The benchmark tables of docs/performance.md: cases, peers, kept figures."""
