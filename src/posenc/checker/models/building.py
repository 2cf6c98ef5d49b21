"""A tiny random model of a type: its class, sizes from small to the defaults, weights that let positions matter."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from importlib import resources
from typing import Any

from posenc.checker.models.tiny import library, tiny_configs
from posenc.errors import SubjectError, shown

MOST_NUMBERS = 3 * 10**8
"""Parameters of a model that is built: 1.2 GB in float32."""
ENDINGS = ("Model", "ForConditionalGeneration", "ForPreTraining")
"""Ends of the names of classes that hold a whole model, the likeliest first."""


def tiny_model(model_type: str) -> Any:
    """A tiny random model of a type: the first sizes that its config takes and that a model can be built of.

    Raises:
        SubjectError: transformers is not installed or does not know the type; no sizes can be configured or built.
    """
    failures: list[SubjectError] = []
    for config in tiny_configs(model_type):
        if isinstance(config, SubjectError):
            failures.append(config)
            continue
        try:
            return random_model(config, model_type)
        except SubjectError as error:
            failures.append(error)
            if isinstance(error.__cause__, ImportError):
                break
    raise failures[0]


def random_model(config: Any, model_type: str | None = None) -> Any:
    """A model of a config with random weights, in evaluation mode, eager attention where it has one, float32.

    Raises:
        SubjectError: it cannot be built.
    """
    import torch

    cls = model_class(config, model_type or config.model_type)
    first: Exception | None = None
    for attention in ("eager", None):
        kwargs = {} if attention is None else {"attn_implementation": attention}
        torch.manual_seed(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with torch.device("meta"):
                    hollow = cls._from_config(config, **kwargs)
                numbers = sum(v.numel() for v in (*hollow.parameters(), *hollow.buffers()))
                if numbers > MOST_NUMBERS:
                    raise SubjectError(f"a model of at most {MOST_NUMBERS} parameters is built", numbers)
                model = cls._from_config(config, **kwargs).eval().float()
        except SubjectError:
            raise
        except Exception as error:
            first = first or error
        else:
            _fill(model)
            return model
    raise SubjectError(
        f"a tiny {shown(model_type or config.model_type, 60)} can be built",
        f"{type(first).__name__}: {shown(str(first).strip(), 160)}",
    ) from first


def _fill(model: Any) -> None:
    """Draw what starts at zero, such as tables of positions: equal rows tell nothing apart."""
    import torch

    with torch.no_grad():
        for value in model.parameters():
            if value.ndim >= 2 and value.numel() and not value.any():
                value.normal_(std=0.2)


def model_class(config: Any, model_type: str) -> Any:
    """The class that AutoModel would take, or else that of the config's own package which takes this config.

    Raises:
        SubjectError: there is none.
    """
    transformers = library()
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    beside = list(_classes(config))
    name = MODEL_MAPPING_NAMES.get(model_type)
    mapped = None
    if name is not None:
        first = name if isinstance(name, str) else name[0]
        mapped = getattr(transformers, first, None) or next((c for c in beside if c.__name__ == first), None)
    if mapped is not None and mapped.config_class in (type(config), None):
        return mapped
    takes = [cls for cls in beside if cls.config_class is type(config)]
    if not takes and mapped is not None:
        return mapped  # the class of another type
    if not takes:
        raise SubjectError("a type has a model class", f"{type(config).__name__} belongs to a part of another model")
    stem = type(config).__name__.removesuffix("Config")
    order = [f"{stem}{ending}" for ending in ("", *ENDINGS)]
    named = [cls for wanted in order for cls in takes if cls.__name__ == wanted]
    ending = [cls for end in ENDINGS for cls in takes if cls.__name__.endswith(end)]
    return (named or ending or takes)[0]


def _classes(config: Any) -> Iterator[Any]:
    """The classes of models beside the config, in the order of their files."""
    transformers = library()
    package = type(config).__module__.rpartition(".")[0]
    for file in sorted(entry.name for entry in resources.files(package).iterdir()):
        if not (file.startswith("modeling_") and file.endswith(".py")):
            continue
        module = importlib.import_module(f"{package}.{file.removesuffix('.py')}")
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, transformers.PreTrainedModel)
                and value.__module__ == module.__name__
                and not value.__name__.endswith("PreTrainedModel")
            ):
                yield value
