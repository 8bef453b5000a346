"""A drawing as part of a page: its ink becomes the page's, so that dark pages show it too."""

from __future__ import annotations

import re

INK, SOFT, FAINT = "#1f2430", "#5b6472", "#c9ced6"


def inline(svg: str, label: str, prefix: str) -> str:
    """An SVG as part of a page, which sets its ink.

    Args:
        svg: A whole file.
        label: What it shows, for those who cannot see it.
        prefix: Put before its identifiers, which are the page's from now on.
    """
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    box = re.search(r'viewBox="[^"]+"', head)
    assert box is not None
    rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
    rest = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", rest)
    rest = rest.replace(INK, "currentColor").replace(FAINT, "var(--line)")
    rest = rest.replace(SOFT, "var(--soft)")
    return f'<svg {box[0]} role="img" aria-label="{label}">{rest}'
