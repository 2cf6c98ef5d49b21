"""Models that add a learned table of positions to the input: BERT, RoBERTa, GPT-2, OPT, BART, CLIP's text and kin.

Facts from transformers 5.24 (``configuration_*.py``, ``modeling_*.py`` of each type). Three conventions, never mixed:
rows counted by ``max_position_embeddings`` and all used (BERT, GPT-2); two rows added to them (OPT, BART); or
``pad_token_id + 1`` of them never reached, since positions start there (RoBERTa: 514 rows serve 512 tokens).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.stacks import Config, Default, stack
from posenc.records import Part
from posenc.spec import Encoding, Learned, Sinusoidal, Unmodelled


@dataclass(frozen=True)
class Table:
    """How one model type describes its table.

    Args:
        owner: the transformers class whose defaults apply.
        width: key and default of the table's width.
        rows: key and default of the number of rows.
        layers: key and default of the number of layers.
        added: rows added before position 0 reads.
        padding: default of ``pad_token_id`` where positions start behind it inside the counted rows.
        width_keys, rows_keys, layers_keys: the same numbers' other names, in older files and through aliases.
    """

    owner: str
    width: Default = ("hidden_size", 768)
    rows: Default = ("max_position_embeddings", 512)
    layers: Default = ("num_hidden_layers", 12)
    added: int = 0
    padding: int | None = None
    width_keys: tuple[str, ...] = ()
    rows_keys: tuple[str, ...] = ()
    layers_keys: tuple[str, ...] = ()


EMBEDDING = ("embedding_size", 128)
GPT2 = Table(
    "GPT2Config",
    ("n_embd", 768),
    ("n_positions", 1024),
    ("n_layer", 12),
    width_keys=("hidden_size",),
    rows_keys=("max_position_embeddings",),
    layers_keys=("num_hidden_layers",),
)

TABLES: dict[str, Table] = {
    "bert": Table("BertConfig"),
    "bert-generation": Table("BertGenerationConfig", ("hidden_size", 1024), layers=("num_hidden_layers", 24)),
    "megatron-bert": Table("MegatronBertConfig", ("hidden_size", 1024), layers=("num_hidden_layers", 24)),
    "mobilebert": Table("MobileBertConfig", ("hidden_size", 512), layers=("num_hidden_layers", 24)),
    "rembert": Table("RemBertConfig", ("input_embedding_size", 256), layers=("num_hidden_layers", 32)),
    "squeezebert": Table("SqueezeBertConfig", ("embedding_size", 768)),
    "convbert": Table("ConvBertConfig", ("embedding_size", 768)),
    "big_bird": Table("BigBirdConfig", rows=("max_position_embeddings", 4096)),
    "splinter": Table("SplinterConfig"),
    "ernie": Table("ErnieConfig"),
    "fnet": Table("FNetConfig"),
    "albert": Table("AlbertConfig", EMBEDDING),
    "electra": Table("ElectraConfig", EMBEDDING),
    "nystromformer": Table("NystromformerConfig", rows=("max_position_embeddings", 510), added=2),
    "yoso": Table("YosoConfig", rows=("max_position_embeddings", 4096), added=2),
    "mra": Table("MraConfig", added=2),
    "roberta": Table("RobertaConfig", padding=1),
    "xlm-roberta": Table("XLMRobertaConfig", padding=1),
    "camembert": Table("CamembertConfig", padding=1),
    "xmod": Table("XmodConfig", padding=1),
    "data2vec-text": Table("Data2VecTextConfig", padding=1),
    "roberta-prelayernorm": Table("RobertaPreLayerNormConfig", padding=1),
    "ibert": Table("IBertConfig", padding=1),
    "xlm-roberta-xl": Table(
        "XLMRobertaXLConfig",
        ("hidden_size", 2560),
        ("max_position_embeddings", 514),
        ("num_hidden_layers", 36),
        padding=1,
    ),
    "gpt2": GPT2,
    "gpt_bigcode": replace(GPT2, owner="GPTBigCodeConfig"),
    "openai-gpt": replace(GPT2, owner="OpenAIGPTConfig", rows=("n_positions", 512)),
    "imagegpt": replace(GPT2, owner="ImageGPTConfig", width=("n_embd", 512), layers=("n_layer", 24)),
    "opt": Table("OPTConfig", rows=("max_position_embeddings", 2048), added=2),
    "biogpt": Table(
        "BioGptConfig", ("hidden_size", 1024), ("max_position_embeddings", 1024), ("num_hidden_layers", 24), added=2
    ),
    "clip_text_model": Table("CLIPTextConfig", ("hidden_size", 512), ("max_position_embeddings", 77)),
    "siglip_text_model": Table("SiglipTextConfig", rows=("max_position_embeddings", 64)),
    "siglip2_text_model": Table("Siglip2TextConfig", rows=("max_position_embeddings", 64)),
    "aimv2_text_model": Table("Aimv2TextConfig", rows=("max_position_embeddings", 77)),
    "metaclip_2_text_model": Table("MetaClip2TextConfig", ("hidden_size", 512), ("max_position_embeddings", 77)),
    "clipseg_text_model": Table("CLIPSegTextConfig", ("hidden_size", 512), ("max_position_embeddings", 77)),
    "owlvit_text_model": Table("OwlViTTextConfig", ("hidden_size", 512), ("max_position_embeddings", 16)),
    "owlv2_text_model": Table("Owlv2TextConfig", ("hidden_size", 512), ("max_position_embeddings", 16)),
    "chinese_clip_text_model": Table("ChineseCLIPTextConfig"),
    "blip_text_model": Table("BlipTextConfig"),
    "altclip_text_model": Table(
        "AltCLIPTextConfig",
        ("hidden_size", 1024),
        ("max_position_embeddings", 514),
        ("num_hidden_layers", 24),
        padding=1,
    ),
}
"""Every single stack of this kind."""


def learned(config: Config, table: Table) -> tuple[tuple[Encoding, ...], int]:
    """The table as an encoding, and the number of positions it serves.

    Raises:
        FormatError: no row is left behind the padding row.
    """
    width = config.count(table.width[0], *table.width_keys, default=table.width[1])
    rows = config.count(table.rows[0], *table.rows_keys, default=table.rows[1])
    offset = table.added
    if table.padding is not None:
        offset = config.count("pad_token_id", default=table.padding, least=0) + 1
        rows -= offset
        if rows < 1:
            raise FormatError(
                f"{config.keys.at(table.rows[0])} counts more rows than the {offset} up to pad_token_id", rows + offset
            )
    return (Learned(width, shape=(rows,), offset=offset),), rows


@dataclass(frozen=True)
class Relative:
    """What ``position_embedding_type`` may ask for instead of the table."""

    name: str
    note: str


RELATIVE_KEYS = {
    "relative_key": Relative("relative keys (Shaw et al. 2018)", "query . distance embedding added to the score"),
    "relative_key_query": Relative(
        "relative keys and queries (Huang et al. 2020)", "query and key . distance embedding added to the score"
    ),
}


def read_table(table: Table, keys: Keys, name: str = "model") -> tuple[Part, ...]:
    """Read one stack with a learned table."""
    config = Config(keys, table.owner)
    layers = config.layers(table.layers[0], *table.layers_keys, default=table.layers[1])
    at_input, served = learned(config, table)
    if keys.data.get("n_ctx") == served:  # GPT-2's second name for the same number
        keys.raw("n_ctx")
    asked = keys.text("position_embedding_type", default=None)
    if asked in RELATIVE_KEYS:
        relative = RELATIVE_KEYS[asked]
        keys.notes.append(
            f"position_embedding_type={asked}: transformers 4 reads it; transformers 5 ignores it and adds the table"
        )
        encoding = Unmodelled(relative.name, note=f"{relative.note}; distances up to {served - 1}")
        return (stack(name, layers, encoding, served=served),)
    if asked not in (None, "absolute"):
        raise FormatError(
            f"{keys.at('position_embedding_type')} is absolute, relative_key or relative_key_query", asked
        )
    return (stack(name, layers, at_input=at_input, served=served),)


for _type, _table in TABLES.items():
    family(_type)(partial(read_table, _table))


@dataclass(frozen=True)
class EncoderDecoder:
    """Two stacks with equal tables; ``layers`` of the encoder, then the decoder; all are the class's defaults."""

    owner: str
    width: int
    rows: int
    layers: tuple[int, int]
    added: int = 0


ENCODER_DECODERS: dict[str, EncoderDecoder] = {
    "bart": EncoderDecoder("BartConfig", 1024, 1024, (12, 12), added=2),
    "mbart": EncoderDecoder("MBartConfig", 1024, 1024, (12, 12), added=2),
    "plbart": EncoderDecoder("PLBartConfig", 768, 1024, (6, 6), added=2),
    "mvp": EncoderDecoder("MvpConfig", 1024, 1024, (12, 12), added=2),
    "blenderbot": EncoderDecoder("BlenderbotConfig", 2560, 128, (2, 24)),
    "blenderbot-small": EncoderDecoder("BlenderbotSmallConfig", 512, 512, (8, 8)),
    "bigbird_pegasus": EncoderDecoder("BigBirdPegasusConfig", 1024, 4096, (16, 16)),
}


def read_encoder_decoder(row: EncoderDecoder, keys: Keys) -> tuple[Part, ...]:
    """Read both stacks, the decoder first."""
    config = Config(keys, row.owner)
    rows = ("max_position_embeddings", row.rows)
    table = Table(row.owner, ("d_model", row.width), rows, added=row.added, width_keys=("hidden_size",))
    at_input, served = learned(config, table)
    parts = tuple(
        stack(name, config.layers(f"{name}_layers", default=row.layers[i]), at_input=at_input, served=served)
        for i, name in ((1, "decoder"), (0, "encoder"))
    )
    keys.raw("num_hidden_layers")  # an alias of encoder_layers that old files also write
    return parts


for _type, _row in ENCODER_DECODERS.items():
    family(_type)(partial(read_encoder_decoder, _row))


def _switched(keys: Keys, owner: str, width: Default, layers: Default, switch: str) -> tuple[Part, ...]:
    """A table that one key turns from learned to sinusoidal, interleaved as in the paper."""
    config = Config(keys, owner)
    at_input, served = learned(config, Table(owner, width, width_keys=("hidden_size",)))
    if config.flag(switch, default=False):
        at_input = (Sinusoidal(at_input[0].dim),)  # type: ignore[union-attr]
    count = config.layers(layers[0], "num_hidden_layers", default=layers[1])
    return (stack("model", count, at_input=at_input, served=served),)


@family("distilbert")
def distilbert(keys: Keys) -> tuple[Part, ...]:
    """DistilBERT: learned, or fixed sinusoids with ``sinusoidal_pos_embds``."""
    return _switched(keys, "DistilBertConfig", ("dim", 768), ("n_layers", 6), "sinusoidal_pos_embds")


@family("xlm")
def xlm(keys: Keys) -> tuple[Part, ...]:
    """XLM: learned, or fixed sinusoids with ``sinusoidal_embeddings``."""
    return _switched(keys, "XLMConfig", ("emb_dim", 2048), ("n_layers", 12), "sinusoidal_embeddings")


@family("flaubert")
def flaubert(keys: Keys) -> tuple[Part, ...]:
    """FlauBERT: as XLM."""
    return _switched(keys, "FlaubertConfig", ("emb_dim", 2048), ("n_layers", 12), "sinusoidal_embeddings")
