"""Enums, as classes of Python's `enum`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from onetrip import adapt
from onetrip._base.adapting import adapters_of
from onetrip.errors import DataError
from onetrip.types.info import TypeInfo, checked, register_binary, register_loader

if TYPE_CHECKING:
    from onetrip.types.info import Context


class EnumInfo(TypeInfo):
    """An enum with its labels."""

    _more = "SELECT enumlabel FROM pg_catalog.pg_enum WHERE enumtypid = %s ORDER BY enumsortorder"

    def __init__(
        self,
        name: str,
        oid: int,
        array_oid: int,
        labels: Sequence[str] = (),
        *,
        regtype: str = "",
        delimiter: str = ",",
    ) -> None:
        super().__init__(name, oid, array_oid, regtype=regtype, delimiter=delimiter)
        self.labels = list(labels)
        self.enum: type[Enum] | None = None

    @classmethod
    def _details(cls, more: list[Any]) -> dict[str, Any]:
        return {"labels": [label for (label,) in more]}


def register_enum(
    info: EnumInfo,
    context: Context = None,
    enum: type[Enum] | None = None,
    *,
    mapping: Mapping[Any, str] | Sequence[tuple[Any, str]] | None = None,
) -> None:
    """Makes values of an enum members of a class, on a connection or on all; without a class, of one that is made of
    the labels. `mapping` says which labels stand for members with other names; it needs only those."""
    checked(info, "enum")
    kind: Any = enum
    if kind is None:
        make: Any = Enum
        kind = make(info.name.title(), {label: label for label in info.labels}, module=__name__)
    info.enum = kind
    labels = {member: member.name for member in kind}
    members = {label: kind[label] for label in info.labels if label in kind.__members__}
    if issubclass(kind, str):
        # Where no name fits, the text that the member is.
        for member in kind:
            if member.name not in info.labels and member.value in info.labels:
                labels[member] = member.value
                members.setdefault(member.value, member)
    pairs = mapping.items() if isinstance(mapping, Mapping) else mapping or ()
    for member, label in pairs:
        labels[member] = label
        members[label] = member

    def load(text: str) -> Any:
        try:
            return members[text]
        except KeyError:
            raise DataError(f"{kind.__name__} has no member for {text!r}") from None

    register_loader(context, info.oid, load)
    info.register(context)
    register_loader(context, info.array_oid, info._array(load))
    adapters = adapters_of(context)
    register_binary(context, info, lambda data: load(data.decode(adapters._encoding())))
    adapters.register_dumper(kind, lambda value: (info.oid, labels[value]))


adapt._DUMPERS[Enum] = lambda value: (0, value.name)
