"""TU sets: the official raw layout, from a folder or a zip, with ten folds."""

from .loading import load_tu

__all__ = ["load_tu"]
