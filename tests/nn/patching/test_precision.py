"""What a cast of the whole model destroys, and what patching gives back."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from nn.patching import subjects  # noqa: E402
from posenc.nn.patching import patch, unpatch  # noqa: E402

POSITIONS = 8192


@pytest.fixture(autouse=True)
def _no_grad() -> Any:
    with torch.no_grad():
        yield


def exact(width: int, base: float = 10000.0) -> Any:
    """Cosines in both halves, by the formula of the paper."""
    angles = [[m * base ** (-2 * i / width) for i in range(width // 2)] for m in range(POSITIONS)]
    return np.cos(np.concatenate([angles, angles], axis=1))


def test_cosines_of_a_cast_model() -> None:
    """Cosines up to position 8191: off by 1.3 after ``.bfloat16()``, by one rounding (2^-9) after patching."""
    model = subjects.model("llama", max_position_embeddings=POSITIONS).bfloat16()
    ids, x = torch.arange(POSITIONS)[None], torch.zeros(1, 1, 4, dtype=torch.bfloat16)
    truth = exact(16)

    def error() -> float:
        return float(np.abs(model.model.rotary_emb(x, ids)[0][0].double().numpy() - truth).max())

    assert error() > 1.3
    patch(model)
    assert error() < 1.01 * 2**-9
    single = model.model.rotary_emb(x.float(), ids)[0][0].double().numpy()
    assert np.abs(single - truth).max() < 1.01 * 2**-25


def test_logits_of_a_cast_model() -> None:
    """Root mean square error of bfloat16 logits at 400 tokens against float64: 0.108 cast, 0.067 patched.

    0.067 is also what the model has whose frequencies were never cast; the rest is bfloat16 elsewhere.
    """
    uncast = subjects.model("llama").model.rotary_emb
    cast = subjects.model("llama").bfloat16()
    reference = copy.deepcopy(cast).double()
    kept = copy.deepcopy(cast)
    reference.model.rotary_emb, kept.model.rotary_emb = uncast, uncast
    ids = subjects.tokens(1, 400)
    truth = reference(input_ids=ids).logits

    def error(model: Any) -> float:
        return float((model(input_ids=ids).logits.double() - truth).square().mean().sqrt())

    before, possible = error(cast), error(kept)
    after = error(patch(cast))
    fast = error(patch(unpatch(cast), level="fast"))
    assert before > 1.5 * possible
    assert after < 1.02 * possible
    assert fast < 1.02 * possible


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_cast_after_patching_changes_no_frequency(dtype: Any) -> None:
    model = patch(subjects.model("llama"))
    ids, x = torch.arange(POSITIONS)[None], torch.zeros(1, 1, 4)
    cos, sin = model.model.rotary_emb(x, ids)
    model.to(dtype)
    assert all(torch.equal(a, b) for a, b in zip(model.model.rotary_emb(x, ids), (cos, sin), strict=True))
    wide = model.model.rotary_emb(x.double(), ids)[0]
    assert wide.dtype == torch.float64
    assert np.abs(wide[0].numpy() - exact(16)).max() < 1e-11
