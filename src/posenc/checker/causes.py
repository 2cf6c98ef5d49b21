"""What is said beside a finding: public cases of the same kind, and the remedy a kind usually has."""

from __future__ import annotations

from functools import cache

REMEDIES: dict[str, str] = {
    "layout": (
        "Use the pairing that the query and key rows are stored for: convert the rows or the rotation, never both."
    ),
    "exponent": "Compute theta_i = base^(-2i/d) for pair i = 0, 1, … and use it for both channels of the pair.",
    "partial-rotary": "Rotate exactly rotary_dim channels and divide the exponent by rotary_dim; pass the others on.",
    "precision": (
        "Keep positions, frequencies and angles in float32 or better, outside autocast; cast only cos and sin."
    ),
    "buffer-state-dict": (
        "Register a fixed table as a non-persistent buffer (never a Parameter or a plain tensor attribute)."
    ),
    "meta-init": "Recompute derived buffers after materialising, and compare them with the configuration.",
    "offset-cache": "Give each token its absolute position, and key every cache on all that changes the result.",
    "table-length": "Grow the table or refuse: check offset + length against its rows.",
    "state-leak": "Make the result a function of configuration and current length alone.",
    "scaling-parameters": "Read every number of the scaling from the configuration and apply the rule once.",
    "attention-factor": (
        "Apply the attention factor once, to cos and sin, and the architecture's own factor to the softmax scale."
    ),
    "double-application": "Let exactly one component rotate queries and keys.",
    "per-layer-base": "Resolve base and scaling for each kind of layer.",
    "config-parsing": "Read the keys in every spelling in use, and fail on a block that was not consumed.",
    "mask-padding": "Count positions over real tokens, from the row that the table reserves for the first one.",
    "packing": "Let positions start anew with each document of a packed row.",
    "odd-dimension": "Use the first floor(d/2) frequencies for the cosines, or refuse odd widths in the constructor.",
    "export-compile": "Compute angles from positions inside the graph; test at a length above the sample's.",
    "axis-order": "Test on a non-square grid whose values tell row and column apart.",
    "position-rounding": "Keep positions real until the angle; round last, if at all.",
    "multimodal-positions": "Add the start to index times interval; test with a start that is not 0.",
    "time-unit": "State the unit of positions, and scale them (or the periods) to it.",
    "grid-resampling": "Pass the target size, and keep the sampling convention that the model was trained with.",
    "sharding": "Give each rank the positions of its own tokens.",
    "bias-function": (
        "Compute slopes and buckets as the trained model does; compare heads 3, 6, 12 and 40 and both signs."
    ),
    "relative-index": "Clip distances at the limit and keep their sign; entry (i, j) uses query i and distance i - j.",
    "width": "Make the table as wide as its number of sines and cosines, and test it against the model's width.",
    "integration": "Make learned parts registered modules that are created once, in the constructor.",
}


@cache
def _cases() -> tuple[tuple[str, str, str], ...]:
    import tomllib
    from importlib.resources import files

    rows = tomllib.loads((files("posenc.checker") / "cases.toml").read_text(encoding="utf-8"))["case"]
    return tuple((row["id"], row["kind"], row["url"]) for row in rows)


def links(kinds: tuple[str, ...], like: str = "", limit: int = 3) -> tuple[str, ...]:
    """Addresses of public cases of these kinds; those whose name holds a word of ``like`` come first.

    >>> links(("exponent",), "double")[0]
    'https://github.com/SamLynnEvans/Transformer/issues/25'
    """
    words = like.lower().split()
    near = [url for name, _, url in _cases() if any(word in name for word in words)]
    same = [url for kind in kinds[:1] for _, its, url in _cases() if its == kind]
    return tuple(dict.fromkeys([*near, *same]))[:limit]


def remedy(kinds: tuple[str, ...]) -> str:
    """What usually mends a fault of the first kind."""
    return REMEDIES.get(kinds[0], "") if kinds else ""
