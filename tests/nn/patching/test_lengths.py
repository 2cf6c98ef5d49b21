"""Scalings that depend on the length: transformers' own answer, ours as it, and ours under a declared length.

transformers 5.24 decides by the largest position of each call. With a cache, keys that were turned before a switch keep
the old frequencies, so it disagrees with itself; the tests state by how much (logits of a standard deviation near 1.6).
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from nn.patching import subjects  # noqa: E402
from posenc.errors import ShapeError, SpecError  # noqa: E402
from posenc.nn.patching import declare_lengths, patch, unpatch  # noqa: E402

EQUAL = 1e-4
TOKENS = 29
"""Both subjects were trained on 13."""
DYNAMIC = {
    "rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0},
    "max_position_embeddings": 13,
}
SUBJECTS = {"longrope": ("phi3 short", {}), "dynamic": ("llama", DYNAMIC)}
APART = {"longrope": 7.4, "dynamic": 5.3}
"""Largest difference of a logit between one pass and token by token in transformers (measured 7.43 and 5.27)."""


@pytest.fixture(autouse=True)
def _no_grad() -> Any:
    with torch.no_grad():
        yield


def distance(a: Any, b: Any) -> float:
    return float((a - b).abs().max())


def subject(scaling: str) -> Any:
    name, more = SUBJECTS[scaling]
    return subjects.model(name, **more)


def whole(model: Any, count: int = TOKENS) -> Any:
    return model(input_ids=subjects.tokens(2, count), use_cache=False).logits


def by_token(model: Any) -> Any:
    return subjects.token_by_token(model, count=TOKENS)


@pytest.mark.parametrize("scaling", SUBJECTS)
def test_transformers_disagrees_with_itself_and_a_declared_length_does_not(scaling: str) -> None:
    own, own_by_token = whole(subject(scaling)), by_token(subject(scaling))
    assert distance(own, own_by_token) > 0.9 * APART[scaling]
    model = patch(subject(scaling))
    assert distance(whole(model), own) < EQUAL
    assert distance(by_token(model), own_by_token) < EQUAL
    patch(unpatch(model), length_from="fixed", length=TOKENS)
    assert distance(whole(model), own) < EQUAL
    assert distance(by_token(model), own) < EQUAL
    patch(unpatch(model))
    declare_lengths(model, [TOKENS, TOKENS])
    assert distance(by_token(model), own) < EQUAL
    declare_lengths(model, None)
    assert distance(by_token(model), own_by_token) < EQUAL


def test_dynamic_frequencies_leave_no_trace() -> None:
    """transformers keeps the base of the longest text seen: 20 tokens before and after 60 differ by 4.6."""
    model = subject("dynamic")
    first = whole(model, 20)
    whole(model, 60)
    assert distance(whole(model, 20), first) > 4
    patch(model)
    assert distance(whole(model, 20), first) < EQUAL
    whole(model, 60)
    assert distance(whole(model, 20), first) < EQUAL


@pytest.mark.parametrize("scaling", SUBJECTS)
def test_a_row_beside_a_longer_one(scaling: str) -> None:
    """Under transformers' rule a row of 9 tokens beside one of 29 gets the frequencies of 29: 4.7 for LongRoPE."""
    model, ids, mask = subject(scaling), subjects.tokens(2, TOKENS), torch.ones(2, TOKENS, dtype=torch.long)
    ids[1, :20], mask[1, :20] = 0, 0
    at = (mask.cumsum(-1) - 1).clamp(min=0)

    def beside() -> Any:
        return model(input_ids=ids, attention_mask=mask, position_ids=at, use_cache=False).logits[1, 20:]

    def alone() -> Any:
        return model(input_ids=ids[1:, 20:], use_cache=False).logits[0]

    own = alone()
    batch = beside()
    assert distance(batch, own) > 1
    patch(model)
    assert distance(beside(), batch) < EQUAL
    patch(unpatch(model), length_from="row")
    assert distance(beside(), own) < EQUAL
    assert distance(alone(), own) < EQUAL
    declare_lengths(model, [TOKENS, TOKENS])
    assert distance(beside(), batch) < EQUAL
    declare_lengths(model, [TOKENS, 9])
    assert distance(beside(), own) < EQUAL


def test_bad_lengths() -> None:
    model = subject("dynamic")
    with pytest.raises(SpecError, match="declared to a patched model"):
        declare_lengths(model, 5)
    with pytest.raises(SpecError, match="needs length="):
        patch(model, length_from="fixed")
    with pytest.raises(SpecError, match="length_from is one of"):
        patch(model, length_from="longest")  # type: ignore[arg-type]
    patch(model)
    for wrong in (0, 2.5, [], [3, -1], torch.tensor([True])):
        with pytest.raises(ShapeError, match="whole numbers of at least 1"):
            declare_lengths(model, wrong)  # type: ignore[arg-type]
