"""One module per format of a user's own graphs; `g2n2.data.reading` chooses between them.

Bad input is refused with a `DataError` that names the file, the line or item, and the remedy.
"""
