"""What the catalogue knows of one message."""

from __future__ import annotations

from typing import Literal

import msgspec


class Code(msgspec.Struct, frozen=True, kw_only=True):
    """One message. `message` and `advice` are templates; `page` explains it to somebody who asks."""

    id: str
    title: str
    message: str
    advice: str
    page: str
    severity: Literal["error", "warning"] = "error"
    strict: bool = False
    """A warning that `--strict` turns into an error."""


def error(code: str, title: str, message: str, advice: str, page: str) -> Code:
    return Code(id=code, title=title, message=message, advice=advice, page=page)


def warning(code: str, title: str, message: str, advice: str, page: str) -> Code:
    return Code(
        id=code, title=title, message=message, advice=advice, page=page, severity="warning", strict=True
    )
