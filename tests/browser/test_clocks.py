"""The clocks in the page: one distance moves hands, bars, sentence and cursor, by mouse, keyboard or number."""

from __future__ import annotations

import json
import math
import re

import pytest

import posenc
from posenc.analysis.account import account
from posenc.rendering.sentences import pairs

DIM, BASE, REACH = 22, 700.0, 4099
THETA = [BASE ** (-2 * i / DIM) for i in range(DIM // 2)]
ROLES = {"fast": 0, "middle": 5, "slow": 10}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clocks")
    config = {
        "model_type": "llama",
        "hidden_size": 4 * DIM,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "rope_theta": BASE,
        "max_position_embeddings": REACH,
    }
    (folder / "config.json").write_text(json.dumps(config))
    path = posenc.report(str(folder / "config.json"), to=folder / "page.html")
    return path, account(str(folder / "config.json"), claims=False).encodings[0]


def check(page, distance: int, e, width: str) -> None:
    """Everything that shows the distance shows this one."""
    kappa = sum(math.cos(distance * t) for t in THETA) / len(THETA)
    figure = page.locator(f"svg.{width} [data-clocks]")
    for role, pair in ROLES.items():
        hand = figure.locator(f'[data-dial="{role}"] [data-part="hand"]').get_attribute("transform")
        turned = math.radians(float(re.search(r"rotate\((.*)\)", hand)[1]))
        assert math.cos(turned) == pytest.approx(math.cos(distance * THETA[pair]), abs=2e-4)
        assert math.sin(turned) == pytest.approx(math.sin(distance * THETA[pair]), abs=2e-4)
        told = figure.locator(f'[data-dial="{role}"] [data-part="cos"]').text_content()
        assert float(told.partition("= ")[2].replace("−", "-")) == pytest.approx(
            math.cos(distance * THETA[pair]), abs=6e-4
        )
    heights = {}
    for path in figure.locator('[data-part="bars"]').all():
        places = path.get_attribute("data-places").split()
        drawn = re.findall(r"v(-?[\d.]+)", path.get_attribute("d") or "")
        heights |= {int(k): -float(h) / 38 for k, h in zip(places, drawn, strict=True)}
    assert [heights[i] for i in range(len(THETA))] == pytest.approx([math.cos(distance * t) for t in THETA], abs=2e-3)
    assert f"mean κ = {kappa:.3f}".replace("-", "−") in figure.locator('[data-part="mean"]').text_content()
    assert page.locator("[data-finding]").inner_text() == pairs.clocks(e, distance)
    assert page.locator(f"svg.{width}:has([data-clocks]) desc").text_content() == pairs.clocks(e, distance)
    plot = page.locator(f"svg.{width}.log [data-similarity]")
    box = {k: float(plot.get_attribute(f"data-{k}")) for k in ("left", "right", "top", "bottom", "low", "high")}
    across = math.log(max(distance, 1)) / math.log(REACH)
    x = box["left"] + across * (box["right"] - box["left"])
    y = box["top"] + (box["high"] - kappa) / (box["high"] - box["low"]) * (box["bottom"] - box["top"])
    dot = plot.locator(".cursor-group circle")
    assert float(dot.get_attribute("cx")) == pytest.approx(x, abs=0.01)
    assert float(dot.get_attribute("cy")) == pytest.approx(y, abs=0.01)


@pytest.mark.parametrize(("pixels", "width"), [(1280, "wide"), (390, "narrow")])
def test_one_distance_moves_everything(opened, report, pixels, width):
    path, e = report
    page, _, complaints = opened(path, viewport={"width": pixels, "height": 900})
    check(page, pairs.telling_distance(e), e, width)
    number = page.locator("[data-number]")
    for distance in (0, 1, 2, 3, 37, 1000, 4099):
        number.fill(str(distance))
        check(page, distance, e, width)
    number.fill("999999")
    check(page, REACH, e, width)
    number.fill("-5")
    check(page, 0, e, width)
    assert complaints == []


def test_the_slider_is_moved_by_the_keyboard_and_says_where_it_is(opened, report):
    path, e = report
    page, _, _ = opened(path, viewport={"width": 1280, "height": 900})
    slider = page.locator("[data-slider]")
    page.get_by_label("Distance D").first.focus()
    page.keyboard.press("Home")
    check(page, 0, e, "wide")
    page.keyboard.press("End")
    check(page, REACH, e, "wide")
    assert slider.get_attribute("aria-valuetext") == "4,099 positions"
    before = int(page.locator("[data-number]").input_value())
    page.keyboard.press("ArrowLeft")
    after = int(page.locator("[data-number]").input_value())
    assert after < before
    check(page, after, e, "wide")


def test_a_click_on_the_curve_chooses_the_distance(opened, report):
    path, e = report
    page, _, _ = opened(path, viewport={"width": 1280, "height": 900})
    svg = page.locator("svg.wide.log")
    box = svg.bounding_box()
    plot = svg.locator("[data-similarity]")
    left, right = (float(plot.get_attribute(f"data-{k}")) for k in ("left", "right"))
    x = left + (right - left) * math.log(100) / math.log(REACH)
    svg.click(position={"x": x * box["width"] / 720, "y": box["height"] / 2})
    chosen = int(page.locator("[data-number]").input_value())
    assert chosen == pytest.approx(100, abs=3)
    check(page, chosen, e, "wide")


def test_the_axis_is_logarithmic_or_linear(opened, report):
    path, _ = report
    for pixels, width in ((1280, "wide"), (390, "narrow")):
        page, _, _ = opened(path, viewport={"width": pixels, "height": 900})
        log, linear = page.locator(f"svg.{width}.log"), page.locator(f"svg.{width}.linear")
        assert (log.is_visible(), linear.is_visible()) == (True, False)
        page.locator("label.switch", has_text="linear").click()
        assert (log.is_visible(), linear.is_visible()) == (False, True)
        page.locator("label.switch", has_text="logarithmic").click()
        assert (log.is_visible(), linear.is_visible()) == (True, False)


def test_without_scripts_the_page_is_whole(opened, report):
    path, e = report
    page, _, complaints = opened(path, java_script_enabled=False)
    assert complaints == []
    assert not page.locator("[data-control]").is_visible()
    assert page.locator("svg.wide [data-clocks]").is_visible()
    assert page.locator("[data-finding]").inner_text() == pairs.clocks(e)


def test_on_paper_the_controls_are_gone_and_the_paper_is_white(opened, report):
    path, _ = report
    page, _, _ = opened(path, color_scheme="dark", viewport={"width": 718, "height": 900})
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("[data-control]").is_visible()
    assert not page.locator("label.switch").first.is_visible()
    assert page.locator("svg.wide.log").is_visible()
    assert not page.locator("svg.narrow.log").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ink = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
    assert sum(map(int, re.findall(r"\d+", ink))) < 200
    assert page.evaluate("document.documentElement.scrollWidth") <= 718


def test_the_notebook_s_clocks_move_too(opened, report, tmp_path):
    _, e = report
    found = account(f"rotary({DIM}, base={BASE})", claims=False)
    two = [posenc.plot.clocks(found)._repr_html_() for _ in range(2)]
    (tmp_path / "notebook.html").write_text(f"<!doctype html><meta charset=utf-8>{two[0]}{two[1]}")
    page, _, complaints = opened(tmp_path / "notebook.html", viewport={"width": 1280, "height": 900})
    page.locator("[data-number]").nth(1).fill("37")
    told = [each.inner_text() for each in page.locator("[data-finding]").all()]
    assert told == [pairs.clocks(found.encodings[0]), pairs.clocks(e, 37)]
    assert complaints == []
