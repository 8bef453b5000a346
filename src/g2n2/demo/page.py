"""The page writer: a list of blocks as Markdown, and as one self-contained HTML page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

INK, SOFT, FAINT = "#1f2430", "#5b6472", "#c9ced6"
"""Colours of figures; `inline` replaces them by those of the page."""


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class PageTable:
    """Cells as text; columns after the first are numbers unless they are `words`."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: bool = False


@dataclass(frozen=True)
class Picture:
    """A file beside the report, and its SVG for the page.

    `wide` keeps its size on a narrow screen and scrolls, on white, for what has its own colours;
    else the SVGs stand in a row, below each other where the screen is narrow.
    """

    file: str
    alt: str
    svg: str
    wide: bool = False


Block = Heading | Text | Code | PageTable | Picture


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """The blocks as Markdown; a picture without a file is left to the page."""
    parts = [f"# {title}"]
    for block in blocks:
        match block:
            case Heading(text):
                parts.append(f"## {text}")
            case Text(text):
                parts.append(text)
            case Code(text):
                parts.append(f"```text\n{text}\n```")
            case PageTable(headers, rows, words):
                rule = ["---"] + ["---" if words else "---:"] * (len(headers) - 1)
                lines = (headers, rule, *rows)
                parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
            case Picture(file, alt):
                if file:
                    parts.append(f"![{alt}]({file})")
    return "\n\n".join(parts) + "\n"


def page(title: str, blocks: Sequence[Block]) -> str:
    """The blocks as HTML with its style in it, for small and large screens, light and dark."""
    body = "\n".join(map(_html, blocks))
    return _PAGE.format(title=escape(title), style=_STYLE, body=body)


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


def _html(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{escape(text)}</h2>"
        case Text(text):
            return f"<p>{_spans(text)}</p>"
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case PageTable(headers, rows, words):
            kind = ' class="words"' if words else ""
            head = "".join(f"<th>{escape(cell)}</th>" for cell in headers)
            lines = ("".join(f"<td>{_spans(cell)}</td>" for cell in row) for row in rows)
            body = "".join(f"<tr>{line}</tr>" for line in lines)
            return f'<div class="scroll"><table{kind}><tr>{head}</tr>{body}</table></div>'
        case Picture(_, alt, svg, wide):
            kind = "scroll white" if wide else "row"
            caption = f"<figcaption>{_spans(alt)}</figcaption>"
            return f'<figure><div class="{kind}">{svg}</div>{caption}</figure>'


def _spans(text: str) -> str:
    """Text with `code`, **strong** and *stressed* parts; Markdown's other signs are not used."""
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
table.words th, table.words td { text-align: left; vertical-align: top; white-space: normal; }
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
