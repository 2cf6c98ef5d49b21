"""One model and no other: instances, reversal, copies, files, devices, compilers; and clear refusals."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from torch._dynamo.testing import CompileCounter  # noqa: E402
from transformers.models.llama import modeling_llama  # noqa: E402

from formats.huggingface import tiny_models as tiny  # noqa: E402
from nn.patching import subjects  # noqa: E402
from posenc.errors import ShapeError, SpecError, SubjectError  # noqa: E402
from posenc.formats.huggingface import read_config  # noqa: E402
from posenc.nn.patching import PatchedRotary, patch, patched, unpatch  # noqa: E402
from posenc.spec import Rotary  # noqa: E402


@pytest.fixture(autouse=True)
def _no_grad() -> Any:
    with torch.no_grad():
        yield


def distance(a: Any, b: Any) -> float:
    return float((a - b).abs().max())


@pytest.mark.parametrize("level", ["stable", "fast"])
def test_of_two_models_one_is_patched(level: Any) -> None:
    one, other = subjects.model("llama"), subjects.model("llama")
    own = subjects.prefill(other)
    functions = dict(vars(modeling_llama))
    methods = {n: dict(vars(c)) for n, c in functions.items() if inspect.isclass(c)}
    patch(one, "rotary(16, base=500)", level=level)
    assert distance(subjects.prefill(one), own) > 1e-2
    assert torch.equal(subjects.prefill(other), own)
    assert not patched(other)
    assert functions == dict(vars(modeling_llama))
    assert methods == {n: dict(vars(c)) for n, c in functions.items() if inspect.isclass(c)}


def test_patched_says_what_runs() -> None:
    model = patch(subjects.model("gemma3"))
    assert list(patched(model)) == ["model.rotary_emb"]
    module = patched(model)["model.rotary_emb"]
    assert str(module.rotary("sliding_attention").value) == "rotary(16, base=3000)"
    assert str(module.rotary("full_attention").value) == "rotary(16, base=20000) >> linear(2)"
    assert "in place of Gemma3RotaryEmbedding" in repr(module)
    with pytest.raises(SpecError, match="layer type is one of"):
        module(torch.zeros(1, 1, 2), torch.arange(3)[None], "chunked_attention")


def test_one_rotary_for_both_layer_types_or_a_reading() -> None:
    model = subjects.model("gemma3")
    own = subjects.prefill(model)
    patch(model, Rotary(16))
    assert distance(subjects.prefill(model), own) > 1e-2
    reading = read_config(model.config.to_dict(), name="gemma3", source="test")
    patch(unpatch(model), reading)
    assert distance(subjects.prefill(model), own) < 1e-4


def test_twice_and_never() -> None:
    model = subjects.model("llama")
    with pytest.raises(SpecError, match="only a patched model can be unpatched"):
        unpatch(model)
    patch(model)
    with pytest.raises(SpecError, match=r"a model is patched once; .* Call unpatch"):
        patch(model)
    unpatch(model)
    assert type(model.model.rotary_emb).__name__ == "LlamaRotaryEmbedding"
    with pytest.raises(SpecError, match="only a patched model"):
        unpatch(model)


def test_a_refusal_changes_nothing() -> None:
    model = subjects.model("llama")
    own = subjects.prefill(model)
    refusals = {
        "rotary(16, interleaved=True)": "attention fixes head_dim, rotary_dim, where, interleaved",
        "rotary(16, rotary_dim=8)": "attention fixes",
        "rotary(32)": "attention fixes",
        "rotary(16, xpos_scale_base=512)": "all heads alike",
        "rotary(16, axes=split((4, 4)))": "1 axes",
        "alibi(4)": "patch takes a rotary",
        "rotary(16) + alibi(4)": "patch takes a rotary",
    }
    for notation, words in refusals.items():
        with pytest.raises(SpecError, match=words):
            patch(model, notation)
    with pytest.raises(SpecError, match="patch takes a rotary"):
        patch(model, 10000.0)
    with pytest.raises(SpecError, match="level is one of stable, fast"):
        patch(model, level="faster")  # type: ignore[arg-type]
    assert not patched(model)
    assert torch.equal(subjects.prefill(model), own)


def test_the_softmax_scale_stays_the_models() -> None:
    model = subjects.model("deepseek_v3")
    (rotary,) = (e for e in read_config(model.config.to_dict(), name="v3", source="test").encodings())
    with pytest.raises(SpecError, match="softmax scale stays the model's own"):
        patch(model, rotary.replace(scaling=()))
    patch(model, rotary.replace(schedule=rotary.schedule.replace(base=3e4)))


def test_a_submodule_that_is_not_what_its_config_says() -> None:
    model = subjects.model("llama")
    model.model.rotary_emb.inv_freq.mul_(1.001)
    own = subjects.prefill(model)
    with pytest.raises(SubjectError, match=r"'model.rotary_emb' computes what its config says: rotary\(16\)"):
        patch(model)
    patch(model, "rotary(16) >> factors(values=(" + ", ".join(["0.999000999000999"] * 8) + "))")
    assert distance(subjects.prefill(model), own) < 1e-4


def test_bases_by_layer_are_all_covered() -> None:
    """Granite-SWA has a submodule for each base, and one of the default base that no layer calls."""
    torch.manual_seed(0)
    model = tiny.build(tiny.config("granite_swa"))
    patch(model)
    assert list(patched(model)) == ["rotary_emb", "rotary_embs.0", "rotary_embs.1"]
    assert [m.rotary().value.schedule.base for m in patched(model).values()] == [1e4, 1e4, 3e4]
    unpatch(model)
    model.rotary_embs[1].inv_freq.mul_(1.5)
    with pytest.raises(SubjectError, match=r"base=30000\); got 'rotary_embs\.1'"):
        patch(model)


def test_models_without_such_a_submodule() -> None:
    bert = transformers.BertModel(
        transformers.BertConfig(
            hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=9
        )
    )
    rotary = subjects.model("llama").model.rotary_emb
    for model in (bert, rotary, torch.nn.Linear(2, 2)):
        with pytest.raises(SubjectError, match="submodules with inv_freq whose forward"):
            patch(model)
    with pytest.raises(SubjectError, match="takes a torch module"):
        patch("llama")  # type: ignore[type-var]

    class Other(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.config = subjects.config("llama")
            self.rope = Angles()

    class Angles(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("inv_freq", torch.ones(8))

        def forward(self, x: Any, position_ids: Any) -> Any:
            return position_ids[..., None] * self.inv_freq

    with pytest.raises(SubjectError, match="'rope' returns cosines and sines of 8 pairs; got Tensor of"):
        patch(Other())


def test_ids_of_the_wrong_shape() -> None:
    module = patch(subjects.model("llama")).model.rotary_emb
    with pytest.raises(ShapeError, match="position_ids are"):
        module(torch.zeros(1, 1, 2), torch.zeros(3, 1, 5, dtype=torch.long))


@pytest.mark.parametrize("name", ["llama", "gptj", "gemma3"])
def test_the_state_dict_is_the_models_own(name: str) -> None:
    model, other = subjects.model(name), subjects.model(name, seed=6)
    names = list(model.state_dict())
    patch(model)
    assert list(model.state_dict()) == names
    model.load_state_dict(other.state_dict())
    assert distance(subjects.prefill(model), subjects.prefill(other)) < 1e-4
    other.load_state_dict(model.state_dict())


def test_frequencies_that_a_model_saves() -> None:
    """ESM's ``inv_freq`` is in its files."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.EsmConfig(vocab_size=9, pad_token_id=0, position_embedding_type="rotary", **sizes)
    model, other = transformers.EsmModel(config), transformers.EsmModel(config)
    patch(model)
    assert list(model.state_dict()) == list(other.state_dict())
    model.load_state_dict(other.state_dict())
    with pytest.raises(RuntimeError, match="Unexpected key"):
        model.load_state_dict({**other.state_dict(), "rotary_embeddings.more": torch.ones(1)})
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict({k: v for k, v in other.state_dict().items() if "inv_freq" not in k})


@pytest.mark.parametrize("level", ["stable", "fast"])
def test_copies(level: Any) -> None:
    model = patch(subjects.model("llama"), "rotary(16, base=500)", level=level)
    own = subjects.prefill(model)
    twin = copy.deepcopy(model)
    unpatch(model)
    assert torch.equal(subjects.prefill(twin), own)
    unpatch(twin)
    assert torch.equal(subjects.prefill(twin), subjects.prefill(model))


def test_pickles() -> None:
    model = patch(subjects.model("llama"))
    twin = pickle.loads(pickle.dumps(model))
    assert torch.equal(subjects.prefill(twin), subjects.prefill(model))
    assert type(unpatch(twin).model.rotary_emb).__name__ == "LlamaRotaryEmbedding"


def test_a_model_that_is_only_a_plan() -> None:
    other = subjects.model("llama")
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(other.config).eval()
    patch(model)
    model.to_empty(device="cpu")
    model.load_state_dict(other.state_dict(), assign=True)
    assert distance(subjects.prefill(model), subjects.prefill(other)) < 1e-4
    unpatch(model)
    assert torch.equal(subjects.prefill(model), subjects.prefill(other))


def test_trained_frequencies() -> None:
    model = patch(subjects.model("llama"), "rotary(16, learned=True)")
    (name,) = (n for n, _ in model.named_parameters() if "rotary" in n)
    assert name == "model.rotary_emb.rotaries.all.log_ratio"
    assert name in model.state_dict()
    model.load_state_dict(model.state_dict())
    with torch.enable_grad():
        subjects.prefill(model).square().mean().backward()
    gradient = model.get_parameter(name).grad
    assert gradient is not None
    assert bool(gradient.abs().min() > 0)


@pytest.mark.parametrize("level", ["stable", "fast"])
def test_compiled(level: Any) -> None:
    model = patch(subjects.model("llama"), level=level)
    own = [model.model.rotary_emb(torch.zeros(1, n, 2), torch.arange(n)[None])[0] for n in (7, 11, 13)]
    torch._dynamo.reset()
    count = CompileCounter()
    compiled = torch.compile(model.model.rotary_emb, fullgraph=True, backend=count)
    for n, cos in zip((7, 11, 13), own, strict=True):
        assert torch.equal(compiled(torch.zeros(1, n, 2), torch.arange(n)[None])[0], cos)
    assert count.frame_count <= 2
    whole = torch.compile(model, backend="eager")
    assert distance(whole(input_ids=subjects.tokens(2), use_cache=False).logits, subjects.prefill(model)) < 1e-5
    torch._dynamo.reset()


def test_a_shared_submodule_is_replaced_everywhere() -> None:
    model = subjects.model("llama")
    model.model.layers[1].again = model.model.rotary_emb
    own = model.model.rotary_emb
    patch(model)
    assert model.model.layers[1].again is model.model.rotary_emb
    assert isinstance(model.model.rotary_emb, PatchedRotary)
    unpatch(model)
    assert model.model.layers[1].again is own
    assert model.model.rotary_emb is own
