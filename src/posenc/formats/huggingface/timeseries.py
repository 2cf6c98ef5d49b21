"""Forecasting models: Informer, Autoformer and the Time Series Transformer.

All three add the paper's frequencies in the order all sines, all cosines (transformers 5.24), and put features of the
time stamps beside the values. The decoder goes on where the encoder's context ends.
"""

from __future__ import annotations

from functools import partial

from posenc.errors import FormatError
from posenc.formats.huggingface.keys import Keys
from posenc.formats.huggingface.registry import family
from posenc.formats.huggingface.sinusoids import papers
from posenc.formats.huggingface.stacks import Config, stack
from posenc.records import Part

OWNERS = {
    "informer": "InformerConfig",
    "autoformer": "AutoformerConfig",
    "time_series_transformer": "TimeSeriesTransformerConfig",
}


def read_forecaster(owner: str, keys: Keys) -> tuple[Part, ...]:
    """Read decoder and encoder; without the lengths of context and prediction only the encoder's table is known."""
    config = Config(keys, owner)
    prediction = config.count("prediction_length", default=None)
    context = config.count("context_length", default=None)
    if context is None and prediction is not None:
        keys.assume("context_length", prediction, f"{config.why}: prediction_length")
        context = prediction
    total = None if context is None or prediction is None else context + prediction
    table = papers(config.count("d_model", "hidden_size", default=64))
    features = config.count("num_time_features", default=0, least=0)
    keys.notes.append(f"{features} features of the time stamps, the lags and the age enter beside the values")
    if owner == "AutoformerConfig":
        keys.notes.append("Autoformer: auto-correlation over delays takes the place of attention scores")
    layers = config.layers("encoder_layers", "num_hidden_layers", default=2)
    encoder = stack("encoder", layers, at_input=(table,), served=total)
    deep = config.layers("decoder_layers", default=2)
    start = context
    if owner == "AutoformerConfig":
        label = config.count("label_length", default=10, least=0)
        start = None if context is None else context - label
    if start is None:
        keys.notes.append("the decoder's table starts at context_length, which is not stated: decoder not read")
        return (encoder,)
    if start < 0:
        raise FormatError(f"{keys.at('label_length')} is at most the context length", label)
    served = None if total is None else total - start
    return stack("decoder", deep, at_input=(table.replace(offset=start),), served=served), encoder


for _type, _owner in OWNERS.items():
    family(_type)(partial(read_forecaster, _owner))
