"""The fast level: the application too, for the releases and types that are listed."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from formats.huggingface import tiny_models as tiny  # noqa: E402
from nn.patching import subjects  # noqa: E402
from posenc.errors import SubjectError  # noqa: E402
from posenc.formulas import half_from_adjacent, projection_rows  # noqa: E402
from posenc.nn.patching import applying, patch, unpatch  # noqa: E402


@pytest.fixture(autouse=True)
def _no_grad() -> Any:
    with torch.no_grad():
        yield


def distance(a: Any, b: Any) -> float:
    return float((a - b).abs().max())


@pytest.mark.parametrize("model_type", sorted(applying.TYPES))
def test_every_listed_type(model_type: str, monkeypatch: Any) -> None:
    torch.manual_seed(7)
    model = tiny.build(tiny.config(model_type, initializer_range=0.1))
    ids = subjects.tokens()

    def run() -> Any:
        return model(input_ids=ids, use_cache=False)[0]

    own = run()
    with subjects.without_rotation(model):
        assert distance(run(), own) > 1e-2
    patch(model, level="fast")
    for name in applying.NAMES:
        if hasattr(tiny.code(model.config), name):
            monkeypatch.setattr(tiny.code(model.config), name, subjects._raise)
    assert distance(run(), own) < 1e-4
    monkeypatch.undo()
    unpatch(model)
    assert torch.equal(run(), own)
    assert not any("forward" in vars(m) for m in model.modules())


@pytest.mark.parametrize("name", ["llama", "gemma3", "deepseek_v3", "phi3 long", "phi", "gpt_oss"])
def test_runs(name: str) -> None:
    model = subjects.model(name)
    own = {run: call(model) for run, call in subjects.RUNS.items()}
    patch(model, level="fast")
    for run, call in subjects.RUNS.items():
        assert distance(call(model), own[run]) < 1e-4, run


def test_other_pairs() -> None:
    """With rows of q and k reordered, adjacent pairs give what half pairs gave: no weight is converted."""
    model = subjects.model("llama")
    own = subjects.prefill(model)
    back = torch.from_numpy(half_from_adjacent(16)).argsort().numpy()
    for layer in model.model.layers:
        for weight, heads in ((layer.self_attn.q_proj.weight, 4), (layer.self_attn.k_proj.weight, 2)):
            weight.copy_(weight[projection_rows(heads, back)])
    assert distance(subjects.prefill(model), own) > 0.1
    patch(model, "rotary(16, interleaved=True)", level="fast")
    assert distance(subjects.prefill(model), own) < 1e-4


def test_unlisted_types_and_releases(monkeypatch: Any) -> None:
    """NanoChat, for one, turns the other way round under the same function name."""
    with pytest.raises(SubjectError, match=r"knows the model types arcee, .*; got nanochat\. Use level=\"stable\""):
        patch(tiny.build(tiny.config("nanochat")), level="fast")
    with pytest.raises(SubjectError, match="gptj"):
        patch(subjects.model("gptj"), level="fast")
    model = subjects.model("llama")
    monkeypatch.setattr(applying, "VERSIONS", ("5.2",))
    with pytest.raises(SubjectError, match=r"runs with transformers 5\.2; got 5\.24\."):
        patch(model, level="fast")
    monkeypatch.undo()
    model.model.layers[0].self_attn.forward = lambda *_: None
    with pytest.raises(SubjectError, match="their class's own; got LlamaAttention"):
        patch(model, level="fast")
    assert type(model.model.rotary_emb).__name__ == "LlamaRotaryEmbedding"
