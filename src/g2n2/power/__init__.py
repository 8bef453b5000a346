"""What a grammar can tell apart: refinement tests, exact separation, suites of hard graphs."""
