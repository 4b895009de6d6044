"""Moments as registries write them, and pauses as they ask for them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_FRACTION = re.compile(r"(\.\d{1,6})\d*")


def moment(text: object) -> float | None:
    """Seconds since 1970 of an RFC 3339 moment; None for none, which Go writes as the year 1."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(_FRACTION.sub(r"\1", text.strip().replace("Z", "+00:00")))
        found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        seconds = found.timestamp()
    except (ValueError, OverflowError):
        return None
    # Builds that are to be the same every time are dated to the beginning of time.
    return seconds if seconds > 0 else None


def pause(header: str, now: float) -> float | None:
    """Seconds that a `Retry-After` header asks for."""
    if header.strip().isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - now)
    except (ValueError, TypeError):
        return None
