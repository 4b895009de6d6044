"""Query strings: read into a struct by its declaration; what is unknown, double or unreadable is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from jobman.control.refusals import Refusal

T = TypeVar("T")
_MOST = 200

Limit = Annotated[int, msgspec.Meta(ge=1, le=1000, description="The most items of one page.")]
Moment = Annotated[float, msgspec.Meta(ge=0, le=1e11, description="Seconds since 1970.")]
Cursor = Annotated[str, msgspec.Meta(max_length=500, description="From the page before.")]
Text = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\u0000]*$")]


class Query(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a request."""


class Paged(Query, kw_only=True):
    """The parameters of a list that is given in pages."""

    limit: Limit = 100
    cursor: Cursor | None = None


def parse_query(query: bytes) -> dict[str, list[str]]:
    """Values by name, in order."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST, errors="strict"
        )
    except (UnicodeDecodeError, ValueError):
        raise Refusal("bad-request", "The parameters of the request cannot be read.") from None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


def decoder_of(query: type[T]) -> Callable[[dict[str, list[str]]], T]:
    """What reads values into this struct."""
    fields = msgspec.structs.fields(query)  # type: ignore[arg-type]
    lists = {field.name for field in fields if "list" in str(field.type)}
    texts = {field.name for field in fields if "str" in str(field.type)}
    known = ", ".join(field.name for field in fields)

    def decode(values: dict[str, list[str]]) -> T:
        given = {name: _one(name, value, name in lists) for name, value in values.items()}
        for name in given.keys() - lists - texts:
            # Where a value may be left out, msgspec would take this word for its absence.
            if given[name].lower() == "null":
                raise Refusal("bad-request", f"{name} cannot be null.", "Leave it out.")
        try:
            return msgspec.convert(given, query, strict=False)
        except msgspec.ValidationError as error:
            raise Refusal("bad-request", f"A parameter is wrong: {error}.", f"Known are {known}.") from None

    return decode


def _one(name: str, values: list[str], is_list: bool) -> Any:
    if is_list:
        return values
    if len(values) > 1:
        raise Refusal("bad-request", f"{name} is given {len(values)} times.", "Give it once.")
    return values[0]
