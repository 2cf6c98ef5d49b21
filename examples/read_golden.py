"""Read golden vectors with the standard library alone, and test a rotary against them.

    posenc golden llama-3.1-8b -o golden
    python read_golden.py golden

The function ``rotated`` stands for your implementation: replace it, keep the comparison.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import sys
from pathlib import Path


def load(folder: Path) -> tuple[dict, dict[str, list[float]]]:
    """The document and the tensors, each tensor flat and row by row."""
    document = json.loads((folder / "golden.json").read_text(encoding="utf-8"))
    if document["format"] != "posenc-golden" or document["schema"] != 1:
        raise SystemExit(f"not golden vectors of schema 1: {document.get('schema')}")
    raw = (folder / document["tensors"]["file"]).read_bytes()
    if hashlib.sha256(raw).hexdigest() != document["tensors"]["sha256"]:
        raise SystemExit("golden.json and golden.safetensors do not belong together")
    (size,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + size])
    tensors = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        start, end = (8 + size + offset for offset in tensor["data_offsets"])
        letter = {"F64": "d", "I64": "q"}[tensor["dtype"]]
        tensors[name] = list(struct.unpack(f"<{(end - start) // 8}{letter}", raw[start:end]))
    return document, tensors


def rotated(
    q: list[float], pairs: list[tuple[int, int]], theta: list[float], position: float, gain: float
) -> list[float]:
    """Each pair ``(a, b)`` turned by ``position * theta``: what is under test."""
    out = list(q)
    for (first, second), rate in zip(pairs, theta, strict=True):
        cos, sin = math.cos(position * rate), math.sin(position * rate)
        a, b = q[first], q[second]
        out[first], out[second] = gain * (a * cos - b * sin), gain * (b * cos + a * sin)
    return out


def compare(entry: dict, tensors: dict[str, list[float]], tolerance: dict[str, float]) -> float:
    """Largest error of :func:`rotated` over both layouts, every length and position of a rotary with one axis."""
    shared = {name: tensors[array["tensor"]] for name, array in entry["arrays"].items()}
    positions, q, worst = shared["positions"], shared["q"], 0.0
    largest = max(map(abs, q)) * 2
    for at in entry["lengths"]:
        arrays = {name: tensors[array["tensor"]] for name, array in at["arrays"].items()}
        for layout in ("half", "adjacent"):
            flat = shared[f"pairs.{layout}"]
            pairs = list(zip(flat[::2], flat[1::2], strict=True))
            wanted = arrays[f"rotated.{layout}"]
            for row, position in enumerate(positions):
                allowed = tolerance["float64"] + tolerance["angle_float64_per_position"] * position
                seen = rotated(q, pairs, arrays["theta"], position, arrays["gain"][0])
                for channel, value in enumerate(seen):
                    error = abs(value - wanted[row * len(q) + channel])
                    if error > allowed * largest * arrays["gain"][0]:
                        place = f"{layout}, position {position}, channel {channel}"
                        raise SystemExit(f"{entry['notation']}: {place}: off by {error:.1e}")
                    worst = max(worst, error)
    return worst


def main(folder: Path) -> None:
    document, tensors = load(folder)
    print(document["model"]["name"])
    for entry in document["entries"]:
        name = entry["notation"][:100]
        simple = entry["kind"] == "rotary" and entry["lengths"][0]["arrays"]["theta"]["shape"][0] == 1
        if "not_computed" in entry:
            print(f"  {name}: {entry['not_computed']}")
        elif simple and "growth" not in entry["lengths"][0]["arrays"]:
            print(f"  {name}: largest error {compare(entry, tensors, document['tolerance']):.1e}")
        else:
            print(f"  {name}: {', '.join(entry['arrays'])}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "golden"))
