"""What a test or an engine may take, refused before it is allocated."""

from __future__ import annotations

from ..errors import DataError

DEFAULT_MEMORY_LIMIT = 8 * 2**30


def check_memory(what: str, needed: int, limit: int, advice: str) -> None:
    """Refuse to take more bytes than the limit; `what` is a sentence up to their number."""
    if needed > limit:
        raise DataError(
            f"{what} {needed / 2**30:,.1f} GiB, the limit is {limit / 2**30:,.1f} GiB: {advice}"
        )
