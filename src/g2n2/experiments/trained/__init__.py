"""Power, trained: what networks tell apart and count, beside the exact power of their grammars.

Contenders are G²N² with 3, 5 and 8 layers, PPGN (8), GNNML3 (5) and GIN (5). Cells and metrics:

    brec/CONTENDER
        trained separated                       BREC's released test: no factor q, limit 72.34
        trained separated, Hotelling's T²       the textbook's test, level 0.05
        trained separated, clear of noise       fresh relabelings, ten times their whole spread
        separated beyond the bound              of the first, pairs 3-WL (1-WL) merges: errors
        unreliable                              failed BREC's reliability check; not separated
        trained separated, CATEGORY             of the first
        exact separated, CATEGORY
    csl/…, exp/…, sr25/CONTENDER
        test accuracy (%)                       mean over folds, best validation weights
        deviation over folds (%)
    graph8c/CONTENDER
        separated by random weights             by some of several networks
        merged by random weights
    counting/joint/…, counting/COUNT/CONTENDER
        normalised test MAE COUNT               and the metrics of `training_cells`

    counting/exact/CONTENDER
        pairs merged, other COUNT               see `counting_exact`

All but counting also have

    exact separated                             by the grammar's words, as many layers deep, with
                                                the network's read-out, without functions
    exact bound                                 by 3-WL or 1-WL, which no weights exceed
    pairs

The detail of BREC's records holds every pair's verdicts and statistics under `pairs`.
"""

from .cells import cells

__all__ = ["cells"]
