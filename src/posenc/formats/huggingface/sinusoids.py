"""Text models with a fixed table of sines and cosines at the input.

Four tables go by this name (transformers 5.24, ``modeling_*.py``): the paper's interleaved one; the paper's
frequencies with all sines before all cosines (Marian, Pegasus, CTRL); tensor2tensor's denominator ``half - 1`` in that
order (M2M-100, NLLB-MoE, FSMT, XGLM, TrOCR); and the same with the cosines first (MusicGen). An odd width ends with a
zero column in the last two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.stacks import Config, stack
from posenc.formats.huggingface.tables import Table, learned
from posenc.records import Part
from posenc.spec import Sinusoidal

Start = Literal["zero", "padding", "two"]
"""Row that position 0 reads: 0; the one behind ``pad_token_id`` (fairseq); or 2 whatever the padding is (XGLM)."""


def papers(dim: int) -> Sinusoidal:
    """Frequencies of the paper, all sines before all cosines.

    An odd width would end its sines with a lone one, which no model has and the spec refuses.
    """
    return Sinusoidal(dim, order="sin|cos")


def tensor2tensor(dim: int, *, cosines_first: bool = False, offset: int = 0, padding: int | None = None) -> Sinusoidal:
    """Frequencies with denominator ``half - 1``; an odd width ends with a zero column."""
    return Sinusoidal(
        dim,
        shift=1.0,
        order="cos|sin" if cosines_first else "sin|cos",
        odd="zero" if dim % 2 else "lone_sine",
        offset=offset,
        padding_row=padding,
    )


@dataclass(frozen=True)
class Fixed:
    """How one model type makes its table; widths and layers are the class's defaults.

    Args:
        owner: the transformers class.
        width, rows: defaults of ``d_model`` and ``max_position_embeddings``.
        layers: key and default of the number of layers of each stack, the decoder first.
        start: row that position 0 reads.
        padding: default of ``pad_token_id``, whose row is all zeros.
        paper: the paper's denominator instead of tensor2tensor's.
    """

    owner: str
    width: int
    rows: int
    layers: tuple[tuple[str, str, int], ...]
    start: Start = "zero"
    padding: int | None = None
    paper: bool = False
    width_key: str = "d_model"


def _two(encoder: int, decoder: int) -> tuple[tuple[str, str, int], ...]:
    return ("decoder", "decoder_layers", decoder), ("encoder", "encoder_layers", encoder)


FIXED: dict[str, Fixed] = {
    "marian": Fixed("MarianConfig", 1024, 1024, _two(12, 12), paper=True),
    "pegasus": Fixed("PegasusConfig", 1024, 1024, _two(12, 12), paper=True),
    "pegasus_x": Fixed("PegasusXConfig", 1024, 16384, _two(16, 16)),
    "m2m_100": Fixed("M2M100Config", 1024, 1024, _two(12, 12), "padding", 1),
    "nllb-moe": Fixed("NllbMoeConfig", 1024, 1024, _two(12, 12), "padding", 1),
    "fsmt": Fixed("FSMTConfig", 1024, 1024, _two(12, 12), "padding", 1),
    "xglm": Fixed("XGLMConfig", 1024, 2048, (("model", "num_layers", 24),), "two", 1),
}


def read_fixed(row: Fixed, keys: Keys) -> tuple[Part, ...]:
    """Read one or two stacks whose tables are equal."""
    config = Config(keys, row.owner)
    dim = config.count(row.width_key, "hidden_size", default=row.width)
    served = config.count("max_position_embeddings", default=row.rows)
    if row.paper:
        table = papers(dim)
    elif row.start == "zero":
        table = tensor2tensor(dim)
    else:
        padding = config.count("pad_token_id", default=row.padding, least=0)
        table = tensor2tensor(dim, offset=2 if row.start == "two" else padding + 1, padding=padding)
    parts = tuple(
        stack(name, config.layers(key, default=count), at_input=(table,), served=served)
        for name, key, count in row.layers
    )
    keys.raw("num_hidden_layers")  # an alias of encoder_layers that old files also write
    return parts


for _type, _row in FIXED.items():
    family(_type)(partial(read_fixed, _row))


@family("ctrl")
def ctrl(keys: Keys) -> tuple[Part, ...]:
    """CTRL: the paper's frequencies, sines before cosines."""
    config = Config(keys, "CTRLConfig")
    dim = config.count("n_embd", "hidden_size", default=1280)
    rows = config.count("n_positions", "max_position_embeddings", default=256)
    if keys.data.get("n_ctx") == rows:
        keys.raw("n_ctx")
    layers = config.layers("n_layer", "num_hidden_layers", default=48)
    return (stack("model", layers, at_input=(papers(dim),), served=rows),)


@family("trocr")
def trocr(keys: Keys) -> tuple[Part, ...]:
    """TrOCR's decoder: a learned table with two rows added, or fairseq's fixed one."""
    config = Config(keys, "TrOCRConfig")
    layers = config.layers("decoder_layers", "num_hidden_layers", default=12)
    at_input, rows = learned(config, Table(config.owner, ("d_model", 1024), added=2, width_keys=("hidden_size",)))
    if config.flag("use_learned_position_embeddings", default=True):
        return (stack("decoder", layers, at_input=at_input, served=rows),)
    padding = config.count("pad_token_id", default=1, least=0)
    dim = config.count("d_model", "hidden_size", default=1024)
    table = tensor2tensor(dim, offset=padding + 1, padding=padding)
    return (stack("decoder", layers, at_input=(table,), served=rows),)


@family("musicgen_decoder", "musicgen_melody_decoder")
def musicgen(keys: Keys) -> tuple[Part, ...]:
    """MusicGen's decoder: tensor2tensor's denominator with the cosines first."""
    melody = keys.data.get("model_type") == "musicgen_melody_decoder"
    config = Config(keys, "MusicgenMelodyDecoderConfig" if melody else "MusicgenDecoderConfig")
    dim = config.count("hidden_size", default=1024)
    rows = config.count("max_position_embeddings", default=2048)
    layers = config.layers("num_hidden_layers", default=24)
    return (stack("decoder", layers, at_input=(tensor2tensor(dim, cosines_first=True),), served=rows),)
