"""Figures of the report, drawn with matplotlib where it is installed."""
