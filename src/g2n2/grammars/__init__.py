"""What a fragment generates: grammars, the paper's catalogue, and words."""
