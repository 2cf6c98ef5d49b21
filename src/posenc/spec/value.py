"""The base of every value: frozen, strict, complete, and honest about what is wrong.

A value is validated when it is made and never again changes. Booleans are not numbers, lists are not tuples, NaN and
infinities do not exist, unknown keys are refused. ``replace`` makes a changed copy, which is validated again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic._internal._model_construction import ModelMetaclass

from posenc.errors import SpecError

Width = Annotated[int, Field(gt=0, le=2**20)]
"""A number of channels, pairs, heads or buckets."""

Length = Annotated[int, Field(gt=0, le=2**48)]
"""A number of positions."""

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]


class _Constructor(ModelMetaclass):
    """Lets a call give the first field by position and others flat, and turns pydantic's report into a SpecError.

    It acts on calls only: values nested in JSON are validated by pydantic itself, strictly.
    """

    def __call__(cls, *first: Any, **fields: Any) -> Any:  # noqa: N805 - cls is the class being called
        owner: Any = cls
        try:
            return super().__call__(**owner._unflattened(owner._named(first, fields)))
        except ValidationError as error:
            raise as_spec_error(error, owner) from None


class Value(BaseModel, metaclass=_Constructor):
    """A frozen, strictly validated value with a ``kind``; the first field may be given by position.

    Raises:
        SpecError: a field is missing, unknown, of the wrong type or breaks a rule of the mathematics.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        strict=True,
        defer_build=True,
        populate_by_name=True,
        serialize_by_alias=True,
        hide_input_in_errors=True,
    )

    if TYPE_CHECKING:  # what the constructor above accepts

        def __init__(self, *first: Any, **fields: Any) -> None: ...

    flat: ClassVar[str | None] = None
    """Name of the field whose default member's own fields may be written directly (``base=`` for ``schedule``)."""

    cites: ClassVar[tuple[str, ...]] = ()
    """Keys of the references that define this value."""

    @classmethod
    def first_field(cls) -> str | None:
        """Name of the field that may be given by position."""
        return next((name for name in cls.model_fields if name != "kind"), None)

    @classmethod
    def _named(cls, first: tuple[Any, ...], fields: dict[str, Any]) -> dict[str, Any]:
        if not first:
            return fields
        name = cls.first_field()
        if len(first) > 1 or name is None or name in fields:
            raise SpecError(
                f"{cls.__name__} takes {'one field' if name else 'no field'} by position", first, "Name the others."
            )
        return {name: first[0], **fields}

    @classmethod
    def _unflattened(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Gather the flat fields (``base=5e5``) into the nested member they belong to."""
        if cls.flat is None:
            return fields
        member = type(cls.model_fields[cls.flat].get_default(call_default_factory=True))
        nested = {k: v for k, v in fields.items() if k in member.model_fields and k not in cls.model_fields}
        if not nested:
            return fields
        if cls.flat in fields:
            raise SpecError(
                f"{cls.__name__} takes either {cls.flat} or its flat fields",
                sorted(nested),
                f"Put them inside {cls.flat}.",
            )
        return {**{k: v for k, v in fields.items() if k not in nested}, cls.flat: member(**nested)}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with ``changes``, validated again; flat fields are changed inside their member.

        >>> from posenc.spec import Rotary
        >>> Rotary(64).replace(base=5e5).schedule.base
        500000.0
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        if self.flat is not None:
            member = fields[self.flat]
            nested = {k: v for k, v in changes.items() if k not in fields and k in type(member).model_fields}
            if nested:
                changes = {k: v for k, v in changes.items() if k not in nested}
                changes[self.flat] = member.replace(**nested)
        return type(self)(**{**fields, **changes})

    def model_copy(self, *, update: Any = None, deep: bool = False) -> Self:
        """Return a validated copy; unlike pydantic's own, an update is checked."""
        return self.replace(**dict(update or {}))

    def __str__(self) -> str:
        from posenc.spec.notation import notation

        return notation(self)


def as_spec_error(error: ValidationError, owner: type[BaseModel] | str) -> SpecError:
    """Turn pydantic's report into one line: the first rule broken, where, and what was seen."""
    first = error.errors(include_url=False)[0]
    name = owner if isinstance(owner, str) else owner.__name__
    where = ".".join(str(part) for part in first["loc"])
    context = first.get("ctx", {}).get("error")
    if isinstance(context, SpecError):  # the rule was written by us: keep its words
        return context if not where else SpecError(f"{where}: {context.rule}", context.seen, context.remedy)
    rule = first["msg"].removeprefix("Value error, ").removeprefix("Input should ")
    subject = f"{name}.{where}" if where else name
    if first["type"] == "missing":
        return SpecError(f"{subject} is missing")
    if first["type"] == "extra_forbidden":
        known = ", ".join(_fields(owner))
        return SpecError(f"{subject} is not a field", remedy=f"Known fields: {known}." if known else None)
    return SpecError(f"{subject} should {rule}", _brief(first["input"]))


def _fields(owner: type[BaseModel] | str) -> list[str]:
    """Names a call may use: the fields, and those of the default member that may be written flat."""
    if isinstance(owner, str):
        return []
    flat = getattr(owner, "flat", None)
    member = [] if flat is None else _fields(type(owner.model_fields[flat].get_default(call_default_factory=True)))
    return [name for name in owner.model_fields if name != "kind"] + [n for n in member if n not in owner.model_fields]


def _brief(value: Any) -> str:
    """Describe an offending input without printing a whole structure."""
    if isinstance(value, dict | list | tuple) and len(value) > 8:
        return f"a {type(value).__name__} of {len(value)} items"
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"
