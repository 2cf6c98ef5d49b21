"""Speech and audio models: Whisper and its encoder's descendants, Speech2Text, wav2vec 2.0 and kin.

Facts from transformers 5.24. Convolutional positions and gated or content-dependent relative biases are named only.
"""

from __future__ import annotations

from functools import partial

from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.sinusoids import tensor2tensor
from posenc.formats.huggingface.stacks import Config, stack
from posenc.records import Part
from posenc.spec import Encoding, LayerKind, Learned, ModelPositions, Unmodelled


@family("whisper")
def whisper(keys: Keys) -> tuple[Part, ...]:
    """Whisper: a learned table in the decoder, tensor2tensor's sinusoids over 1500 frames in the encoder."""
    config = Config(keys, "WhisperConfig")
    dim = config.count("d_model", "hidden_size", default=384)
    rows = config.count("max_target_positions", default=448)
    decoder = stack(
        "decoder", config.layers("decoder_layers", default=4), at_input=(Learned(dim, shape=(rows,)),), served=rows
    )
    return decoder, _whisper_encoder(config, dim, 4, "num_hidden_layers")


def _whisper_encoder(config: Config, dim: int, layers: int, alias: str, key: str = "encoder_layers") -> Part:
    frames = config.count("max_source_positions", default=1500)
    count = config.layers(key, alias, default=layers)
    return stack("encoder", count, at_input=(tensor2tensor(dim),), served=frames)


@family("qwen2_5_omni_audio_encoder", "qwen3_omni_moe_audio_encoder")
def omni(keys: Keys) -> tuple[Part, ...]:
    """Qwen Omni's audio encoder: Whisper's sinusoids, computed; positions start again in every chunk."""
    second = keys.data.get("model_type") == "qwen2_5_omni_audio_encoder"
    config = Config(keys, "Qwen2_5OmniAudioEncoderConfig" if second else "Qwen3OmniMoeAudioEncoderConfig")
    window = config.count("n_window", default=100 if second else 50)
    keys.notes.append(f"audio: positions start again in every chunk of {2 * window} frames")
    dim = config.count("d_model", "hidden_size", default=1280)
    return (_whisper_encoder(config, dim, 32, "num_hidden_layers"),)


STORED = {
    "qwen2_audio_encoder": ("Qwen2AudioEncoderConfig", "d_model", "encoder_layers"),
    "voxtral_encoder": ("VoxtralEncoderConfig", "hidden_size", "num_hidden_layers"),
    "audioflamingo3_encoder": ("AudioFlamingo3EncoderConfig", "hidden_size", "num_hidden_layers"),
}


def read_stored(owner: str, width: str, layers: str, keys: Keys) -> tuple[Part, ...]:
    """Descendants of Whisper's encoder whose class stores the table, frozen, and does not compute it."""
    config = Config(keys, owner)
    dim = config.count(width, "hidden_size", "d_model", default=1280)
    frames = config.count("max_source_positions", default=1500)
    keys.notes.append("audio: the table is stored with the weights and frozen; nothing here says it holds sinusoids")
    count = config.layers(layers, "num_hidden_layers", "encoder_layers", default=32)
    return (stack("audio", count, at_input=(Learned(dim, shape=(frames,)),), served=frames),)


for _type, _row in STORED.items():
    family(_type)(partial(read_stored, *_row))


@family("speech_to_text")
def speech_to_text(keys: Keys) -> tuple[Part, ...]:
    """Speech2Text: fairseq's fixed tables of both stacks; positions start behind the padding row."""
    config = Config(keys, "Speech2TextConfig")
    padding = config.count("pad_token_id", default=1, least=0)
    table = tensor2tensor(config.count("d_model", "hidden_size", default=256), offset=padding + 1, padding=padding)
    parts = []
    for name, layers, key, rows in (("decoder", 6, "target", 1024), ("encoder", 12, "source", 6000)):
        served = config.count(f"max_{key}_positions", default=rows)
        parts.append(stack(name, config.layers(f"{name}_layers", default=layers), at_input=(table,), served=served))
    keys.raw("num_hidden_layers")
    return tuple(parts)


CONVOLUTIONAL = {
    "wav2vec2": "Wav2Vec2Config",
    "hubert": "HubertConfig",
    "wavlm": "WavLMConfig",
    "sew": "SEWConfig",
    "unispeech": "UniSpeechConfig",
    "unispeech-sat": "UniSpeechSatConfig",
    "data2vec-audio": "Data2VecAudioConfig",
}


def read_convolutional(owner: str, keys: Keys) -> tuple[Part, ...]:
    """Convolutional positions at the input; WavLM adds a gated relative bias to every layer."""
    config = Config(keys, owner)
    layers = config.layers("num_hidden_layers", default=12)
    groups = config.count("num_conv_pos_embedding_groups", default=16)
    if owner == "Data2VecAudioConfig":
        kernel = config.count("conv_pos_kernel_size", default=19)
        note = f"{config.count('num_conv_pos_embeddings', default=5)} convolutions, kernel {kernel}, {groups} groups"
    else:
        note = f"one convolution, kernel {config.count('num_conv_pos_embeddings', default=128)}, {groups} groups"
    if owner == "HubertConfig" and config.flag("conv_pos_batch_norm", default=False):
        note += ", batch norm before it"
    inside: tuple[Encoding, ...] = ()
    if owner == "WavLMConfig":
        buckets, reach = config.count("num_buckets", default=320), config.count("max_bucket_distance", default=800)
        gated = f"T5 buckets ({buckets}, distance {reach}) shared by all layers, times a gate made from the query"
        inside = (Unmodelled("WavLM gated relative position bias", note=gated),)
    positions = ModelPositions(
        input=(Unmodelled("convolutional positions", note=note),),
        kinds=(LayerKind(name="all", encodings=inside),),
        layers=(0,) * layers,
    )
    return (Part(name="audio", positions=positions),)


for _type, _owner in CONVOLUTIONAL.items():
    family(_type)(partial(read_convolutional, _owner))


@family("gemma4_audio")
def gemma4_audio(keys: Keys) -> tuple[Part, ...]:
    """Gemma 4's audio encoder: projected sinusoidal relative positions inside chunks (named)."""
    config = Config(keys, "Gemma4AudioConfig")
    layers = config.layers("num_hidden_layers", default=12)
    chunk = config.count("attention_chunk_size", default=12)
    left = config.count("attention_context_left", default=13)
    right = config.count("attention_context_right", default=0, least=0)
    note = (
        f"Transformer-XL kind: sin|cos with denominator half - 1, chunks of {chunk}, {left - 1} before, {right} after"
    )
    return (stack("audio", layers, Unmodelled("sinusoidal relative positions", note=note)),)
