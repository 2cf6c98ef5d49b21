"""A run over all subjects of a pattern, by several processes, taken up where a former one was ended."""

from __future__ import annotations

import datetime
import queue
import threading
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from posenc.checker.corpus.kept import Kept
from posenc.checker.corpus.outcomes import outcome_of
from posenc.checker.corpus.subjects import subjects
from posenc.checker.corpus.workers import Worker
from posenc.errors import SubjectError
from posenc.records.corpus import CorpusReport, Examined
from posenc.records.finding import CheckReport

DECIDING = ("posenc", "transformers", "torch")
"""Packages whose versions decide about a result."""
PATIENCE = 60.0
"""Seconds for one subject."""


def run(
    pattern: str,
    *,
    workers: int = 2,
    timeout: float = PATIENCE,
    records: Path | None = None,
    probes: bool = True,
    told: Callable[[Examined, int, int], None] = lambda each, done, of: None,
) -> CorpusReport:
    """Check every model type that a pattern names.

    Args:
        pattern: such as ``transformers:qwen*``.
        workers: processes at a time.
        timeout: seconds for one subject.
        records: a file of finished subjects, made and appended to; those with the same versions are not run again,
            except what timed out with less time than now.
        probes: run whole passes too.
        told: called with each subject as it is finished, how many are done and how many there are.

    Returns:
        The record of all subjects.

    Raises:
        SubjectError: the pattern matches nothing, or transformers is not installed.
        FormatError: the file of finished subjects is another file, or cannot be written.
        KeyboardInterrupt: processes are ended; what was finished is in the file.
    """
    if not 1 <= workers <= 64:
        raise SubjectError("a run has 1 to 64 workers", workers)
    if not 0 < timeout < 86400:
        raise SubjectError("a timeout is between 0 and 86400 seconds", timeout)
    start = time.perf_counter()
    names = subjects(pattern)
    versions = {name: metadata.version(name) for name in DECIDING}
    kept = Kept(records)
    done = {
        name: each
        for name in names
        if (each := kept.done.get(name)) is not None
        and each.versions == versions
        and not (each.reason == "timed out" and each.timeout < timeout)
    }
    former = len(done)
    for each in _examined([n for n in names if n not in done], workers, timeout, probes, versions):
        kept.add(each)
        done[each.name] = each
        told(each, len(done), len(names))
    return CorpusReport(
        pattern=pattern,
        date=datetime.date.today().isoformat(),
        versions=versions,
        subjects=tuple(done[name] for name in names),
        kept=former,
        seconds=round(time.perf_counter() - start, 1),
    )


def _examined(
    names: list[str], workers: int, timeout: float, probes: bool, versions: dict[str, str]
) -> Iterator[Examined]:
    """Subjects as they are finished; processes are ended when the caller stops."""
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        todo.put(name)
    finished: queue.SimpleQueue[tuple[str, CheckReport]] = queue.SimpleQueue()
    crew = [Worker(probes) for _ in range(min(workers, len(names)))]

    def serve(worker: Worker) -> None:
        while not worker.closed:
            try:
                name = todo.get_nowait()
            except queue.Empty:
                break
            finished.put((name, worker.examine(name, timeout)))
        worker.stop()

    threads = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in crew]
    try:
        for thread in threads:
            thread.start()
        for _ in names:
            name, report = finished.get()
            outcome, reason = outcome_of(report)
            yield Examined(name=name, outcome=outcome, reason=reason, versions=versions, timeout=timeout, report=report)
    finally:
        for worker in crew:
            worker.close()
        for thread in threads:
            thread.join(timeout=5)
