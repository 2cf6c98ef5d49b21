"""What a value is: frozen, strict, honest about what is wrong; and what each encoding refuses."""

import math
import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from posenc.errors import PosencError, SpecError, shown
from posenc.spec import (
    ENCODINGS,
    NTK,
    SCALINGS,
    Alibi,
    Arithmetic,
    AsExecuted,
    ByParts,
    Dynamic,
    Explicit,
    Factors,
    Geometric,
    Interleave,
    LayerKind,
    Learned,
    Linear,
    Llama3,
    LongRope,
    Mixed,
    ModelPositions,
    Periods,
    QueryScale,
    Random,
    Resonance,
    Rotary,
    Seasonal,
    Sinusoidal,
    Split,
    T5Bias,
    Unmodelled,
    Yarn,
    executable,
)

quick = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("kind", strategies.ENCODINGS)
@quick
@given(data=st.data())
def test_values_are_frozen_hashable_and_copied_whole(kind, data):
    value = data.draw(strategies.ENCODINGS[kind])
    field = type(value).first_field()
    with pytest.raises(Exception, match="frozen"):
        setattr(value, field, getattr(value, field))
    assert value.replace() == value
    assert hash(value.replace()) == hash(value)
    assert {value: 1}[value.replace()] == 1
    assert pickle.loads(pickle.dumps(value)) == value
    assert value.faults == tuple(f for s in getattr(value, "scaling", ()) for f in getattr(s, "faults", ()))
    assert value.enters in ("input", "query_key", "score", "unknown")


@quick
@given(values=st.lists(strategies.encodings, min_size=2, max_size=2))
def test_equal_means_equal_in_every_field(values):
    left, right = values
    assert (left == right) == (type(left) is type(right) and left.model_dump() == right.model_dump())


def test_values_of_different_kinds_never_equal():
    assert Alibi(8) != QueryScale(8.0, original=8)
    assert Linear(2) != NTK(2)
    assert Rotary(8) != Rotary(8, interleaved=True)
    assert Rotary(8) == Rotary(8, rotary_dim=8)


NUMBERS = {
    "Rotary.head_dim": lambda v: Rotary(v),
    "Rotary.base": lambda v: Rotary(8, base=v),
    "Sinusoidal.offset": lambda v: Sinusoidal(8, offset=v),
    "Alibi.max_bias": lambda v: Alibi(8, max_bias=v),
    "Yarn.original": lambda v: Yarn(4, original=v),
    "Linear.factor": lambda v: Linear(v),
    "T5Bias.max_distance": lambda v: T5Bias(8, max_distance=v),
    "Seasonal.trend": lambda v: Seasonal((7.0,), trend=v),
    "LayerKind.window": lambda v: LayerKind(name="a", window=v),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("bad", [True, "8", math.nan, math.inf, -math.inf, -8, [8], (8,), 8j, b"8", {}])
def test_what_is_no_number(name, bad):
    with pytest.raises(SpecError, match=name.split(".")[1]) as error:
        NUMBERS[name](bad)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bad", [1, 0, "yes", None])
def test_what_is_no_boolean(bad):
    with pytest.raises(SpecError, match="interleaved should"):
        Rotary(8, interleaved=bad)


def test_integers_are_floats_but_not_the_other_way():
    assert Rotary(8, base=500000) == Rotary(8, base=5e5)
    assert isinstance(Rotary(8, base=500000).schedule.base, float)
    with pytest.raises(SpecError, match="head_dim should"):
        Rotary(8.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Explicit(theta=[1.0]),
        lambda: Split([1, 2]),
        lambda: Learned(8, shape=[4]),
        lambda: Rotary(8, scaling=[Linear(2)]),
        lambda: Seasonal([7.0]),
        lambda: Factors([1.0]),
        lambda: ByParts(2, original=64, beta=[2.0, 1.0]),
    ],
)
def test_a_list_is_not_a_tuple(make):
    with pytest.raises(SpecError, match="should be a valid tuple"):
        make()


def test_unknown_and_missing_fields():
    with pytest.raises(
        SpecError, match=r"Rotary.bass is not a field. Known fields: head_dim, rotary_dim.*, base, keep"
    ):
        Rotary(8, bass=1)
    with pytest.raises(SpecError, match=r"Yarn\.original is missing"):
        Yarn(4)
    with pytest.raises(SpecError, match="one field by position"):
        Rotary(8, 4)
    with pytest.raises(SpecError, match="one field by position"):
        Rotary(8, head_dim=8)


def test_flat_fields_are_their_members():
    flat = Rotary(8, base=5e5, keep=0.5)
    assert flat == Rotary(8, schedule=Geometric(base=5e5, keep=0.5))
    assert flat.replace(base=1e6).schedule == Geometric(base=1e6, keep=0.5)
    assert flat.replace(base=1e6, interleaved=True).interleaved
    assert Sinusoidal(8, shift=1.0).schedule.shift == 1.0
    with pytest.raises(SpecError, match="either schedule or its flat fields"):
        Rotary(8, base=5e5, schedule=Geometric())
    explicit = Rotary(4, schedule=Explicit(theta=(1.0, 0.5)))
    assert explicit.replace(theta=(1.0, 0.25)).schedule.theta == (1.0, 0.25)


def test_changed_copies_are_checked_again():
    value = Rotary(8)
    with pytest.raises(SpecError, match="must be even"):
        value.replace(rotary_dim=7)
    with pytest.raises(SpecError, match="greater than 1"):
        value.replace(base=0.5)
    with pytest.raises(SpecError, match="not a field"):
        value.replace(bass=1)
    with pytest.raises(SpecError, match="must be even"):
        value.model_copy(update={"rotary_dim": 7})
    assert value == Rotary(8)


def test_scaling_appends():
    one = Rotary(8) >> Linear(2)
    assert one.scaling == (Linear(2),)
    assert (one >> NTK(3)).scaling == (Linear(2), NTK(3))
    assert Rotary(8).scaling == ()


REFUSED = {
    "odd rotary": (lambda: Rotary(7), "must be even; got 7"),
    "wider than the head": (lambda: Rotary(8, rotary_dim=16), "rotary_dim=16, head_dim=8"),
    "sections": (lambda: Rotary(8, axes=Split((1, 2))), r"add up to 4 pairs; got \(1, 2\) = 3"),
    "explicit count": (lambda: Rotary(8, schedule=Explicit(theta=(1.0,))), "give 4 pairs; got 1"),
    "period count": (lambda: Rotary(8, schedule=Periods(periods=(7.0,), harmonics=(2,))), "give 4 pairs; got 2"),
    "own schedule of a list": (
        lambda: Rotary(8, schedule=Explicit(theta=(1.0,) * 4), axes=Split((2, 2))),
        "has a formula",
    ),
    "mixed halves": (lambda: Rotary(6, axes=Mixed(3)), "two equal halves; got 3 pairs"),
    "odd halves": (lambda: Sinusoidal(7, order="sin|cos"), "ends with a zero column.*odd='zero'"),
    "odd over axes": (lambda: Sinusoidal(7, odd="zero", axes=Split((1, 2))), "even dim"),
    "shift": (lambda: Sinusoidal(4, shift=2.0), "shift must be smaller than half the width"),
    "shift beyond": (lambda: Sinusoidal(4, shift=1.5), "positive denominator"),
    "growing geometric": (lambda: Geometric(base=1.0), "greater than 1"),
    "keep": (lambda: Rotary(8, keep=1.5), "less than or equal to 1"),
    "negative theta": (lambda: Explicit(theta=(-1.0,)), "greater than or equal to 0"),
    "no theta": (lambda: Explicit(theta=()), "at least 1 item"),
    "harmonics": (lambda: Seasonal((7.0, 24.0), harmonics=(1,)), "1 counts for 2 periods"),
    "period": (lambda: Seasonal((0.0,)), "greater than 0"),
    "odd buckets": (lambda: T5Bias(8, num_buckets=30), "divides into"),
    "few distances": (lambda: T5Bias(8, max_distance=8), "must exceed the 8"),
    "factor": (lambda: Linear(0.5), "greater than or equal to 1; got 0.5"),
    "betas": (lambda: Yarn(2, original=64, beta_fast=1.0, beta_slow=32.0), "beta_fast must not be below"),
    "parts": (lambda: ByParts(2, original=64, gamma=(2.0, 16.0)), "gamma runs from more turns to fewer"),
    "llama3": (lambda: Llama3(2, original=64, low_freq_factor=5.0), "must not exceed high_freq_factor"),
    "longrope lists": (
        lambda: LongRope(2, original=64, short_factor=(1.0,), long_factor=(1.0, 2.0)),
        "one number for each pair; got 1 and 2",
    ),
    "longrope pairs": (
        lambda: Rotary(8) >> LongRope(2, original=64, short_factor=(1.0,), long_factor=(1.0,)),
        "each of the 4 pairs; got 1",
    ),
    "longrope original": (lambda: LongRope(2, original=1, short_factor=(1.0,), long_factor=(1.0,)), "greater than 1"),
    "factors pairs": (lambda: Rotary(8) >> Factors((1.0,)), "each of the 4 pairs; got 1"),
    "ntk on a list": (lambda: Rotary(4, schedule=Explicit(theta=(1.0, 0.5))) >> NTK(2), "geometric schedule"),
    "ntk on one pair": (lambda: Rotary(2) >> NTK(2), "more than one pair"),
    "ntk on own schedules": (lambda: Rotary(8, axes=Split((2, 2))) >> NTK(2), "one schedule over all pairs"),
    "yarn after a first of 2": (lambda: Rotary(8, first=2.0) >> Yarn(2, original=64), "first=1 and shift=0"),
    "many axes": (lambda: Mixed(3, axes=3), "less than or equal to 2"),
    "seed": (lambda: Random(sigma=1.0, seed=-1), "greater than or equal to 0"),
    "width": (lambda: Rotary(10**12), "less than or equal to 1048576"),
    "empty shape": (lambda: Learned(8, shape=()), "at least 1 item"),
    "interleaved": (lambda: Rotary(8, axes=Interleave((1, 1))), "add up to 4 pairs"),
    "no name": (lambda: Unmodelled(""), "at least 1 character"),
    "no kinds": (lambda: ModelPositions(kinds=()), "at least 1 item"),
    "layers": (lambda: ModelPositions(kinds=(LayerKind(name="a"),), layers=(0, 1)), "layers index the 1 kinds; got 1"),
    "names": (lambda: ModelPositions(kinds=(LayerKind(name="a"),) * 2), "different names"),
    "query scale": (lambda: QueryScale(0.0, original=64), "greater than 0"),
    "last of an arithmetic": (lambda: Arithmetic(last=0.0), "greater than 0"),
    "dynamic without original": (lambda: Dynamic(2), "original is missing"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_values_do_not_exist(name):
    make, rule = REFUSED[name]
    with pytest.raises(SpecError, match=rule) as error:
        make()
    assert "\n" not in str(error.value)


class TestAsExecuted:
    """The lenient form: what engines run although it is wrong, with what is wrong about it."""

    def test_right_mathematics_stays_strict(self):
        assert executable("yarn", factor=4.0, original=64) == Yarn(4, original=64)
        assert executable("yarn", factor=4.0, original=64, beta_fast=1.0, beta_slow=1.0).kind == "yarn"

    @pytest.mark.parametrize(
        ("kind", "settings", "fault"),
        [
            ("linear", {"factor": 0.5}, "factor should be greater than or equal to 1; got 0.5"),
            ("yarn", {"factor": 4.0, "original": 64, "beta_fast": 1.0, "beta_slow": 32.0}, "must not be below"),
            (
                "llama3",
                {"factor": 8.0, "original": 64, "low_freq_factor": 4.0, "high_freq_factor": 1.0},
                "must not exceed",
            ),
        ],
    )
    def test_wrong_mathematics_is_kept_with_its_fault(self, kind, settings, fault):
        value = executable(kind, **settings)
        assert isinstance(value, AsExecuted)
        assert fault in value.faults[0]
        assert dict(value.settings) == settings
        assert value.cites == SCALINGS[kind].cites
        assert (Rotary(8) >> value).faults == value.faults
        defaults = value.fields()
        assert defaults | settings == defaults

    def test_defaults_of_the_rule_are_filled_in(self):
        fields = executable("yarn", factor=0.5, original=64).fields()
        assert (fields["beta_fast"], fields["truncate"], fields["attention_factor"]) == (32.0, True, None)

    @pytest.mark.parametrize(
        ("kind", "settings"),
        [
            ("linear", {"factor": -2.0}),
            ("linear", {"factor": 0.0}),
            ("linear", {"factor": math.nan}),
            ("linear", {"factor": math.inf}),
            ("linear", {"factor": "4"}),
            ("linear", {"factor": True}),
            ("linear", {}),
            ("yarn", {"factor": 4.0}),
            ("yarn", {"factor": 4.0, "original": None}),
            ("longrope", {"factor": 4.0, "original": 64, "short_factor": (1.0, 2.0), "long_factor": (1.0, 0.0)}),
        ],
    )
    def test_what_cannot_be_computed_with_is_refused(self, kind, settings):
        with pytest.raises(SpecError):
            executable(kind, **settings)


class TestModels:
    """Layer kinds, and three lengths that are never mixed."""

    def test_encodings_go_where_they_enter(self):
        model = ModelPositions.uniform(Sinusoidal(8), Rotary(8), Alibi(3), layers=5, served=64)
        assert model.input == (Sinusoidal(8),)
        assert model.kinds[0].encodings == (Rotary(8), Alibi(3))
        assert model.layers_of(0) == (0, 1, 2, 3, 4)
        assert (model.trained, model.served, model.original) == (None, 64, None)

    def test_each_encoding_once_in_order(self):
        kinds = (
            LayerKind(name="local", encodings=(Rotary(8),), window=512),
            LayerKind(name="global", encodings=(Rotary(8, base=1e6), Alibi(3))),
            LayerKind(name="none"),
        )
        model = ModelPositions(input=(Learned(8, shape=(4,)),), kinds=kinds, layers=(0, 0, 1, 2, 0))
        assert model.encodings == (Learned(8, shape=(4,)), Rotary(8), Rotary(8, base=1e6), Alibi(3))
        assert model.layers_of(0) == (0, 1, 4)
        assert model.layers_of(2) == (3,)

    def test_original_is_the_scalings_where_they_agree(self):
        def with_scalings(*scalings):
            kinds = tuple(LayerKind(name=str(i), encodings=(Rotary(8) >> s,)) for i, s in enumerate(scalings))
            return ModelPositions(kinds=kinds).original

        assert with_scalings(Yarn(4, original=64), Llama3(4, original=64)) == 64
        assert with_scalings(Yarn(4, original=64), Llama3(4, original=128)) is None
        assert with_scalings(Linear(2)) is None
        assert with_scalings(executable("yarn", factor=0.5, original=77)) == 77


class TestErrors:
    """One printable line: the rule, what was seen, what to do."""

    def test_the_three_parts(self):
        assert str(PosencError("a rule", 7, "Do this.")) == "a rule; got 7. Do this."
        assert str(PosencError("a rule")) == "a rule"
        assert isinstance(SpecError("a rule"), ValueError)

    def test_hostile_text_is_made_printable_and_short(self):
        assert shown("a\x1b[31m\nb") == "a\\x1b[31m\\nb"
        assert shown("\u202e") == "\\u202e"
        assert len(shown("x" * 10**6)) == 160

        class Hostile:
            def __repr__(self):
                raise RuntimeError("no")

        assert "RuntimeError" in shown(Hostile())

    def test_a_long_input_is_described_not_printed(self):
        with pytest.raises(SpecError, match="got a list of 100 items"):
            Explicit(theta=[1.0] * 100)


def test_facts_of_each_encoding():
    facts = {kind: (cls.enters, cls.relative) for kind, cls in ENCODINGS.items()}
    stated = {
        "sinusoidal": ("input", False),
        "learned": ("input", False),
        "rotary": ("query_key", True),
        "alibi": ("score", True),
        "t5_bias": ("score", True),
        "query_scale": ("query_key", False),
        "seasonal": ("input", False),
        "unmodelled": ("unknown", False),
    }
    assert {kind: facts[kind] for kind in stated} == stated
    assert (Rotary(8) >> Dynamic(2, original=64)).needs_length
    assert not (Rotary(8) >> Yarn(2, original=64)).needs_length
    assert Resonance().kind == "resonance"
    assert Sinusoidal(7).pairs == 4
    assert Sinusoidal(7, odd="zero").pairs == 3
    assert Seasonal((7.0, 24.0), harmonics=(2, 3), trend=9.0).dim == 11
