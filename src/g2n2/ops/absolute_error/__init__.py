"""The loss of regression."""
