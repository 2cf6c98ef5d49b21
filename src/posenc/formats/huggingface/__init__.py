"""Configs of transformers models: both spellings of the rope keys, and a reader for each model type."""

from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.reader import read_config
from posenc.formats.huggingface.registry import family, model_types

__all__ = ["Keys", "family", "model_types", "read_config"]
