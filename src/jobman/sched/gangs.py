"""Shapes in the terms of a timeline: pieces that go to a node each, in whole units of numbered kinds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from jobman.sched.profile import Pairs
from jobman.sched.wishes import Wishes


class Piece:
    """What goes to one node at once, how often it is wanted, and the nodes that suit it.

    `single` pieces go to a node each; the others wherever there is room. A `whole` piece wants the node for
    itself. `borrowed` are nodes of other queues, where it may go if it can start now.
    """

    __slots__ = (
        "all_mask",
        "borrowed",
        "copies",
        "grounds",
        "is_row",
        "mask",
        "need",
        "pairs",
        "rows",
        "single",
        "wanted",
        "whole",
    )

    def __init__(
        self,
        pairs: Pairs,
        wanted: int,
        copies: int,
        rows: Sequence[int],
        borrowed: Sequence[int],
        *,
        single: bool,
        whole: bool,
    ) -> None:
        self.pairs = tuple(pairs)
        self.wanted = wanted
        self.copies = copies
        self.rows = tuple(rows)
        self.borrowed = tuple(borrowed)
        self.mask: Any = None
        self.all_mask: Any = None
        """The rows, and with those that are borrowed, as an outlook sees them."""
        self.grounds = frozenset(self.rows + self.borrowed)
        self.single = single
        self.whole = whole
        self.is_row = len(self.rows) == 1 and not whole and not (single and wanted > 1)
        """Whether there is but one node to look at, so that all pieces add up to one need."""
        self.need = tuple((kind, least * wanted) for kind, least in pairs) if self.is_row else self.pairs
        """What a node must have free to be of any use."""


class Choice:
    """One alternative: pieces that are placed together."""

    __slots__ = ("number", "pieces", "simple")

    def __init__(self, number: int, pieces: Sequence[Piece], *, plain: bool) -> None:
        self.number = number
        self.pieces = tuple(pieces)
        self.simple = self.pieces[0] if plain and len(self.pieces) == 1 else None
        """Its only piece, where nothing else decides about the nodes."""


class Gang:
    """All alternatives of a request. Requests that ask for the same on the same nodes share one."""

    __slots__ = ("amounts", "choices", "failed", "kind", "least", "seen", "sole", "wishes")

    def __init__(self, choices: Sequence[Choice], wishes: Wishes, amounts: dict[str, int]) -> None:
        self.choices = tuple(choices)
        self.wishes = wishes
        self.amounts = amounts
        """All that the first alternative needs, by kind; `node` counts its nodes."""
        only = self.choices[0].simple if len(self.choices) == 1 else None
        self.sole = only if only is not None and only.is_row and not only.borrowed else None
        """Its one piece, where there is but one node to look at."""
        self.kind, self.least = self.sole.need[0] if self.sole is not None and self.sole.need else (0, 0)
        """What it needs first of all, there."""
        self.failed = inf
        """The shortest limit with which it could not start, when it was last tried."""
        self.seen = 0
        """What had been freed until then."""

    def useful(self) -> tuple[Piece, ...]:
        return tuple(piece for choice in self.choices for piece in choice.pieces)


Places = dict[int, int]
"""How many pieces go to which row."""


class Spot:
    """Where a gang goes, and when: the alternative, the places of its pieces, and what it holds by row."""

    __slots__ = ("choice", "holds", "places", "start")

    def __init__(
        self, start: float, choice: int, places: Sequence[Places], holds: Sequence[tuple[int, Pairs]]
    ) -> None:
        self.start = start
        self.choice = choice
        self.places = tuple(places)
        self.holds = tuple(holds)
