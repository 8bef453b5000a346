"""The rules of a layer on small graphs: operands in, the inputs of its MLPs out."""
