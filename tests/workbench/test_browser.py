"""The workbench in a real browser: Debian's chromium, driven by Playwright."""

import json
import os
import re
import shutil
import subprocess
import sys
from urllib.parse import quote, urlsplit

import pytest

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCRIPT = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
L3_REDUCED = {
    "V_c → MV_c", "V_c → 1", "M → (M⊙M)", "M → MM", "M → diag(V_c)", "M → A", "S → 1ᵀV_c",
}  # fmt: skip
# Its reduction takes long: many rules, each a product of several matrices.
LONG = (
    "M → (M⊙M)M | (M⊙M)MM | (M⊙M)MMM | (M⊙M)MMMM | (M⊙M)MMMMM | (M⊙M)MMMMMM | A | I\n"
    "V_c → MV_c | MMV_c | MMMV_c | diag(V_c)V_c | 1"
)
PATIENCE = 90_000


@pytest.fixture(scope="module")
def address():
    """One server for all tests."""
    pytest.importorskip("nicegui", reason="NiceGUI is not installed: pip install 'g2n2[web]'")
    command = [sys.executable, "-m", "g2n2", "workbench", "--port", "0", "--no-show"]
    # NiceGUI behaves otherwise where it finds pytest's variables.
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, encoding="utf-8", env=surroundings
    ) as process:
        line = process.stdout.readline()
        yield re.search(r"http://127\.0\.0\.1:\d+", line)[0]
        process.terminate()


@pytest.fixture(scope="module")
def browser():
    """One browser for all tests."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
    )
    if CHROMIUM is None:
        pytest.skip("there is no chromium here; on Debian: apt install chromium")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def context(browser):
    """A browser's window; nothing it asks for may be on another host, no page may fail."""
    window = browser.new_context(viewport={"width": 1440, "height": 900})
    window.set_default_timeout(PATIENCE)
    asked, errors = [], []
    window.on("request", lambda request: asked.append(request.url))
    window.on("weberror", lambda fault: errors.append(str(fault.error)))
    yield window
    window.close()
    hosts = {urlsplit(url).hostname for url in asked if not url.startswith(("data:", "blob:"))}
    assert hosts == {"127.0.0.1"}
    assert not errors


@pytest.fixture
def opened(context, address):
    """Opens a page; done when its chain is there."""

    def open_page(query="", wait=True):
        page = context.new_page()
        page.goto(f"{address}/?{query}")
        if wait:
            page.wait_for_selector("#r-exhaustive .rule")
        return page

    return open_page


def rules(page, region):
    return page.eval_on_selector_all(
        f"#r-{region} .grammar .rule", "found => found.map(rule => rule.dataset.rule)"
    )


def wait_for_text(page, selector, text):
    page.wait_for_function(
        "([place, text]) => document.querySelector(place)?.textContent.includes(text)",
        arg=[selector, text],
    )


def ticked(page):
    return set(
        page.eval_on_selector_all("[data-tick]:checked", "boxes => boxes.map(b => b.dataset.tick)")
    )


def test_ticking_l3_shows_19_rules_and_the_reduced_six_and_a_change_changes_it(opened):
    page = opened("language=%C2%B7")  # the product alone
    for name in ("transpose", "one", "diag", "hadamard"):
        page.check(f"[data-tick={name}]")
        page.wait_for_function(
            "name => document.querySelector(`[data-tick=${name}]`).checked", arg=name
        )
    wait_for_text(page, "#r-exhaustive .count", "19 rules")
    assert page.input_value("#language") == "L3"
    assert len(rules(page, "exhaustive")) == 19
    assert set(rules(page, "reduced")) == L3_REDUCED
    wait_for_text(page, "#r-reduced .count", "6 rules")
    wait_for_text(page, "#r-power", "equals")
    page.uncheck("[data-tick=hadamard]")
    wait_for_text(page, "#r-exhaustive .count", "15 rules")
    assert page.input_value("#language") == "L1"
    assert set(rules(page, "reduced")) == {
        "V_c → diag(V_c)V_c", "V_c → AV_c", "V_c → 1", "S → 1ᵀV_c",
    }  # fmt: skip
    assert ticked(page) == {"matmul", "transpose", "one", "diag"}


def test_the_proof_is_stepped_through(opened):
    page = opened("step=0")
    assert page.is_disabled("#previous")
    for step in (1, 2, 3):
        page.click("#next")
        wait_for_text(page, "#step-text", f"{step} of 13 removed")
        page.wait_for_function(
            "n => document.querySelectorAll('#r-exhaustive .gone, #r-exhaustive .current').length"
            " === n",
            arg=step,
        )
    page.fill("#step", "13")  # the last: M → Mᵀ
    wait_for_text(page, "#r-proof", "rows and transposes")
    page.wait_for_selector("#r-proof .patterns")
    left = page.locator("#r-proof .patterns .mate").count()
    assert page.locator("#r-proof .patterns .vertex").count() == 2 * left == 4
    page.hover("#r-reduced [data-rule='M → MM']")
    wait_for_text(page, "#rule-note", "of the FLOPs")
    assert page.locator("#r-layer rect.rule.lit-rule").count() == 1
    assert page.locator("#r-layer rect.selector.lit-rule").count() == 2
    assert page.locator(".square.lit-rule").count() > 1


def test_sliders_move_the_costs(opened):
    page = opened()
    page.wait_for_selector(".figures")
    before = page.inner_text(".figures")
    page.fill("#width", "32")
    page.wait_for_function(
        "before => document.querySelector('.figures').innerText !== before", arg=before
    )
    assert page.inner_text("output[for=width]") == "32"


def test_two_drawn_graphs_give_the_sentence(opened):
    page = opened()
    corners = [(50, 50), (150, 50), (150, 150), (50, 150)]
    drawings = {"g": [(0, 1), (1, 2), (2, 3)], "h": [(0, 1), (0, 2), (0, 3)]}  # P4, K1,3
    for side, edges in drawings.items():
        page.click(f"[data-clear={side}]")
        box = page.locator(f"#draw-{side}").bounding_box()
        scale = box["width"] / 200
        for x, y in corners:
            page.locator(f"#draw-{side}").click(position={"x": x * scale, "y": y * scale})
            page.wait_for_timeout(20)
        for a, b in edges:
            page.click(f"#draw-{side} [data-node='{a}']")
            page.click(f"#draw-{side} [data-node='{b}']")
    wait_for_text(page, "#name-g", "P4")
    wait_for_text(page, "#name-h", "K1,3")
    # Sums of degrees agree; sums of their squares are 1+4+4+1 and 9+1+1+1.
    page.wait_for_function(
        "document.querySelector('.sentence .values')?.textContent === '10 and 12'"
    )
    assert page.inner_text(".sentence .equation").replace("\n", "") == "1⊤A21"
    page.focus("#draw-g [data-node='3']")
    page.keyboard.press("Delete")
    wait_for_text(page, "#name-g", "P3")


def test_refinement_is_coloured_round_by_round(opened):
    page = opened("g=decalin&h=bicyclopentyl&test=3-WL&round=0")
    colours = "[...document.querySelectorAll('#draw-g .node')].map(n => n.getAttribute('class'))"
    wait_for_text(page, "#round-text", "round 0 of 3: 1 colour, the graphs look alike")
    assert len(set(page.evaluate(colours))) == 1
    page.fill("#round", "3")
    wait_for_text(page, "#round-text", "the counts differ")
    assert len(set(page.evaluate(colours))) > 2
    assert page.locator("#draw-h .edge.lit").count() == 5, "a ring of five is drawn in the graph"


def test_the_permalink_restores_the_state(opened):
    page = opened()
    page.select_option("#example", "PPGN")
    wait_for_text(page, "#r-exhaustive", "PPGN")
    page.fill("#nodes", "11")
    page.fill("#layers", "5")
    page.select_option("#gallery", "K3,3 / prism")
    page.select_option("#test", "3-WL")
    page.click("[data-tab=train]")
    wait_for_text(page, "#takeaway", "--layers 5")
    wait_for_text(page, "#name-h", "prism")

    def shown():
        wait_for_text(page, "#round-text", "of 2: ")
        wait_for_text(page, "#takeaway", "g2n2 train")
        names = ("language", "nodes", "layers", "g", "h", "test", "round")
        values = {name: page.input_value(f"#{name}") for name in names}
        return values | {"train": page.inner_text("#takeaway"), "url": page.url}

    before = shown()
    assert before["language"] == "PPGN"
    page.reload()
    page.wait_for_selector("#r-exhaustive .rule")
    assert shown() == before


def test_scripts_are_text_everywhere(opened, tmp_path):
    page = opened(f"g={quote(SCRIPT)}&language=L1")
    wait_for_text(page, "#fault-g", "<script>")
    page.fill("#language", f"M → {SCRIPT} | A")
    wait_for_text(page, "#fault", "character")
    assert SCRIPT[:8] in page.inner_text("#backdrop")
    page.fill("#h", f"smiles:{SCRIPT}")
    page.wait_for_function("document.querySelector('#fault-h').textContent.length > 0")
    page.fill("#language", f"V → AV | 1 # {SCRIPT}")
    wait_for_text(page, "#r-exhaustive .count", "2 rules + read-out")
    for tab in ("python", "train", "latex", "certificate", "svg", "permalink"):
        page.click(f"[data-tab={tab}]")
        page.wait_for_selector(f"[data-tab={tab}][aria-selected=true]")
    odd = {"name": "<img src=x onerror=hacked=1>.json", "mimeType": "text/plain", "buffer": b"{}"}
    page.set_input_files("#file-input", odd)
    wait_for_text(page, "#r-file", "<img src=x")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_a_dropped_certificate_shows_its_grammar_and_check(opened, tmp_path):
    page = opened("language=L1&tab=certificate")
    wait_for_text(page, "#takeaway", '"digest"')
    certificate = page.inner_text("#takeaway")
    page.fill("#language", "PPGN")
    wait_for_text(page, "#r-exhaustive", "PPGN")
    file = {"name": "mine.json", "mimeType": "text/plain", "buffer": certificate.encode()}
    page.set_input_files("#file-input", file)
    wait_for_text(page, "#r-file", "valid: 24 obligations checked")
    page.click("[data-action=use-file]")
    wait_for_text(page, "#r-exhaustive .count", "15 rules")
    damaged = json.dumps({**json.loads(certificate), "to": ["V_c → 1"]}).encode()
    page.set_input_files("#file-input", {**file, "buffer": damaged})
    wait_for_text(page, "#r-file", "the checker refuses it")


def test_a_long_computation_shows_progress_and_is_cancelled(opened):
    page = opened("language=L1")
    page.fill("#language", LONG)
    page.wait_for_selector("#busy-chain:not([hidden]) progress")
    page.click("#busy-chain [data-action=cancel]")
    wait_for_text(page, "#r-chain", "cancelled")
    assert page.locator("#busy-chain").is_hidden()
    page.fill("#language", LONG)
    page.wait_for_selector("#busy-chain:not([hidden])")
    page.fill("#language", "L3")  # cancels the long one, which would hold a processor
    wait_for_text(page, "#r-exhaustive .count", "19 rules")
    assert page.inner_text("#r-chain") == ""


def test_ten_pages_stay_responsive_while_others_compute(opened):
    pages = [opened("language=L1")]
    pages += [opened(f"language={quote(LONG + f' # {k}')}", wait=False) for k in range(9)]
    pages[-1].wait_for_selector("#busy-chain:not([hidden])")
    page = pages[0]
    page.bring_to_front()
    for width in ("16", "48", "80"):
        page.fill("#width", width)
        page.click("[data-tab=python]")
        wait_for_text(page, "#takeaway", f"width={width}")
    page.fill("#language", "M → (M⊙M | A")
    wait_for_text(page, "#fault", "character 5: this bracket is never closed")
    assert any(other.locator("#busy-chain").is_visible() for other in pages[1:])
    for other in pages[1:]:
        other.close()


def test_a_phone_shows_the_whole_width(opened):
    page = opened(f"language=L3{quote('Σ')}&g={quote('rook 4×4')}&h=Shrikhande+graph")
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_selector(".sentence .counted")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_keyboard_and_screen_readers_have_what_they_need(opened):
    page = opened()
    unnamed = page.evaluate(
        """[...document.querySelectorAll('input, select, textarea, button')].filter(item =>
           !item.labels?.length && !item.getAttribute('aria-label') && !item.textContent.trim())
           .map(item => item.outerHTML)"""
    )
    assert unnamed == []
    assert page.locator("[aria-live]").count() > 3
    page.focus("#r-reduced [data-rule='M → MM']")
    wait_for_text(page, "#rule-note", "M → MM: 6 obligations")
    page.focus("[role=tab][aria-selected=true]")
    page.keyboard.press("ArrowRight")
    wait_for_text(page, "#takeaway", "g2n2 train")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
