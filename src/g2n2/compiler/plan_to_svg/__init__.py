"""Figures of any grammar as SVG: the overview, one layer, the whole network, a trace."""

from ..plan_to_svg.architecture import architecture_svg
from ..plan_to_svg.layer import layer_svg
from ..plan_to_svg.overview import overview_svg
from ..plan_to_svg.procedure import trace_svg

__all__ = ["architecture_svg", "layer_svg", "overview_svg", "trace_svg"]
