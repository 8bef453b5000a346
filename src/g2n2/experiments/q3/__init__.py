"""Q3: classification on six TU sets, ten folds, three statistics, each always named.

A cell is a set and a model, an optional one with the epochs of the GIN code, its degrees as
classes, or both: `MUTAG/GIN`, `MUTAG/GIN/350-epochs`, `IMDB-MULTI/G2N2/one-hot`. Its metrics, all
in percent but the epoch:

    accuracy, GIN's protocol (%)              mean of ten test curves, at the epoch where it is best
    accuracy, best epoch of each fold (%)     what the released code reports: optimistic
    accuracy, nested validation (%)           weights chosen on 10 % of each training fold: honest

each with `deviation over folds, …` beside it, and `best epoch, GIN's protocol`. The detail holds
`test curves` (percent, one list of epochs for each fold), `nested` (percent, one for each fold) and
`held out` (the same of the graphs that chose the weights: settings may be compared by these).
"""

from .cells import cells

__all__ = ["cells"]
