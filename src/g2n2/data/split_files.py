"""Splits written in a file.

JSON: `{"train": [...], "validation": [...], "test": [...]}`; whole numbers are places in the input
counted from 0, text is ids. CSV: the columns `id` or `index`, and `split`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import DataError
from ..input_files import parse_json, printable
from .graph_set import GraphSet, Ints
from .readers.labels import PARTS, part_of
from .readers.tables import read_table, read_utf8


def read_split_file(path: str | Path, graphs: GraphSet) -> dict[str, Ints]:
    """Read the parts of a split; graphs the reader skipped are left out.

    Raises:
        DataError: If the file is malformed, or names a graph the set does not have.
    """
    listed = _from_csv(path) if ".csv" in Path(path).name.lower() else _from_json(path)
    by_id: dict[str, list[int]] = {}
    for index, name in enumerate(graphs.ids):
        by_id.setdefault(name, []).append(index)
    by_row = _rows(graphs)
    parts: dict[str, Ints] = {}
    for part, members in listed.items():
        found: list[int] = []
        for member in members:
            if isinstance(member, str):
                if member not in by_id:
                    raise DataError(
                        f"{path}: {part!r} names {member!r}, which is no id of {graphs.name} "
                        f"(ids are like {', '.join(graphs.ids[:3]) or 'none'})"
                    )
                found += by_id[member]
            elif not 0 <= member < 2**62:
                shown = printable(str(member), 40)
                raise DataError(f"{path}: {part!r} names graph {shown}; they count from 0")
            elif by_row is None or not 0 <= member < graphs.source["records"]:
                found.append(member)  # one that does not exist is refused with the others
            elif member in by_row:
                found.append(by_row[member])
        parts[part] = np.array(found, dtype=np.int64)
    return parts


def _rows(graphs: GraphSet) -> dict[int, int] | None:
    """Row of the input to graph, where the reader skipped rows; None where they are the same."""
    rows = graphs.source.get("rows")
    if rows is None or len(rows) != len(graphs) or rows == tuple(range(len(graphs))):
        return None
    return {row: index for index, row in enumerate(rows)}


def _from_json(path: str | Path) -> dict[str, list[int | str]]:
    try:
        content = parse_json(read_utf8(path))
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}); expected lists by part") from error
    if not isinstance(content, dict):
        raise DataError(f'{path} holds no object; expected {{"train": [...], "test": [...]}}')
    parts: dict[str, list[int | str]] = {}
    for name, members in content.items():
        if name.lower() not in PARTS:
            raise DataError(f"{path}: {name!r} is no part; expected train, validation or test")
        if not isinstance(members, list) or not all(
            isinstance(member, int | str) and not isinstance(member, bool) for member in members
        ):
            raise DataError(f"{path}: {name!r} is no list of whole numbers or ids")
        parts[PARTS[name.lower()]] = members
    return parts


def _from_csv(path: str | Path) -> dict[str, list[int | str]]:
    table = read_table(path)
    key, column = table.first_of(("index", "id")), table.first_of(("split", "part"))
    if key is None or column is None:
        raise DataError(
            f"{path} has the columns {', '.join(table.columns)}; expected id,split or index,split"
        )
    members = _members(table.columns[key], key.lower() == "index", str(path))
    parts = part_of(table.columns[column], str(path))
    return {part: [members[row] for row in rows] for part, rows in parts.items()}


def _members(cells: Sequence[str], numbered: bool, where: str) -> list[int | str]:
    if not numbered:
        return list(cells)
    try:
        return [int(cell) for cell in cells]
    except ValueError as error:
        raise DataError(f"{where}: an index is not a whole number ({error})") from error
