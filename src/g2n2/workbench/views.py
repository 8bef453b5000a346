"""The values of the workbench as HTML strings; every text that comes from outside is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import escape

from ..described import bytes_text, counted, flops_text
from ..grammars.grammar import Grammar, Rule
from ..language.operations import FUNCTIONS, OPERATIONS
from ..language.patterns import Pattern
from ..language.sorts import S
from ..placement import SYMBOLS, Statement
from ..reduction.explain import LAWS_OF_STEPS
from ..verdict import Verdict
from .chain import DerivedChain, ProofCase
from .files import FileReport
from .network import BATCH, Network
from .pairs import PairAnswer, PairReport
from .svg import Span, matched_patterns, power_ladder, single_pattern

_CALLS = sorted({*FUNCTIONS, *(s for op in OPERATIONS.values() for s in op.spellings)}, key=len)
_MATH = re.compile(
    rf"(?P<var>V_[cr]|[fΣ]_[SVM]|C_\d+)"
    rf"|(?P<call>{'|'.join(map(re.escape, reversed(_CALLS)))})(?=\()"
    r"|(?P<opaque>[smvwrxu]\d+)|(?P<number>\d+(?:\.\d+|/\d+)|\d{2,}|[02-9])|(?P<one>1)"
    r"|(?P<turn>ᵀ)|(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|(?P<letter>[A-Za-z])|(?P<sign>[→|=⊙×+−])"
)
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


_SIGNS = {**SYMBOLS, "incomparable with": "∥", "open against": "?"}


def math(text: str) -> str:
    """A rule or term typeset as in the paper."""
    return _typeset(text, _MATH, _token)


_IN_PROSE = re.compile(r"(?P<var>V_[cr])|(?P<opaque>[smv]\d)|(?P<turn>ᵀ)")
"""What is typeset within an English sentence: variables, opaque letters, transposes."""
_GRAMMAR_NAME = re.compile(r"\bG_(\{[^{}]*\}|\w+)")


_UNNAMED = re.compile(r"\b(r-)given\b|^given$|(?<=, and )given$")


def name(text: str) -> str:
    """A grammar's name, `r-G_L3` with its index below the line; in words where it has none."""
    text = _UNNAMED.sub(lambda found: f"the {'reduced' if found[1] else 'given'} grammar", text)
    return _typeset(text, _GRAMMAR_NAME, lambda found: f"<i>G</i><sub>{escape(found[1])}</sub>")


def _typeset(text: str, part: re.Pattern[str], shown: Callable[[re.Match[str]], str]) -> str:
    """Escaped text with some parts typeset."""
    pieces, place = [], 0
    for found in part.finditer(text):
        pieces += [escape(text[place : found.start()]), shown(found)]
        place = found.end()
    return "".join([*pieces, escape(text[place:])])


def _token(token: re.Match[str]) -> str:
    text = token[0]
    match token.lastgroup:
        case "var":
            return f"<i>{text[0]}</i><sub>{escape(text[2:])}</sub>"
        case "opaque":
            return f"<i>{text[0]}</i><sub>{text[1:]}</sub>"
        case "one":
            return "<b>1</b>"
        case "turn":
            return "<sup>⊤</sup>"
        case "power":
            return f"<sup>{text.translate(_DIGITS)}</sup>"
        case "letter":
            return f"<i>{text}</i>"
        case "sign":
            return f'<span class="sign">{text}</span>'
    return escape(text)


def exhaustive(chain: DerivedChain, step: int) -> str:
    """The grammar of the language; rules the proof has removed so far are struck out."""
    gone = chain.after(step)
    current = chain.removals[step - 1].rule if step else None

    def kind(rule: Rule) -> str:
        if rule == current:
            return "current"
        return "gone" if rule in gone else ""

    left = len(chain.exhaustive.all_rules) - len(gone)
    count = counted(len(chain.exhaustive.all_rules), "rule")
    if gone:
        count += f", {left} left"
    elif not chain.removals and chain.exhaustive.readout:
        count = _size(chain.exhaustive)
    return _heading("Exhaustive grammar", chain.exhaustive.name, count, chain) + _grammar(
        chain.exhaustive, kind
    )


def reduced(chain: DerivedChain) -> str:
    """The reduced grammar; nothing where no rule goes, as it would be the same again."""
    added = set(chain.added)
    if not chain.removals and not added:
        return ""
    body = _grammar(chain.reduced, lambda rule: "added" if rule in added else "")
    return _heading("Reduced", chain.reduced.name, _size(chain.reduced), chain) + body


def _size(grammar: Grammar) -> str:
    return counted(len(grammar.rules), "rule") + (" + read-out" if grammar.readout else "")


def _heading(title: str, called: str, count: str, chain: DerivedChain) -> str:
    if chain.exhaustive.name in ("given", "") and title == "Exhaustive grammar":
        title, called = "Given grammar", ""
    elif not chain.exhaustive.name.startswith("G_") and title == "Exhaustive grammar":
        title = "Grammar"
    grammar_name = "" if called == "r-given" else name(called)
    return (
        f'<h3>{escape(title)} <span class="name">{grammar_name}</span>'
        f'<span class="count">{escape(count)}</span></h3>'
    )


def _grammar(grammar: Grammar, kind: Callable[[Rule], str]) -> str:
    order = sorted(grammar.variables, key=lambda s: s == S if grammar.readout else False)
    rows = []
    for sort in order:
        rules = [
            _rule(rule, f"rule {kind(rule)}".strip(), math(rule.body_text()))
            for rule in grammar.of_sort(sort)
        ]
        bar = '<span class="or">|</span><wbr>'
        rows.append(
            f'<tr><th scope="row">{math(sort.variable)}</th><td class="arrow">→</td>'
            f"<td>{bar.join(rules)}</td></tr>"
        )
    for support, term in grammar.supports:
        rows.append(
            f'<tr><th scope="row">{math(support)}</th><td class="arrow">=</td>'
            f"<td>{math(str(term))}</td></tr>"
        )
    if not grammar.sentence_rules:
        rows.append(
            '<tr><th scope="row"><i>S</i></th><td class="arrow">→</td>'
            "<td>∅ (no sentences)</td></tr>"
        )
    return f'<table class="grammar" role="presentation">{"".join(rows)}</table>'


def _rule(rule: Rule, classes: str, content: str) -> str:
    text = escape(str(rule))
    state = {"gone": " (removed)", "current": " (being removed)", "added": " (new)"}
    spoken = text + next((words for kind, words in state.items() if kind in classes.split()), "")
    return (
        f'<span class="{classes}" data-rule="{text}" tabindex="0" aria-label="{spoken}">'
        f"{content}</span>"
    )


def proof(chain: DerivedChain, step: int, case: int) -> str:
    """One step of the proof: the rule that goes, why, and its obligation as two graphs."""
    if not chain.removals:
        return (
            '<p class="hint">Every rule of this grammar stays: we found no proof that '
            "any of them can go.</p>"
        )
    if step == 0:
        return (
            f'<p class="hint">{counted(len(chain.removals), "rule")} can go without losing power. '
            "Move the slider, or press ›, to see each one go with its proof.</p>"
        )
    removal = chain.removals[step - 1]
    reason = removal.step
    badge = f'<span class="badge {reason.status}">{reason.status}</span>'
    parts = [
        f'<p class="goes"><span class="verb">removed</span> '
        f"{_rule(removal.rule, 'rule current', math(str(removal.rule)))} "
        f'<span class="why"><b>{escape(reason.title)}</b>: {escape(reason.reason)}</span>'
        f"{badge}</p>"
    ]
    if removal.cases:
        chosen = removal.cases[min(case, len(removal.cases) - 1)]
        parts.append(_case_tabs(removal.cases, chosen))
        parts.append(f'<p class="equation">{math(chosen.equation)}</p>')
        title = f"Pattern graphs of both sides of {chosen.equation}; matched vertices share colours"
        parts.append(matched_patterns(chosen.left, chosen.right, chosen.bijection, title))
        parts.append(f'<p class="hint caption">{_caption(chosen.left)}</p>')
    elif reason.status == "cited":
        parts.append('<p class="hint">A cited theorem: there is no pattern to compare.</p>')
    elif reason.title not in LAWS_OF_STEPS:
        parts.append('<p class="hint">No sentence uses this rule, so nothing has to be shown.</p>')
    if reason.title in LAWS_OF_STEPS:
        parts.append('<p class="hint">This step rests on the laws of marks; z is the mark:</p>')
        parts += [f'<p class="equation">{math(law)}</p>' for law in reason.identities]
    if reason.paper:
        quote = f"The paper: {reason.paper}." + (f" Ours: {reason.ours}." if reason.ours else "")
        parts.append(f'<p class="paper">{_typeset(quote, _IN_PROSE, _token)}</p>')
    return "".join(parts)


_LETTERS = {"s": "a sentence", "v": "a column", "w": "a column", "x": "a column", "m": "a matrix"}
"""What an opaque letter of an obligation stands for: a word of the reduced grammar."""


def _caption(pattern: Pattern) -> str:
    """What the drawing shows, in words."""
    labels = list(dict.fromkeys(edge.label for edge in pattern.edges if not edge.ends))
    product = " · ".join(map(math, labels))
    if pattern.vertices == 0:
        shown = (
            f"Both sides are the number {product}. Numbers have no vertices to match; they move "
            "out of the word, as factors of the whole sentence."
        )
    else:
        vertices = "one vertex" if pattern.vertices == 1 else f"{pattern.vertices} vertices"
        times = f", times the number {product}" if labels else ""
        shown = (
            f"Both sides are the same labelled graph of {vertices}{times}. Vertices of one colour "
            "correspond."
        )
    letters = sorted({edge.label[0] for edge in pattern.edges} & set(_LETTERS))
    meant = ", ".join(f"<i>{letter}</i> {_LETTERS[letter]}" for letter in letters)
    return (
        f"{shown} Letters stand for any words of the reduced grammar: {meant}." if meant else shown
    )


def _case_tabs(cases: tuple[ProofCase, ...], chosen: ProofCase) -> str:
    if len(cases) == 1:
        return ""
    buttons = [
        f'<button type="button" class="chip" data-action="case" data-value="{number}" '
        f'aria-pressed="{str(case is chosen).lower()}">{math(case.equation)}</button>'
        for number, case in enumerate(cases)
    ]
    return f'<div class="cases" role="group" aria-label="Obligations">{"".join(buttons)}</div>'


def obligations(chain: DerivedChain) -> str:
    """Every obligation as a small square; those of a rule light up with it."""
    if not chain.cases:
        return f'<p class="checked">{escape(chain.checked)}</p>'
    squares = "".join(
        f'<span class="square" data-rule="{escape(case.rule)}" '
        f'title="{escape(case.rule)}: {escape(case.equation)}"></span>'
        for case in chain.cases
    )
    ok = "refused" if "refuses" in chain.checked else "checked"
    return (
        f'<div class="squares" aria-hidden="true">{squares}</div>'
        f'<p class="{ok}">{"✓" if ok == "checked" else "✗"} {escape(chain.checked)}</p>'
    )


def network(made: Network, nodes: int) -> str:
    """Parameters, FLOPs, memory; the layer; the share of every rule."""
    total = made.total
    figures = [
        (f"{total.parameters:,}", "parameters"),
        (flops_text(total.flops), f"forward, {BATCH} graphs of {nodes} nodes"),
        (bytes_text(4 * total.activations), "activations kept for training"),
    ]
    shown = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for value, label in figures)
    rows = []
    for share in made.shares:
        flops = share.cost.flops / total.flops if total.flops else 0.0
        rule = f' data-rule="{escape(share.rule)}" tabindex="0"' if share.rule else ""
        label = math(share.name) if share.rule else _math_after(" on ", share.name)
        kind = "share of-rule" if share.rule else "share"
        rows.append(
            f'<li class="{kind}"{rule} data-share="{100 * flops:.1f} %">'
            f'<span class="what">{label}</span><span class="track"><span class="fill" '
            f'style="width:{100 * flops:.2f}%"></span></span>'
            f'<span class="number">{100 * flops:.1f} %</span>'
            f'<span class="number weights">{share.cost.parameters:,}</span></li>'
        )
    head = (
        '<li class="share head" aria-hidden="true"><span class="what">part</span>'
        '<span class="track">share of FLOPs</span><span class="number"></span>'
        '<span class="number weights">weights</span></li>'
    )
    return (
        f'<dl class="figures">{shown}</dl><div class="layer">{lit_drawing(made)}</div>'
        f'<ul class="shares" aria-label="Share of the FLOPs">{head}{"".join(rows)}</ul>'
    )


def lit_drawing(made: Network) -> str:
    """The drawing of a layer, its boxes marked with the rule they belong to."""
    by_selector = {label: rule for rule, labels in made.selectors.items() for label in labels}

    def marked(box: re.Match[str]) -> str:
        rule = box[2] if box[1] == "rule" else escape(by_selector.get(box[2], ""))
        return f'{box[0]} data-rule="{rule}"' if rule else box[0]

    return re.sub(r'class="box (rule|selector)" data-name="([^"]*)"', marked, made.drawing)


def power(words: Verdict | None, net: Verdict | None, layers: int) -> str:
    """The verdict: a scale, then a table against 1-WL and 3-WL with the evidence."""
    statements = [*(words.statements if words else ()), *(net.statements if net else ())]
    places: list[tuple[str, Span | None]] = []
    by_about: dict[str, dict[str, Statement]] = {}
    for statement in statements:
        by_about.setdefault(statement.about, {})[statement.against] = statement
    for about, against in by_about.items():
        if about.startswith("as words"):
            places.append(_on_ladder("words", against))
        elif about.startswith("as this network"):
            places.append(_on_ladder(f"network, {counted(layers, 'layer')}", against))
    notes = dict.fromkeys([*(words.notes if words else ()), *(net.notes if net else ())])
    rows = "".join(_about_row(about, against) for about, against in by_about.items())
    table = (
        '<table class="verdict"><thead><tr><th scope="col">simple graphs</th>'
        '<th scope="col">1-WL</th><th scope="col">3-WL</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        if rows
        else ""
    )
    more = "".join(f"<li>{escape(note[:1].upper() + note[1:])}</li>" for note in notes)
    notes_html = (
        f'<details class="notes"{"" if rows else " open"}><summary>Notes</summary>'
        f"<ul>{more}</ul></details>"
        if more
        else ""
    )
    return (power_ladder(places) if places else "") + table + notes_html


def _on_ladder(what: str, against: dict[str, Statement]) -> tuple[str, Span | None]:
    """A thing and its span; what has none says why."""
    span = ladder_place(against)
    if span is None:
        beside = [test for test, said in against.items() if said.relation == "incomparable with"]
        what += f": incomparable with {' and '.join(beside)}" if beside else ": open"
    return what, span


# Places on the scale left to what stands so to 1-WL; those of 3-WL are two steps higher.
_LOWEST = {"equals": 1, "at least": 1, "strictly above": 2, "not bounded by": 2}
_HIGHEST = {"equals": 1, "at most": 1, "strictly below": 0}


def ladder_place(against: dict[str, Statement]) -> Span | None:
    """From where to where on the scale a thing may stand; None where that is unknown or beside."""
    one, three = (against[test].relation if test in against else "" for test in ("1-WL", "3-WL"))
    if "incomparable with" in (one, three):
        return None
    low = max(_LOWEST.get(one, 0), _LOWEST.get(three, -2) + 2)
    high = min(_HIGHEST.get(one, 4), _HIGHEST.get(three, 2) + 2)
    return (low, high) if low <= high and (low, high) != (0, 4) else None


def _about_row(about: str, against: dict[str, Statement]) -> str:
    short, _, rest = about.partition(": ")
    title = short.replace(" of unlimited width", "")
    cells = []
    for test in ("1-WL", "3-WL"):
        statement = against.get(test)
        if statement is None:
            cells.append("<td></td>")
            continue
        kind = statement.relation.replace(" ", "-")
        evidence = "".join(f"<li>{name(line)}</li>" for line in statement.evidence)
        cells.append(
            f'<td><details><summary class="relation {kind}"><span class="symbol">'
            f"{_SIGNS.get(statement.relation, '≈')}</span> {escape(statement.relation)}"
            f"</summary><ul>{evidence}</ul></details></td>"
        )
    network = about.startswith("as this network")
    detail = _math_after("read-out ", rest) if network else name(rest)
    small = f"<small>{detail}</small>" if rest else ""
    return f'<tr><th scope="row">{escape(title)}{small}</th>{"".join(cells)}</tr>'


def _math_after(sign: str, text: str) -> str:
    """Text such as `3 layers, read-out 1ᵀV_c`, what follows the sign typeset."""
    before, sign, rest = text.partition(sign)
    return escape(before + sign) + math(rest)


def pair(report: PairReport, place: int) -> str:
    """What tells the two graphs apart, and by which sentence."""
    if report.faulty:
        return ""
    chips = "".join(_outcome(outcome) for outcome in report.outcomes)
    parts = [
        '<p class="hint">What tells them apart (✓) and what does not (–):</p>'
        f'<ul class="outcomes" aria-label="What tells the graphs apart">{chips}</ul>'
    ]
    if report.sentence:
        parts.insert(0, _sentence(report, place))
    else:
        why = (
            "These two graphs are isomorphic: no grammar and no test tells them apart."
            if report.isomorphic
            else "None of the grammars below has a sentence that differs on these two graphs."
        )
        parts.insert(0, f'<p class="hint">{why}</p>')
    return "".join(parts)


def _sentence(report: PairReport, place: int) -> str:
    what = "shortest sentence" if report.shortest else "a sentence"
    first, second = (*report.values, "", "")[:2]
    drawing = places = ""
    if report.pattern is not None and report.pattern.vertices:
        title = f"The pattern that {report.sentence} counts"
        drawing = f'<div class="counted">{single_pattern(report.pattern, title)}</div>'
        counts = [len(found) for found in report.places]
        if any(counts):
            most = max(counts)
            at = min(place, most - 1)
            places = (
                '<p class="places"><button type="button" class="chip" data-action="place" '
                f'data-value="{(at - 1) % most}" aria-label="Previous place">‹</button>'
                f"<span>place {at + 1} of {most} drawn in the graphs</span>"
                '<button type="button" class="chip" data-action="place" '
                f'data-value="{(at + 1) % most}" aria-label="Next place">›</button></p>'
            )
    return (
        '<div class="sentence"><div><p class="what">'
        f'{what} of <span class="name">{name(report.whose)}</span></p>'
        f'<p class="equation">{math(report.sentence)}</p>'
        f'<p class="values"><b>{escape(first)}</b> and <b>{escape(second)}</b></p>'
        f"{places}</div>{drawing}</div>"
    )


def _outcome(outcome: PairAnswer) -> str:
    sign, words, kind = {
        True: ("✓", "tells them apart", "yes"),
        False: ("–", "does not", "no"),
        None: ("?", "open", "open"),
    }[outcome.different]
    mine = " mine" if outcome.mine else ""
    detail = outcome.detail
    shown = f"by {math(detail[3:])}" if detail.startswith("by ") else escape(detail)
    return (
        f'<li class="{kind}{mine}"><span class="sign" aria-hidden="true">{sign}</span>'
        f'<span class="name">{name(outcome.name)}</span><span class="visually-hidden"> {words} '
        f'</span><span class="detail">{shown}</span></li>'
    )


def file_report(report: FileReport) -> str:
    """What a dropped file holds."""
    mark, kind = ("✓", "checked") if report.holds else ("✗", "refused")
    use = (
        '<button type="button" class="button" data-action="use-file">Show its grammar</button>'
        if report.language
        else ""
    )
    details = f"<pre>{escape(report.details)}</pre>" if report.details else ""
    return (
        f'<div class="file"><p class="{kind}">{mark} <b>{escape(report.name)}</b> '
        f"{escape(report.verdict)}</p>{use}"
        '<button type="button" class="button quiet" data-action="close-file">Close</button>'
        f"{details}</div>"
    )


def message(text: str) -> str:
    """A plain sentence in place of a result."""
    return f'<p class="trouble" role="alert">{escape(text)}</p>'


def ticks(operations: Iterable[str]) -> str:
    """One box for every operation; those of the language are ticked."""
    chosen = set(operations)
    boxes = []
    for key, operation in OPERATIONS.items():
        on = " checked" if key in chosen else ""
        boxes.append(
            f'<label class="tick" title="{escape(operation.meaning)}"><input type="checkbox" '
            f'data-tick="{escape(key)}"{on}><span class="symbol">{_symbol(operation.symbol)}</span>'
            f'<span class="meaning">{escape(operation.meaning or operation.signature)}</span>'
            "</label>"
        )
    return "".join(boxes)


def _symbol(symbol: str) -> str:
    return (
        math(symbol) if symbol.startswith(("f_", "Σ_")) or symbol in ("1", "ᵀ") else escape(symbol)
    )
