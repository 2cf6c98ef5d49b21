"""Hub ids: the local cache first, then the config alone, fetched if ``huggingface_hub`` is installed and online."""

from __future__ import annotations

import os
import re
from pathlib import Path

from posenc.errors import FormatError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
TRUE = ("1", "true", "yes", "on")


def is_hub_id(text: str) -> bool:
    """Whether ``text`` is written like a hub id.

    >>> is_hub_id("meta-llama/Llama-3.1-8B"), is_hub_id("llama"), is_hub_id("../x")
    (True, False, False)
    """
    return HUB_ID.fullmatch(text) is not None and ".." not in text


def cache_folder() -> Path:
    """Where ``huggingface_hub`` keeps its cache, by the same environment variables."""
    explicit = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if explicit:
        return Path(explicit).expanduser()
    home = os.environ.get("HF_HOME")
    if home:
        return Path(home).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface" / "hub"


def cached(hub_id: str, name: str = "config.json") -> Path | None:
    """The file in the local cache: of the main revision, else of the newest snapshot that has it."""
    folder = cache_folder() / f"models--{hub_id.replace('/', '--')}"
    try:
        main = (folder / "refs" / "main").read_text("ascii").strip()[:64]
        if re.fullmatch(r"[0-9a-f]+", main) and (folder / "snapshots" / main / name).is_file():
            return folder / "snapshots" / main / name
    except (OSError, ValueError):
        pass
    try:
        found = [p for p in folder.glob(f"snapshots/*/{name}") if p.is_file()]
        return max(found, key=lambda p: p.stat().st_mtime, default=None)
    except OSError:
        return None


def config_file(hub_id: str) -> Path:
    """The config of a hub id, from the cache or fetched.

    Raises:
        FormatError: not in the cache and offline, ``huggingface_hub`` missing, or no such model.
    """
    found = cached(hub_id)
    if found is not None:
        return found
    rule = "the config of a hub id is in the local cache or can be fetched"
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in TRUE:
        raise FormatError(rule, f"{hub_id}: not in {cache_folder()}, and HF_HUB_OFFLINE is set")
    try:
        from huggingface_hub import constants, hf_hub_download
        from huggingface_hub.utils import get_session  # type: ignore[attr-defined]
    except ImportError:
        raise FormatError(
            rule, f"{hub_id}: not in {cache_folder()}", "`pip install posenc[hub]` lets posenc fetch configs."
        ) from None
    try:
        get_session().head(constants.ENDPOINT, timeout=3)  # without it the library retries for 20 s when offline
    except Exception as error:
        seen = f"{hub_id}: not in {cache_folder()}, and {constants.ENDPOINT} cannot be reached ({type(error).__name__})"
        raise FormatError(rule, seen, "`posenc models` lists what is known offline.") from None
    try:
        return Path(hf_hub_download(hub_id, "config.json", etag_timeout=5))
    except Exception as error:  # the library raises errors of its own, of its client and of the system
        lines = str(error).strip().splitlines() or [""]
        raise FormatError(rule, f"{hub_id}: {type(error).__name__}: {lines[0][:120]}") from None
