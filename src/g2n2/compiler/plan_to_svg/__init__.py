"""Figures of any grammar as SVG: the overview, one layer, the whole network, a trace."""

from .architecture import architecture_svg
from .layer import layer_svg
from .overview import overview_svg
from .procedure import trace_svg

__all__ = ["architecture_svg", "layer_svg", "overview_svg", "trace_svg"]
