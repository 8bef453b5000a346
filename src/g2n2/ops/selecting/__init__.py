"""Operands of rules: a normalised memory, and all its selectors in one product."""
