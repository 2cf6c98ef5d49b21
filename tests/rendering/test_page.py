"""The report page: self-contained, inert, complete, and moved only by what it depends on."""

from __future__ import annotations

import math
import re
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

from posenc.analysis.account import account
from posenc.analysis.inspection import inspect
from posenc.errors import PosencError
from posenc.records import Assumption, UnreadKey
from posenc.records.account import Account
from posenc.rendering import page
from posenc.rendering.sentences import pairs
from readings import LLAMA31, reading

EVIL = '</style></title></script><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}\x1b[31m"'


class Tags(HTMLParser):
    """Every tag with its attributes; fails on tags that close what is not open."""

    VOID = frozenset({"meta", "br", "img", "link", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@cache
def llama() -> Account:
    return account(reading(LLAMA31, name="Llama", trained=131072, served=131072))


@cache
def text_of_llama() -> str:
    return page.page([llama()])


def words(html: str) -> str:
    return " ".join(" ".join(Tags(html).words).split())


def test_the_page_is_well_formed_and_asks_for_nothing():
    tags = Tags(text_of_llama())
    assert tags.open == []
    assert {tag for tag, _ in tags.seen}.isdisjoint({"link", "iframe", "object", "img", "base", "form"})
    for tag, attributes in tags.seen:
        assert not {"src", "srcset", "action", "onload", "onerror", "onclick"} & set(attributes)
        target = attributes.get("href")
        if target is not None:
            allowed = {"image": "data:image/png;base64,", "a": ("#", "https://arxiv.org/abs/")}[tag]
            assert target.startswith(allowed)
    assert "url(" not in text_of_llama()
    assert "@import" not in text_of_llama()
    assert "default-src 'none'" in text_of_llama()


def test_only_the_page_s_own_script_may_run():
    scripts = re.findall(r"<script>(.*?)</script>", text_of_llama(), re.DOTALL)
    assert scripts == [page.script_text()]
    assert f"script-src '{page.digest(scripts[0])}'" in text_of_llama()
    assert page.digest("alert(1)") == "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI="


def test_sizes():
    four = [llama()] * 4
    assert len(text_of_llama().encode()) < 400_000
    assert len(page.page(four).encode()) < 2_000_000


def test_the_page_has_what_the_terminal_has():
    text = words(text_of_llama())
    for expected in ("Llama", "0-28", "stretched", "pairs 39-63 (25 of 64)", "131072", "20473564", "500000^(-2i/128)"):
        assert expected in text
    for heading in ("What it is", "What that means", "Where it breaks", "What is assumed", "Papers behind it"):
        assert heading in text
    assert "23 claims with verdict and evidence" in text


def test_every_pair_is_in_the_table():
    rows = re.findall(r"<td>(\d+)</td><td>\d+, \d+</td>", text_of_llama())
    assert rows == [str(i) for i in range(64)]


def test_every_figure_has_a_title_a_description_a_finding_and_a_table():
    tags = Tags(text_of_llama())
    ids = [a["id"] for _, a in tags.seen if "id" in a]
    assert len(ids) == len(set(ids))
    drawn = [a for tag, a in tags.seen if tag == "svg"]
    assert len(drawn) == 14  # clocks, similarity (two axes), ladder, scaling, precision: two sizes; two heat maps: one
    for attributes in drawn:
        assert attributes["role"] == "img"
        assert set(attributes["aria-labelledby"].split()) <= set(ids)
    for figure in re.findall(r"<figure.*?</figure>", text_of_llama(), re.DOTALL):
        assert len(re.search(r'class="finding"[^>]*>(.*?)</p>', figure, re.DOTALL)[1]) > 30
        assert figure.count("<table") == 1
        assert re.search(r"\d", re.search(r"<desc[^>]*>(.*?)</desc>", figure, re.DOTALL)[1])
    for tag, attributes in tags.seen:
        if tag == "input":
            assert "aria-label" in attributes or attributes["id"] in {
                a.get("for") for t, a in tags.seen if t == "label"
            }


def evil() -> Account:
    notation = "rotary(6) + unmodelled(" + repr(EVIL[:100]) + ", note=" + repr(EVIL) + ")"
    inspection = inspect(
        reading(
            notation,
            name=EVIL,
            source=EVIL,
            model_type=EVIL,
            served=64,
            trained=32,
            trained_source=EVIL,
            assumed=(Assumption(key=EVIL, value=EVIL, why=EVIL),),
            unread=(UnreadKey(key=EVIL, value=EVIL),),
            faults=(EVIL,),
            notes=(EVIL,),
        )
    )
    plain = account(reading(notation, name=EVIL, served=64, trained=32))
    return plain.model_copy(update={"inspection": inspection, "notes": (EVIL,)})


def test_hostile_text_is_inert():
    record = evil()
    for text, scripts in ((page.page([record, record]), 1), (page.notebook(record), 1)):
        tags = Tags(text)
        assert tags.open == []
        names = [tag for tag, _ in tags.seen]
        assert names.count("script") == scripts
        assert "img" not in names
        assert "49" not in "".join(w for w in tags.words if "7 * 7" in w)
        assert "\x1b" not in text
        assert sum("alert(1)" in word for word in tags.words) >= 9, "the text itself is still shown"


def test_several_models_are_compared_at_the_top():
    other = account(reading("rotary(64, base=10000)", name="Other", trained=2048, served=4096))
    text = page.page([llama(), other, account(np.eye(13))])
    assert re.findall(r"<h2>(.*?)</h2>", text) == ["Llama", "Other", "array", "Mechanisms side by side"]
    table = re.search(r'<table class="matrix">.*?</table>', text, re.DOTALL)[0]
    rows = {
        re.search(r'scope="row">(.*?)</th>', row)[1]: re.findall(r"<td>(.*?)</td>", row)
        for row in re.findall(r"<tr>(?:(?!</tr>).)*scope=\"row\".*?</tr>", table, re.DOTALL)
    }
    assert rows["base"] == ["500000", "10000", "-"]
    assert rows["scaling"] == ["llama3", "none", "-"]
    assert rows["original length"] == ["8,192", "-", "-"]
    assert rows["served length"] == ["131,072", "4,096", "-"]
    assert rows["first negative distance"] == ["85,133", "725", "-"]
    assert rows["pairs without a full turn in the longest length"][0] == "25 of 64"
    assert rows["last safe position, bfloat16 positions"][:2] == ["256", "256"]
    assert rows["rank of the table"][2] == "13 of 13"
    assert "Similarity turns negative first in Other, at D = 725" in text
    assert 'id="compared"' not in text_of_llama()


NOTATIONS = [
    "none",
    "alibi(6)",
    "learned(6, shape=(9,))",
    "rotary(2)",
    "sinusoidal(7)",
    "rotary(10, schedule=explicit((0.0, 0.0, 0.0, 0.0, 0.0)))",
    "rotary(16, axes=mixed(3), base=10)",
    "rotary(10) >> dynamic(2, original=512)",
    "rotary(6, base=3) >> linear(0.5)",
    "rotary(600, base=10)",
]


@pytest.mark.parametrize("notation", NOTATIONS)
def test_every_kind_of_encoding_has_a_page(notation):
    try:
        found = account(reading(notation, served=640))
    except PosencError:
        found = Account(name="wrong", inspection=inspect(reading("rotary(6, base=3)")))
    assert Tags(page.page([found])).open == []
    assert Tags(page.notebook(found)).open == []


def blocks(html: str) -> dict[str, str]:
    """The page in named pieces: figures and claims by id or number, sections by heading, the rest in one."""
    found = {}
    for name, figure in re.findall(r'<figure id="([^"]+)".*?>(.*?)</figure>', html, re.DOTALL):
        found[name.partition("-")[2]] = figure
    for number, claim in re.findall(r'<li value="(\d+)">(.*?)</li>', html, re.DOTALL):
        found[f"claim {number}"] = claim
    rest = re.sub(r"<figure.*?</figure>|<li value.*?</li>", "", html, flags=re.DOTALL)
    for heading, section in re.findall(r"<h[123]>(.*?)</h[123]>(.*?)(?=<h[123]>|$)", rest, re.DOTALL):
        found[heading] = section
    return found


def test_one_percent_more_base_changes_what_depends_on_it_and_nothing_else():
    plain, more = (
        account(reading(f"rotary(128, base={base}) >> llama3(8, original=8192)", name="M", served=131072))
        for base in (500000, 505000)
    )
    a, b = (blocks(page.page([each])) for each in (plain, more))
    assert a.keys() == b.keys()
    same = {name for name in a if a[name] == b[name]}
    never = {"What is assumed", "Papers behind it", "Mechanisms side by side", "claim 14", "claim 16", "claim 18"}
    always = {"clocks", "similarity", "ladder", "table", "kernel-heat", "precision", "What it is", "M"}
    assert never <= same
    assert not always & same
    assert a["scaling"] != b["scaling"]
    for sentence in (pairs.clocks, pairs.similarity, pairs.ladder, pairs.before_after, pairs.precision):
        assert sentence(plain.encodings[0]) != sentence(more.encodings[0]), sentence.__name__
    notes = [re.findall(r'class="note order">(.*?)</p>', page.page([each])) for each in (plain, more)]
    assert notes[0] == notes[1], "attention without positions knows no base"


def test_an_array_s_page_says_what_it_can_do():
    positions = np.arange(97)[:, None] * np.array([1.0, 0.1, 0.01])
    table = np.concatenate([np.sin(positions), np.cos(positions)], axis=1)
    text = words(page.page([account(table)]))
    assert "A table of 97 positions with 6 numbers each." in text
    assert f"Every row has length {math.sqrt(3):.3f}." in text
    assert "K(m, n) depends on m − n alone" in text
    assert "One linear map takes every row to the next" in text
    table[50] = table[3]
    text = words(page.page([account(table)]))
    assert "1 row repeats an earlier one" in text
    assert "is not a function of m − n" in text


def test_the_file_is_replaced_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert page.write([llama()], path) == path
    assert path.read_text().startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fails)
    before = path.read_text()
    with pytest.raises(PosencError, match="No space left"):
        page.write([llama()], path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_file_that_cannot_be_written_is_one_clear_error(tmp_path):
    with pytest.raises(PosencError, match="No such file"):
        page.write([llama()], tmp_path / "missing" / "report.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PosencError, match="directory"):
        page.write([llama()], tmp_path / "folder")
    with pytest.raises(PosencError, match="folder"):
        page.write([llama()], tmp_path / "a.html", figures=tmp_path / "a.html" / "figures")
    assert {p.name for p in tmp_path.iterdir()} == {"folder", "a.html"}


def test_every_figure_is_written_as_svg_and_png(tmp_path):
    page.write([llama(), account(np.eye(13))], tmp_path / "r.html", tmp_path / "figures")
    names = {p.name for p in (tmp_path / "figures").iterdir()}
    stems = {"clocks", "similarity", "similarity-linear", "ladder", "scaling", "table", "kernel-heat", "precision"}
    wanted = {f"llama-{s}" for s in stems} | {"array-table", "array-kernel-heat", "array-kernel"}
    assert names == {f"{s}.{e}" for s in wanted for e in ("svg", "png")}
    for path in (tmp_path / "figures").iterdir():
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG" if path.suffix == ".png" else b"<svg xmlns")
        assert len(content) > 1500
        assert b"var(--" not in content


def test_names_of_figures_stay_in_their_folder(tmp_path):
    record = account(np.eye(13)).model_copy(update={"name": "../../evil/\x00名"})
    page.write([record], tmp_path / "r.html", tmp_path / "figures")
    assert {p.name for p in tmp_path.iterdir()} == {"r.html", "figures"}
    assert (tmp_path / "figures" / "evil-table.svg").exists()


def test_a_report_is_about_something(tmp_path):
    with pytest.raises(PosencError, match="at least one"):
        page.report(to=tmp_path / "report.html")


def test_notebooks_show_a_section():
    for record in (llama(), inspect(reading(LLAMA31, name="Llama", served=4096)), account(np.eye(13))):
        html = record._repr_html_()
        assert Tags(html).open == []
        assert "<svg" in html
        assert "<html" not in html
