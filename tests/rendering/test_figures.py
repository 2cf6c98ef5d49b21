"""Figures: numbers where the axes say, extremes kept, colours that everybody can read."""

from __future__ import annotations

import math
import re
import struct
import zlib
from functools import cache

import numpy as np
import pytest

import posenc
from posenc.analysis.account import account
from posenc.errors import PosencError, SubjectError
from posenc.records import Curve, spread
from posenc.records.account import Account
from posenc.rendering import figures
from posenc.rendering.figures import NARROW, WIDE, canvas, curves, dials, heat, palette
from posenc.rendering.sentences import pairs
from readings import LLAMA31, reading


@cache
def llama() -> Account:
    return account(reading(LLAMA31, name="Llama", trained=131072, served=131072), claims=False)


def theta(pair: int) -> float:
    """Llama 3.1's frequencies from its own code's rule."""
    plain = 500000 ** (-2 * pair / 128)
    wave = 2 * math.pi / plain
    if wave < 8192 / 4:
        return plain
    if wave > 8192:
        return plain / 8
    smooth = (8192 / wave - 1) / 3
    return (1 - smooth) * plain / 8 + smooth * plain


@pytest.mark.parametrize("distance", [0, 1, 7, 2993, 131072])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_hands_stand_at_d_theta(distance, width):
    (e,) = llama().encodings
    svg = figures.clocks(e, distance, width).body
    dialled = re.findall(
        r'data-dial="(\w+)".*?data-part="hand".*?transform="rotate\((-?[\d.]+)\)".*?cos = ([−\d.]+)', svg
    )
    assert [role for role, _, _ in dialled] == ["fast", "middle", "slow"]
    for (_, turned, cosine), pair in zip(dialled, (0, 32, 63), strict=True):
        want = distance * theta(pair)
        assert math.cos(math.radians(float(turned))) == pytest.approx(math.cos(want), abs=2e-4)
        assert math.sin(math.radians(float(turned))) == pytest.approx(math.sin(want), abs=2e-4)
        assert float(cosine.replace("−", "-")) == pytest.approx(math.cos(want), abs=6e-4)
    kappa = math.fsum(math.cos(distance * theta(i)) for i in range(64)) / 64
    assert float(re.search(r"mean κ = ([−\d.]+)", svg)[1].replace("−", "-")) == pytest.approx(kappa, abs=6e-4)
    assert pairs.similarity_at(e, distance) == pytest.approx(kappa, abs=1e-9)


def test_every_pair_has_a_bar_of_its_cosine():
    (e,) = llama().encodings
    svg = figures.clocks(e, 7).body
    found = {}
    for places, path in re.findall(r'data-places="([\d ]+)".*? d="([^"]+)"', svg):
        heights = re.findall(r"v(-?[\d.]+)", path)
        found |= {int(i): -float(h) / 38.0 for i, h in zip(places.split(), heights, strict=True)}
    assert found.keys() == set(range(64))
    for pair, cosine in found.items():
        assert cosine == pytest.approx(math.cos(7 * theta(pair)), abs=2e-3)


@pytest.mark.parametrize(("turn", "flags"), [(0.5, "0 1"), (4.0, "1 1"), (-0.5, "0 0"), (-4.0, "1 0")])
def test_the_arc_goes_the_way_the_hand_went(turn, flags):
    x, y = re.search(r" (-?[\d.]+) (-?[\d.]+)Z", dials.arc(turn, 10.0)).groups()
    assert (float(x), float(y)) == pytest.approx((10 * math.sin(turn), -10 * math.cos(turn)), abs=0.06)
    assert f" 0 {flags} " in dials.arc(turn, 10.0)


def ticks(svg: str) -> dict[str, float]:
    return {
        label: float(x) for x, label in re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="middle">(\w+)<', svg)
    }


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_wavelengths_stand_where_the_axis_says(width):
    part = llama().inspection.parts[0]
    svg = figures.ladder(part.encodings[0], part.lengths, "finding", width).body
    at = ticks(svg)
    per_decade = (at["100k"] - at["10"]) / 4
    drawn = {int(i): float(x) for i, x in re.findall(r'data-pair="(\d+)" (?:cx="|d="M)([\d.]+)', svg)}
    assert len(drawn) == 64
    for pair, x in drawn.items():
        wave = 2 * math.pi / theta(pair)
        assert x == pytest.approx(at["10"] + per_decade * (math.log10(wave) - 1), abs=0.3)
    diamonds = set(map(int, re.findall(r'class="fill-orange" data-pair="(\d+)"', svg)))
    assert diamonds == {pair for pair in range(64) if 2 * math.pi / theta(pair) > 131072} == set(range(39, 64))
    lines = [float(x) for x in re.findall(r'<line class="mark" x1="([\d.]+)"', svg)]
    assert lines == pytest.approx([at["10"] + per_decade * (math.log10(n) - 1) for n in (8192, 131072)], abs=0.3)


@pytest.mark.parametrize("log", [True, False])
def test_the_curve_is_the_similarity_and_keeps_its_extremes(log):
    (e,) = llama().encodings
    svg = figures.similarity(e, log=log).body
    box = {k: float(v) for k, v in re.findall(r'data-(left|right|reach|top|bottom|low|high)="(-?[\d.]+)"', svg)}
    points = re.findall(r'class="curve blue" points="([^"]+)"', svg)[0].split()
    found = [tuple(map(float, p.split(","))) for p in points]
    value = [
        box["high"] - (y - box["top"]) / (box["bottom"] - box["top"]) * (box["high"] - box["low"]) for _, y in found
    ]
    assert min(value) == pytest.approx(e.decay.minimum.similarity, abs=0.004)
    assert max(value) == pytest.approx(max(e.decay.curve.y[1:] if log else e.decay.curve.y), abs=0.004)
    share = (found[0][0] - box["left"]) / (box["right"] - box["left"])
    assert share == pytest.approx(0, abs=0.001)
    negative = re.search(r'class="curve orange dotted" x1="([\d.]+)"', svg)[1]
    part = math.log(85133) / math.log(131072) if log else 85133 / 131072
    assert float(negative) == pytest.approx(box["left"] + part * (box["right"] - box["left"]), abs=0.1)
    assert len(found) < 3000


def test_a_scaling_is_drawn_before_and_after_on_the_same_axes():
    (e,) = llama().encodings
    svg = figures.similarity(e).body
    assert svg.count('class="curve grey" points') == 1
    heights = [float(p.split(",")[1]) for p in re.search(r'class="curve grey" points="([^"]+)"', svg)[1].split()]
    assert max(heights) > 250  # before the scaling it falls lower
    plain = account(reading("rotary(128, base=500000)", served=9000), claims=False).encodings[0]
    body = figures.similarity(plain).body
    assert "before scaling" not in body
    assert body.count('class="curve green dashed" points') == 1  # the continuous limit of a geometric schedule


def test_thinning_keeps_extremes_for_both_axes():
    x = np.arange(100_001)
    y = np.cos(x * 0.7) * np.exp(-x / 3e4)
    y[3], y[77_777], y[40] = 2.0, -3.0, -2.5
    kept = spread(x, y, 400)
    assert len(kept.x) <= 400
    values = dict(zip(kept.x, kept.y, strict=True))
    assert (values[3.0], values[77_777.0], values[40.0]) == (2.0, -3.0, -2.5)
    assert {2.0**k for k in range(17)} <= values.keys()
    for low, high in ((1, 16), (256, 512), (16384, 32768)):  # an octave is as wide as any other on a logarithmic axis
        inside = [v for v in kept.x if low <= v < high]
        assert len(inside) >= 8
        part = slice(low, high)
        assert {y[part].min(), y[part].max()} <= set(kept.y)
    assert spread(x[:50], y[:50], 400).x == tuple(range(50))


def test_columns_keep_the_extremes_of_every_half_pixel():
    x = tuple(float(i) for i in range(20_000))
    y = tuple(math.sin(i) for i in range(20_000))
    drawn = list(canvas.columns(Curve(x=x, y=y), canvas.Axis(0, 20_000, 0, 100, log=False)))
    assert len(drawn) <= 402
    assert {max(y), min(y)} <= {v for _, v in drawn}


def test_bands_hold_everything_nearby():
    curve = Curve(x=tuple(map(float, range(100))), y=tuple(float((-1) ** i * i) for i in range(100)))
    found = curves.bands(curve, canvas.Axis(0, 100, 0, 50, log=False), pixels=8)
    assert max(most for _, _, most in found) == 98
    assert min(least for _, least, _ in found) == -99
    assert [x for x, _, _ in found] == sorted(x for x, _, _ in found)


def test_labels_do_not_cover_each_other():
    labels = [(100.0 + 9 * k, f"label number {k}") for k in range(5)] + [(600.0, "far")]
    spots = canvas.placed(labels, 0, 700)
    boxes = [(end - canvas.DIGIT * len(words), end, row) for (end, row), (_, words) in zip(spots, labels, strict=True)]
    for i, (a, b, row) in enumerate(boxes):
        for c, d, other in boxes[i + 1 :]:
            assert row != other or b < c or d < a
    for (x, _), (_, row) in zip(labels, spots, strict=True):  # a line goes down from its row; it crosses no label
        for a, b, other in boxes:
            assert other >= row or not a < x < b


def decoded(picture: bytes) -> np.ndarray:
    """The palette's indices of a PNG, read by its own specification."""
    at, data, size = 8, b"", (0, 0)
    while at < len(picture):
        (length,), kind = struct.unpack(">I", picture[at : at + 4]), picture[at + 4 : at + 8]
        chunk = picture[at + 8 : at + 8 + length]
        assert struct.unpack(">I", picture[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + chunk)
        size = struct.unpack(">II", chunk[:8]) if kind == b"IHDR" else size
        data += chunk if kind == b"IDAT" else b""
        at += 12 + length
    rows = np.frombuffer(zlib.decompress(data), dtype=np.uint8).reshape(size[1], size[0] + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:].astype(int)


def test_a_heat_map_is_its_matrix():
    matrix = np.random.default_rng(3).uniform(-2, 2, (5, 7))
    found = decoded(heat.png(matrix.tolist(), 2.0))
    np.testing.assert_allclose((found - 127) / 127 * 2, matrix, atol=2 / 127 / 2 + 1e-9)
    colours = palette.heat_colours(255)
    assert colours[:3].hex() == "123f7a"
    assert colours[3 * 127 : 3 * 128].hex() == "f7f6f2"
    assert colours[-3:].hex() == "8f3403"


def test_the_precision_map_has_a_cell_for_every_dtype_and_stage():
    (e,) = llama().encodings
    drawn = figures.precision(e)
    assert drawn.body.count('class="cell') == 12
    assert len(drawn.rows) == 12
    safe = {(stage, dtype): last for stage, dtype, last, _, _ in drawn.rows}
    assert safe["positions", "bfloat16"] == "256"  # 257 has nine bits
    assert safe["positions", "float16"] == "2,048"
    assert safe["table", "float32"] == "all safe"


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
def test_contrast_is_aa(colours):
    papers = [c for name, c in colours.items() if name.endswith("tint")]
    assert len(papers) >= 7
    for paper in [colours["paper"], *papers]:
        assert contrast(colours["ink"], paper) >= 7
        assert contrast(colours["soft"], paper) >= 4.5 or paper == colours["most-tint"]
    for name in ("blue", "orange", "green", "violet", "bad"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
        assert contrast(colours[name], colours["tint"]) >= 4.5, name
    assert contrast(colours["grey"], colours["paper"]) >= 3


def test_standing_alone_a_figure_brings_its_colours():
    svg = posenc.plot.ladder("rotary(6)").svg()
    assert "var(" not in svg
    assert palette.LIGHT["blue"] in svg
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"')


@pytest.mark.parametrize("name", ["clocks", "similarity", "ladder", "scaling", "heat", "precision"])
def test_plots_show_and_save_themselves(name, tmp_path):
    plot = getattr(posenc.plot, name)(llama())
    html = plot._repr_html_()
    assert plot.finding.replace("'", "&#39;") in html
    assert "<html" not in html
    assert plot._repr_svg_() == plot.svg()
    plot.save(tmp_path / "a.svg")
    plot.save(tmp_path / "a.png")
    assert (tmp_path / "a.svg").read_text() == plot.svg()
    width, height = struct.unpack(">II", (tmp_path / "a.png").read_bytes()[16:24])
    assert (width, height) == (2 * plot.figure.width, 2 * plot.figure.height)
    with pytest.raises(PosencError, match=r"\.svg or \.png"):
        plot.save(tmp_path / "a.pdf")


def test_plots_of_tables_and_of_what_has_none():
    assert posenc.plot.similarity(np.eye(13)).figure.name == "kernel"
    assert posenc.plot.heat(np.eye(13), of="table").figure.name == "table"
    assert posenc.plot.clocks("rotary(6)", 3).figure.title == "Clocks at a distance of 3 positions"
    for bad in (
        lambda: posenc.plot.ladder(np.eye(13)),
        lambda: posenc.plot.clocks("alibi(6)"),
        lambda: posenc.plot.clocks("rotary(6)", -1),
        lambda: posenc.plot.clocks("rotary(6)", encoding=1),
        lambda: posenc.plot.scaling("rotary(6)"),
        lambda: posenc.plot.heat("rotary(6)", of="spectrum"),
        lambda: posenc.plot.clocks("rotary(4, schedule=explicit((0.0, 0.0)))"),
    ):
        with pytest.raises(SubjectError):
            bad()
