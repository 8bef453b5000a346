"""Q4: can a network learn spectral filters? TwoDGrid30, R² on the mask of the test image.

Cells are `FILTER/MODEL/layers-L`, each of ten runs, and `ceilings`. The metrics of the former:

    test R² (median of runs)          each run's weights are those that are best on the validation
    test R² (worst run), (best run)   image
    validation R² (median of runs)
    parameters

Their detail holds `runs` (seed, step, R² of all three images) and `response`, the response of the
median run beside the truth, see `responses`. What `ceilings` holds is said in `ceilings`.
"""

from .cells import cells

__all__ = ["cells"]
