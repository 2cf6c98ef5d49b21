"""Every rotary type that transformers can build, at its own sizes: patched, and put back."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from formats.huggingface import tiny_models as tiny  # noqa: E402
from formats.huggingface.compared_types import ROTARY_ONLY, WITH_FREQUENCIES  # noqa: E402
from nn.patching import subjects  # noqa: E402
from posenc.errors import SubjectError  # noqa: E402
from posenc.nn.patching import patch, patched, unpatch  # noqa: E402

TYPES = [t for t in (*WITH_FREQUENCIES, "gptj", "codegen") if t not in ROTARY_ONLY]
WRONG = ("dbrx",)
"""transformers 5.24 does not find DBRX's base in ``attn_config``: what runs is not what the config says."""


def form(module: Any, slot: str) -> list[tuple[Any, torch.dtype]]:
    """Shapes and dtypes of what a submodule returns in a bfloat16 model."""
    x, ids = torch.zeros(2, 5, 3, dtype=torch.bfloat16), torch.arange(5).expand(2, -1)
    answer = module(x, ids) if slot == "all" else module(x, ids, slot)
    return [(part.shape, part.dtype) for part in (answer if isinstance(answer, tuple) else (answer,))]


@pytest.mark.parametrize("model_type", TYPES)
def test_patched_and_put_back(model_type: str) -> None:
    torch.manual_seed(20261130)
    model = tiny.build(tiny.config(model_type))
    names = list(model.state_dict())

    def run() -> torch.Tensor:
        with torch.no_grad():
            return model(input_ids=subjects.tokens(1, 7), use_cache=False)[0]

    own = run()
    if model_type in WRONG:
        with pytest.raises(SubjectError, match="computes what its config says"):
            patch(model)
        return
    patch(model)
    assert patched(model)
    assert float((run() - own).abs().max()) < 1e-4
    assert list(model.state_dict()) == names
    for module in patched(model).values():
        for slot in module.forms:
            assert form(module, slot) == form(module.original, slot)
    unpatch(model)
    assert torch.equal(run(), own)
