"""One module per format of a user's own graphs; `g2n2.data.reading` chooses between them."""
