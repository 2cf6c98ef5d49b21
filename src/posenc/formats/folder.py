"""A model folder: its ``config.json``, or a GGUF file, or Meta's ``params.json``; and what the weights store."""

from __future__ import annotations

from pathlib import Path

from posenc.errors import FormatError
from posenc.formats.gguf_layers import MAX_LAYERS
from posenc.formats.gguf_reader import SHARD, read_gguf
from posenc.formats.huggingface import Keys, read_config
from posenc.formats.json_config import load_object
from posenc.formats.safetensors_header import position_notes
from posenc.records import Part, Reading
from posenc.spec import Llama3, ModelPositions, Rotary


def read_folder(folder: Path, *, name: str) -> Reading:
    """Read the positions of the model in a folder.

    Raises:
        FormatError: nothing in it is a model, several GGUF files are, or a file breaks a rule.
        SpecError: its numbers make an encoding that cannot exist.
    """
    if (folder / "config.json").is_file():
        config = load_object(folder / "config.json")
        reading = read_config(config, name=name, source=str(folder), format="folder")
        notes = position_notes(folder, reading)
        return reading.model_copy(update={"notes": (*reading.notes, *notes)})
    models = _gguf_files(folder)
    if len(models) == 1:
        return read_gguf(models[0], name=name)
    if len(models) > 1:
        listed = ", ".join(path.name for path in models[:4])
        raise FormatError("a folder without config.json holds one GGUF file", listed, "Name the file.")
    if (folder / "params.json").is_file():
        return _meta(folder, name)
    raise FormatError("a model folder holds config.json, a .gguf file or params.json", str(folder))


def _gguf_files(folder: Path) -> list[Path]:
    """GGUF files without projectors and without shards after the first."""
    found = []
    for path in sorted(folder.glob("*.gguf")):
        shard = SHARD.match(path.name)
        first = shard is None or int(shard["number"]) == 1
        if first and "mmproj" not in path.name.lower() and path.is_file():  # opening a named pipe would wait
            found.append(path)
    return found


def _meta(folder: Path, name: str) -> Reading:
    """Meta's own release: adjacent pairs, base 10000 unless stated (meta-llama/llama-models, models/llama3/args.py)."""
    keys = Keys(load_object(folder / "params.json", "params.json"))
    width, heads, layers = keys.integer("dim"), keys.integer("n_heads"), keys.integer("n_layers")
    if not 0 < layers <= MAX_LAYERS or heads < 1 or width % heads:
        raise FormatError("params.json has dim a multiple of n_heads, and n_layers", f"{width}, {heads}, {layers}")
    head_dim = keys.integer("head_dim", default=None) or width // heads
    base = keys.number("rope_theta", default=10000.0, why="Meta's ModelArgs")
    rotary = Rotary(head_dim, base=base, interleaved=True)
    if keys.flag("use_scaled_rope", default=False, why="Meta's ModelArgs"):
        factor = keys.number(
            "rope_scale_factor", "rope_scaling_factor", default=8.0, why="Meta's apply_scaling, Llama 3.1"
        )
        rotary = rotary >> Llama3(factor, original=8192)
    served = keys.integer("max_seq_len", "max_position_embeddings", default=None)
    positions = ModelPositions.uniform(rotary, layers=layers, served=served)
    keys.notes.append("Meta's own weights: q and k rows are stored for pairs (2i, 2i + 1)")
    return Reading(
        name=name,
        format="folder",
        source=str(folder),
        model_type="params.json",
        parts=(Part(name="model", positions=positions),),
        assumed=tuple(keys.assumed.values()),
        unread=keys.unread(),
        notes=tuple(keys.notes),
        row_order="adjacent",
    )
