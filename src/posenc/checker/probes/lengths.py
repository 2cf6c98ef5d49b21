"""The end of a table: rows at the longest admitted position, and what happens beyond the last one."""

from __future__ import annotations

import numpy as np

from posenc.checker.boxes import CosSin, Rows, Turning
from posenc.checker.calling.caller import Misshapen, why
from posenc.checker.gathering import Gathered
from posenc.checker.probes.again import asked
from posenc.checker.probes.registry import Probed, probe
from posenc.errors import PosencError
from posenc.records.finding import Evidence, FirstWrong, Recovered
from posenc.spec import Learned


@probe("the last row", Turning, CosSin, Rows)
def last_row(notes: Gathered, p: Probed) -> str | None:
    """Row ``served - 1`` exists; a position beyond the last row is refused or right, never a shorter result."""
    check_end(notes, p.box, p.served, p.encoding)
    return None


def check_end(notes: Gathered, box: Turning | CosSin | Rows, served: int | None, encoding: object) -> None:
    """See :func:`last_row`; for arrays too."""
    largest = box.largest
    if largest is None:
        return
    rows = largest + 1
    notes.measure("rows of the table", rows)
    beyond = np.array([0.0, float(largest + 1)]) if getattr(box, "free", True) else np.array([float(largest + 1)])
    try:
        asked(box, beyond)
    except Misshapen as error:
        notes.found(
            "defect",
            ("table-length",),
            f"beyond its {rows} rows the subject answers with another shape in place of an error",
            evidence=[
                Evidence(
                    name="result for one row too many",
                    expected="an error or the right row",
                    seen=why(error, 150),
                    where=f"position {rows}",
                )
            ],
            first=FirstWrong(position=float(rows)),
            cause="a short table is sliced or broadcast without a check",
            like="table-too",
            recovered=[Recovered(name="rows of the table", value=rows)],
        )
    except PosencError as error:
        notes.note(f"position {rows} is refused: {why(error, 120)}")
    if served is not None and rows < served and not isinstance(encoding, Learned):
        notes.found(
            "defect",
            ("table-length",),
            f"the table has {rows} rows and positions to {served - 1} are admitted",
            evidence=[Evidence(name="rows", expected=served, seen=rows)],
            first=FirstWrong(position=float(rows)),
            cause="the length of the table is not that of the admitted context",
            like="table-too",
            recovered=[Recovered(name="rows of the table", value=rows, expected=served)],
        )
