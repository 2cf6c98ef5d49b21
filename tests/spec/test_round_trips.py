"""Notation and JSON write every value down and read exactly the same value back."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from posenc import spec
from posenc.errors import SpecError
from posenc.spec import (
    NTK,
    Alibi,
    Explicit,
    LayerKind,
    Linear,
    ModelPositions,
    Rotary,
    Sinusoidal,
    Split,
    Yarn,
    from_json,
    notation,
    parse,
    to_json,
)

thorough = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def test_the_strategies_know_every_encoding():
    assert set(strategies.ENCODINGS) == set(spec.ENCODINGS)


@pytest.mark.parametrize("kind", strategies.ENCODINGS)
@thorough
@given(data=st.data())
def test_notation_and_json_are_exact(kind, data):
    value = data.draw(strategies.ENCODINGS[kind])
    assert value.kind == kind
    (again,) = parse(notation(value))
    assert again == value
    assert hash(again) == hash(value)
    assert from_json(to_json(value)) == value
    assert from_json(to_json(value, indent=2)) == value
    assert str(value) == notation(value)


@thorough
@given(value=st.lists(strategies.encodings, max_size=3).map(tuple))
def test_notation_joins_encodings_of_a_layer(value):
    assert parse(notation(value)) == value


@thorough
@given(model=strategies.models())
def test_models_are_exact_in_json(model):
    assert from_json(to_json(model)) == model
    assert hash(from_json(to_json(model))) == hash(model)
    assert json.loads(to_json(model))["schema"] == 1


@pytest.mark.parametrize("kind", strategies.ENCODINGS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_json_is_complete(kind, data):
    """No default is dropped, at any depth: the text says everything without the code that wrote it."""

    def check(value, written):
        assert set(written) == {f.alias or n for n, f in type(value).model_fields.items()}
        for name in type(value).model_fields:
            field = getattr(value, name)
            if isinstance(field, spec.Value):
                check(field, written[name])
            elif isinstance(field, tuple) and field and isinstance(field[0], spec.Value):
                for one, text in zip(field, written[name], strict=True):
                    check(one, text)

    value = data.draw(strategies.ENCODINGS[kind])
    written = json.loads(to_json(value))
    assert written.pop("schema") == 1
    check(value, written)


WRITTEN = {
    "rotary(128)": Rotary(128),
    "rotary(128, base=500000) >> yarn(4, original=32768)": Rotary(128, base=5e5) >> Yarn(4, original=32768),
    "rotary(64, rotary_dim=32, interleaved=True, keep=0.5)": Rotary(64, rotary_dim=32, interleaved=True, keep=0.5),
    "rotary(4, schedule=explicit((1, 0.1)), axes=split((1, 1), own_schedule=False))": Rotary(
        4, schedule=Explicit(theta=(1.0, 0.1)), axes=Split((1, 1), own_schedule=False)
    ),
    "sinusoidal(512, shift=1, order='sin|cos')": Sinusoidal(512, shift=1.0, order="sin|cos"),
    "rotary(64) >> linear(2) >> ntk(3)": Rotary(64) >> Linear(2) >> NTK(3),
    "rotary(64, base=1e+300)": Rotary(64, base=1e300),
}


@pytest.mark.parametrize("line", WRITTEN)
def test_lines_as_people_write_them(line):
    assert notation(WRITTEN[line]) == line
    assert parse(line) == (WRITTEN[line],)


def test_other_spellings_of_a_line():
    assert parse("  rotary( 8,base = 5e5 )>>linear( factor=2 )\n") == (Rotary(8, base=5e5) >> Linear(2),)
    assert parse("rotary(head_dim=8, schedule=geometric(base=5e5))") == (Rotary(8, base=5e5),)
    assert parse("rotary(8) + alibi(3)") == (Rotary(8), Alibi(3))
    assert parse("none") == parse("none()") == parse(" none ") == ()
    assert notation(()) == "none"
    assert parse("rotary(4, schedule=explicit([1, 0.5]))") == (Rotary(4, schedule=Explicit(theta=(1.0, 0.5))),)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("", "name\\(value"),
        ("rotary", "head_dim is missing"),
        ("rotary(", "name\\(value"),
        ("rotary(8) >>", "name\\(value"),
        ("rotory(8)", "unknown name.*got rotory.*Known: "),
        ("linear(2)", "starts with an encoding"),
        ("0", "starts with an encoding"),
        ("'rotary(8)'", "starts with an encoding"),
        ("(rotary(8), 1)", "starts with an encoding"),
        ("rotary(8) >> 5", "scaling"),
        ("rotary(8) >> alibi(3)", "scaling"),
        ("rotary(8) >> rotary(8)", "scaling"),
        ("alibi(3) >> linear(2)", "only a rotary can be scaled"),
        ("rotary(8, 9)", "one field by position"),
        ("rotary(8, bass=5)", "bass is not a field.*Known fields: head_dim"),
        ("rotary(8, **x)", "no \\*\\* arguments"),
        ("rotary(7)", "must be even; got 7"),
        ("rotary(8.5)", "head_dim should"),
        ("rotary('8')", "head_dim should"),
        ("rotary(True)", "head_dim should"),
        ("rotary(8, base=True)", "base should"),
        ("rotary(8, base=-5)", "base should be greater than 1"),
        ("rotary(8, base=1e999)", "finite"),
        ("rotary(8, base=nan)", "unknown|name\\(value"),
        ("rotary(__import__('os').system('true'))", "name\\(value"),
        ("rotary(8)(9)", "name\\(value"),
        ("rotary(8, rotary_dim=16)", "must not exceed head_dim"),
        ("rotary(1000000000000)", "less than or equal to 1048576"),
        ("rotary(10**12)", "name\\(value"),
        ("rotary(8) >> yarn(0.5, original=64)", "factor should be greater than or equal to 1"),
        ("rotary(8, base=5, schedule=geometric(base=6))", "either schedule or its flat fields"),
        ("rotary(8) >> llama3(8)", "original is missing"),
        ("rotary(" + "(" * 300 + "8" + ")" * 300 + ")", "name\\(value|nested"),
        ("rotary(8, schedule=explicit(" + "-" * 5000 + "1))", "name\\(value|nested"),
        ("<b>rotary</b>", "name\\(value"),
        ("rotary(8)\x00", "name\\(value"),
        ("rotary(8, base=" + "9" * 5000 + ")", "."),
    ],
)
def test_lines_that_are_none(line, rule):
    with pytest.raises(SpecError, match=rule) as error:
        parse(line)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1200


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_is_a_line_or_one_clear_error(text):
    try:
        value = parse(text)
    except SpecError as error:
        said = str(error)
    else:
        said = ""
        assert parse(notation(value)) == value
    assert "\n" not in said


def test_a_line_is_bounded():
    with pytest.raises(SpecError, match="at most 1048576 characters"):
        parse("rotary(8)" + " " * 2**20)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "read from JSON"),
        ("{", "read from JSON"),
        ("[]", "carries"),
        ("null", "carries"),
        ('{"kind":"alibi","num_heads":3}', '"schema": 1'),
        ('{"schema":2,"kind":"alibi","num_heads":3}', '"schema": 1.*got 2'),
        ('{"schema":true,"kind":"alibi","num_heads":3}', '"schema": 1'),
        ('{"schema":1,"kind":"alibi"}', "num_heads is missing"),
        ('{"schema":1,"kind":"alibi","num_heads":3,"heads":3}', "heads is not a field"),
        ('{"schema":1,"kind":"alibi","num_heads":true}', "num_heads should"),
        ('{"schema":1,"kind":"alibi","num_heads":3,"max_bias":NaN}', "finite"),
        ('{"schema":1,"kind":"alibi","num_heads":3,"max_bias":1e999}', "finite"),
        ('{"schema":1,"kind":"alibi","num_heads":3,"max_bias":"8"}', "max_bias should"),
        ('{"schema":1,"kind":"alibo","num_heads":3}', "alibo|tag|kind"),
        ('{"schema":1,"kinds":[]}', "kinds"),
        ('{"schema":1,"kinds":[{"name":"a"}],"layers":[1]}', "layers index the 1 kinds; got 1"),
        ("[" * 100_000, "read from JSON|carries"),
    ],
)
def test_json_that_is_no_value(text, rule):
    with pytest.raises(SpecError, match=rule) as error:
        from_json(text)
    assert "\n" not in str(error.value)


def test_json_of_a_whole_model():
    model = ModelPositions(
        kinds=(LayerKind(name="full", encodings=(Rotary(8, base=1e6),)), LayerKind(name="none", window=4096)),
        layers=(0, 1, 0),
        trained=8192,
        trained_source="model card",
        served=131072,
    )
    written = json.loads(to_json(model))
    assert written["kinds"][1] == {"name": "none", "encodings": [], "window": 4096, "chunk": None}
    assert written["kinds"][0]["encodings"][0]["schedule"] == {
        "kind": "geometric", "base": 1e6, "keep": 1.0, "shift": 0.0, "first": 1.0,
    }  # fmt: skip
