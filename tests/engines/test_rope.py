"""Rotated queries of mlx and llama.cpp in SmolLM2's setting, within the float32 error of their angles."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import posenc
from engines import ggml
from engines.cases import (
    CASES,
    LAST_ROUNDINGS,
    LLAMA3,
    LLAMA_CPP,
    MLX,
    POSITIONS,
    SMOLLM2,
    TOKENS,
    WIDTH,
    U,
    allowed,
    llama_cpp,
    mlx,
    off,
    query,
)
from posenc.formulas import frequencies
from posenc.nn.converting import convert_channels
from posenc.nn.rotary import RotaryEmbedding
from posenc.spec import Yarn

each = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.engine} {case.name}")
LATER = [p for p in POSITIONS if p]


def ours(value, x, first):
    """The module's result, ``(heads, tokens, head_dim)``."""
    module = RotaryEmbedding.from_value(value)
    ready = module.prepare(torch.arange(first, first + TOKENS))
    return module.rotate(torch.from_numpy(x)[None], ready)[0].numpy()


def test_the_setting_is_that_of_smollm2():
    (kind,) = posenc.read("smollm2-135m").positions.kinds
    assert kind.encodings == (SMOLLM2,)


@each
def test_an_engine_is_off_by_its_float32_angle_at_most(case):
    x = query()
    for first in POSITIONS:
        assert off(case.turn(x, first), x, case.value, first) <= allowed(case, first)


@each
def test_the_module_is_the_engine_without_that_error(case):
    x = query()
    for first in POSITIONS:
        mine = ours(case.value, x, first)
        assert off(mine, x, case.value, first) <= LAST_ROUNDINGS * U
        gain = frequencies(case.value).gain
        largest = 2 * gain * np.abs(x).max()
        assert np.abs(case.turn(x, first) - mine).max() <= largest * (allowed(case, first) + LAST_ROUNDINGS * U)


@each
def test_another_base_or_layout_is_seen_at_every_position(case):
    x = query()
    base = case.value.schedule.base * 1.01
    for other in (
        case.value.replace(schedule=case.value.schedule.replace(base=base)),
        case.value.replace(interleaved=not case.value.interleaved),
    ):
        for first in LATER:
            assert off(case.turn(x, first), x, other, first) > 10 * allowed(case, first)


@each
def test_a_position_is_seen(case):
    x = query()
    for first in POSITIONS:
        assert off(case.turn(x, first + 1), x, case.value, first) > 0.1


def of(engine):
    """The first case of an engine, to bind a test to it."""
    return pytest.mark.parametrize("case", [next(c for c in CASES if c.engine == engine)], ids=[engine])


@of(MLX)
def test_freqs_of_mlx_are_wavelengths(case):
    x, theta = query(), frequencies(LLAMA3).theta[0]
    assert off(mlx(freqs=theta)(x, 127), x, LLAMA3, 127) > 0.1
    assert off(mlx(freqs=1 / theta)(x, 127), x, LLAMA3, 127) < 1e-4


@of(MLX)
def test_an_offset_for_each_row(case):
    import mlx.core as mx

    starts = [3, 1021]
    x = np.stack([query(), query()[::-1]])
    with mx.stream(mx.cpu):
        given = mx.array(x), WIDTH
        got = np.array(mx.fast.rope(*given, traditional=False, base=1e5, scale=1.0, offset=mx.array(starts)))
    module = RotaryEmbedding.from_value(SMOLLM2)
    ids = torch.tensor(starts)[:, None] + torch.arange(TOKENS)
    mine = module.rotate(torch.from_numpy(x), module.prepare(ids)).numpy()
    for row, first in enumerate(starts):
        assert off(got[row], x[row], SMOLLM2, first) <= allowed(case, first)
        assert np.abs(got[row] - mine[row]).max() <= 8 * allowed(case, first)


@of(LLAMA_CPP)
def test_reordered_channels_turn_a_layout_into_the_other(case):
    x = query()
    adjacent = convert_channels(torch.from_numpy(x), "adjacent").numpy()
    for first in POSITIONS:
        half = case.turn(x, first)
        other = llama_cpp(mode=ggml.NORMAL)(adjacent, first)
        again = convert_channels(torch.from_numpy(other), "half").numpy()
        assert np.abs(again - half).max() <= 4 * LAST_ROUNDINGS * U * np.abs(x).max()


@of(LLAMA_CPP)
def test_what_yarn_s_switches_do(case):
    x, value = query(), SMOLLM2 >> Yarn(4.0, original=8192)
    asked = {"freq_scale": 0.25, "n_ctx_orig": 8192}
    plain = llama_cpp(**asked)(x, 4093)  # without ext_factor it is linear
    assert off(plain, x, value, 4093) > 0.1
    # attn_factor multiplies the gain that YaRN has already; attention_factor replaces it
    gained = llama_cpp(ext_factor=1.0, attn_factor=1.5, **asked)(x, 3)
    own = frequencies(value).gain
    replaced = SMOLLM2 >> Yarn(4.0, original=8192, attention_factor=1.5 * own)
    assert off(gained, x, replaced, 3) < 2e-6
    assert off(gained, x, SMOLLM2 >> Yarn(4.0, original=8192, attention_factor=1.5), 3) > 0.1


@of(LLAMA_CPP)
def test_nothing_is_handed_over_that_would_abort_the_process(case):
    x, at = query().swapaxes(0, 1), np.arange(TOKENS, dtype=np.int32)
    for wrong in (
        {"n_dims": 63},
        {"n_dims": 66},
        {"n_dims": WIDTH, "mode": 1},
        {"n_dims": WIDTH, "freq_factors": np.ones(3)},
    ):
        with pytest.raises(ValueError, match=r"."):
            ggml.rope(x, at, **wrong)
    for ids in (at[:2], at.astype(np.int64)):
        with pytest.raises(ValueError, match="positions int32"):
            ggml.rope(x, ids, n_dims=WIDTH)
