"""The language: sorts, operations and terms, their notation, values, patterns and equality."""
