"""What says which positions a part should have: the config around it, its own settings, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.checker.boxes import Bias
from posenc.checker.expecting import Expected, expected
from posenc.checker.models.parts import Part
from posenc.errors import PosencError
from posenc.spec import Alibi, T5Bias

NO_PART = "no part of the model that carries positions was found by what it holds and takes"
UNASKED = "modules whose form of call is not known"
NO_ENCODING = "no position encoding"
UNSAID = "no config describes the positions"


class Sayings:
    """The wanted encodings of a model's parts, by the configs in it.

    Args:
        model: a transformers model.
        wanted: what was asked for, for every part; None reads the configs.
    """

    def __init__(self, model: Any, wanted: Expected | None = None) -> None:
        self.model, self.asked = model, wanted is not None
        self.silence: str | None = None
        self._read: dict[int, Expected | None] = {}
        if wanted is not None:
            self.top: Expected | None = wanted
            return
        self.top = None
        try:
            self.top = expected(model.config.to_dict())
        except PosencError as error:
            self.silence = str(error)

    def around(self, part: Part) -> tuple[Expected | None, bool]:
        """What the nearest config says, and whether that is the part's own rather than the whole model's."""
        if self.asked or part.kind == "alibi":  # a function of the file, not a module
            return self.top, True
        config = self._nearest(part.where.split(" for ")[0])
        if config is None or type(config) is type(self.model.config):
            return self.top, True
        if id(config) not in self._read:
            try:
                self._read[id(config)] = expected(config.to_dict())
            except PosencError:
                self._read[id(config)] = None
        own = self._read[id(config)]
        return (own, True) if own is not None else (self.top, False)

    def _nearest(self, path: str) -> Any:
        names = path.split(".") if path else []
        for depth in range(len(names), -1, -1):
            try:
                module = self.model.get_submodule(".".join(names[:depth]))
            except AttributeError:  # a parameter
                continue
            config: Any = getattr(module, "config", None)
            if hasattr(config, "to_dict"):
                return config
        return None


def own_settings(part: Part) -> Expected | None:
    """The encoding that the part's own settings mean where no config describes it; None if they say nothing."""
    if part.kind == "buckets":
        count = part.module.relative_attention_num_buckets
        distance = getattr(part.module, "relative_attention_max_distance", 128)
        both = part.slot == "encoder"
        return _one(lambda: T5Bias(num_heads=4, num_buckets=count, max_distance=distance, bidirectional=both))
    if isinstance(part.box, Bias):
        heads = part.box.bias(2, 2).shape[0]
        return _one(lambda: Alibi(num_heads=heads))
    config: Any = getattr(part.module, "config", None)
    parameters = getattr(config, "rope_parameters", None)
    if part.kind != "rotary" or not isinstance(parameters, Mapping):
        return None
    if part.slot is not None:
        parameters = parameters.get(part.slot, parameters)
    if "rope_theta" not in parameters:
        return None
    try:
        heads, hidden = int(config.num_attention_heads), int(config.hidden_size)
        return expected(
            {
                "model_type": "llama",
                "hidden_size": hidden,
                "num_hidden_layers": 1,
                "num_attention_heads": heads,
                "head_dim": int(getattr(config, "head_dim", None) or hidden // heads),
                "max_position_embeddings": int(getattr(config, "max_position_embeddings", None) or 512),
                "rope_parameters": dict(parameters),
            }
        )
    except Exception:  # settings by layer, which some types refuse to give as one, or of another kind
        return None


def _one(make: Any) -> Expected | None:
    try:
        encoding = make()
    except (PosencError, TypeError):
        return None
    return Expected((encoding,), str(encoding))
