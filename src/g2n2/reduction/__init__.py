"""Why a rule may go: simulations, the search for the smallest grammar, certificates."""
