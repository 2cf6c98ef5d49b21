"""Patched models against transformers' own, with weights so large that a missing rotation moves logits by over 1."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from nn.patching import subjects  # noqa: E402
from posenc.formats.huggingface import read_config  # noqa: E402
from posenc.nn.patching import patch, patched, unpatch  # noqa: E402
from posenc.spec import Interleave, ModelPositions, Rotary, Split  # noqa: E402

EQUAL, MOVED = 1e-4, 1e-3


@pytest.fixture(autouse=True)
def _no_grad() -> Any:
    with torch.no_grad():
        yield


def distance(a: Any, b: Any) -> float:
    return float((a - b).abs().max())


def one_percent(config: Any) -> ModelPositions:
    """What the config says, with every base one percent larger."""

    def larger(encoding: Any) -> Any:
        if not isinstance(encoding, Rotary):
            return encoding
        return encoding.replace(schedule=encoding.schedule.replace(base=1.01 * encoding.schedule.base))

    positions = read_config(config.to_dict(), name="tiny", source="test").positions
    kinds = tuple(kind.replace(encodings=tuple(map(larger, kind.encodings))) for kind in positions.kinds)
    return positions.replace(kinds=kinds)


@pytest.mark.parametrize("name", subjects.ARCHITECTURES)
def test_logits(name: str, monkeypatch: Any) -> None:
    model = subjects.model(name)
    own = {run: call(model) for run, call in subjects.RUNS.items()}
    with subjects.without_rotation(model):
        assert distance(subjects.prefill(model), own["prefill"]) > 1
    patch(model)
    with subjects.poisoned(model, monkeypatch):
        for run, call in subjects.RUNS.items():
            assert distance(call(model), own[run]) < EQUAL, run
    unpatch(model)
    for run, call in subjects.RUNS.items():
        assert torch.equal(call(model), own[run]), run
    patch(model, one_percent(model.config))
    for run, call in subjects.RUNS.items():
        assert distance(call(model), own[run]) > MOVED, run


IMAGE = torch.tensor(
    [
        [[0, 1, 2, 3, 3, 3, 3, 3, 3, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
        [[0, 1, 2, 3, 3, 3, 4, 4, 4, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
        [[0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
    ]
)
"""Time, height and width: three tokens of text, an image of 2 x 3, two tokens of text; and a row of text alone."""


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen3_vl"])
def test_logits_with_three_axes(name: str, monkeypatch: Any) -> None:
    model = subjects.multimodal(name)
    ids = subjects.tokens(2)

    def text() -> Any:
        return model(input_ids=ids, use_cache=False).logits

    def image() -> Any:
        return model(input_ids=ids, position_ids=IMAGE, use_cache=False).logits

    def by_token() -> Any:
        first = model(input_ids=ids[:, :9], position_ids=IMAGE[..., :9], use_cache=True)
        second = model(input_ids=ids[:, 9:], position_ids=IMAGE[..., 9:], cache=first.past_key_values, use_cache=True)
        return torch.cat((first.logits, second.logits), 1)

    runs = (text, image, by_token)
    own = [run() for run in runs]
    assert distance(own[0], own[1]) > 1
    with subjects.without_rotation(model):
        assert distance(text(), own[0]) > 1
    patch(model)
    assert len(patched(model)) == 1
    with subjects.poisoned(model, monkeypatch):
        assert max(distance(run(), before) for run, before in zip(runs, own, strict=True)) < EQUAL
    unpatch(model)
    assert all(torch.equal(run(), before) for run, before in zip(runs, own, strict=True))
    patch(model, one_percent(model.config.text_config))
    assert min(distance(run(), before) for run, before in zip(runs, own, strict=True)) > MOVED


def test_the_axes_own_their_pairs() -> None:
    """Sections in one piece instead of interleaved: the same for text, another image."""
    model = subjects.multimodal("qwen3_vl")
    ids = subjects.tokens(2)
    (reading,) = read_config(model.config.text_config.to_dict(), name="tiny", source="test").encodings()
    assert isinstance(reading.axes, Interleave)
    own = [model(input_ids=ids, position_ids=at, use_cache=False).logits for at in (IMAGE, None)]
    patch(model, reading.replace(axes=Split(pairs=reading.axes.pairs, own_schedule=False)))
    image, text = (model(input_ids=ids, position_ids=at, use_cache=False).logits for at in (IMAGE, None))
    assert distance(image, own[0]) > MOVED
    assert distance(text, own[1]) < EQUAL
