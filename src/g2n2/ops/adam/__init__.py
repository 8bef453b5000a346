"""One step of Adam on all weights at once, with everything that is done beside it."""
