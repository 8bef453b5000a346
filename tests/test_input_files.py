"""Input files that would hang, fill the memory or fool a reader end in one sentence."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import g2n2
from g2n2.data.archives import read_npz
from g2n2.data.batch import GraphBatch
from g2n2.data.graph_set import GraphSet
from g2n2.data.reading import read_graphs
from g2n2.data.splits import read_split_file
from g2n2.errors import DataError, G2N2Error, GrammarError, ReductionError
from g2n2.graphs import read_graph, read_graph6_file
from g2n2.input_files import HARMLESS, parse_json, printable, read_file
from g2n2.pipeline import choose_grammar

GIBIBYTE = 2**30


def bomb(path: Path, line: bytes, size: int) -> Path:
    """A gzip file of one line over and over, written piece by piece."""
    piece = line * (2**20 // len(line))
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(size // len(piece) + 1):
            file.write(piece)
    return path


READERS: list[tuple[str, Callable[[Path], Any]]] = [
    ("a.csv.gz", read_graphs),
    ("a.smi.gz", read_graphs),
    ("a.sdf.gz", read_graphs),
    ("a.g6.gz", read_graph6_file),
    ("a.txt.gz", read_graph),
]


@pytest.mark.parametrize(("name", "read"), READERS)
def test_a_gzip_bomb_is_refused_by_its_ratio(
    tmp_path: Path, name: str, read: Callable[[Path], Any]
) -> None:
    path = bomb(tmp_path / name, b"CC,1\n", HARMLESS + 2**21)
    assert path.stat().st_size * 200 < HARMLESS
    with pytest.raises(DataError, match=r"would expand from [\d,]+ to more than 67,108,864 bytes"):
        read(path)


def test_a_bomb_of_a_gigabyte_takes_little_memory(tmp_path: Path) -> None:
    # Members of one gzip file follow each other, so 8 copies expand to 8 times as much.
    one = bomb(tmp_path / "one.csv.gz", b"CC,1\n", 2**27).read_bytes()
    path = tmp_path / "a.csv.gz"
    path.write_bytes(one * 8)
    code = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({3 * GIBIBYTE // 4}, {3 * GIBIBYTE // 4}))\n"
        "from g2n2.input_files import read_text_file\n"
        "from g2n2.errors import DataError\n"
        "try:\n    read_text_file(sys.argv[1])\n"
        "except DataError as fault:\n    print(fault)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert "it is no honest data file, or must be cut into parts" in done.stdout


def test_equal_lines_that_stay_small_are_read_at_any_ratio(tmp_path: Path) -> None:
    path = bomb(tmp_path / "a.txt.gz", b"0 1\n", 2**18)
    assert path.stat().st_size * 200 < 2**18
    assert read_graph(path).tolist() == [[0, 1], [1, 0]]


def npz_with_header(path: Path, header: str) -> Path:
    text = header.encode("latin1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(8)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("A.npy", content)
    return path


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)",
        "((((",
        "'''",
        "",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ('a',)}",
        "{'descr': [('a',)], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<q9', 'fortran_order': 3, 'shape': 1}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'shape': (2,)} \\",
        "-" * 3000 + "1",
        "{[]: 1}",
        "\x00",
    ],
)
def test_an_array_header_that_is_no_header(tmp_path: Path, header: str) -> None:
    path = npz_with_header(tmp_path / "a.npz", header)
    with pytest.raises(DataError, match=r"a\.npz"):
        read_graphs(path)


def test_numbers_of_more_digits_than_python_converts(tmp_path: Path) -> None:
    many = "9" * 5000
    files: dict[str, str] = {
        "edges.csv": f"graph,source,target\n1,0,{many}\n1,0,1\n",
        "a.xyz": f"{many}\n\nC 0 0 0\n",
        "b.xyz": f"1\n\n{many} 0 0 0\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert read_graphs(tmp_path / "edges.csv").sizes.tolist() == [3]
    for name in ("a.xyz", "b.xyz"):
        with pytest.raises(DataError):
            read_graphs(tmp_path / name)
    (tmp_path / "one.txt").write_text(f"0 1\n1 {many}\n")
    assert len(read_graph(tmp_path / "one.txt")) == 3


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 30, "-" + "9" * 30])
def test_a_split_file_with_a_huge_number(tmp_path: Path, number: str) -> None:
    graphs = read_graphs(["Bw", "C~"])
    (tmp_path / "s.json").write_text(f'{{"train": [0], "test": [{number}]}}')
    (tmp_path / "s.csv").write_text(f"index,split\n0,train\n{number},test\n")
    for name in ("s.json", "s.csv"):
        with pytest.raises(DataError, match=name):
            read_split_file(tmp_path / name, graphs)


DOORS: list[tuple[str, Callable[[Path], Any]]] = [
    ("a.csv", read_graphs),
    ("a.sdf", read_graphs),
    ("a.npz", read_graphs),
    ("a.zip", read_graphs),
    ("a.g6", read_graphs),
    ("a.g6.gz", read_graph),
    ("a.txt", read_graph),
    ("a.txt", lambda path: GraphBatch.of([path])),
    ("a.txt", lambda path: g2n2.evaluate("1ᵀA1", path)),
    ("a.npz", read_npz),
    ("a.zip", read_file),
    ("a.json", g2n2.check),
    ("a.json", lambda path: read_split_file(path, read_graphs(["Bw", "C~"]))),
    ("a.txt", lambda path: choose_grammar(str(path), reduce=True)),
]


@pytest.mark.parametrize(("name", "read"), DOORS)
def test_a_fifo_is_refused_and_not_waited_for(
    tmp_path: Path, name: str, read: Callable[[Path], Any]
) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(G2N2Error, match=r"is a FIFO"):
        read(tmp_path / name)


@pytest.mark.parametrize(("name", "read"), DOORS)
def test_a_device_is_refused(tmp_path: Path, name: str, read: Callable[[Path], Any]) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(G2N2Error, match=r"is a device"):
        read(tmp_path / name)


def test_a_fifo_among_the_files_of_a_folder_is_one_bad_record(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    (tmp_path / "a.xyz").write_text("3\n\nO 0 0 0.117\nH 0 0.757 -0.471\nH 0 -0.757 -0.471\n")
    os.mkfifo(tmp_path / "b.xyz")
    graphs = read_graphs(tmp_path)
    assert isinstance(graphs, GraphSet)
    assert graphs.ids == ("a",)
    assert "is a FIFO" in graphs.notes[0]


SECRET = "root:$6$secret"


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f'{{"{SECRET}": 1, "{SECRET}": 2}}',
        f'{{"format": "g2n2 certificate 1", "format": "{SECRET}"}}',
        f'{{"format": "{SECRET}"}}',
        f'["{SECRET}"',
        "[" * 100_000,
        f'{{"format": {"9" * 5000}}}',
    ],
)
def test_a_refused_certificate_is_not_echoed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(ReductionError) as caught:
        g2n2.check(path)
    assert SECRET not in str(caught.value)
    assert len(str(caught.value)) < 400
    if text.startswith("{"):
        with pytest.raises(G2N2Error) as chosen:
            choose_grammar(str(path), reduce=True)
        assert SECRET not in str(chosen.value)


def certificate() -> dict[str, Any]:
    return json.loads(json.dumps(g2n2.derive("L1").certificate))


def test_a_certificate_with_a_key_twice_is_refused(tmp_path: Path) -> None:
    text = json.dumps(certificate())
    path = tmp_path / "c.json"
    path.write_text(text)
    assert g2n2.check(path).valid
    path.write_text('{"to": [], ' + text[1:])
    with pytest.raises(ReductionError, match="the same key twice"):
        g2n2.check(path)
    with pytest.raises(GrammarError, match="the same key twice"):
        choose_grammar(str(path), reduce=True)
    inner = text.replace('"kind":', '"kind": "lemma", "kind":', 1)
    assert inner != text
    path.write_text(inner)
    with pytest.raises(ReductionError, match="the same key twice"):
        g2n2.check(path)


def test_what_the_checker_refuses_is_quoted_in_one_short_line(tmp_path: Path) -> None:
    long = "S → " + "M" * 200_000
    for change in (
        {"from": [long]},
        {"from": ["\x1b[31mred\x07 → \n\n1"]},
        {"\x1b[2J" + "x" * 100_000: 1},
        {"operations": [{"name": "\x1b[2J" * 99, "symbol": "x", "signature": "aa->aa"}]},
        {"operations": [{"name": "dg", "symbol": "dg", "signature": "q" * 100_000}]},
    ):
        verdict = g2n2.check({**certificate(), **change})
        assert not verdict.valid
        assert len(verdict.failure) < 400
        assert verdict.failure.isprintable()
        path = tmp_path / "c.json"
        path.write_text(json.dumps({**certificate(), **change}))
        try:
            failure = g2n2.check(path).failure
        except ReductionError as fault:
            failure = str(fault)
        assert len(failure) < 600
        assert failure.isprintable()


def test_json_is_read_strictly() -> None:
    assert parse_json('{"a": {"b": 1}, "b": [1.5, null]}') == {"a": {"b": 1}, "b": [1.5, None]}
    for text, part in (
        ('{"a": 1, "a": 1}', "same key twice"),
        ('[{"a": {"b": 1, "b": 2}}]', "same key twice"),
        ("[" * 10**5, "nested too deeply"),
        ("9" * 5000, "too many digits"),
        ("{1}", "line 1, column 2"),
    ):
        with pytest.raises(ValueError, match=part):
            parse_json(text)


def test_foreign_text_in_a_message_is_one_short_line() -> None:
    assert printable("a\x1b[31m\nb\t c") == "a [31m b c"
    assert len(printable("x" * 10**6)) == 160
    assert printable("x" * 160) == "x" * 160


def test_plain_files_have_a_bound(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"12345")
    assert read_file(tmp_path / "a.txt", 5) == b"12345"
    with pytest.raises(DataError, match="more than 4 bytes"):
        read_file(tmp_path / "a.txt", 4)


def test_a_gzip_file_that_is_cut_short_is_refused_with_a_way_to_keep_the_rest(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.csv.gz"
    whole = gzip.compress(b"smiles,y\n" + b"".join(b"C,%d\n" % n**3 for n in range(999)))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"is cut short.*gzip -dc a\.csv\.gz > part-of-a\.csv$"):
        read_graphs(path)
    path.write_bytes(whole[:99] + b"\0" * 99 + whole[198:])
    with pytest.raises(DataError, match="it is damaged; get it again"):
        read_graphs(path)
