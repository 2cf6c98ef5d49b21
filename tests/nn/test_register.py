"""One walk over the register of encodings: a kind that lacks anything fails here."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import posenc.nn
from nn.register import REGISTER, UNMODELLED, case_of, stirred, trained
from posenc.cli import app
from posenc.errors import SpecError
from posenc.nn import ContentEncoding, InputEncoding, QueryKeyEncoding, ScoreEncoding, build
from posenc.spec import ENCODINGS, from_json, notation, parse, to_json
from posenc.spec.references import cited

ROOT = Path(__file__).resolve().parents[2]
ROUNDINGS = 8
"""Roundings of float32 that a module may be away from its formula, relative to the largest number."""
PLACES = {"input": (InputEncoding,), "query_key": (QueryKeyEncoding, ContentEncoding), "score": (ScoreEncoding,)}

every = pytest.mark.parametrize(
    ("kind", "line"), [pytest.param(kind, line, id=line) for kind, entry in REGISTER.items() for line in entry.lines]
)
TRAINED = [(k, line) for k, entry in REGISTER.items() for line in entry.lines if list(build(line).parameters())]
that_train = pytest.mark.parametrize(("kind", "line"), TRAINED, ids=[line for _, line in TRAINED])
each_kind = pytest.mark.parametrize("kind", REGISTER)


def test_every_kind_has_an_entry():
    assert set(REGISTER) == set(ENCODINGS) - {"unmodelled"}
    assert all(len(entry.lines) >= 2 for entry in REGISTER.values())
    for kind, entry in REGISTER.items():
        assert {parse(line)[0].kind for line in entry.lines} == {kind}


def test_what_trains_is_what_says_so():
    kinds = {kind for kind, _ in TRAINED}
    assert {"learned", "adjusted", "time2vec", "learnable_fourier", "t5_bias", "kerple", "fire", "shaw"} <= kinds
    assert {"alibi", "sandwich", "seasonal", "calendar", "fourier", "query_scale", "clock"}.isdisjoint(kinds)
    assert all(
        (kind, line) in TRAINED for kind, entry in REGISTER.items() for line in entry.lines if "learned=" in line
    )


def test_what_is_named_but_not_computed_has_no_module():
    with pytest.raises(SpecError, match="no module computes this; got unmodelled"):
        build(UNMODELLED)


@every
def test_the_value_survives_notation_and_json(kind, line):
    (value,) = parse(line)
    assert parse(notation(value)) == (value,)
    assert from_json(to_json(value)) == value
    assert hash(from_json(to_json(value))) == hash(value)
    assert isinstance(value, ENCODINGS[kind])


@every
def test_the_module_is_the_formula_to_roundings_of_float32(kind, line):
    entry, module = REGISTER[kind], stirred(build(line))
    case = case_of(entry, module.value)
    found = entry.called(module, case)
    wanted = entry.formula(module.value, trained(module), case)
    assert found.dtype == torch.float32
    assert found.shape == wanted.shape
    assert np.isfinite(wanted).all()
    assert np.abs(wanted).max() > 0
    worst = np.abs(found.detach().double().numpy() - wanted).max()
    assert worst <= ROUNDINGS * 2.0**-24 * (1 + np.abs(wanted).max())


@every
def test_in_float64_it_is_the_formula_to_roundings_of_float64(kind, line):
    entry, module = REGISTER[kind], stirred(build(line)).double()
    case = case_of(entry, module.value, torch.float64)
    found = entry.called(module, case).detach()
    wanted = entry.formula(module.value, trained(module), case)
    assert found.dtype == torch.float64
    assert np.abs(found.numpy() - wanted).max() <= 1e-12 * (1 + np.abs(wanted).max())


class Called(nn.Module):
    """A call of the register as a function of what is trained."""

    def __init__(self, entry, module):
        super().__init__()
        self.entry, self.module = entry, module
        self.case = case_of(entry, module.value, torch.float64)

    def forward(self):
        return self.entry.called(self.module, self.case)


@that_train
def test_gradients_of_all_that_is_trained(kind, line):
    entry, module = REGISTER[kind], stirred(build(line)).double()
    names = [name for name, _ in module.named_parameters()]
    call = Called(entry, module)

    def of(*parameters):
        named = {f"module.{name}": p for name, p in zip(names, parameters, strict=True)}
        return torch.func.functional_call(call, named, ())

    start = [p.detach().clone().requires_grad_() for p in module.parameters()]
    assert torch.autograd.gradcheck(of, start, eps=1e-7, atol=1e-5, rtol=1e-4)
    found = of(*start)
    (found * torch.randn(found.shape, dtype=found.dtype)).sum().backward()
    for name, p in zip(names, start, strict=True):
        assert p.grad is not None, name
        if name != "query.bias":
            assert p.grad.abs().max() > 0, name


@every
def test_facts_and_repr(kind, line):
    module = build(line)
    value = module.value
    assert isinstance(module, PLACES[value.enters])
    assert value.enters == ENCODINGS[kind].enters
    assert notation(value) in repr(module), "the repr states the convention"
    assert not list(module.buffers())
    assert isinstance(value.relative, bool)
    assert isinstance(value.content_dependent, bool)
    assert not (value.relative and value.content_dependent)
    assert isinstance(value.needs_length, bool)
    entry = REGISTER[kind]
    named = getattr(posenc.nn, entry.module)
    assert isinstance(module, named)
    made = named.from_value(value) if hasattr(named, "from_value") else named(value)
    assert made.value == value


@each_kind
def test_what_a_module_is_made_from(kind):
    """By class from notation or a value, and never from another kind."""
    entry = REGISTER[kind]
    (value,) = parse(entry.lines[0])
    assert type(build(value)) is type(build(entry.lines[0]))
    cls = type(build(value))
    make = getattr(cls, "from_value", cls)
    (other,) = parse(REGISTER["clock" if kind != "clock" else "alibi"].lines[0])
    with pytest.raises(SpecError):
        make(other)


@each_kind
def test_an_oracle_judges_it(kind):
    file, name = REGISTER[kind].oracle.split("::")
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    (function,) = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    assert any(isinstance(n, ast.Assert | ast.With) for n in ast.walk(function)), "it asserts something"


@every
def test_what_it_cites_can_be_looked_up(kind, line):
    (value,) = parse(line)
    found = cited((value,))
    keys = {*value.cites, *(k for s in getattr(value, "scaling", ()) for k in s.cites)}
    assert keys <= {reference.key for reference in found}
    assert all(reference.link or reference.publisher for reference in found)


@every
def test_it_can_be_inspected(kind, line):
    result = CliRunner().invoke(app, ["inspect", line])
    assert result.exit_code == 0, result.output
    assert f"{kind}(" in result.output
    assert "Traceback" not in result.output


@cache
def documentation():
    """``docs/generate.py`` as a module."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_documentation_is_what_the_register_says():
    assert (ROOT / "docs" / "encodings.md").read_text("utf-8") == documentation().encodings(), "run `make docs`"


@each_kind
def test_the_documentation_has_a_row(kind):
    text = (ROOT / "docs" / "encodings.md").read_text("utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith(f"| `{kind}` |")]
    assert REGISTER[kind].module in row
    assert all(cell.strip() for cell in row.strip("|").split(" | "))
