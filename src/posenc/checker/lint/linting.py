"""One call from a config, a GGUF file or a model folder to a report."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from posenc.analysis.wording import abridged
from posenc.checker.apart import apart, in_words
from posenc.checker.lint import conflicts, lengths, numbers, shapes, unread  # noqa: F401 - each registers its rules
from posenc.checker.lint.reading_engines import engine_findings, unclaimed
from posenc.checker.lint.register import RULES, Settings, links, run, settings_of
from posenc.checker.lint.stored_rows import Stored, row_findings, stored_rows
from posenc.checker.lint.stored_rows import in_words as in_one_line
from posenc.errors import PosencError
from posenc.formats.json_config import load_object
from posenc.records import Reading
from posenc.records.finding import Candidate, CheckReport, Evidence, Finding, Measured, ordered
from posenc.spec import notation

LONGEST = 300
ROWS = "order of stored rows"


def is_settings(subject: Any) -> bool:
    """Whether a subject is settings without code: a config, a GGUF file, a model folder, a name of the catalogue.

    >>> is_settings({"model_type": "llama"}), is_settings("model.gguf"), is_settings("module:attr")
    (True, True, False)
    """
    if isinstance(subject, Mapping):
        return True
    if not isinstance(subject, str | os.PathLike):
        return False
    text = os.fspath(subject)
    if text.endswith((".json", ".gguf")):
        return True
    try:
        path = Path(text).expanduser()
        if path.is_dir():
            known = any((path / name).is_file() for name in ("config.json", "params.json"))
            return known or next(path.glob("*.gguf"), None) is not None
        if ":" in text or path.exists():
            return False
    except (OSError, ValueError, RuntimeError):
        return False
    from posenc.formats import catalogue

    try:
        return catalogue.lookup(text) is not None
    except PosencError:
        return False


def lint(subject: Any, expect: Any = None, *, engines: bool = True) -> CheckReport:
    """Examine settings without code.

    Args:
        subject: a config as a dict; a ``config.json``, a ``.gguf`` file, a model folder; a name of the catalogue.
        expect: what it should be: anything :func:`posenc.read` takes.
        engines: also say how engines would read it differently.

    Returns:
        a report; what cannot be opened at all is its ``could_not_run``.

    Raises:
        PosencError: ``expect`` cannot be read.

    >>> report = lint({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1,
    ...                "max_position_embeddings": 8192, "rope_theta": 1e4,
    ...                "rope_scaling": {"rope_type": "linear", "factor": 0.5}})
    >>> [(f.verdict, f.where) for f in report.findings]
    [('defect', 'linear')]
    """
    from posenc.formats.sources import read

    start = time.perf_counter()
    wanted = None if expect is None else read(expect)
    expected = None if wanted is None else in_words(wanted, LONGEST)
    title = _title(subject)
    try:
        at = _settings(subject, title)
    except PosencError as error:
        return CheckReport(subject=title, expected=expected, could_not_run=str(error))
    findings = list(run(at))
    if at.error is not None and not any(f.verdict == "defect" for f in findings):
        findings.append(_unreadable(at.error))
    if wanted is not None and at.reading is not None:
        findings += _against(wanted, at.reading)
    rows = _rows_of(subject, at.reading)
    if at.reading is not None:
        findings += row_findings(rows if isinstance(rows, Stored) else None, at.reading, wanted)
    if engines:
        findings += engine_findings(at)
    done = ordered(findings)
    notes = (*_notes(at), *(unclaimed(at) if engines else ()))
    return CheckReport(
        subject=title,
        expected=expected,
        assumed=tuple(f"{a.key} = {a.value} ({a.why})" for a in (at.reading.assumed if at.reading else ())),
        identified=_identified(at.reading),
        findings=done,
        acquitted=not any(f.verdict == "defect" for f in done),
        measured=_measured(at.reading),
        probes=(*RULES, *([ROWS] if isinstance(rows, Stored) else [])),
        not_probed=(
            *(() if at.config is not None else ("rules about the keys of a config: this is a GGUF file",)),
            *([f"{ROWS}: {rows}"] if isinstance(rows, str) else []),
        ),
        notes=(*notes, *([in_one_line(rows)] if isinstance(rows, Stored) else [])),
        seconds=time.perf_counter() - start,
    )


def _rows_of(subject: Any, reading: Reading | None) -> Stored | str | None:
    """The pairing of stored rows, or why it is not measured; None for settings that come without weights."""
    if reading is None or not isinstance(subject, str | os.PathLike):
        return None
    path = Path(subject).expanduser()
    weights = path.is_dir() and any(next(path.glob(p), None) for p in ("*.gguf", "*.safetensors"))
    if not weights and not (path.is_file() and _is_gguf(path)):
        return None
    return stored_rows(path, reading)


def _title(subject: Any) -> str:
    if isinstance(subject, Mapping):
        return str(subject.get("_name_or_path") or "config")[:LONGEST]
    return str(subject)[:LONGEST]


def _settings(subject: Any, title: str) -> Settings:
    """The config and its reading, or the reading of a GGUF file.

    Raises:
        PosencError: there is nothing to read.
    """
    if isinstance(subject, Mapping):
        return settings_of(dict(subject), title)
    text = os.fspath(subject)
    path = Path(text).expanduser()
    if path.is_dir() and (path / "config.json").is_file():
        return settings_of(load_object(path / "config.json"), title)
    if path.is_file() and not _is_gguf(path):
        return settings_of(load_object(path), title)
    if not path.exists():
        from posenc.formats import catalogue

        row = catalogue.lookup(text)
        if row is not None and row.config is not None:
            return settings_of(dict(row.config), title)
    from posenc.formats.sources import read

    return Settings(title, None, read(subject))


def _is_gguf(path: Path) -> bool:
    if path.suffix == ".gguf":
        return True
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


def _measured(reading: Reading | None) -> tuple[Measured, ...]:
    if reading is None:
        return ()
    found = [Measured(name="model type", value=reading.model_type)]
    for part in reading.parts:
        for i, kind in enumerate(part.positions.kinds):
            text = abridged(" + ".join(notation(e) for e in kind.encodings)) or "none"
            count = len(part.positions.layers_of(i))
            found.append(Measured(name=f"{part.name}, {kind.name} ({count} layers)", value=text[:LONGEST]))
        for encoding in part.positions.input:
            found.append(Measured(name=f"{part.name}, input", value=abridged(notation(encoding))[:LONGEST]))
    return tuple(found)


def _identified(reading: Reading | None) -> tuple[Candidate, ...]:
    if reading is None:
        return ()
    layers = [m.name for m in _measured(reading)[1:]]
    remark = f"{reading.model_type}: {'; '.join(layers)}"
    return (Candidate(notation=in_words(reading, LONGEST), confidence="as the settings state", remark=remark),)


def _notes(at: Settings) -> tuple[str, ...]:
    if at.reading is None:
        return ()
    told = {f"not read: {u.key} = {u.value}": None for u in at.reading.unread if u.key not in at.explained}
    return (*at.reading.notes, *told)


def _unreadable(error: PosencError) -> Finding:
    evidence = () if error.seen is None else (Evidence(name="seen", seen=error.seen),)
    return Finding(
        verdict="defect",
        kinds=("config-parsing",),
        title=f"the config cannot be read: {error.rule}",
        evidence=evidence,
        remedy=error.remedy or "See the rule in the title.",
    )


def _against(wanted: Reading, seen: Reading) -> list[Finding]:
    """What differs from the wanted encoding."""
    both = apart(wanted, seen)
    if both is None:
        return []
    return [
        Finding(
            verdict="defect",
            kinds=("scaling-parameters", "config-parsing"),
            title="the settings do not give the wanted encoding",
            evidence=both.evidence("wanted", "these settings"),
            links=links("theta-wrong-value", "scaling-llama32-factor"),
            remedy="Compare the two notations; `posenc diff` lists every difference.",
        )
    ]
