"""The report page: self-contained, inert, complete."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from posenc.analysis.inspection import inspect
from posenc.errors import PosencError
from posenc.records import Assumption, UnreadKey
from posenc.rendering import figures, page
from readings import LLAMA31, reading

EVIL = '</style></title><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}\x1b[31m"'


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


@pytest.fixture(scope="module")
def llama():
    return inspect(reading(LLAMA31, name="Llama", trained=131072, served=131072))


def test_the_page_is_well_formed_and_asks_for_nothing(llama):
    tags = Tags(page.page([llama]))
    assert tags.open == []
    names = {tag for tag, _ in tags.seen}
    assert names.isdisjoint({"script", "link", "iframe", "object", "img", "base"})
    for _, attributes in tags.seen:
        assert not {"src", "href", "srcset", "action", "onload", "onerror"} & set(attributes)
    assert "url(" not in page.page([llama])
    assert "default-src 'none'" in page.page([llama])


def test_the_page_has_what_the_terminal_has(llama):
    text = " ".join(" ".join(Tags(page.page([llama])).words).split())
    for expected in ("Llama", "0-28", "stretched", "pairs 39-63 (25 of 64)", "131072", "20473564", "500000^(-2i/128)"):
        assert expected in text
    assert page.page([llama]).count("<svg") == 2


def test_every_pair_is_in_the_table(llama):
    rows = re.findall(r"<td>(\d+)</td><td>\d+, \d+</td>", page.page([llama]))
    assert rows == [str(i) for i in range(64)]


def test_hostile_text_is_inert():
    record = inspect(
        reading(
            "rotary(6) + unmodelled(" + repr(EVIL[:100]) + ", note=" + repr(EVIL) + ")",
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
    for text in (page.page([record, record]), page.notebook(record)):
        tags = Tags(text)
        assert tags.open == []
        assert not {"script", "img"} & {tag for tag, _ in tags.seen}
        assert "49" not in "".join(w for w in tags.words if "7 * 7" in w)
        assert "\x1b" not in text
        assert sum("alert(1)" in word for word in tags.words) >= 9, "the text itself is still shown"


def test_several_models_stand_side_by_side(llama):
    text = page.page([llama, llama])
    assert text.count("<h2>") == 2
    assert 'class="several"' in text
    assert 'class="several"' not in page.page([llama])


NOTATIONS = [
    "none",
    "alibi(6)",
    "rotary(2)",
    "sinusoidal(7)",
    "rotary(10, schedule=explicit((0.0, 0.0, 0.0, 0.0, 0.0)))",
    "rotary(16, axes=mixed(3), base=10)",
    "rotary(10) >> dynamic(2, original=512)",
    "rotary(6000, base=10)",
]


@pytest.mark.parametrize("notation", NOTATIONS)
def test_every_kind_of_encoding_has_a_page(notation):
    tags = Tags(page.page([inspect(reading(notation, served=640))]))
    assert tags.open == []


def test_wavelengths_stand_where_the_axis_says(llama):
    part = llama.parts[0]
    svg = figures.ladder(part.encodings[0].spectrum, part.lengths)
    after = {int(i): float(x) for i, x in re.findall(r'<title>pair (\d+),.*?class="s1" cx="([\d.]+)"', svg)}
    ticks = dict(re.findall(r'<text class="tick" x="([\d.]+)" y="[\d.]+" text-anchor="middle">(\w+)', svg))
    at = {label: float(x) for x, label in ticks.items()}
    per_decade = (at["1M"] - at["10"]) / 5
    # pair 0 turns once in 2 pi positions: 0.2018 decades before 10
    assert after[0] == pytest.approx(at["10"] - 0.20182 * per_decade, abs=0.2)
    assert after[63] == pytest.approx(at["10M"] + 0.31119 * per_decade, abs=0.2)
    assert len(after) == 64
    original = float(re.search(r'class="length" x1="([\d.]+)"', svg)[1])
    assert original == pytest.approx(at["1k"] + 0.91339 * per_decade, abs=0.2)


def test_the_curve_keeps_its_extremes(llama):
    part = llama.parts[0]
    states = part.encodings[0].spectrum.states
    svg = figures.similarity(states, part.lengths)
    heights = [float(point.split(",")[1]) for point in re.search(r'points="([^"]+)"', svg)[1].split()]
    one, zero = (float(re.search(rf'y="([\d.]+)" text-anchor="end">{v}<', svg)[1]) - 4 for v in "10")
    curve = states[0].similarity
    assert max(heights) == pytest.approx(one + (1 - min(curve.y)) * (zero - one), abs=0.2)
    assert min(heights) == pytest.approx(one + (1 - max(curve.y)) * (zero - one), abs=0.2)
    assert len(heights) < 3000


def test_the_file_is_replaced_in_one_step(tmp_path, llama):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert page.write([llama], path) == path
    assert path.read_text().startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_file_that_cannot_be_written_is_one_clear_error(tmp_path, llama):
    with pytest.raises(PosencError, match="No such file"):
        page.write([llama], tmp_path / "missing" / "report.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PosencError, match="directory"):
        page.write([llama], tmp_path / "folder")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_report_is_about_something(tmp_path):
    with pytest.raises(PosencError, match="at least one"):
        page.report(to=tmp_path / "report.html")


def test_notebooks_show_a_section(llama):
    html = llama._repr_html_()
    assert Tags(html).open == []
    assert "<svg" in html
    assert "<html" not in html
