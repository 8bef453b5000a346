"""One Adam step on all weights: gradient norm, clipping, step, moving average, rounding."""
