"""Single files of other implementations, as ``make bench`` puts them into ``.venv/peers``.

Their packages ask for more than is installed here; the file that turns or tabulates does not. Each function returns the
module of one file, and raises ImportError where it is not there.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from pathlib import Path

PLACE = Path(sys.prefix) / "peers"


def torchtune(file: str = "modules/position_embeddings.py") -> types.ModuleType:
    """Torchtune's rotary embeddings."""
    return _file("torchtune", file)


def litgpt() -> types.ModuleType:
    """LitGPT's model, with ``build_rope_cache`` and ``apply_rope``; its configuration and scripts are not loaded."""
    names = {"litgpt.config": "Config", "litgpt.scripts.convert_hf_checkpoint": "qkv_reassemble"}
    stubs = {name: types.ModuleType(name) for name in ("litgpt", "litgpt.scripts", *names)}
    for name, wanted in names.items():
        setattr(stubs[name], wanted, object)
    return _file("litgpt", "model.py", stubs)


def timm() -> types.ModuleType:
    """Sines, cosines and rotary of timm's ``layers``, without the package that needs torchvision."""
    folder = PLACE / "files" / "timm" / "layers"
    if not folder.is_dir():
        raise ImportError("timm is not there (make bench)")
    layers = types.ModuleType("peer_timm_layers")
    layers.__path__ = [str(folder)]
    sys.modules.setdefault(layers.__name__, layers)
    return importlib.import_module("peer_timm_layers.pos_embed_sincos")


def _file(package: str, file: str, stubs: dict[str, types.ModuleType] | None = None) -> types.ModuleType:
    path = PLACE / "files" / package / file
    if not path.is_file():
        raise ImportError(f"{package} is not there (make bench)")
    name = f"peer_{package}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    before = {k: sys.modules.get(k) for k in stubs or {}}
    sys.modules.update({name: module, **(stubs or {})})
    try:
        spec.loader.exec_module(module)
    finally:
        for k, old in before.items():
            if old is None:
                del sys.modules[k]
            else:
                sys.modules[k] = old
    return module
