"""Vision towers that add a table of positions to their patches: ViT, DeiT, DINOv2, CLIP, SigLIP, MAE and kin.

Facts from transformers 5.24. A grid has ``image_size // patch_size`` rows and columns; leading tokens have rows of
their own (``prefix``). Other image sizes get the table stretched by bicubic or bilinear interpolation where the class
can.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.stacks import Config, square, stack
from posenc.records import Part
from posenc.spec import Learned, Sinusoidal, Split, Unmodelled


@dataclass(frozen=True)
class Patches:
    """How one model type describes its table; all but ``prefix`` are the class's defaults.

    Args:
        prefix: leading tokens with a row each (class token, distillation token).
        switch: a key that turns the table off.
        scaled: other image sizes get the table stretched: ``always``, or ``asked`` (``interpolate_pos_encoding``).
    """

    owner: str
    prefix: int = 1
    width: int = 768
    layers: int = 12
    image: Any = 224
    patch: Any = 16
    switch: str | None = None
    scaled: str = "asked"


PATCHES: dict[str, Patches] = {
    "vit": Patches("ViTConfig"),
    "deit": Patches("DeiTConfig", prefix=2),
    "vit_msn": Patches("ViTMSNConfig"),
    "ijepa": Patches("IJepaConfig", prefix=0),
    "dinov2": Patches("Dinov2Config", patch=14, scaled="always"),
    "dinov2_with_registers": Patches("Dinov2WithRegistersConfig", scaled="always"),
    "clip_vision_model": Patches("CLIPVisionConfig", patch=32),
    "metaclip_2_vision_model": Patches("MetaClip2VisionConfig", patch=32),
    "clipseg_vision_model": Patches("CLIPSegVisionConfig", patch=32),
    "chinese_clip_vision_model": Patches("ChineseCLIPVisionConfig", patch=32),
    "altclip_vision_model": Patches("AltCLIPVisionConfig", patch=32),
    "owlvit_vision_model": Patches("OwlViTVisionConfig", image=768, patch=32),
    "owlv2_vision_model": Patches("Owlv2VisionConfig", image=768),
    "siglip_vision_model": Patches("SiglipVisionConfig", prefix=0),
    "blip_vision_model": Patches("BlipVisionConfig", image=384),
    "blip_2_vision_model": Patches("Blip2VisionConfig", width=1408, layers=39, patch=14),
    "instructblip_vision_model": Patches("InstructBlipVisionConfig", width=1408, layers=39, patch=14),
    "git_vision_model": Patches("GitVisionConfig"),
    "idefics2_vision": Patches("Idefics2VisionConfig", prefix=0, patch=32, scaled="always"),
    "idefics3_vision": Patches("Idefics3VisionConfig", prefix=0, width=1152, patch=32, scaled="always"),
    "smolvlm_vision": Patches("SmolVLMVisionConfig", prefix=0, width=1152, patch=32, scaled="always"),
    "janus_vision_model": Patches("JanusVisionConfig", prefix=0, width=1024, layers=24, image=384),
    "internvl_vision": Patches(
        "InternVLVisionConfig",
        width=1024,
        layers=24,
        image=(448, 448),
        patch=(14, 14),
        switch="use_absolute_position_embeddings",
        scaled="always",
    ),
}


def read_patches(row: Patches, keys: Keys) -> tuple[Part, ...]:
    """Read a tower with a learned table over a grid of patches."""
    config = Config(keys, row.owner)
    width = config.count("hidden_size", default=row.width)
    layers = config.layers("num_hidden_layers", default=row.layers)
    shape = config.grid(row.image, row.patch)
    if registers := config.count("num_register_tokens", default=None, least=0):
        keys.notes.append(f"vision: {registers} register tokens take no position")
    if row.switch is not None and not config.flag(row.switch, default=True):
        return (stack("vision", layers),)
    if row.scaled == "always":
        keys.notes.append("vision: the table is stretched or picked from to fit other image sizes")
    table = Learned(width, shape=shape, prefix=row.prefix)
    return (stack("vision", layers, at_input=(table,), served=prod(shape) + row.prefix),)


for _type, _row in PATCHES.items():
    family(_type)(partial(read_patches, _row))


@family("siglip2_vision_model")
def siglip2(keys: Keys) -> tuple[Part, ...]:
    """SigLIP 2: a square table of ``num_patches`` cells, stretched to every image's own grid."""
    config = Config(keys, "Siglip2VisionConfig")
    width = config.count("hidden_size", default=768)
    shape = square(config.count("num_patches", default=256), keys.at("num_patches"))
    layers = config.layers("num_hidden_layers", default=12)
    keys.notes.append("vision: the table is stretched to every image's own grid (bilinear)")
    return (stack("vision", layers, at_input=(Learned(width, shape=shape),)),)


@family("vit_mae")
def vit_mae(keys: Keys) -> tuple[Part, ...]:
    """MAE: fixed sinusoids of columns and rows, columns in the first half of the channels; the class row is zero."""
    config = Config(keys, "ViTMAEConfig")
    shape = config.grid(224, 16)
    parts = []
    for name, prefix, width, layers in (("encoder", "", 768, 12), ("decoder", "decoder_", 512, 8)):
        dim = config.count(f"{prefix}hidden_size", default=width)
        table = Sinusoidal(dim, order="sin|cos", axes=Split(pairs=(dim // 4, dim // 4)), prefix=1)
        count = config.layers(f"{prefix}num_hidden_layers", default=layers)
        parts.append(stack(name, count, at_input=(table,), served=prod(shape) + 1))
    keys.notes.append(f"axes: column, row of a {shape[0]} x {shape[1]} grid")
    return tuple(parts)


@family("mllama_vision_model")
def mllama(keys: Keys) -> tuple[Part, ...]:
    """Llama 3.2 Vision: a gated table over one tile's patches, and one over tiles and patches for each aspect ratio."""
    config = Config(keys, "MllamaVisionConfig")
    width = config.count("hidden_size", default=1280)
    shape = config.grid(448, 14)
    layers = config.layers("num_hidden_layers", default=32) + config.layers("num_global_layers", default=8)
    tiles = config.count("max_num_tiles", default=4)
    table = Learned(width, shape=shape, prefix=1)
    tile = Unmodelled(
        "gated tile positions", note=f"learned for each aspect ratio, up to {tiles} tiles of {table.rows}"
    )
    # both enter with the patches: a learned table is an input, a named mechanism says so in its place
    return (stack("vision", layers, at_input=(table, tile), served=tiles * table.rows),)
