"""The update of a matrix memory: rule outputs -> two-layer MLP -> new memory."""
