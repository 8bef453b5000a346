"""The pictures of the workbench in docs/images, taken in Debian's chromium by Playwright.

python docs/workbench_images.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
TALL = 1800
"""Height of a window in which no column scrolls."""


@contextmanager
def server() -> Iterator[str]:
    """The address of a workbench."""
    command = [sys.executable, "-m", "g2n2", "workbench", "--port", "0", "--no-show"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert found is not None
        yield found[0]
        process.terminate()


def save(page: Page, name: str, first: str = "", last: str = "", height: float = 0) -> None:
    """The page, or what is from one element to the end of another."""
    target = IMAGES / f"{name}.png"
    if not first:
        page.screenshot(path=target)
        return
    start, end = (page.locator(css).bounding_box() for css in (first, last))
    assert start is not None
    assert end is not None
    top, pad = start["y"] - 10, 18
    bottom = top + height if height else end["y"] + end["height"] + 10
    left, right = start["x"] - pad, end["x"] + end["width"] + pad
    page.screenshot(
        path=target, clip={"x": left, "y": top, "width": right - left, "height": bottom - top}
    )


def main() -> None:
    """Take all pictures again."""
    with server() as address, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

        def opened(height: int = 900, scheme: str = "light", **state: object) -> Page:
            window = browser.new_context(
                viewport={"width": 1440, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
                reduced_motion="reduce",
            )
            page = window.new_page()
            page.set_default_timeout(180_000)
            page.goto(f"{address}/?{urlencode(state)}")
            page.wait_for_selector("#r-reduced .rule")
            page.wait_for_function("document.querySelectorAll('.verdict tbody tr').length === 3")
            page.wait_for_selector("#r-pair-report:not(.stale) .outcomes")
            page.mouse.move(720, 20)
            return page

        save(opened(step=11), "workbench")
        rook = {"language": "L3Σ", "g": "rook 4×4", "h": "Shrikhande graph", "step": 2}
        save(opened(scheme="dark", **rook), "workbench-dark")

        page = opened(TALL)
        page.hover("#r-reduced .rule[data-rule='M → MM']")
        save(page, "workbench-rule", "#middle-title", "#r-layer .shares")

        page = opened(TALL, g="decalin", h="bicyclopentyl", test="3-WL", round=3)
        save(page, "workbench-pair", "#right .part:has(#gallery) h3", "#r-pair-report")

        page = opened(TALL)
        page.fill("#language", "V_c → MV_c | 1\nM → (M⊙M | A\nS → 1ᵀV_c")
        page.wait_for_selector("#fault:not(:empty)")
        page.wait_for_function(
            "getComputedStyle(document.querySelector('#middle .fresh')).opacity < 0.5"
        )
        save(page, "workbench-fault", "#left-title", "#r-exhaustive", height=720)
        browser.close()


if __name__ == "__main__":
    main()
