"""What `g2n2 demo` does: derive a network, prove it, train it beside a GIN, write a report."""
