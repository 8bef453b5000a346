"""The documentation site: complete, strict, without outside hosts, and true about settings."""

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from g2n2.errors import DataError
from g2n2.training.config import RunConfig

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["'](?:https?:)?//[^"']*"""
    r"""|<link\b[^>]*\brel=["'](?:stylesheet|preconnect|preload|icon)["'][^>]*(?:https?:)?//[^"'>]*"""
    r"""|@import[^;]*(?:https?:)?//|url\(["']?(?:https?:)?//"""
)
"""What a browser would fetch from another host by itself; a link the reader may click is none."""


@pytest.fixture(scope="module")
def generated():
    spec = importlib.util.spec_from_file_location("generated", ROOT / "docs/generated_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def accepted(name: str, value: object) -> bool:
    try:
        replace(RunConfig("x"), **{name: value}).checked()
    except DataError:
        return False
    return True


def test_the_ranges_of_the_settings_page_are_those_of_the_settings(generated):
    for name, (least, most) in generated.RANGES.items():
        if name != "width":  # whose largest value needs fewer layers
            assert accepted(name, most), name
        assert (accepted(name, least), accepted(name, least - 1)) == (True, False), name
        assert not accepted(name, most + 1 if most < 2**53 else most * 2), name
    for name, below in generated.BELOW.items():
        assert (accepted(name, 0.5), accepted(name, below), accepted(name, -0.1)) == (
            True,
            False,
            False,
        )
    for name in ("readout", "pooling", "functions", "device", "precision", "recipe"):
        assert all(accepted(name, choice) for choice in generated.NAMES[name])
        assert not accepted(name, "another")


def test_every_setting_is_on_its_page(generated):
    page = generated.settings_page()
    for field in fields(RunConfig):
        (row,) = re.findall(rf"^\| `{field.name}` \|(.*)\|$", page.partition("## Recipes")[0], re.M)
        assert all(cell.strip() for cell in re.split(r"(?<!\\)\|", row)), row


def test_the_written_reference_pages_are_current(generated):
    for name, make in generated.PAGES.items():
        written = (ROOT / f"docs/reference/{name}.md").read_text("utf-8")
        assert written == generated.NOTE + make(), "run: python docs/generated_pages.py"


def broken_links(page: Path, text: str) -> list[str]:
    """Links of a Markdown page to files that are not there, for whoever reads the repository."""
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [x for x in links if "://" not in x and not (page.parent / x).exists()]


def test_every_link_of_the_repository_leads_somewhere():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
    assert len(pages) > 30
    assert not {p.name: b for p in pages if (b := broken_links(p, p.read_text("utf-8")))}
    assert broken_links(ROOT / "README.md", "[a](docs/none.md#x) [b](docs/power.md#x)") == [
        "docs/none.md"
    ]


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs", reason="the site needs mkdocs: pip install 'g2n2[docs]'")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    pages = [*tmp_path.rglob("*.html"), *tmp_path.rglob("*.css")]
    assert len(pages) > 20
    assert "∖ {M⊙M}" in (tmp_path / "results.html").read_text("utf-8"), "braces are lost in tables"
    fetched = {page.name: OUTSIDE.findall(page.read_text("utf-8")) for page in pages}
    assert not {name: found for name, found in fetched.items() if found}
