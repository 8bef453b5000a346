"""What rules read: a memory normalised, and all its operands by one product."""
