"""Inspection against check values of the papers and slow loops of its own."""

from __future__ import annotations

import json
import math

import pytest

from posenc.analysis.inspection import inspect
from posenc.records import Inspection, Part
from posenc.spec import LayerKind, ModelPositions, parse
from readings import LLAMA31, reading


@pytest.fixture(scope="module")
def llama() -> Inspection:
    return inspect(reading(LLAMA31, layers=32, trained=131072, trained_source="the paper", served=131072))


def test_llama31_numbers(llama):
    spectrum = llama.parts[0].encodings[0].spectrum
    (state,) = spectrum.states
    for pair, theta in {
        28: 0.00321144599475,
        29: 0.00216657076350,
        34: 0.000178507812768,
        63: 3.06892598891e-07,
    }.items():
        assert state.theta[pair] == pytest.approx(theta, rel=1e-11)
        assert state.wavelength[pair] == pytest.approx(2 * math.pi / theta, rel=1e-11)
    assert [(b.effect, b.pairs) for b in state.bands] == [
        ("kept", (0, 28)),
        ("blended", (29, 34)),
        ("stretched", (35, 63)),
    ]
    assert (state.gain, state.logit_scale, state.base) == (1.0, 1.0, 500000.0)


def test_pairs_without_a_full_turn_are_counted_one_by_one(llama):
    spectrum = llama.parts[0].encodings[0].spectrum
    assert [u.within for u in spectrum.unfinished] == ["original", "trained", "served"]
    for unfinished in spectrum.unfinished:
        slow = [i for i, theta in enumerate(spectrum.states[0].theta) if theta * unfinished.length < 2 * math.pi]
        listed = [i for a, b in unfinished.pairs for i in range(a, b + 1)]
        assert listed == slow
        assert unfinished.count == len(slow) > 0


def test_three_lengths_and_their_source(llama):
    lengths = llama.parts[0].lengths
    assert lengths.named() == (("original", 8192), ("trained", 131072), ("served", 131072))
    assert lengths.trained_source == "the paper"


def test_formulas_carry_their_numbers(llama):
    encoding = llama.parts[0].encodings[0]
    assert "500000^(-2i/128)" in encoding.formula
    assert all(text in encoding.scaling[0] for text in ("2048", "8192", "θ / 8"))
    assert parse(encoding.notation)[0].scaling[0].factor == 8


def test_similarity_is_a_mean_of_cosines(llama):
    (state,) = llama.parts[0].encodings[0].spectrum.states
    curve = state.similarity
    assert curve.x[0] == 1
    assert curve.x[-1] <= 131072
    for at in (0, 1, 7, len(curve.x) // 2, len(curve.x) - 1):
        slow = math.fsum(math.cos(curve.x[at] * theta) for theta in state.theta) / len(state.theta)
        assert curve.y[at] == pytest.approx(slow, abs=1e-10)


def test_similarity_is_left_out_when_not_wanted():
    (state,) = inspect(reading(LLAMA31), similarity=False).parts[0].encodings[0].spectrum.states
    assert state.similarity is None


def test_longrope_has_two_states():
    record = inspect(
        reading("rotary(6) >> longrope(8, original=512, short_factor=(1, 1.5, 2), long_factor=(1, 3, 7))", served=4096)
    )
    short, long = record.parts[0].encodings[0].spectrum.states
    assert (short.length, long.length) == (512, 4096)
    assert short.ratio == pytest.approx((1, 1.5, 2))
    assert long.ratio == pytest.approx((1, 3, 7))
    assert [b.effect for b in long.bands] == ["kept", "own ratio"]
    assert short.gain == long.gain == pytest.approx(math.sqrt(1 + math.log(8) / math.log(512)))
    assert max(short.similarity.x) <= 512 < max(long.similarity.x)


def test_dynamic_is_shown_at_the_longest_length():
    record = inspect(reading("rotary(10) >> dynamic(2, original=512)", served=2048))
    within, beyond = record.parts[0].encodings[0].spectrum.states
    assert {b.effect for b in within.bands} == {"kept"}
    assert beyond.length == 2048
    assert beyond.base == pytest.approx(10000 * 7 ** (10 / 8))
    assert beyond.bands[-1].effect == "stretched"


def test_a_pair_that_does_not_turn_has_no_wavelength():
    spectrum = inspect(reading("rotary(22, base=100, keep=0.5)", served=64)).parts[0].encodings[0].spectrum
    assert spectrum.states[0].wavelength[5:] == (None,) * 6
    assert spectrum.states[0].bands[-1].effect == "still"
    assert spectrum.unfinished[0].pairs[-1][1] == 10


def test_layers_and_kinds():
    local, whole = parse("rotary(6, base=10)"), parse("rotary(10, base=1000)")
    positions = ModelPositions(
        kinds=(LayerKind(name="local", encodings=local, window=7), LayerKind(name="whole", encodings=whole)),
        layers=(0, 0, 1, 0, 0, 1, 0),
    )
    part = inspect(reading("none").model_copy(update={"parts": (Part(name="t", positions=positions),)})).parts[0]
    assert [(k.name, k.layers, k.count, k.window, k.encodings) for k in part.kinds] == [
        ("local", ((0, 1), (3, 4), (6, 6)), 5, 7, (0,)),
        ("whole", ((2, 2), (5, 5)), 2, None, (1,)),
    ]


def test_equal_encodings_of_two_kinds_are_listed_once():
    same = parse("rotary(6)")
    positions = ModelPositions(kinds=(LayerKind(name="a", encodings=same), LayerKind(name="b", encodings=same)))
    part = inspect(reading("none").model_copy(update={"parts": (Part(name="t", positions=positions),)})).parts[0]
    assert len(part.encodings) == 1
    assert [k.encodings for k in part.kinds] == [(0,), (0,)]
    assert part.layers is None


NOTATIONS = [
    "none",
    "alibi(6) + learned(18, shape=(31,), offset=2)",
    "t5_bias(6)",
    "seasonal((24.0, 168.0), harmonics=(2, 3), trend=1000.0)",
    "query_scale(0.1, original=8192) + rotary(6)",
    "unmodelled('Shaw')",
    "sinusoidal(7)",
    "sinusoidal(10, order='sin|cos', shift=1)",
    "rotary(16, axes=mixed(3), base=10)",
    "rotary(22, axes=interleave((5, 3, 3)))",
    "rotary(8, axes=split((1, 3)), interleaved=True)",
    "rotary(10, schedule=explicit((1.0, 0.5, 0.0, 0.1, 0.2)))",
    "rotary(10, schedule=arithmetic(2.0))",
    "rotary(10, schedule=random(1.0, seed=7))",
    "rotary(6, schedule=periods((24.0, 168.0), harmonics=(2, 1)))",
    "rotary(10, xpos_scale_base=512.0, learned=True)",
    "rotary(64, base=150000) >> yarn(32, original=4096, truncate=False, softmax_mscale=1)",
    "rotary(10) >> by_parts(2, original=2048) >> resonance()",
    "rotary(10) >> linear(2) >> ntk(3)",
    "rotary(6) >> factors((1.0, 2.0, 3.0), attention_factor=1.5)",
]


@pytest.mark.parametrize("notation", NOTATIONS)
def test_records_survive_json(notation):
    record = inspect(reading(notation, served=640))
    text = record.model_dump_json()
    assert Inspection.model_validate_json(text) == record
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} in JSON"))
    for encoding in record.parts[0].encodings:
        assert encoding.formula
        assert str(parse(encoding.notation)[0]) == encoding.notation


def test_a_mixed_pair_turns_along_its_own_direction():
    spectrum = inspect(reading("rotary(16, axes=mixed(3), base=10)")).parts[0].encodings[0].spectrum
    assert spectrum.unscaled == pytest.approx([10 ** (-i / 4) for i in (0, 1, 2, 3)] * 2)
    assert "head 0" in spectrum.remark


def test_alibi_slopes_are_given():
    (numbers,) = inspect(reading("alibi(3)")).parts[0].encodings[0].numbers
    assert numbers.values == (0.0625, 0.00390625, 0.25)


def test_faults_come_from_the_encodings_too():
    wrong = "rotary(6) >> as_executed('linear', settings=(('factor', 0.5),), faults=('factor below 1',))"
    record = inspect(reading(wrong))
    assert record.faults == ("factor below 1",)
    assert record.parts[0].encodings[0].spectrum.states[0].bands[0].effect == "shortened"
    assert "as executed" in record.parts[0].encodings[0].scaling[0]


def test_yarn_multiplies_gain_and_logits():
    notation = "rotary(64) >> yarn(40, original=4096, mscale=1, mscale_all_dim=1, softmax_mscale=1)"
    (state,) = inspect(reading(notation)).parts[0].encodings[0].spectrum.states
    assert (state.gain, state.logit_scale) == pytest.approx((1.0, 1.8738542071), rel=1e-9)
    assert [b.pairs for b in state.bands] == [(0, 10), (11, 22), (23, 31)]
