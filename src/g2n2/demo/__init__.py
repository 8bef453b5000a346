"""The whole job on an embedded default: derive a network, prove it, train it, show what it sees."""
