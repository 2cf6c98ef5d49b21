"""Vision towers with relative positions in the scores, named only: BEiT, Swin, SAM."""

from __future__ import annotations

from math import prod

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.stacks import MAX_LAYERS, Config, stack
from posenc.records import Part
from posenc.spec import Encoding, LayerKind, Learned, ModelPositions, Unmodelled


@family("beit", "data2vec-vision")
def beit(keys: Keys) -> tuple[Part, ...]:
    """BEiT: a relative bias over the grid, in every layer or shared; a table at the input only if asked for."""
    owner = "BeitConfig" if keys.data.get("model_type") == "beit" else "Data2VecVisionConfig"
    config = Config(keys, owner)
    width = config.count("hidden_size", default=768)
    layers = config.layers("num_hidden_layers", default=12)
    shape = config.grid(224, 16)
    at_input: tuple[Encoding, ...] = ()
    if config.flag("use_absolute_position_embeddings", default=False):
        at_input = (Learned(width, shape=shape, prefix=1),)
    own = config.flag("use_relative_position_bias", default=False)
    shared = config.flag("use_shared_relative_position_bias", default=False)
    rows = (2 * shape[0] - 1) * (2 * shape[1] - 1) + 3
    note = f"{rows} learned numbers for each head: every offset on the grid and three for the class token"
    inside = [
        Unmodelled("BEiT relative position bias", note=f"{note}; {where}")
        for wanted, where in ((own, "each layer its own"), (shared, "shared by all layers"))
        if wanted
    ]
    return (stack("vision", layers, *inside, at_input=at_input, served=prod(shape) + 1),)


@family("swin", "swinv2")
def swin(keys: Keys) -> tuple[Part, ...]:
    """Swin: a relative bias inside windows, learned (Swin) or made by a small network from log offsets (Swin v2)."""
    second = keys.data.get("model_type") == "swinv2"
    config = Config(keys, "Swinv2Config" if second else "SwinConfig")
    depths = keys.numbers("depths", default=(2, 2, 6, 2), why=config.why, integer=True)
    if not 0 < sum(depths) <= MAX_LAYERS or min(depths) < 0:
        raise FormatError(f"{keys.at('depths')} are numbers of layers of the stages", depths)
    window = config.count("window_size", default=7)
    at_input: tuple[Encoding, ...] = ()
    if config.flag("use_absolute_embeddings", default=False):
        shape = config.grid(224, 4)
        at_input = (Learned(config.count("embed_dim", default=96), shape=shape),)
    if second:
        trained = keys.numbers("pretrained_window_sizes", default=(0, 0, 0, 0), why=config.why, integer=True)
        note = f"a network of log offsets in windows of {window} x {window}; trained windows by stage: {list(trained)}"
        inside = Unmodelled("Swin v2 continuous position bias", note=note)
    else:
        note = f"{(2 * window - 1) ** 2} learned numbers for each head and layer, in windows of {window} x {window}"
        inside = Unmodelled("Swin relative position bias", note=note)
    return (stack("vision", sum(depths), inside, at_input=at_input),)


@family("sam_vision_model")
def sam(keys: Keys) -> tuple[Part, ...]:
    """SAM's image encoder: a table over 64 x 64 patches, and a decomposed relative bias in windows or everywhere."""
    config = Config(keys, "SamVisionConfig")
    width = config.count("hidden_size", default=768)
    count = config.layers("num_hidden_layers", default=12)
    shape = config.grid(1024, 16)
    window = config.count("window_size", default=14, least=0)
    everywhere = set(keys.numbers("global_attn_indexes", default=(2, 5, 8, 11), why=config.why, integer=True))
    at_input: tuple[Encoding, ...] = ()
    if config.flag("use_abs_pos", default=True):
        at_input = (Learned(width, shape=shape),)
    relative = config.flag("use_rel_pos", default=True)
    kinds = []
    for name, sides in (("global", shape), (f"windows of {window} x {window}", (window, window))):
        note = f"query . a row vector and a column vector, {2 * sides[0] - 1} and {2 * sides[1] - 1} of each"
        bias = Unmodelled("SAM decomposed relative positions", note=note)
        kinds.append(LayerKind(name=name, encodings=(bias,) if relative else ()))
    layers = tuple(int(i not in everywhere and window > 0) for i in range(count))
    positions = ModelPositions(input=at_input, kinds=tuple(kinds), layers=layers, served=prod(shape))
    return (Part(name="vision", positions=positions),)
