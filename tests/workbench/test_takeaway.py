"""What is taken along works elsewhere; a dropped file says what it is."""

import contextlib
import io
import json
import shlex

import pytest

from g2n2 import GrammarGNN, check
from g2n2.grammars.catalogue import find_grammar
from g2n2.workbench.chain import derive_chain
from g2n2.workbench.files import inspect_file
from g2n2.workbench.languages import OWN, read_language
from g2n2.workbench.state import State
from g2n2.workbench.takeaway import texts


def quiet(share, text):
    """No progress."""


@pytest.mark.parametrize("language", ["L1", "PPGN", "TriMul", OWN, 'V → AV | 1 # my "own" \\ one'])
def test_what_is_taken_along_means_the_same_grammar(language):
    read = read_language(language)
    chain = derive_chain(read.grammar, quiet)
    made = texts(State(language=language, width=4, layers=1), read, chain, "<svg/>")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(made["python"], {})
    assert str(chain.reduced) in printed.getvalue()
    words = shlex.split(made["train"])
    assert find_grammar(words[words.index("--grammar") + 1]) == chain.reduced
    assert check(json.loads(made["certificate"])).valid
    assert made["latex"].count(r"\begin{align*}") == 2


def test_a_dropped_certificate_is_checked(tmp_path):
    chain = derive_chain(read_language("L1").grammar, quiet)
    path = tmp_path / "file"
    path.write_text(json.dumps(chain.certificate), encoding="utf-8")
    report = inspect_file(str(path), "mine.json", quiet)
    assert (report.kind, report.holds) == ("certificate", True)
    assert read_language(report.language).grammar == chain.exhaustive
    path.write_text(json.dumps({**chain.certificate, "to": ["V_c → 1"]}), encoding="utf-8")
    report = inspect_file(str(path), "mine.json", quiet)
    assert (report.kind, report.holds, report.language) == ("certificate", False, "")
    assert "refuses" in report.verdict


def test_a_dropped_network_is_read_and_a_damaged_one_refused(tmp_path):
    path = tmp_path / "file"
    GrammarGNN("GNNML1", width=5, layers=2).save(tmp_path / "model.safetensors")
    content = bytearray((tmp_path / "model.safetensors").read_bytes())
    path.write_bytes(content)
    report = inspect_file(str(path), "model.safetensors", quiet)
    assert (report.kind, report.holds) == ("network", True)
    assert (report.layers, report.width) == (2, 5)
    assert read_language(report.language).grammar == find_grammar("GNNML1")
    content[-3] ^= 1
    path.write_bytes(content)
    report = inspect_file(str(path), "model.safetensors", quiet)
    assert not report.holds
    assert "checksum" in report.verdict
    assert str(tmp_path) not in report.verdict


def test_another_file_is_named_as_what_it_is_not(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\x00\xff")
    for name in ("notes.txt", "odd.json", "odd.safetensors"):
        report = inspect_file(str(path), name, quiet)
        assert not report.holds
        assert report.name == name
        assert report.verdict.startswith("is ")
        assert str(tmp_path) not in report.verdict
