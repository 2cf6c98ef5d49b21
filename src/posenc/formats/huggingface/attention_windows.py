"""Models with a learned table whose layers see different distances: GPT-Neo, Longformer, LED."""

from __future__ import annotations

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.stacks import MAX_LAYERS, Config, stack
from posenc.formats.huggingface.tables import Table, learned
from posenc.records import Part
from posenc.spec import Encoding, LayerKind, ModelPositions


@family("gpt_neo")
def gpt_neo(keys: Keys) -> tuple[Part, ...]:
    """GPT-Neo: a table, and layers that see everything or the last ``window_size`` positions, themselves included."""
    config = Config(keys, "GPTNeoConfig")
    count = config.layers("num_layers", "num_hidden_layers", default=24)
    at_input, served = learned(config, Table(config.owner, ("hidden_size", 2048), ("max_position_embeddings", 2048)))
    names = _attention_types(config, count)
    window = config.count("window_size", default=256)
    kinds = (LayerKind(name="global"), LayerKind(name="local", window=window))
    layers = tuple(int(name == "local") for name in names)
    keys.raw("attention_layers")  # the same list written out, in old files
    positions = ModelPositions(input=at_input, kinds=kinds, layers=layers, served=served)
    return (Part(name="model", positions=positions),)


def _attention_types(config: Config, count: int) -> tuple[str, ...]:
    """``[[["global", "local"], 12]]`` written out.

    Raises:
        FormatError: another shape, another name, or another number of layers than the config's.
    """
    found = config.keys.raw("attention_types")
    if found is None:
        config.keys.assume("attention_types", [[["global", "local"], 12]], config.why)
        found = [[["global", "local"], 12]]
    names: list[str] = []
    try:
        for period, times in found:
            if isinstance(times, bool) or not 0 <= times * len(period) <= MAX_LAYERS:
                raise ValueError
            names += list(period) * times
    except (TypeError, ValueError):
        names = []
    if len(names) != count or not set(names) <= {"global", "local"}:
        raise FormatError(
            f"{config.keys.at('attention_types')} names global or local for each of the {count} layers", found
        )
    return tuple(names)


@family("longformer")
def longformer(keys: Keys) -> tuple[Part, ...]:
    """Longformer: a table behind the padding row; a token sees ``attention_window / 2`` positions to each side."""
    config = Config(keys, "LongformerConfig")
    at_input, served = learned(config, Table(config.owner, padding=1))
    count = config.layers("num_hidden_layers", default=12)
    return (windowed(config, "model", count, at_input, served),)


@family("led")
def led(keys: Keys) -> tuple[Part, ...]:
    """LED: a table of its own for each stack; the encoder has Longformer's windows, the decoder sees everything."""
    config = Config(keys, "LEDConfig")
    parts = []
    for name, rows in (("decoder", 1024), ("encoder", 16384)):
        rows_key = (f"max_{name}_position_embeddings", rows)
        table = Table(config.owner, ("d_model", 1024), rows_key, width_keys=("hidden_size",))
        at_input, served = learned(config, table)
        count = config.layers(f"{name}_layers", default=12)
        if name == "encoder":
            parts.append(windowed(config, name, count, at_input, served))
        else:
            parts.append(stack(name, count, at_input=at_input, served=served))
    keys.raw("num_hidden_layers")
    return tuple(parts)


def windowed(config: Config, name: str, count: int, at_input: tuple[Encoding, ...], served: int) -> Part:
    """A stack of Longformer layers, from ``attention_window``: one even width, or one for each layer.

    Raises:
        FormatError: an odd width, or another number of widths than of layers.
    """
    keys = config.keys
    raw = keys.raw("attention_window")
    if isinstance(raw, list | tuple):
        widths = keys.numbers("attention_window", integer=True)
    else:
        widths = (config.count("attention_window", default=512),) * count
    if len(widths) != count or any(w < 2 or w % 2 for w in widths):
        rule = f"{keys.at('attention_window')} is one even width, or one for each of the {count} layers"
        raise FormatError(rule, raw)
    different = tuple(dict.fromkeys(widths))
    kinds = tuple(LayerKind(name=f"window {w}", window=w // 2 + 1) for w in different)  # itself included
    keys.notes.append(f"{name}: windows reach to both sides; tokens with global attention see everything")
    layers = tuple(different.index(w) for w in widths)
    return Part(name=name, positions=ModelPositions(input=at_input, kinds=kinds, layers=layers, served=served))
