"""Who leads: a Lease, renewed by whoever holds it, and taken over when it was not renewed for long enough.

No clock is compared with that of another machine. A holder counts from the moment at which it began to ask
for its last renewal; the others count from the moment at which they first saw that renewal, which is later. A
holder acts for a shorter time than the others wait, so two never act at once, unless one clock runs half as
fast again as another. Moments are seconds of the clock of whoever asks; nothing in here reads one.
"""

from __future__ import annotations

import msgspec

SHORTEST = 3
"""Seconds; below, one slow answer of a cluster is enough to lose it."""


class Terms(msgspec.Struct, frozen=True):
    """How long a Lease lasts, in seconds."""

    lease: int = 15
    """Others wait for so long after the last renewal they saw."""
    renew: float = 10.0
    """The holder acts for so long after it began its last renewal."""
    retry: float = 2.0
    """How often it is renewed, or looked at."""

    @classmethod
    def lasting(cls, seconds: int) -> Terms:
        """The usual proportions; raises ValueError where that is too short."""
        if seconds < SHORTEST:
            raise ValueError(f"a lease lasts {SHORTEST} seconds at least")
        return cls(seconds, seconds * 2 / 3, seconds * 2 / 15)

    @property
    def margin(self) -> float:
        """Between the moment at which the holder stops and the first at which another may begin."""
        return self.lease - self.renew


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A Lease as it stands in the cluster."""

    holder: str = ""
    """Empty where nobody holds it."""
    duration: int = 0
    """Seconds the holder asks the others to wait; 0 where it does not say."""
    acquired: str = ""
    renewed: str = ""
    """For people, and to see that it changed; never compared with a clock."""
    transitions: int = 0
    version: str = ""

    @property
    def sign(self) -> tuple[object, ...]:
        """What is another after each renewal, but not when somebody only labels the Lease."""
        return self.holder, self.duration, self.acquired, self.renewed, self.transitions


class Candidate:
    """One of those who would lead. It leads once at most: who has lost it begins anew under another name."""

    def __init__(self, name: str, terms: Terms) -> None:
        self.name = name
        self.terms = terms
        self.must_look = True
        """Whether the Lease may have changed since it was last seen."""
        self.is_over = False
        self._seen: Record | None = None
        self._since = 0.0
        self._exists: bool | None = None
        """None before the first look."""
        self._until: float | None = None

    @property
    def holder(self) -> str:
        """Who holds it, as far as known."""
        return "" if self._seen is None else self._seen.holder

    @property
    def version(self) -> str:
        """That of the Lease it would replace; empty where there is none and it would be made."""
        return self._seen.version if self._seen is not None and self._exists else ""

    @property
    def until(self) -> float | None:
        """When it stops to lead, unless it renews before; None where it does not."""
        return None if self.is_over else self._until

    @property
    def last_until(self) -> float | None:
        """The same, also after it was lost."""
        return self._until

    def leads(self, now: float) -> bool:
        """Whether it may act."""
        until = self.until
        return until is not None and now < until

    def look_at_clock(self, now: float) -> None:
        """Time went by: who did not renew in time has lost it."""
        if self._until is not None and now >= self._until:
            self.is_over = True

    def see(self, record: Record | None, now: float) -> None:
        """The Lease as it was read just now; None where there is none."""
        self.must_look = False
        if self._is_news(record):
            self._since = now
        self._exists = record is not None
        if record is None:
            return
        self._seen = record
        if self._until is not None and record.holder != self.name:
            self.is_over = True

    def may_write(self, now: float) -> bool:
        """Whether to take it, or to renew it."""
        self.look_at_clock(now)
        return not self.is_over and not self.must_look and self._is_free(now)

    def draft(self, stamp: str) -> Record:
        """What it would write; `stamp` is the time of day."""
        seen = self._seen or Record()
        is_mine = seen.holder == self.name
        return Record(
            holder=self.name,
            duration=self.terms.lease,
            acquired=seen.acquired if is_mine else stamp,
            renewed=stamp,
            transitions=seen.transitions if is_mine or self._seen is None else seen.transitions + 1,
            version=self.version,
        )

    def wrote(self, record: Record, began: float, now: float) -> None:
        """What it wrote is there; `began` is the moment before the request left."""
        self.look_at_clock(now)
        self._seen, self._exists, self._since = record, True, now
        until = began + self.terms.renew
        if now < until and not self.is_over:
            self._until = until
        else:
            self.must_look = True  # The answer came too late to act on.

    def failed(self) -> None:
        """It was to be written, and nobody knows whether it was."""
        self.must_look = True

    def wait(self, now: float) -> float:
        """Seconds until there is something to do again."""
        if self.until is not None:
            return max(0.0, min(self.terms.retry, self.until - now))
        free_in = self._expires() - now
        return self.terms.retry if free_in <= 0 else min(self.terms.retry, free_in)

    def _is_news(self, record: Record | None) -> bool:
        if record is None or self._seen is None or not self._exists:
            return self._exists is not (record is not None)
        return record.sign != self._seen.sign

    def _is_free(self, now: float) -> bool:
        if self._until is not None or now >= self._expires():
            return True
        return bool(self._exists) and self.holder in ("", self.name)

    def _expires(self) -> float:
        """Where there is none, somebody may have deleted it under the hands of one who acts on."""
        lasts = 0 if self._seen is None else self._seen.duration
        return self._since + (max(lasts, self.terms.lease) if not self._exists else lasts or self.terms.lease)
