"""The rows of a batch of graphs out of those of all graphs."""
