"""Models that add a relative bias to the scores: T5 and kin, BLOOM, MPT, MPNet; and those that are only named so far.

Facts from transformers 5.24. T5's table lives in layer 0 and is shared by all layers (UMT5 and MPNet: see the notes).
"""

from __future__ import annotations

from functools import partial

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.stacks import Config, stack
from posenc.formats.huggingface.tables import Table, learned
from posenc.records import Part
from posenc.spec import Alibi, Encoding, Learned, T5Bias, Unmodelled

T5_TYPES: dict[str, tuple[str, int, int]] = {
    "t5": ("T5Config", 6, 8),
    "mt5": ("MT5Config", 8, 6),
    "umt5": ("UMT5Config", 8, 6),
    "longt5": ("LongT5Config", 6, 8),
    "switch_transformers": ("SwitchTransformersConfig", 12, 12),
    "pop2piano": ("Pop2PianoConfig", 6, 8),
}
"""Class, and its defaults of ``num_layers`` and ``num_heads``."""


def read_t5(owner: str, depth: int, heads: int, keys: Keys) -> tuple[Part, ...]:
    """Decoder (causal buckets) and encoder (bidirectional buckets) of a T5."""
    config = Config(keys, owner)
    encoder_layers = config.layers("num_layers", "num_hidden_layers", default=depth)
    sparse = owner == "SwitchTransformersConfig"  # the one class whose decoder does not follow the encoder's depth
    decoder_layers = config.layers("num_decoder_layers", default=depth if sparse else encoder_layers)
    causal, both = (
        T5Bias(
            config.count("num_heads", "num_attention_heads", default=heads),
            num_buckets=config.count("relative_attention_num_buckets", default=32),
            max_distance=config.count("relative_attention_max_distance", default=128),
            bidirectional=bidirectional,
        )
        for bidirectional in (False, True)
    )
    inside: tuple[Encoding, ...] = (both,)
    if owner == "UMT5Config":
        keys.notes.append("UMT5: every layer has a bias table of its own")
    if owner == "LongT5Config":
        inside = (both, *_long(config))
    decoder, encoder = stack("decoder", decoder_layers, causal), stack("encoder", encoder_layers, *inside)
    return decoder, encoder


def _long(config: Config) -> tuple[Encoding, ...]:
    """LongT5's encoder sees ``local_radius`` positions to each side, and summaries of blocks if asked to."""
    radius = config.count("local_radius", default=127)
    config.keys.notes.append(f"LongT5: the encoder attends to {radius} positions on each side")
    kind = config.keys.text("encoder_attention_type", default="local", why=config.why)
    if kind not in ("local", "transient-global"):
        raise FormatError(f"{config.keys.at('encoder_attention_type')} is local or transient-global", kind)
    if kind == "local":
        return ()
    block = config.count("global_block_size", default=16)
    return (Unmodelled("LongT5 global side bias", note=f"T5 buckets of distances between blocks of {block} tokens"),)


for _type, (_owner, _depth, _heads) in T5_TYPES.items():
    family(_type)(partial(read_t5, _owner, _depth, _heads))


@family("bloom")
def bloom(keys: Keys) -> tuple[Part, ...]:
    """BLOOM: ALiBi. Its code adds ``+slope * j``, equal under a causal mask up to a constant of each row."""
    config = Config(keys, "BloomConfig")
    layers = config.layers("n_layer", "num_hidden_layers", default=2)
    heads = config.count("n_head", "num_attention_heads", default=8)
    # seq_length is the training length of the old Megatron files; no bound: ALiBi has no table
    return (stack("model", layers, Alibi(heads), served=config.count("seq_length", default=None)),)


@family("mpt")
def mpt(keys: Keys) -> tuple[Part, ...]:
    """MPT: ALiBi with ``alibi_bias_max``, or a learned table where ``attn_config.alibi`` is false."""
    config = Config(keys, "MptConfig")
    layers = config.layers("n_layers", "num_hidden_layers", default=24)
    heads = config.count("n_heads", "num_attention_heads", default=16)
    served = config.count("max_seq_len", default=2048)
    section = keys.section("attn_config")
    attention = Config(section or Keys({}, keys.at("attn_config"), keys), "MptAttentionConfig")
    if section is not None and (rope := attention.keys.flag("rope", default=None)):
        raise FormatError(f"{attention.keys.at('rope')} is false", rope, "MPT with rotary is not modelled.")
    bias = attention.keys.number("alibi_bias_max", default=8, why=attention.why)
    table = keys.flag("learned_pos_emb", default=None)  # ALiBi overrides it
    if attention.flag("alibi", default=True):
        return (stack("model", layers, Alibi(heads, max_bias=float(bias)), served=served),)
    keys.notes.append("attn_config.alibi is false: MosaicML's code obeys it, transformers adds ALiBi all the same")
    width = config.count("d_model", "hidden_size", default=2048)
    at_input = () if table is False else (Learned(width, shape=(served,)),)
    return (stack("model", layers, at_input=at_input, served=served),)


@family("mpnet")
def mpnet(keys: Keys) -> tuple[Part, ...]:
    """MPNet: a learned table behind the padding row, and one T5 bias (distance 128) shared by all layers."""
    config = Config(keys, "MPNetConfig")
    rows = config.count("max_position_embeddings", default=512, least=3)
    bias = T5Bias(
        config.count("num_attention_heads", default=12),
        num_buckets=config.count("relative_attention_num_buckets", default=32),
        max_distance=128,
    )
    table = Learned(config.count("hidden_size", default=768), shape=(rows - 2,), offset=2)  # padding_idx is fixed at 1
    layers = config.layers("num_hidden_layers", default=12)
    return (stack("model", layers, bias, at_input=(table,), served=rows - 2),)


@family("deberta", "deberta-v2")
def deberta(keys: Keys) -> tuple[Part, ...]:
    """DeBERTa: disentangled attention (named), and a table at the input only with ``position_biased_input``."""
    second = keys.data.get("model_type") == "deberta-v2"
    config = Config(keys, "DebertaV2Config" if second else "DebertaConfig")
    width, depth = (1536, 24) if second else (768, 12)
    layers = config.layers("num_hidden_layers", default=depth)
    hidden = config.count("hidden_size", default=width)
    wide = ("embedding_size", hidden) if "embedding_size" in keys else ("hidden_size", hidden)
    at_input, served = learned(config, Table(config.owner, wide))
    if not config.flag("position_biased_input", default=True):
        at_input = ()
    keys.raw("max_relative_positions")
    inside: tuple[Encoding, ...] = ()
    if config.flag("relative_attention", default=False):
        inside = (Unmodelled("DeBERTa disentangled attention", note=_disentangled(config, served)),)
    return (stack("model", layers, *inside, at_input=at_input, served=served),)


def _disentangled(config: Config, served: int) -> str:
    keys = config.keys
    kinds = keys.raw("pos_att_type")
    terms = kinds.replace("|", ", ") if isinstance(kinds, str) else ", ".join(keys.texts("pos_att_type", default=()))
    reach = config.count("max_relative_positions", default=-1, least=-1)
    facts = [f"terms: {terms or 'none'}", f"distances up to {served if reach < 1 else reach}"]
    if (buckets := config.count("position_buckets", default=None, least=-1)) is not None and buckets > 0:
        facts.append(f"{buckets} log buckets to each side")
    if keys.flag("share_att_key", default=None):
        facts.append("content projections shared with positions")
    if normed := keys.text("norm_rel_ebd", default=None):
        facts.append(f"relative table norm: {normed}")
    return "; ".join(facts)


@family("xlnet", "transfo-xl")
def transformer_xl(keys: Keys) -> tuple[Part, ...]:
    """XLNet and Transformer-XL: sinusoidal relative positions with learned biases u and v (named)."""
    old = keys.data.get("model_type") == "transfo-xl"  # transformers 5 has no class, so nothing is assumed for it
    config = Config(keys, "XLNetConfig")
    layers = config.layers("n_layer", "num_hidden_layers", **({} if old else {"default": 24}))
    clamp = config.count("clamp_len", default=None, least=-1)
    facts = ["sinusoid sin|cos with base 10000", "biases u and v learned"]
    facts.append(f"distances clamped at {clamp}" if clamp is not None and clamp > 0 else "distances not clamped")
    if keys.flag("untie_r", default=None) is not None:
        facts.append(f"u and v {'in each layer' if keys.flag('untie_r') else 'shared by all layers'}")
    if keys.flag("bi_data", default=None):
        facts.append("half of the batch reversed")
    keys.raw("max_position_embeddings")  # XLNet writes -1: no limit
    return (stack("model", layers, Unmodelled("Transformer-XL relative positions", note="; ".join(facts))),)
