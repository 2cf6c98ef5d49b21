"""The child process of :mod:`posenc.checker.running`: one request on stdin, one report in a file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> int:
    """Answer the request; everything the subject prints goes nowhere."""
    request = json.loads(sys.stdin.buffer.read())
    from posenc.checker.checking import check

    report = check(
        request["subject"], request["expect"], **{k: v for k, v in request["options"].items() if v is not None}
    )
    answer = Path(request["answer"])
    beside = answer.with_suffix(".part")
    beside.write_text(report.model_dump_json(), encoding="utf-8")
    os.replace(beside, answer)
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads and exit handlers of a subject must not keep the process alive
