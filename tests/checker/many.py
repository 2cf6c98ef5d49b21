"""Many generated implementations: right ones must have no defect, broken ones must be named. Prints every failure.

python tests/checker/many.py right 1000 [first seed]
python tests/checker/many.py broken 500 [first seed]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checker.generated import Made, case


def judged(made: Made) -> tuple[str | None, object]:
    """What is wrong with the checker's answer, or None; and the report."""
    from posenc.checker.checking import check

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = check(made.subject, made.expect, **made.options)
    if report.could_not_run:
        return f"could not run: {report.could_not_run}", report
    if not made.kinds:
        defects = [f.title for f in report.findings if f.verdict == "defect"]
        return (f"false alarm: {defects}", report) if defects else (None, report)
    serious = [f for f in report.findings if f.verdict in ("defect", "convention")]
    if not any(set(made.kinds) & set(f.kinds) for f in serious):
        return f"kind not among {[f.kinds for f in report.findings]}", report
    if made.parameter is not None:
        name, value = made.parameter
        found = [r.value for f in report.findings for r in f.recovered if r.name == name]
        if not found:
            return f"{name} not recovered: {[(r.name, r.value) for f in report.findings for r in f.recovered]}", report
        if not any(isinstance(v, int | float) and abs(v - value) <= 0.01 * abs(value) + 1e-9 for v in found):
            return f"{name} is {found} in place of {value}", report
    return None, report


def main(mode: str, count: int, first: int) -> int:
    start, failures, tally = time.time(), 0, Counter()
    for seed in range(first, first + count):
        made = case(seed, right=mode == "right")
        problem, _ = judged(made)
        tally[made.convention] += 1
        if problem:
            failures += 1
            print(f"{seed} [{made.fault}; {made.convention}] {made.expect}\n    {problem}", flush=True)
    print(f"{count} {mode}: {failures} failures, {time.time() - start:.0f} s, {dict(tally)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1000))
