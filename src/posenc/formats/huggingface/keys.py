"""A config that remembers which of its keys were read, and which defaults stood in for missing ones."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from posenc.errors import FormatError, shown
from posenc.records import Assumption, UnreadKey

POSITION_WORDS = re.compile(
    r"rope|rotary|rot(ate)?_|pos(ition|itions|itional)?(_|$)|_pos(_|$)|position|alibi|relative|theta|mscale|yarn|ntk|"
    r"sliding|window|chunk_attention|attention_chunk|seq_len|seq_length|max_.*len|n_ctx|n_positions|bucket|"
    r"temperature_tuning|floor_scale|attn_scale|scaling|xpos|sinusoid|layer_types|context_len|attn_type|"
    r"attention_type|attn_layer|block_type|(attention|layer|hybrid.*)_pattern",
    re.IGNORECASE,
)
"""Key names that speak of positions; one of these that nothing consumed is reported."""

OTHER_WORDS = re.compile(r"^(mtp_)?(mlp_layer_types|routed_scaling_factor|logits_scaling|residual_scaling)$|^mtp_")
"""Names that only look like it: kinds of feed-forward layers, factors on experts and logits, prediction heads."""

REQUIRED: Any = object()

MAX_NUMBERS = 2**16
"""Far more than a head has pairs or a model has layers; each is checked, which takes a third of a second for all."""


class Keys:
    """Typed, tracked access to a JSON object.

    Args:
        data: the object.
        path: dotted path of the object inside the whole config, for messages.
        parent: tracker to share; None starts a new one.
    """

    def __init__(self, data: Mapping[str, Any], path: str = "", parent: Keys | None = None) -> None:
        self.data = data
        self.path = path
        self.read: set[str] = set() if parent is None else parent.read
        self.assumed: dict[str, Assumption] = {} if parent is None else parent.assumed
        self.faults: list[str] = [] if parent is None else parent.faults
        self.notes: list[str] = [] if parent is None else parent.notes

    def __contains__(self, name: str) -> bool:
        return self.data.get(name) is not None

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def raw(self, *names: str) -> Any:
        """The first of these keys that is present and not null, marked as read; None if none is.

        A later one that says something else was not followed: it stays unread, and so is reported.
        """
        found = None
        for name in names:
            if name not in self.data:
                continue
            value = self.data[name]
            if found is None or value is None or value == found:
                self.read.add(self.at(name))
            found = value if found is None else found
        return found

    def spelt(self, *names: str) -> str:
        """The path of the first of these keys that is present and not null, for messages; else of the first."""
        return self.at(next((name for name in names if name in self), names[0]))

    def number(self, *names: str, default: Any = REQUIRED, why: str = "", integer: bool = False) -> Any:
        """A finite number under the first of these keys that is present.

        Args:
            names: the key and its aliases, by precedence.
            default: what to assume when all are missing or null; without one, missing is an error. A default of None
                is not reported as an assumption.
            why: whose default it is.
            integer: only whole numbers; they come back as int.

        Raises:
            FormatError: missing without default, not a number, NaN or infinite.
        """
        value = self.raw(*names)
        if value is None:
            return self._default(names[0], default, why)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or (isinstance(value, float) and not math.isfinite(value)) or abs(value) > 1e300:
            raise FormatError(f"{self.spelt(*names)} is a finite number", value)
        if integer and value != int(value):
            raise FormatError(f"{self.spelt(*names)} is a whole number", value)
        return int(value) if integer else float(value)

    def integer(self, *names: str, default: Any = REQUIRED, why: str = "") -> Any:
        """A whole number; see :meth:`number`."""
        return self.number(*names, default=default, why=why, integer=True)

    def flag(self, *names: str, default: Any = REQUIRED, why: str = "") -> Any:
        """A boolean; see :meth:`number`."""
        value = self.raw(*names)
        if value is None:
            return self._default(names[0], default, why)
        if not isinstance(value, bool):
            raise FormatError(f"{self.spelt(*names)} is true or false", value)
        return value

    def text(self, *names: str, default: Any = REQUIRED, why: str = "") -> Any:
        """A string; see :meth:`number`."""
        value = self.raw(*names)
        if value is None:
            return self._default(names[0], default, why)
        if not isinstance(value, str):
            raise FormatError(f"{self.spelt(*names)} is a string", value)
        return value

    def numbers(self, *names: str, default: Any = REQUIRED, why: str = "", integer: bool = False) -> Any:
        """A list of finite numbers as a tuple; see :meth:`number`."""
        value = self.raw(*names)
        if value is None:
            return self._default(names[0], default, why)
        if not isinstance(value, list | tuple):
            raise FormatError(f"{self.spelt(*names)} is a list of numbers", value)
        if len(value) > MAX_NUMBERS:
            raise FormatError(f"{self.spelt(*names)} has at most {MAX_NUMBERS} numbers", len(value))
        inner = Keys({str(i): v for i, v in enumerate(value)}, self.spelt(*names))
        return tuple(inner.number(str(i), integer=integer) for i in range(len(value)))

    def texts(self, *names: str, default: Any = REQUIRED, why: str = "") -> Any:
        """A list of strings as a tuple; see :meth:`number`."""
        value = self.raw(*names)
        if value is None:
            return self._default(names[0], default, why)
        if not isinstance(value, list | tuple) or len(value) > 2**16 or not all(isinstance(v, str) for v in value):
            raise FormatError(f"{self.spelt(*names)} is a list of strings", value)
        return tuple(value)

    def section(self, *names: str) -> Keys | None:
        """A nested object under the first of these keys, sharing this tracker; None if there is none."""
        for name in names:
            value = self.raw(name)
            if value is None:
                continue
            if not isinstance(value, Mapping):
                raise FormatError(f"{self.at(name)} is an object", value)
            return Keys(value, self.at(name), self)
        return None

    def assume(self, key: str, value: Any, why: str) -> None:
        """Report that a missing key was filled in."""
        self.assumed.setdefault(self.at(key), Assumption(key=self.at(key), value=shown(value), why=why))

    def _default(self, name: str, default: Any, why: str) -> Any:
        if default is REQUIRED:
            raise FormatError(f"{self.at(name)} is missing", remedy="Nothing is assumed in its place.")
        if default is not None:
            self.assume(name, default, why or "default")
        return default

    def unread(self) -> tuple[UnreadKey, ...]:
        """Keys that speak of positions and that nothing read, in this object and the objects in it."""
        return tuple(UnreadKey(key=k, value=shown(v, 80)) for k, v in self._leaves(self.data, self.path, 0))

    def _leaves(self, data: Mapping[str, Any], path: str, depth: int) -> list[tuple[str, Any]]:
        found = []
        for name, value in data.items():
            key = f"{path}.{name}" if path else str(name)
            if isinstance(value, Mapping) and depth < 8:
                inside = key in self.read or POSITION_WORDS.search(str(name)) is not None
                leaves = self._leaves(value, key, depth + 1)
                if inside and key not in self.read and not any(k.startswith(f"{key}.") for k in self.read):
                    found.append((key, value))
                else:
                    found += leaves
            elif key not in self.read and value is not None and self._speaks_of_positions(key):
                found.append((key, value))
        return found

    def _speaks_of_positions(self, key: str) -> bool:
        """A key inside a rope block speaks of positions whatever it is called."""
        return any(POSITION_WORDS.search(part) and not OTHER_WORDS.search(part) for part in key.split("."))
