"""Whole models of transformers: their parts against their own config, their passes against each other."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("transformers")

from posenc.checker.checking import check

TYPES = (
    "llama",
    "gptj",
    "gpt2",
    "t5",
    "bert",
    "qwen2_vl_text",
    "qwen3_vl_text",
    "gemma3_text",
    "deepseek_v3",
    "modernbert",
)


def report_of(subject, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check(subject, *args, **kwargs)


@pytest.mark.parametrize("name", TYPES)
def test_a_model_follows_its_own_config(name):
    report = report_of(f"transformers:{name}")
    assert report.could_not_run is None
    assert [f.title for f in report.findings if f.verdict == "defect"] == []
    assert report.acquitted


def test_a_module_inside_a_model():
    report = report_of("transformers:llama#rotary_emb", "rotary(24, base=500000)")
    assert {r.name: r.value for f in report.findings for r in f.recovered}["base"] == pytest.approx(1e4, rel=1e-3)
    assert "a part with positions at" in report_of("transformers:llama#nosuch").could_not_run


def test_an_unknown_type_is_said():
    assert "transformers knows the model type" in report_of("transformers:nonsense").could_not_run


def test_a_broken_cache_is_seen():
    from posenc.checker.models.building import tiny_model

    model = tiny_model("llama")
    forward = model.rotary_emb.forward

    def from_zero(x, position_ids):
        return forward(x, position_ids - position_ids[:, :1])

    model.rotary_emb.forward = from_zero
    report = report_of(model)
    assert any("offset-cache" in f.kinds and f.verdict == "defect" for f in report.findings)


def test_a_model_without_positions_is_not_acquitted():
    report = report_of("transformers:swin")
    assert not report.acquitted
    assert report.could_not_run is None


def test_a_swapped_section_is_seen_only_with_axes_of_their_own():
    from posenc.checker.boxes import CosSin
    from posenc.checker.gathering import Gathered
    from posenc.checker.models.axes import check_axes
    from posenc.formulas import frequencies
    from posenc.spec import parse

    value = parse("rotary(24, axes=split((2, 4, 6), own_schedule=False))")[0]
    theta = frequencies(value).theta

    def box(matrix):
        return CosSin(lambda at: None, calls={"axes": lambda at: (np.cos(at.T @ matrix), np.sin(at.T @ matrix))})

    right, wrong = Gathered(), Gathered()
    check_axes(right, box(theta), value)
    check_axes(wrong, box(theta[[1, 0, 2]]), value)
    assert right.findings == []
    assert wrong.findings[0].kinds[0] == "multimodal-positions"
