"""Vision towers that rotate by row and column: DINOv3, Qwen-VL, Pixtral, Llama 4 and Gemma 4.

Facts from transformers 5.24. Coordinates, first axis, pairing and prefix differ from tower to tower:

====================  ==============  ==========  ==================================================
tower                 axes            pairing     frequencies of an axis with ``n = head_dim / 4`` pairs
====================  ==============  ==========  ==================================================
DINOv3                row, column     half        ``2 pi base^(-i/n)`` on centres in [-1, 1]
Qwen2/2.5/3-VL        row, column     half        ``base^(-i/n)``
Llama 4               column, row     adjacent    ``base^(-i/n)``, counted from 1
Pixtral               row, column     half        rows take the even, columns the odd of ``base^(-j/2n)``
Gemma 4               column, row     half of     ``base^(-i/n)``; named only
                                      each half
====================  ==============  ==========  ==================================================
"""

from __future__ import annotations

from functools import partial
from math import pi
from typing import Any

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.stacks import Config, square, stack
from posenc.records import Part
from posenc.spec import Explicit, Geometric, LayerKind, Learned, ModelPositions, Rotary, Split, Unmodelled


def base(config: Config, default: float) -> float:
    """The base of a tower: in ``rope_parameters``, or beside it as ``rope_theta``.

    Raises:
        FormatError: the rope type is none that a tower can run, or the base does not exceed 1.
    """
    block = config.keys.section("rope_parameters") or Keys({}, config.keys.at("rope_parameters"), config.keys)
    kind = block.text("rope_type", "type", default=None)  # the classes run nothing else
    if kind not in (None, "axial", "default"):
        raise FormatError(f"{block.at('rope_type')} of a vision tower is axial", kind)
    found = block.number("rope_theta", default=None)
    if found is None:
        found = config.keys.number("rope_theta", default=default, why=config.why)
    if not found > 1:
        raise FormatError(f"{config.keys.at('rope_theta')} exceeds 1", found)
    return float(found)


def quarter(config: Config, head_dim: int) -> int:
    """Pairs of each of the two axes.

    Raises:
        FormatError: the head does not divide into pairs of two axes, or is wider than any array should be.
    """
    if head_dim % 4 or head_dim > 2**20:
        raise FormatError(f"{config.keys.path or 'vision'}: head_dim divides by 4 for two axes, up to 2^20", head_dim)
    return head_dim // 4


def axial(config: Config, head_dim: int, **fields: Any) -> Rotary:
    """Two axes with a schedule each over half of the pairs."""
    pairs = quarter(config, head_dim)
    coordinates = fields.pop("coordinates", "index")
    interleaved = fields.pop("interleaved", False)
    axes = Split(pairs=(pairs, pairs), coordinates=coordinates)
    return Rotary(head_dim, interleaved=interleaved, axes=axes, schedule=Geometric(**fields))


@family("dinov3_vit")
def dinov3(keys: Keys) -> tuple[Part, ...]:
    """DINOv3: patch centres in [-1, 1] turn by whole turns; class and register tokens are not rotated."""
    config = Config(keys, "DINOv3ViTConfig")
    width, heads = config.count("hidden_size", default=384), config.count("num_attention_heads", default=6)
    layers = config.layers("num_hidden_layers", default=12)
    config.grid(224, 16)
    registers = config.count("num_register_tokens", default=0, least=0)
    rotary = axial(config, config.head_dim(width, heads), base=base(config, 100.0), first=2 * pi, coordinates="unit")
    changes = [f"{name[10:]} {value:g}" for name in TRAINING if (value := keys.number(name, default=None)) is not None]
    trained = f"; in training the coordinates change: {', '.join(changes)}" if changes else ""
    keys.notes.append(f"vision axes: row, column; the class token and {registers} registers are not rotated{trained}")
    return (stack("vision", layers, rotary),)


TRAINING = ("pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale")

QWEN: dict[str, tuple[str, int, int, bool]] = {
    "qwen2_vl_vision": ("Qwen2VLVisionConfig", 32, 1280, False),
    "qwen2_5_vl_vision": ("Qwen2_5_VLVisionConfig", 32, 3584, False),
    "qwen2_5_omni_vision_encoder": ("Qwen2_5OmniVisionEncoderConfig", 32, 3584, False),
    "qwen3_vl_vision": ("Qwen3VLVisionConfig", 27, 1152, True),
    "qwen3_vl_moe_vision": ("Qwen3VLMoeVisionConfig", 27, 1152, True),
    "qwen3_omni_moe_vision_encoder": ("Qwen3OmniMoeVisionEncoderConfig", 27, 1152, True),
    "qwen3_5_vision": ("Qwen3_5VisionConfig", 27, 1152, True),
    "qwen3_5_moe_vision": ("Qwen3_5MoeVisionConfig", 27, 1152, True),
}
"""Class, its defaults of ``depth`` and width, and whether there is a learned table too."""


def read_qwen(owner: str, depth: int, width: int, table: bool, keys: Keys) -> tuple[Part, ...]:
    """Qwen-VL: rotary by row and column; from Qwen3-VL on also a square learned table, stretched to each image."""
    config = Config(keys, owner)
    # Qwen2-VL calls the tower's own width embed_dim; its hidden_size is the language model's
    wide = config.count("embed_dim" if owner == "Qwen2VLVisionConfig" else "hidden_size", default=width)
    heads = config.count("num_heads", "num_attention_heads", default=16)
    count = config.layers("depth", "num_hidden_layers", default=depth)
    head_dim = config.count("head_dim", default=None) or config.head_dim(wide, heads)
    rotary = axial(config, head_dim, base=base(config, 10000.0))
    keys.notes.append("vision axes: row, column")
    at_input: tuple[Learned, ...] = ()
    if table:
        cells = config.count("num_position_embeddings", default=2304)
        at_input = (Learned(wide, shape=square(cells, keys.at("num_position_embeddings"))),)
        keys.notes.append("vision: the learned table is stretched to every image's own grid (bilinear)")
    if not owner.startswith("Qwen2_5"):
        return (stack("vision", count, rotary, at_input=at_input),)
    window = config.count("window_size", default=112)
    full = set(keys.numbers("fullatt_block_indexes", default=(7, 15, 23, 31), why=config.why, integer=True))
    kinds = tuple(LayerKind(name=n, encodings=(rotary,)) for n in (f"windows of {window} pixels", "full"))
    layers = tuple(int(i in full) for i in range(count))
    return (Part(name="vision", positions=ModelPositions(kinds=kinds, layers=layers)),)


for _type, _row in QWEN.items():
    family(_type)(partial(read_qwen, *_row))


@family("llama4_vision_model")
def llama4(keys: Keys) -> tuple[Part, ...]:
    """Llama 4: adjacent pairs turn by column and row, counted from 1; a learned table too; the class token is last."""
    config = Config(keys, "Llama4VisionConfig")
    width, heads = config.count("hidden_size", default=768), config.count("num_attention_heads", default=16)
    layers = config.layers("num_hidden_layers", default=34)
    shape = config.grid(448, 14)
    rotary = axial(config, config.head_dim(width, heads), base=base(config, 10000.0), interleaved=True)
    table = Learned(width, shape=shape, prefix=1)
    keys.notes.append(
        "vision axes: column, row, both counted from 1; the class token comes last in the table and is not rotated"
    )
    return (stack("vision", layers, rotary, at_input=(table,), served=table.rows),)


@family("pixtral")
def pixtral(keys: Keys) -> tuple[Part, ...]:
    """Pixtral: rows take the even frequencies of one schedule, columns the odd ones, rows first in the channels."""
    config = Config(keys, "PixtralVisionConfig")
    width, heads = config.count("hidden_size", default=1024), config.count("num_attention_heads", default=16)
    layers = config.layers("num_hidden_layers", default=24)
    rows, columns = config.grid(1024, 16)
    head_dim = config.count("head_dim", default=None) or config.head_dim(width, heads)
    theta = base(config, 10000.0)
    keys.notes.append(f"vision axes: row, column, which share one geometric schedule of base {theta:g} in turns")
    return (stack("vision", layers, alternating(config, head_dim, theta), served=rows * columns),)


def alternating(config: Config, head_dim: int, theta: float) -> Rotary:
    """One schedule over all pairs, dealt out to the two axes in turns: first axis first in the channels."""
    from posenc.formulas.spectrum import scheduled

    pairs = quarter(config, head_dim)
    line = scheduled(Geometric(base=theta), 2 * pairs)
    return Rotary(
        head_dim,
        schedule=Explicit(theta=(*line[0::2].tolist(), *line[1::2].tolist())),
        axes=Split(pairs=(pairs, pairs), own_schedule=False),
    )


@family("gemma4_vision")
def gemma4(keys: Keys) -> tuple[Part, ...]:
    """Gemma 4: a table of columns and one of rows, summed; each half of a head is rotated by one axis (named only)."""
    config = Config(keys, "Gemma4VisionConfig")
    width = config.count("hidden_size", default=768)
    layers = config.layers("num_hidden_layers", default=16)
    head_dim = config.count("head_dim", default=64)
    pairs = quarter(config, head_dim)
    rows = config.count("position_embedding_size", default=10240)
    theta = base(config, 100.0)
    keys.raw("max_position_embeddings")  # inherited by the class, used by nothing
    note = (
        f"columns turn the first half of a head's {head_dim} channels, rows the second; in a half, channel i pairs "
        f"with i + {pairs}; base^(-i/{pairs}), base {theta:g}"
    )
    keys.notes.append("vision: two learned tables, of columns and of rows, are summed")
    table = Learned(width, shape=(rows,))
    return (stack("vision", layers, Unmodelled("rotary in halves by axis", note=note), at_input=(table, table)),)
