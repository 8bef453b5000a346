"""Column sums of a small matrix, such as the partial sums of a kernel's programs."""
