"""One headless Chromium for all browser tests, and pages opened from disk under observation."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"))


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def opened(browser):
    """A function that opens a file and returns the page, what it asked for, and what it complained about."""
    contexts = []

    def open_it(path: Path, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        requests: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda r: requests.append(r.url))
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("dialog", lambda d: (complaints.append(f"dialog {d.message}"), d.dismiss()))
        page.goto(path.as_uri())
        page.wait_for_load_state("load")
        return page, requests, complaints

    yield open_it
    for context in contexts:
        context.close()
