"""The fast level: attention layers of one model apply our rotation instead of their module's function.

An attention layer's ``forward`` looks ``apply_rotary_pos_emb`` up among its module's globals. The layer gets a
``forward`` of its own: the same code over a copy of those globals in which the name stands for our rotation. The module
and other models of the class keep theirs. What a code object does may change with each release, so the level runs only
with the versions and model types that the tests ran.
"""

from __future__ import annotations

import inspect
from types import CellType, FunctionType, MethodType
from typing import Any

from torch import Tensor, nn

from posenc.errors import SubjectError
from posenc.nn import _ops
from posenc.nn.rotary_functions import Layout, turn

VERSIONS = ("5.24",)
"""Releases of transformers that the fast level was tested with."""
TYPES = frozenset(
    {
        *("arcee", "cohere", "cohere2", "deepseek_v3", "exaone4", "falcon", "gemma", "gemma2", "gemma3_text", "glm"),
        *("glm4", "gpt_neox", "gpt_oss", "granite", "helium", "llama", "ministral", "mistral", "mixtral", "modernbert"),
        *("nemotron", "olmo", "olmo2", "olmo3", "phi", "phi3", "qwen2", "qwen2_5_vl_text", "qwen2_moe"),
        *("qwen2_vl_text", "qwen3", "qwen3_moe", "qwen3_vl_text", "seed_oss", "smollm3", "stablelm", "starcoder2"),
    }
)
"""Model types that it was tested with."""
NAMES = ("apply_rotary_pos_emb", "apply_rotary_pos_emb_interleave")
MARK = "posenc_fast"


def turn_halves(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
    """Queries and keys ``(batch, heads, tokens, channels)`` turned in pairs ``(i, i + pairs)``, rounded once."""
    return _both(q, k, cos, sin, Layout(0, cos.shape[-1], False))


def turn_adjacent(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
    """The same in pairs ``(2i, 2i + 1)``."""
    return _both(q, k, cos, sin, Layout(0, cos.shape[-1], True))


def _both(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    done = _ops.two(q, k, (cos, sin), _ops.mode_of(layout, q.shape[-1]))
    return (turn(q, cos, sin, layout), turn(k, cos, sin, layout)) if done is None else done


def check_supported(model_types: set[str]) -> None:
    """Refuse a release or model type that the fast level was not tested with.

    Raises:
        SubjectError: with those that it was.
    """
    import transformers

    version = transformers.__version__
    if not version.startswith(tuple(f"{v}." for v in VERSIONS)):
        raise SubjectError(
            f"the fast level runs with transformers {', '.join(VERSIONS)}", version, 'Use level="stable".'
        )
    if not model_types <= TYPES:
        raise SubjectError(
            f"the fast level knows the model types {', '.join(sorted(TYPES))}",
            ", ".join(sorted(model_types - TYPES)),
            'Use level="stable".',
        )


def attention_layers(model: nn.Module, model_types: set[str]) -> list[nn.Module]:
    """The layers of these types whose ``forward`` calls a function that this level replaces.

    Raises:
        SubjectError: none does, or one was changed by somebody else.
    """
    found = [m for m in model.modules() if _called(m) and _type(m) in model_types]
    if not found:
        raise SubjectError("attention layers apply the rotation by " + " or ".join(NAMES), type(model).__name__)
    for layer in found:
        if "forward" in vars(layer):
            raise SubjectError("the fast level replaces forwards that are their class's own", type(layer).__name__)
    return found


def replace_forward(layer: nn.Module, interleaved: bool) -> None:
    """Give one layer a ``forward`` of its own that calls our rotation."""
    own: Any = type(layer).forward
    made = _over(own, dict.fromkeys(_called(layer), turn_adjacent if interleaved else turn_halves))
    made.__dict__[MARK] = True
    vars(layer)["forward"] = MethodType(made, layer)


def _over(function: Any, names: dict[str, Any]) -> FunctionType:
    """The same function with other meanings for some names; decorators around it are kept."""
    inner, meanings, cells = getattr(function, "__wrapped__", None), function.__globals__, function.__closure__
    if inner is None:
        meanings = {**meanings, **names}
    else:
        changed = _over(inner, names)
        cells = tuple(CellType(changed) if cell.cell_contents is inner else cell for cell in cells)
    made = FunctionType(function.__code__, meanings, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def restore_forwards(model: nn.Module) -> None:
    """Take back every ``forward`` that :func:`replace_forward` gave."""
    for layer in model.modules():
        if hasattr(getattr(vars(layer).get("forward"), "__func__", None), MARK):
            del vars(layer)["forward"]


def _called(layer: nn.Module) -> list[str]:
    innermost: Any = inspect.unwrap(type(layer).forward)
    return [n for n in NAMES if isinstance(innermost, FunctionType) and n in innermost.__code__.co_names]


def _type(layer: nn.Module) -> str | None:
    return getattr(getattr(layer, "config", None), "model_type", None)
