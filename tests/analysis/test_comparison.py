"""Comparisons that a porter makes, each with its answer."""

from __future__ import annotations

import numpy as np
import pytest

from posenc.analysis.comparison import diff
from posenc.formulas import frequencies
from posenc.records import Assumption, Difference, Part, UnreadKey
from posenc.spec import Explicit, LayerKind, ModelPositions, Rotary, notation, parse
from readings import LLAMA31, reading


def weights(found: Difference) -> list[tuple[str, str]]:
    return [(f.weight, f.what) for f in found.findings]


def test_the_same_model():
    found = diff(reading(LLAMA31, trained=7, served=7), reading(LLAMA31, trained=7, served=7))
    assert found.same
    assert found.findings == ()
    assert found.compared == ("text: 5 layers, rotary of 64 pairs",)


def test_base_one_percent_higher():
    found = diff(reading(LLAMA31), reading(LLAMA31.replace("500000", "505000")))
    (finding,) = found.differences
    assert not found.same
    assert (finding.index, finding.count, finding.of) == (1, 63, 64)
    assert float(finding.a) == pytest.approx(500000 ** (-1 / 64), rel=1e-9)
    assert float(finding.b) == pytest.approx(505000 ** (-1 / 64), rel=1e-9)
    assert "500000" in finding.remark
    assert "505000" in finding.remark


def test_scaling_dropped():
    (finding,) = diff(reading(LLAMA31), reading("rotary(128, base=500000)")).differences
    assert (finding.index, finding.count) == (29, 35)
    assert finding.relative == pytest.approx(7 / 8)
    assert finding.remark == "scaling llama3(8, original=8192) against none"


def test_one_longrope_factor():
    chain = "rotary(6) >> longrope(8, original=512, short_factor=(1, 1.5, 2), long_factor=(1, {}, 7))"
    (finding,) = diff(reading(chain.format(3)), reading(chain.format(3.03))).differences
    assert (finding.index, finding.count, finding.of) == (1, 1, 3)
    assert "513 positions" in finding.what
    assert finding.relative == pytest.approx(1 - 3 / 3.03)


def test_equal_numbers_in_another_spelling():
    theta = frequencies(parse(LLAMA31)[0]).theta[0]
    spelt = notation(Rotary(128, schedule=Explicit(theta=tuple(theta.tolist()))))
    found = diff(reading(LLAMA31), reading(spelt))
    assert found.same
    assert found.findings == ()


def test_float32_rounding_is_said_and_no_difference():
    theta = frequencies(parse(LLAMA31)[0]).theta[0].astype(np.float32).astype(np.float64)
    spelt = notation(Rotary(128, schedule=Explicit(theta=tuple(theta.tolist()))))
    found = diff(reading(LLAMA31), reading(spelt))
    assert found.same
    (finding,) = found.findings
    assert 0 < finding.relative < 6e-8


@pytest.mark.parametrize(
    ("order", "same", "weight"),
    [(None, False, "difference"), ("adjacent", True, "convention"), ("half", False, "difference")],
)
def test_interleaved_is_a_convention_where_the_rows_are_stored_for_it(order, same, weight):
    other = LLAMA31.replace("500000)", "500000, interleaved=True)")
    found = diff(reading(LLAMA31), reading(other, row_order=order))
    assert found.same is same
    assert weights(found) == [(weight, "pairing")] or weights(found) == [(weight, "pairs")]


def test_rows_stored_differently_for_equal_pairs():
    found = diff(reading(LLAMA31, row_order="half"), reading(LLAMA31, row_order="adjacent"))
    assert found.same
    assert weights(found) == [("convention", "order of stored rows")]


def test_served_is_information_and_unknown_trained_is_nothing():
    found = diff(reading(LLAMA31, served=8192), reading(LLAMA31, served=4096, trained=131072))
    assert found.same
    assert weights(found) == [("information", "served length")]


def test_gain_and_logit_scale():
    plain = "rotary(64) >> yarn(4, original=4096)"
    (gain,) = diff(reading(plain), reading("rotary(64) >> yarn(4, original=4096, attention_factor=1)")).differences
    assert gain.what.startswith("gain")
    assert float(gain.a) == pytest.approx(1.1386294361)
    (logits,) = diff(reading(plain), reading("rotary(64) >> yarn(4, original=4096, softmax_mscale=1)")).differences
    assert "softmax" in logits.what


def test_layers():
    found = diff(reading(LLAMA31, layers=5), reading(LLAMA31, layers=7))
    assert weights(found) == [("difference", "number of layers")]
    assert diff(reading(LLAMA31, layers=5), reading(LLAMA31, format="notation")).same


def hybrid(
    layers: tuple[int, ...], window: int | None = 7, names: tuple[str, str] = ("local", "whole"), base: int = 1000
):
    kinds = (
        LayerKind(name=names[0], encodings=parse("rotary(6, base=10)"), window=window),
        LayerKind(name=names[1], encodings=parse(f"rotary(10, base={base})")),
    )
    part = Part(name="text", positions=ModelPositions(kinds=kinds, layers=layers))
    return reading("none").model_copy(update={"parts": (part,)})


def test_the_layer_pattern():
    found = diff(hybrid((0, 0, 1, 0, 0)), hybrid((0, 1, 0, 0, 0)))
    assert not found.same
    assert {f.where for f in found.differences} == {"local / whole layers 1", "whole / local layers 2"}


def test_kinds_by_another_name_or_number_are_the_same():
    assert diff(hybrid((0, 0, 1)), hybrid((0, 0, 1), names=("sliding", "full"))).same


def test_the_window_and_one_kind():
    assert weights(diff(hybrid((0, 1)), hybrid((0, 1), window=8))) == [("difference", "window")]
    (finding,) = diff(hybrid((0, 1, 1)), hybrid((0, 1, 1), base=1010)).differences
    assert finding.where == "whole layers 1-2"


def test_an_encoding_on_one_side_only():
    found = diff(reading(LLAMA31), reading(f"{LLAMA31} + query_scale(0.1, original=8192)"))
    (finding,) = found.differences
    assert (finding.what, finding.a) == ("query_scale", "none")
    assert diff(reading(f"alibi(3) + {LLAMA31}"), reading(f"{LLAMA31} + alibi(3)")).same


def test_learned_tables():
    (finding,) = diff(reading("learned(18, shape=(31,))"), reading("learned(18, shape=(37,))")).differences
    assert (finding.where, finding.what) == ("input", "shape")


def test_parts():
    both = reading(LLAMA31)
    vision = Part(name="vision", positions=ModelPositions.uniform(*parse("learned(18, shape=(7, 7))")))
    two = both.model_copy(update={"parts": (*both.parts, vision)})
    assert weights(diff(two, both)) == [("difference", "part")]
    found = diff(two, both.model_copy(update={"format": "gguf"}))
    assert found.same
    assert weights(found) == [("information", "part")]


def test_what_was_assumed_unread_or_wrong_is_said():
    noted = reading(
        LLAMA31,
        assumed=(Assumption(key="rope_theta", value="10000", why="library default"),),
        unread=(UnreadKey(key="rope_new", value="3"),),
        faults=("factor below 1",),
    )
    found = diff(reading(LLAMA31), noted)
    assert found.same
    assert [(f.what, f.a, f.b) for f in found.findings] == [
        ("fault", "-", "wrong"),
        ("not read: rope_new", "-", "3"),
        ("assumed: rope_theta", "-", "10000"),
    ]


def test_a_comparison_survives_json():
    found = diff(reading(LLAMA31), reading("rotary(128)", served=7))
    assert Difference.model_validate_json(found.model_dump_json()) == found
