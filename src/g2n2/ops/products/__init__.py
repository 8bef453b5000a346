"""The channel-wise matrix product on `[B, N, N, S]`."""
