"""From a grammar to a network: the plan, the table from rule to tensor op, formulas as weights."""
