"""Step 1: the grammar, derived, with a certificate that an independent checker accepts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import ReductionError
from ..pipeline import Derivation, derive
from ..reduction.certificates import read_certificate, write_certificate
from ..reduction.checker import CheckResult, check


@dataclass(frozen=True)
class DemoProof:
    """A derivation, and what the checker says of its certificate."""

    derivation: Derivation
    verdict: CheckResult

    @property
    def removed(self) -> int:
        """How many rules of the exhaustive grammar are gone."""
        kept = set(self.derivation.reduced.all_rules)
        return len(set(self.derivation.exhaustive.all_rules) - kept)


def prove(fragment: str, path: Path) -> DemoProof:
    """Derive a grammar, write its certificate, and check the file as anyone else would.

    Raises:
        ReductionError: The checker does not accept it.
    """
    derivation = derive(fragment)
    write_certificate(derivation.certificate, path)
    verdict = check(read_certificate(path))
    if not verdict.valid:
        raise ReductionError(f"the checker refuses {path}: {verdict.failure}")
    return DemoProof(derivation, verdict)
