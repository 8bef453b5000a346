"""derive, check, compare: grammars of fragments, their reductions and proofs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..atomic_files import check_output
from ..described import counted
from ..errors import ReductionError
from . import show
from .options import HELP_OR_TEST, AsJson, AssumeOption, Reduce, of_words, of_words_or_test

if TYPE_CHECKING:
    from ..pipeline import Chosen
    from ..power.wl_tests import WLTest
    from ..reduction.compare import Comparison, Inclusion


def derive(
    fragment: Annotated[str, typer.Argument(help="L1, L3, L3Σ, 'matmul,transpose' or '· ᵀ 1 ⊙'.")],
    out: Annotated[Path | None, typer.Option(help="Write the certificate to this file.")] = None,
    assume: AssumeOption = "symmetric",
    level: Annotated[
        Literal["graph", "node", "pair"],
        typer.Option(help="Whose outputs must keep their power: graphs, nodes or pairs of nodes."),
    ] = "graph",
    order: Annotated[
        Literal["direct", "paper"], typer.Option(help="direct, or paper: through the grammar i-G.")
    ] = "direct",
    typing: Annotated[
        Literal["paper", "full"], typer.Option(help="full also types Sᵀ, and 1 of a row.")
    ] = "paper",
    sorts: Annotated[
        bool, typer.Option(show_default=False, help="Show which sorts each operation makes.")
    ] = False,
    json: AsJson = False,
    latex: Annotated[
        bool, typer.Option(show_default=False, help="Print both grammars as LaTeX.")
    ] = False,
) -> None:
    """Make the grammar of a set of operations and reduce it, with a proof."""
    from ..pipeline import derive as run
    from ..reduction.certificates import write_certificate

    if out is not None:
        check_output(out)
    with show.waiting(f"reducing {fragment}"):
        result = run(fragment, typing, assume, level, order)
    if out is not None:  # before printing, so that `| head` loses nothing
        write_certificate(result.certificate, out)
    if json:
        show.as_json(result.to_json())
    elif latex:
        show.say(result.exhaustive.to_latex())
        show.say(result.reduced.to_latex())
    else:
        if sorts:
            rows = [
                (symbol, ", ".join(s.variable for s in arguments), made.variable)
                for symbol, arguments, made in result.fragment.table(typing)
            ]
            show.title(f"What each operation of {result.fragment} makes of what")
            show.table(("operation", "of", "makes"), rows)
        show.say(str(result))
    if out is not None and not json:
        show.say(f"\ncertificate written to {out}; check it with: g2n2 check {out}")


def check(
    file: Annotated[
        str, typer.Argument(help="What derive --out, derive --json or compare --out wrote, or -.")
    ],
    fragment: Annotated[
        str, typer.Option(help="Also require that it is about this fragment or grammar.")
    ] = "",
    json: AsJson = False,
) -> None:
    """Check a certificate, independently: exit 0 valid, 1 invalid."""
    from ..pipeline import STDIN
    from ..reduction.certificates import declare_operations, parse_certificate, read_certificate
    from ..reduction.checker import check as run

    if file == "-":
        file = STDIN
        content = parse_certificate(sys.stdin.read(), file)
    else:
        content = read_certificate(Path(file), register_operations=False)
    verdict = run(content)
    if fragment and verdict.valid:
        declare_operations(content, file)
        _require_same_grammar(content, fragment, file)
    if json:
        show.as_json({**vars(verdict), "from": content.get("from"), "to": content.get("to")})
    elif verdict.valid:
        nothing = "there was nothing to check"
        checked = (
            f"{counted(verdict.checked, 'obligation')} checked" if verdict.checked else nothing
        )
        show.say(f"valid: {checked}")
        for claim in verdict.claims:
            show.say(f"shows: {claim}")
        for operation in verdict.operations:
            show.say(f"declares: {operation}")
        for lemma in verdict.cited:
            show.say(f"cited, not checked: {lemma}")
    else:
        show.say(f"invalid: {verdict.failure}")
    raise typer.Exit(0 if verdict.valid else 1)


def compare(
    left: Annotated[str, typer.Argument(help=HELP_OR_TEST)],
    right: Annotated[str, typer.Argument(help="The one to compare it with.")],
    reduce: Reduce = None,
    assume: AssumeOption = "symmetric",
    out: Annotated[
        Path | None, typer.Option(help="Write the certificates to FILE-1.json, FILE-2.json.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Which of two grammars or WL tests tells more graphs apart."""
    from ..grammars.coercion import told_apart
    from ..pipeline import compare as run
    from ..power.wl_tests import WLTest
    from ..verdict import comparison_verdict

    if out is not None:
        check_output(out)
    first, second = of_words_or_test(left, reduce), of_words_or_test(right, reduce)
    if isinstance(first, WLTest) or isinstance(second, WLTest):
        if out is not None:
            raise ReductionError("a comparison with a WL test has no certificate; leave out --out")
        _compare_with_test(first, second, json)
        return
    a, b = told_apart([first.grammar, second.grammar], [left, right])
    with show.waiting(f"comparing {a.name} and {b.name}"):
        comparisons = [run(a, b, "words", assume), run(a, b, "with f", assume)]
        verdicts = [comparison_verdict(comparison) for comparison in comparisons]
    if json:
        pairs = zip(comparisons, verdicts, strict=True)
        show.as_json([{**_comparison_json(c), "verdict": v.to_json()} for c, v in pairs])
    else:
        for note in dict.fromkeys(chosen.note for chosen in (first, second) if chosen.note):
            show.say(note)
        for side, grammar in (("left   ", a), ("right  ", b)):
            show.say(f"{side}{grammar.name}")
            show.grammar(grammar, 4)
        for comparison in comparisons:
            _say_comparison(comparison)
        show.say(f"\n{verdicts[0] + verdicts[1]}")
    if out is not None:
        _write_proofs(comparisons[0], out, quiet=json)


def _compare_with_test(first: Chosen | WLTest, second: Chosen | WLTest, json: bool) -> None:
    """A WL test on one side, or on both: theorems, simulations and pairs of graphs decide."""
    from ..api import WLComparison, compare_with_test
    from ..power.wl_tests import WLTest
    from ..reduction.compare import MODES
    from ..verdict import Verdict, no_sentences_verdict

    left, right = (side if isinstance(side, WLTest) else side.grammar for side in (first, second))
    comparisons: list[WLComparison] = []
    grammars = [one for one in (left, right) if not isinstance(one, WLTest)]
    if silent := [grammar for grammar in grammars if not grammar.sentence_rules]:
        verdict = no_sentences_verdict(silent[0])
    else:
        modes = MODES if grammars else MODES[:1]  # functions make no other test
        comparisons = [compare_with_test(left, right, mode) for mode in modes]
        verdict = Verdict(tuple(one.statement for one in comparisons))
    if json:
        show.as_json(
            [
                {
                    "left": one.left,
                    "right": one.right,
                    "mode": mode,
                    "assumptions": {"A": "simple", "level": "graph"},
                    "relation": one.relation,
                    "verdict": Verdict((one.statement,)).to_json(),
                }
                for mode, one in zip(MODES, comparisons, strict=False)
            ]
        )
        return
    for side in (first, second):
        if not isinstance(side, WLTest) and side.note:
            show.say(side.note)
    show.say(str(verdict))


def _require_same_grammar(content: dict[str, Any], fragment: str, file: str) -> None:
    wanted = of_words(fragment).grammar
    rules = {str(rule) for rule in wanted.all_rules}
    if set(content.get("from") or ()) != rules:
        raise ReductionError(
            f"{file} is a certificate of another grammar than {wanted.name}; "
            f"write one with: g2n2 derive '{fragment}' --out FILE"
        )


def _say_comparison(comparison: Comparison) -> None:
    from ..narration import assumption
    from ..verdict import inclusion_text

    how = "words alone" if comparison.mode == "words" else "with sums and pointwise f"
    show.title(f"{how}: {comparison.left.name} {comparison.relation} {comparison.right.name}")
    names = comparison.left.name, comparison.right.name
    for inclusion, (small, large) in (
        (comparison.forward, names),
        (comparison.backward, names[::-1]),
    ):
        show.say(f"  {small} ⊆ {large}: {inclusion_text(inclusion)}")
        for lemma in inclusion.cited:
            show.say(f"      cited: {lemma}")
    show.say(f"  read-outs {comparison.left.readout_text} and {comparison.right.readout_text}")
    show.say(f"  assumed: {assumption(comparison.assume)}")


def _comparison_json(comparison: Comparison) -> dict[str, Any]:
    def one(inclusion: Inclusion) -> dict[str, Any]:
        return {
            "status": inclusion.status,
            "obligations": len(inclusion.proof.witnesses) if inclusion.proof else 0,
            "form": inclusion.proof.claim.form if inclusion.proof else None,
            "cited": list(inclusion.cited),
            "reason": inclusion.reason,
            "witness": inclusion.witness,
        }

    return {
        "left": comparison.left.name,
        "right": comparison.right.name,
        "mode": comparison.mode,
        "assumptions": {"A": comparison.assume, "level": "graph"},
        "relation": comparison.relation,
        "left_in_right": one(comparison.forward),
        "right_in_left": one(comparison.backward),
    }


def _write_proofs(comparison: Comparison, out: Path, quiet: bool) -> None:
    from ..reduction.certificates import certificate, write_certificate

    for number, inclusion in enumerate((comparison.forward, comparison.backward), 1):
        if inclusion.proof is not None:
            claim = inclusion.proof.claim
            path = out.with_name(f"{out.stem}-{number}.json")
            write_certificate(certificate(claim.larger, claim.smaller, [inclusion.proof]), path)
            if not quiet:
                show.say(f"certificate written to {path}")
