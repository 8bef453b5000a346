"""A term as the exact weights of a network: what it needs, and where each part is computed."""
