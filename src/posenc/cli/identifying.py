"""``posenc identify``: which encoding a subject follows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from posenc.cli.checking import CALL, HTML, LAYOUT, LIBRARY, SUBJECT, TIMEOUT, examined, put
from posenc.cli.output import JSON


def identify(
    subject: Annotated[str, SUBJECT],
    call: Annotated[str | None, CALL] = None,
    layout: Annotated[str | None, LAYOUT] = None,
    library: Annotated[str | None, LIBRARY] = None,
    timeout: Annotated[float, TIMEOUT] = 120.0,
    json: Annotated[bool, JSON] = False,
    html: Annotated[Path | None, HTML] = None,
) -> None:
    """Say which encoding a subject follows, with residual and confidence, or what was recovered of it.

    Exit code 2 if it could not be examined.
    """
    record = examined(subject, None, timeout, {"call": call, "layout": layout, "library": library})
    put(record, json=json, junit=None, html=html)
    raise typer.Exit(0 if record.could_not_run is None else 2)
