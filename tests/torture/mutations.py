"""Valid content made invalid: bytes, lines and cells, JSON values, members of archives.

Every function draws from a `Random`, so that a number and a seed give the same file again.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

Mutate = Callable[[Random, bytes], bytes]

TOKENS = [
    *("", "0", "-1", "1", "nan", "inf", "-inf", "1e999", "-0.0", "1e-320", "0,5", "0x10", "1_000"),
    *("2147483648", "-9223372036854775809", "18446744073709551616", "9" * 40, "9" * 5000),
    *(
        "null",
        "true",
        "[]",
        "{}",
        "''",
        '"',
        '""',
        "'",
        "\\",
        "\0",
        "\r",
        "\n",
        "\t",
        ",",
        ";",
        "|",
    ),
    *("\ufeff", "é", "𝔸", "\u202e", "\ud7ff", "%s%n", "../../etc/passwd", "=1+1", "$(id)", "`id`"),
    *(
        "C",
        "[U]",
        "[Fe+2]",
        "C1CC1.[Na+].[Cl-]",
        "c1ccccc1",
        "[H][H]",
        "*",
        "C%99",
        "[13C@@H]",
        "))",
    ),
    *("A_", "Bw", "~~~~~~~~", ">>graph6<<", ":An", "&A?", "K" * 300, "C" * 3000, "(" * 500),
]
"""What stands in a cell where it should not."""

ODD: list[Any] = [
    *(None, True, False, -1, 0, 1, 1.5, 2**31, 2**63, 2**64, 10**30, 1e308, -1e308, 1e-320),
    *("", "x", "nan", "\0", "é" * 50, "a" * 5000, [], [[]], {}, {"a": 1}, [None], [1] * 2000),
    *(float("nan"), float("inf"), -float("inf")),
]
"""What stands in a field where it should not."""


def in_bytes(chance: Random, content: bytes) -> bytes:
    """One to four changes anywhere, whatever the bytes mean."""
    made = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(made) + 1)
        span = min(chance.choice((1, 1, 2, 8, 64, 1024)), len(made) - at)
        match chance.randrange(9):
            case 0 if at < len(made):
                made[at] ^= 1 << chance.randrange(8)
            case 1 if at < len(made):
                made[at] = chance.randrange(256)
            case 2:
                made[at:at] = chance.randbytes(chance.choice((1, 4, 100)))
            case 3:
                del made[at : at + span]
            case 4:
                made[at:at] = made[at : at + span] * chance.choice((1, 2, 50))
            case 5:
                del made[at:]
            case 6:
                made[at : at + span] = bytes(span)
            case 7:
                other = chance.randrange(len(made) + 1)
                made[at : at + span] = made[other : other + span]
            case _:
                made[at:at] = chance.choice(TOKENS).encode(errors="replace")
    return bytes(made)


def in_lines(chance: Random, content: bytes) -> bytes:
    """A line, or a word or cell of one, removed, repeated, moved or made something else."""
    text = content.decode("utf-8", errors="replace")
    lines = text.split("\n")
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(lines))
        match chance.randrange(6):
            case 0 if len(lines) > 1:
                del lines[at]
            case 1:
                lines[at:at] = [lines[at]] * chance.choice((1, 1, 2000))
            case 2:
                other = chance.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines.insert(at, chance.choice(TOKENS))
            case _:
                lines[at] = _in_cells(chance, lines[at])
    return "\n".join(lines).encode(errors="replace")


def in_json(chance: Random, content: bytes) -> bytes:
    """A value replaced, moved, removed or nested, a key repeated or renamed."""
    try:
        said = json.loads(content)
    except ValueError:
        return in_bytes(chance, content)
    if chance.random() < 0.05:
        return chance.choice((b"[" * 100_000, b'{"a":' * 50_000, b'{"a": 1, "a": 2}', b"1" * 5000))
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        said = _in_value(chance, said)
    text = json.dumps(said, ensure_ascii=chance.random() < 0.5)
    if chance.random() < 0.1 and '": ' in text:
        key = chance.choice([part.rpartition('"')[2] for part in text.split('": ')[:-1]])
        text = text.replace(f'"{key}": ', f'"{key}": {chance.choice(["1", "null"])}, "{key}": ', 1)
    return text.encode(errors="replace")


def in_members(chance: Random, content: bytes, inner: Mutate = in_bytes) -> bytes:
    """A member of a zip file changed, removed, repeated or renamed, and packed again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    at = chance.randrange(len(members))
    name, held = members[at]
    match chance.randrange(8):
        case 0 if len(members) > 1:
            del members[at]
        case 1:
            members.append((name, held))
        case 2:
            members[at] = (
                chance.choice(("../x", "/etc/x", "C:\\x", name[:-1], "x.npy", "\0")),
                held,
            )
        case 3:
            members.append((f"more-{name}", held))
        case _:
            members[at] = (name, inner(chance, held))
    return zipped(members)


def zipped(members: list[tuple[str, bytes]], packed: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", packed) as archive:
        for name, held in members:
            info = zipfile.ZipInfo(name.replace("\0", "") or "x")
            archive.writestr(info, held, packed)
    return made.getvalue()


def in_header(chance: Random, content: bytes) -> bytes:
    """An array's header: another shape, type or order than the numbers that follow have."""
    start = content.find(b"{")
    end = content.find(b"\n")
    if not 0 < start < end:
        return in_bytes(chance, content)
    header = content[start:end].decode("latin-1")
    old, new = chance.choice(
        [
            ("'shape': (", f"'shape': ({chance.choice(TOKENS[:12])},"),
            (
                "'descr': '",
                f"'descr': '{chance.choice(('|O', '<U9', '<c16', '<M8', 'V', '>f2', '['))}",
            ),
            ("False", "True"),
            ("}", chance.choice(("", "(", "}}", "#"))),
            (",", chance.choice(("", "9" * 50))),
        ]
    )
    made = header.replace(old, new, 1).encode("latin-1", errors="replace")
    length = (len(made) + 1).to_bytes(2, "little") if chance.random() < 0.8 else content[8:10]
    return content[:8] + length + made + content[end:]


def packed(chance: Random, content: bytes, inner: Mutate) -> bytes:
    """A gzip file: its bytes changed, or what it holds."""
    if chance.random() < 0.5:
        return in_bytes(chance, content)
    return gzip.compress(inner(chance, gzip.decompress(content)), mtime=0)


def either(*ways: Mutate) -> Mutate:
    """One of several ways at a time; now and then an empty file, or bytes of nothing."""

    def mutate(chance: Random, content: bytes) -> bytes:
        if chance.random() < 0.01:
            return chance.choice((b"", b"\0" * 1000, chance.randbytes(1000), b"\n" * 10_000))
        return chance.choice(ways)(chance, content)

    return mutate


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, the value itself first."""
    yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*at, key))


def _in_value(chance: Random, said: Any) -> Any:
    place = chance.choice(list(places(said)))
    if not place:
        return deepcopy(chance.choice(ODD)) if chance.random() < 0.3 else {"a": said}
    holder = said
    for key in place[:-1]:
        holder = holder[key]
    key = place[-1]
    match chance.randrange(6):
        case 0 if isinstance(holder, dict):
            holder[chance.choice(("x", key + " ", key.upper()))] = holder.pop(key)
        case 1:
            del holder[key]
        case 2:
            holder[key] = [holder[key]]
        case 3 if isinstance(holder[key], str):
            holder[key] = in_lines(chance, holder[key].encode()).decode(errors="replace")
        case 4 if type(holder[key]) in (int, float):
            holder[key] = chance.choice((-holder[key], holder[key] + 1, holder[key] * 1e9, 10**25))
        case _:
            holder[key] = deepcopy(chance.choice(ODD))
    return said


def _in_cells(chance: Random, line: str) -> str:
    separator = chance.choice((",", " ", "\t", ";"))
    cells = line.split(separator)
    at = chance.randrange(len(cells))
    match chance.randrange(5):
        case 0 if len(cells) > 1:
            del cells[at]
        case 1:
            cells.insert(at, cells[at])
        case 2:
            other = chance.randrange(len(cells))
            cells[at], cells[other] = cells[other], cells[at]
        case _:
            cells[at] = chance.choice(TOKENS)
    return separator.join(cells)
