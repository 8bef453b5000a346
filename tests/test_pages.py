"""Every block of Python and of commands in README and docs runs and prints what its page says."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

from run_page import assert_shows, blocks, parse_shell, run_page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DOCTESTS = DOCS / "python.md"  # run by test_api.py
QUICK = [ROOT / "README.md", *(DOCS / f"{name}.md" for name in ("tutorial", "power", "beyond-3wl"))]
SLOW = [DOCS / "networks.md", *sorted((DOCS / "how-to").glob("*.md"))]


def run_in_process(page: Path, folder: Path, molecules: int) -> None:
    """In a process of its own: an operation that is registered stays."""
    (folder / "examples").mkdir()
    for name, rows in (("molecules.csv", molecules), ("new.csv", 10)):
        lines = (ROOT / "examples" / name).read_text("utf-8").splitlines(keepends=True)
        (folder / "examples" / name).write_text("".join(lines[: rows + 1]), "utf-8")
    ran = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("run_page.py")), str(page)],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("page", QUICK, ids=lambda page: page.stem)
def test_the_first_pages_are_true(page, tmp_path):
    run_in_process(page, tmp_path, molecules=32)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, ids=lambda page: page.stem)
def test_a_later_page_is_true(page, tmp_path):
    run_in_process(page, tmp_path, molecules=100)  # ten to validate: enough for intervals


def test_every_page_with_python_is_run():
    with_python = {p for p in DOCS.rglob("*.md") if "```python" in p.read_text("utf-8")}
    assert with_python <= {DOCTESTS, *QUICK, *SLOW}
    for page in with_python:
        imported = re.findall(r"(?:from|import) (g2n2[.\w]*)", page.read_text("utf-8"))
        assert set(imported) <= {"g2n2", "g2n2.testing"}, f"{page}: not the public names"


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_commands_of_every_page_exist(page):
    for block in blocks(page.read_text("utf-8")):
        if block.language == "sh":
            parse_shell(block.content)


def test_the_sample_is_what_the_page_says_it_is():
    Chem = pytest.importorskip("rdkit.Chem", reason="molecules need RDKit")
    from rdkit.Chem import Crippen

    rows = list(csv.DictReader((ROOT / "examples/molecules.csv").open(encoding="utf-8")))
    assert 100 < len(rows) == len({Chem.CanonSmiles(row["smiles"]) for row in rows})
    for row in rows:
        logp = Crippen.MolLogP(Chem.MolFromSmiles(row["smiles"]))
        assert abs(float(row["logp"]) - logp) < 1e-3, row


def test_there_is_no_code_of_another_kind():
    """A language the runner does not know would never be run."""
    for page in (*QUICK, *SLOW):
        kinds = {b.language for b in blocks(page.read_text("utf-8")) if not b.title}
        assert kinds <= {"python", "text", "console", "sh"}, page
        assert page.read_text("utf-8").count("```") == 2 * len(
            list(blocks(page.read_text("utf-8")))
        ), f"{page}: a block without a language"


def test_an_excerpt_that_is_not_printed_is_found_out():
    assert_shows("a\nb\nc\n", "…\nb\n…\n")
    for wrong in ("c\n…\na\n", "a\nc\n", "…\nd\n"):
        with pytest.raises(AssertionError, match="is not printed"):
            assert_shows("a\nb\nc\n", wrong)


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nassert False\n```\n",
        "```console\n$ g2n2 wl C6 2C3\ndifferent\n```\n",
        "```console\n$ g2n2 wl C6\n```\n",
    ],
)
def test_a_page_that_is_wrong_is_found_out(page):
    with pytest.raises(AssertionError):
        run_page(page)


@pytest.mark.parametrize("line", ["g2n2 train x.csv --no-such", "make nothing", "rm -rf x"])
def test_a_script_that_is_wrong_is_found_out(line):
    with pytest.raises(Exception, match=r"No such option|make nothing|rm -rf"):
        parse_shell(line)


def test_stages_print_in_the_papers_notation_and_names_can_be_found():
    import g2n2

    derived = g2n2.derive("L1")
    assert "V_c → diag(V_c)V_c | AV_c | 1" in str(derived)
    assert "V_c → diag(V_c)V_c | AV_c | 1" in str(derived.reduction)
    assert {"parse", "derive", "separate", "refine", "G2N2Error"} <= set(dir(g2n2))
    assert all(hasattr(g2n2, name) for name in g2n2.__all__)
