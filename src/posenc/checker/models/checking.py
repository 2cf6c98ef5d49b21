"""A model against the positions that its own config says (or others): every part, then whole passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posenc.checker.boxes import CosSin, Rows
from posenc.checker.calling.discovering import discover
from posenc.checker.calling.hints import hints_of
from posenc.checker.examining.dispatch import examine
from posenc.checker.expecting import Expected
from posenc.checker.gathering import Gathered
from posenc.checker.models.axes import check_axes
from posenc.checker.models.building import random_model, tiny_model
from posenc.checker.models.parts import Part, apply_functions, functions_called, position_parts, unasked
from posenc.checker.models.passes import check_passes
from posenc.checker.models.saying import NO_ENCODING, NO_PART, UNASKED, UNSAID, Sayings, own_settings
from posenc.checker.models.tiny import library
from posenc.checker.recognising import identify_box
from posenc.errors import PosencError, SubjectError, shown
from posenc.records.finding import Finding
from posenc.spec import Alibi, Learned, Rotary, Sinusoidal, T5Bias


def check_model(notes: Gathered, subject: Any, wanted: Expected | None, *, probes: bool = True) -> Expected | None:
    """Check a model, or one module of it (``transformers:llama#rotary_emb``).

    Args:
        notes: where findings go.
        subject: a model in memory, ``transformers:TYPE``, or a folder with a config.
        wanted: the wanted encodings; those of the model's own config unless given.
        probes: run whole passes too.

    Returns:
        What it was compared with.

    Raises:
        PosencError: the model cannot be built or read.
    """
    model, inside = _model(notes, subject)
    said = Sayings(model, wanted)
    if wanted is None and said.top is not None:
        notes.assume("compared with what the model's own config says")
    parts = [part for part in position_parts(model) if _asked(part, inside)]
    compared = [_part(notes, part, said) for part in parts]
    if inside is not None and not compared:
        raise SubjectError(
            f"the model has a part with positions at {inside}", [p.where for p in position_parts(model)][:8]
        )
    if inside is None:
        if said.top is not None:
            _applied(notes, model, said.top)
        other = unasked(model, parts)
        if other:
            notes.skipped(UNASKED, ", ".join(other[:4]) + (f" and {len(other) - 4} more" if len(other) > 4 else ""))
        elif not compared:
            notes.note(NO_PART)
        if probes:
            _passes(notes, model, said.top)
    with_configs = [found for found in compared if found is not None]
    if said.silence is not None:
        notes.note(f"the config's positions: {said.silence}")
    if not with_configs:
        notes.blind = True
    if said.top is not None:
        return said.top
    return with_configs[0] if with_configs else Expected((), UNSAID if compared else NO_ENCODING)


def _asked(part: Part, inside: str | None) -> bool:
    return inside is None or part.where == inside or part.where.startswith((f"{inside} for ", f"{inside}."))


def _passes(notes: Gathered, model: Any, wanted: Expected | None) -> None:
    """Whole passes; those of a model with layers without positions could not be compared."""
    encodings = () if wanted is None else wanted.encodings
    if wanted is not None and wanted.reading is not None:
        positions = wanted.reading.positions
        if any(not kind.encodings for kind in positions.kinds) and not positions.input:
            notes.skipped(
                "passes", "the model has layers without positions of their own (recurrent, convolution or none)"
            )
            return
    relative = bool(encodings) and all(e.relative for e in encodings) and not any(e.needs_length for e in encodings)
    check_passes(notes, model, relative=relative)


def _model(notes: Gathered, subject: Any) -> tuple[Any, str | None]:
    """The model, and the path of the module asked for."""
    if not isinstance(subject, str):
        return subject.eval(), None
    text, _, inside = subject.partition("#")
    if text.startswith("transformers:"):
        model = tiny_model(text.removeprefix("transformers:"))
        notes.assume(f"a tiny random {model.config.model_type}, weights drawn with seed 0")
        return model, inside or None
    transformers = library()
    if not (Path(text) / "config.json").is_file():
        raise SubjectError("a model folder holds config.json", text)
    try:
        config = transformers.AutoConfig.from_pretrained(text, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise SubjectError(
            "transformers reads the folder's config", f"{type(error).__name__}: {shown(str(error), 160)}"
        ) from None
    notes.assume("random weights: the folder's code and config, not its tensors")
    return random_model(config), inside or None


def _part(notes: Gathered, part: Part, said: Sayings) -> Expected | None:
    """Compare a part with what the config around it says, or else with its own settings, or else recognise it.

    Returns:
        What a config says, if the part was compared with it.
    """
    wanted, own = said.around(part)
    best: Gathered | None = None
    failures: list[str] = []
    if wanted is not None:
        best = _compared(part, wanted, failures)
        if not own and best is not None and any(f.verdict == "defect" for f in best.findings):
            best = None  # the model's config speaks of another part
    if best is not None:
        if part.kind == "rotary":  # how columns are laid out is between the part and the function that applies them
            best.findings = [f for f in best.findings if f.verdict != "convention" or f.kinds[0] != "layout"]
        _taken(notes, best)
        return wanted
    settings = own_settings(part)
    if settings is not None and (best := _compared(part, settings, failures)) is not None:
        best.findings = [f for f in best.findings if f.verdict != "convention" or f.kinds[0] != "layout"]
        best.measure("compared with", f"its own settings, {settings.line}"[:200])
        _taken(notes, best)
        return None
    tried = Gathered(where=part.where)
    if part.kind == "relative" and isinstance(part.box, Rows):
        tried.measure("columns by distance or bucket", part.box.width)
        _taken(notes, tried)
        return None
    try:
        identify_box(tried, part.box)
    except PosencError as error:
        failures.append(str(error))
    if tried.candidates:
        tried.measure("recognised", tried.candidates[0].notation[:200])
    elif failures:
        notes.skipped(part.where, failures[0][:160])
    _taken(notes, tried)
    return None


RIGHT: dict[str, tuple[type, ...]] = {
    "rotary": (Rotary,),
    "table": (Learned, Sinusoidal),
    "buckets": (T5Bias,),
    "alibi": (Alibi,),
    "relative": (),
    "frequencies": (),
}
"""What a kind of part can be."""


def _compared(part: Part, wanted: Expected, failures: list[str]) -> Gathered | None:
    """The comparison with the wanted encoding that fits best; None if none is of the part's kind."""
    candidates: list[Any] = [e for e in wanted.encodings if isinstance(e, RIGHT[part.kind])]
    if part.kind == "buckets":
        candidates = [e for e in candidates if e.bidirectional == (part.slot == "encoder")] or candidates
    if isinstance(part.box, Rows):
        candidates = [e for e in candidates if e.dim == part.box.width] or candidates
    best: Gathered | None = None
    for encoding in candidates:
        tried = Gathered(where=part.where)
        if part.kind == "table" and isinstance(encoding, Sinusoidal):
            encoding = encoding.replace(offset=0)  # a stored table counts rows, not positions
        try:
            examine(tried, part.box, encoding, None if part.kind == "table" else wanted.served)
        except PosencError as error:
            failures.append(str(error))
            continue
        if isinstance(part.box, CosSin) and "axes" in part.box.calls and getattr(encoding, "axes", None) is not None:
            check_axes(tried, part.box, encoding)
        tried.measure("compared with", str(encoding)[:200])
        if best is None or _weight(tried) < _weight(best):
            best = tried
    return best


def _taken(notes: Gathered, tried: Gathered) -> None:
    """Take over what was noted about a part."""
    for name in ("findings", "measured", "recovered", "notes", "probes", "not_probed"):
        target = getattr(notes, name)
        target.extend(item for item in getattr(tried, name) if item not in target)


def _weight(notes: Gathered) -> int:
    return sum({"defect": 100, "convention": 10, "naming": 2, "harmless": 1}[f.verdict] for f in notes.findings)


def _applied(notes: Gathered, model: Any, wanted: Expected) -> None:
    """The functions that apply cosines and sines, with those of the wanted encoding: pairing and sign."""
    rotary = [e for e in wanted.encodings if isinstance(e, Rotary)]
    if not rotary:
        return
    called = functions_called(model)
    found: dict[str, Gathered] = {}
    for name, function in apply_functions(model):
        if called is not None and name not in called:
            notes.skipped(name, "the model does not call it in a pass over tokens")
            continue
        best: Gathered | None = None
        for encoding in rotary:
            # the function sees the rotated channels alone, and any frequencies: plain ones, since a pair that turns
            # by whole turns from one position to the next would not be seen
            alone = Rotary(encoding.rotary_dim, interleaved=encoding.interleaved)
            tried = Gathered(where=name)
            try:
                box, words, _ = discover(function, hints_of(alone))
                examine(tried, box, alone)
            except PosencError as error:
                notes.skipped(name, str(error)[:120])
                break
            tried.measure("called as", words[:200])
            if best is None or _weight(tried) < _weight(best):
                best = tried
        if best is not None:
            best.findings = [_own(f) for f in best.findings if "frequency" not in f.title]
            if _pairing_is_assumed(wanted):
                best.findings = [f for f in best.findings if f.verdict != "convention" or f.kinds[0] != "layout"]
                notes.note(f"{name}: which channels are paired is measured only; the config's reading assumes it")
            found[name] = best
    fits = [name for name, each in found.items() if all(f.verdict == "harmless" for f in each.findings)]
    for name, each in found.items():
        if fits and name not in fits:
            notes.note(f"{name}: {each.findings[0].title}; {fits[0]} does as wanted, this one serves another part")
            each.findings = []
        _taken(notes, each)
        notes.ran("applying cosines and sines")


def _pairing_is_assumed(wanted: Expected) -> bool:
    return wanted.reading is not None and any(each.key == "pairs" for each in wanted.reading.assumed)


def _own(finding: Finding) -> Finding:
    """A rotation that runs backwards for queries and keys alike is another order of the channels of each pair: right
    with the model's own weights."""
    backwards = finding.verdict == "defect" and "runs backwards" in finding.title
    return finding.model_copy(update={"verdict": "convention"}) if backwards else finding
