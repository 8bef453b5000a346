"""What the WL tests are made of: first colours, fingerprints, and the naive twin."""
