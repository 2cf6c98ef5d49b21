"""Commands run as a user's shell runs them."""

from __future__ import annotations

import signal
import subprocess


def started(command, **options):
    """A process that an interrupt reaches, even where these tests run in the background, which ignores interrupts."""
    return subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options)
