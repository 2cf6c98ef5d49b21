"""The quick reference: every claim, in both languages, from the ledger alone."""

from __future__ import annotations

import re
from functools import cache

import pytest

from posenc.analysis.account import account, claims_about
from posenc.errors import PosencError
from posenc.rendering import sheet


@cache
def made(*languages: str) -> str:
    drawn = account("rotary(64)", claims=False).encodings[0]
    return sheet.sheet(claims_about("rotary(64)"), drawn, languages or ("en", "zh"))


def test_every_claim_stands_in_both_languages():
    record = claims_about("rotary(64)")
    pages = re.findall(r'<main class="sheet" lang="([^"]+)">(.*?)</main>', made(), re.DOTALL)
    assert [tag for tag, _ in pages] == ["en", "zh-Hans"]
    from html import unescape

    for (_, page), claims, verdicts in zip(
        pages,
        ([c.claim for c in record.claims], [c.claim_zh for c in record.claims]),
        (sheet.ENGLISH.verdicts, sheet.CHINESE.verdicts),
        strict=True,
    ):
        told = [unescape(found) for found in re.findall(r'<span class="number">\d+</span><b>(.*?)</b>', page)]
        assert told == claims
        badges = re.findall(r'class="badge \w+"><span aria-hidden="true">.</span> (\D+?)</span></p>', page)
        assert badges == [verdicts[c.verdict] for c in record.claims]
        assert page.count("<svg") == 2


def test_a_language_alone_is_one_page():
    assert made("zh").count("<main") == 1
    assert '<html lang="zh-Hans">' in made("zh")
    assert "Position encodings, claim" not in made("zh")
    assert "位置编码" not in made("en")


def test_the_sheet_asks_for_nothing_and_runs_nothing():
    assert "<script" not in made()
    assert "href=" not in made()
    assert "default-src 'none'" in made()
    assert len(made().encode()) < 120_000


def test_it_is_written_in_one_step(tmp_path):
    drawn = account("rotary(64)", claims=False).encodings[0]
    path = sheet.write(claims_about("rotary(64)"), drawn, tmp_path / "a.html")
    assert path.read_text() == made()
    with pytest.raises(PosencError, match="No such file"):
        sheet.write(claims_about("rotary(64)"), drawn, tmp_path / "missing" / "a.html")
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]
