"""Helpers of the tests of additive and relative encodings: tiny models of transformers, and readings of configs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from posenc.formats.huggingface.reader import read_config


def read(config: Any) -> Any:
    """The reading of a config, given as a dict or as an instance of transformers."""
    data = config if isinstance(config, dict) else config.to_dict()
    return read_config(data, name="tiny", source="test")


def part(reading: Any, name: str) -> Any:
    """The positions of the part called ``name``."""
    return {p.name: p.positions for p in reading.parts}[name]


def config_class(model_type: str) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return CONFIG_MAPPING[model_type]


def model(config: Any, device: str = "meta") -> Any:
    """The base model with random weights; on the meta device only shapes exist."""
    cls = type(config)
    package = import_module(cls.__module__.rpartition(".")[0])
    short = cls.__name__.removesuffix("Config")
    endings = ("Model", "Transformer", "Embeddings", "Encoder", "ForConditionalGeneration")
    names = (*(short + ending for ending in endings), short, f"{short.removesuffix('Decoder')}Model")
    found = next((getattr(package, name) for name in names if hasattr(package, name)), None)
    if found is None:  # some inner models are named otherwise and not exported: find the one that takes this config
        package = import_module(cls.__module__.replace("configuration_", "modeling_"))
        models = [v for v in vars(package).values() if isinstance(v, type) and issubclass(v, torch.nn.Module)]
        found = next(m for m in models if getattr(m, "config_class", None) is cls or m.__dict__.get("config") is cls)
    torch.manual_seed(0)
    with torch.device(device):
        return found(config)


def weights(module: Any, *endings: str) -> dict[str, Any]:
    """Parameters and buffers whose name ends with one of ``endings``."""
    found = {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers())}
    return {name: value for name, value in found.items() if name.endswith(endings)}
