"""The quick reference on paper and on screens."""

from __future__ import annotations

import re

import pytest

from posenc.cli import main

A4 = 279 * 96 / 25.4
"""Height of a page without its margins, in pixels."""


@pytest.fixture(scope="module")
def sheet(tmp_path_factory):
    path = tmp_path_factory.mktemp("sheet") / "sheet.html"
    assert main(["claims", "rotary(64)", "--sheet", "-o", str(path)]) == 0
    return path


def test_each_language_fills_one_page_of_a4(opened, sheet):
    page, requests, complaints = opened(sheet, viewport={"width": 718, "height": 900})
    paper = page.pdf(prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 2
    page.emulate_media(media="print")
    heights = page.evaluate("[...document.querySelectorAll('main')].map(m => m.getBoundingClientRect().height)")
    assert all(0.75 * A4 < height < A4 for height in heights)
    assert requests == [sheet.as_uri()]
    assert complaints == []


@pytest.mark.parametrize("width", [1280, 390, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_screens(opened, sheet, width, scheme):
    page, _, complaints = opened(sheet, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
