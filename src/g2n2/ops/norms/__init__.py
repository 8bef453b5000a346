"""Root-mean-square normalisation over channels."""
