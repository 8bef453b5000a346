"""Speed, measured after equality: one registry of cases, each beside named peers in one run."""
