"""A model against the positions that its own config says (or others): every part, then whole passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posenc.checker.boxes import CosSin
from posenc.checker.calling.discovering import discover
from posenc.checker.calling.hints import hints_of
from posenc.checker.examining.dispatch import examine
from posenc.checker.expecting import Expected, expected
from posenc.checker.gathering import Gathered
from posenc.checker.models.axes import check_axes
from posenc.checker.models.parts import Part, apply_functions, position_parts
from posenc.checker.models.passes import check_passes
from posenc.checker.models.tiny import library, random_model, tiny_config
from posenc.errors import PosencError, SubjectError, shown
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
    if wanted is None:
        config = model.config.to_dict()
        try:
            wanted = expected(config)
        except PosencError as error:
            notes.note(f"the config's positions: {error}")
            notes.ran("config")
            if probes and inside is None:
                check_passes(notes, model, relative=False)
            notes.blind = True
            return Expected((), "no position encoding")
        notes.assume("compared with what the model's own config says")
    seen = 0
    for part in position_parts(model):
        if inside is not None and not (
            part.where == inside or part.where.startswith(f"{inside} for ") or part.where.startswith(f"{inside}.")
        ):
            continue
        seen += _part(notes, part, wanted)
    if inside is not None and not seen:
        raise SubjectError(
            f"the model has a part with positions at {inside}", [p.where for p in position_parts(model)][:8]
        )
    if inside is None:
        _applied(notes, model, wanted)
        if not seen:
            notes.blind = True
            notes.note("no part of the model that carries positions was found by what it holds and takes")
        if probes:
            kinds = wanted.reading.positions.kinds if wanted.reading is not None else ()
            if any(not kind.encodings for kind in kinds) and not wanted.reading.positions.input:
                notes.skipped(
                    "passes", "the model has layers without positions of their own (recurrent, convolution or none)"
                )
                return wanted
            relative = all(e.relative for e in wanted.encodings) and not any(e.needs_length for e in wanted.encodings)
            check_passes(notes, model, relative=relative)
    return wanted


def _model(notes: Gathered, subject: Any) -> tuple[Any, str | None]:
    """The model, and the path of the module asked for."""
    if not isinstance(subject, str):
        return subject.eval(), None
    text, _, inside = subject.partition("#")
    if text.startswith("transformers:"):
        config = tiny_config(text.removeprefix("transformers:"))
        notes.assume(f"a tiny random {config.model_type}, weights drawn with seed 0")
    else:
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


def _part(notes: Gathered, part: Part, wanted: Expected) -> int:
    """Compare one part with the wanted encoding that fits it best; 1 if there was one."""
    right: dict[str, tuple[type, ...]] = {
        "rotary": (Rotary,),
        "table": (Learned, Sinusoidal),
        "buckets": (T5Bias,),
        "alibi": (Alibi,),
    }
    candidates: list[Any] = [e for e in wanted.encodings if isinstance(e, right[part.kind])]
    if part.kind == "buckets":
        candidates = [e for e in candidates if e.bidirectional == (part.slot == "encoder")] or candidates
    best: Gathered | None = None
    failures = []
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
    if best is None:
        notes.skipped(part.where, failures[0][:160] if failures else f"the config names no {part.kind}")
        return 0
    for name in ("findings", "measured", "recovered", "notes", "probes", "not_probed"):
        target = getattr(notes, name)
        target.extend(item for item in getattr(best, name) if item not in target)
    return 1


def _weight(notes: Gathered) -> int:
    return sum({"defect": 100, "convention": 10, "naming": 2, "harmless": 1}[f.verdict] for f in notes.findings)


def _applied(notes: Gathered, model: Any, wanted: Expected) -> None:
    """The functions that apply cosines and sines, with those of the wanted encoding: pairing and sign."""
    rotary = [e for e in wanted.encodings if isinstance(e, Rotary)]
    if not rotary:
        return
    for name, function in apply_functions(model):
        best: Gathered | None = None
        for encoding in rotary:
            whole = encoding.replace(axes=None) if encoding.axes is not None else encoding
            # the function sees the rotated channels alone: cut the head to them, scaling is in cos and sin already
            alone = whole.replace(head_dim=whole.rotary_dim, where="first")
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
            for finding in best.findings:
                if "frequency" not in finding.title:
                    notes.findings.append(finding)
            notes.measured.extend(best.measured)
            notes.ran("applying cosines and sines")
