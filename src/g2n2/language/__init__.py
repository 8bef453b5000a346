"""What can be written: sorts, operations, terms, their notation, meaning and equality."""
