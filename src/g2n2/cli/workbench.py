"""workbench: a local web page from operations to grammar, proof, network and power."""

from __future__ import annotations

from typing import Annotated

import typer


def workbench(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")] = 8765,
    show: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Open the workbench in a browser; it is served to this machine alone."""
    from ..workbench.server import serve

    serve(port, show)
