"""The page writer: a Markdown report as one self-contained HTML page.

Of Markdown it knows what a report uses: headings, paragraphs, code, tables, pictures, and `code`,
**strong** and *stressed* text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

INK, SOFT, FAINT = "#1f2430", "#5b6472", "#c9ced6"
"""Colours of figures; `inline` replaces them by those of the page."""


def page(markdown: str, pictures: Mapping[str, str]) -> str:
    """The page for small and large screens, light and dark; `pictures` has the SVG of each file."""
    parts = r"```text\n.*?\n```|(?:(?!\n\n|```).)+"
    title, *blocks = filter(None, map(str.strip, re.findall(parts, markdown, re.DOTALL)))
    body = "\n".join(_html(block, pictures) for block in blocks)
    return _PAGE.format(title=escape(title.removeprefix("# ")), style=_STYLE, body=body)


def inline(svg: str, label: str, prefix: str) -> str:
    """A figure as part of a page, which sets its ink; `prefix` keeps its identifiers apart."""
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    box = re.search(r'viewBox="[^"]+"', head)
    assert box is not None
    rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
    rest = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", rest)
    rest = rest.replace(INK, "currentColor").replace(FAINT, "var(--line)")
    rest = rest.replace(SOFT, "var(--soft)")
    return f'<svg {box[0]} role="img" aria-label="{label}">{rest}'


def _html(block: str, pictures: Mapping[str, str]) -> str:
    if block.startswith("## "):
        return f"<h2>{escape(block[3:])}</h2>"
    if block.startswith("```"):
        return f"<pre>{escape(block.removeprefix('```text').removesuffix('```').strip())}</pre>"
    if block.startswith("| "):
        header, _, *rows = (line.strip("| ").split(" | ") for line in block.splitlines())
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        lines = ("".join(f"<td>{_spans(cell)}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'
    if picture := re.fullmatch(r"!\[(.*)\]\((.*)\)", block):
        # A drawing with colours of its own stands on white and scrolls where the screen is narrow.
        kind = "scroll white" if picture[2].endswith(".svg") else "row"
        caption = f"<figcaption>{_spans(picture[1])}</figcaption>"
        return f'<figure><div class="{kind}">{pictures[picture[2]]}</div>{caption}</figure>'
    return f"<p>{_spans(block)}</p>"


def _spans(text: str) -> str:
    for sign, tag in (("`", "code"), ("**", "strong")):
        pieces = (escape(text) if sign == "`" else text).split(sign)
        text = "".join(f"<{tag}>{p}</{tag}>" if i % 2 else p for i, p in enumerate(pieces))
    return re.sub(r"(?<![*\w])\*(?=\w)([^*<>]+)(?<=\w)\*(?![*\w])", r"<em>\1</em>", text)


_STYLE = """
:root { color-scheme: light dark; --ink: #1f2430; --soft: #5b6472; --line: #c9ced6;
  --ground: #ffffff; --panel: #f4f6f8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #a3adba; --line: #475160;
  --ground: #14181e; --panel: #1e242c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 52rem; padding: 1.2rem 1rem 3rem; color: var(--ink);
  background: var(--ground); font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.55rem; line-height: 1.25; margin: .4rem 0 1rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p { margin: .6rem 0; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code { font-size: .92em; background: var(--panel); padding: .05em .3em; border-radius: 4px;
  overflow-wrap: anywhere; }
pre { font-size: .85rem; line-height: 1.45; background: var(--panel); padding: .8rem 1rem;
  border-radius: 8px; overflow-x: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem .35rem 0; border-bottom: 1px solid var(--line);
  text-align: right; vertical-align: bottom; }
th { color: var(--soft); font-weight: 600; }
th:first-child, td:first-child { text-align: left; }
th:last-child, td:last-child { padding-right: 0; }
figure { margin: 1.2rem 0; }
figure svg { display: block; width: 100%; height: auto; }
.row { display: flex; flex-wrap: wrap; gap: 1rem; }
.row svg { flex: 1 1 18rem; width: auto; min-width: 0; }
.white { background: #ffffff; border-radius: 8px; padding: .6rem; }
.white svg { min-width: 44rem; }
figcaption { color: var(--soft); font-size: .9rem; margin-top: .4rem; }
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""
