"""Shapes in the terms of a timeline: pieces that go to a node each, in whole units of numbered kinds."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from jobman.sched.bounds import Bound
from jobman.sched.profile import Pairs
from jobman.sched.requests import Placed
from jobman.sched.wishes import Wishes

Places = dict[int, int]
"""How many pieces go to which row."""
Holds = Sequence[tuple[int, Pairs]]
"""What is held, by row."""


class Ground:
    """The rows that suit a piece, and those it may borrow from other queues if it can start now."""

    __slots__ = ("borrowed", "everywhere", "layout", "members", "own", "rows", "steps", "wide")

    def __init__(self, rows: Sequence[int], borrowed: Sequence[int] = ()) -> None:
        self.rows = tuple(rows)
        self.borrowed = tuple(borrowed)
        self.everywhere = self.rows + self.borrowed
        self.own = frozenset(self.rows)
        self.members = self.own.union(self.borrowed) if self.borrowed else self.own
        self.wide: Any = None
        self.steps: Any = None
        self.layout: object = None
        """What an outlook remembers of it: all rows, and the steps of its own rows in one layout."""


class Piece:
    """What goes to one node at once, and how often it is wanted.

    `single` pieces go to a node each; the others wherever there is room. A `whole` piece wants the node for
    itself.
    """

    __slots__ = (
        "copies",
        "ground",
        "holds",
        "inside",
        "is_row",
        "need",
        "pairs",
        "places",
        "single",
        "wanted",
        "whole",
    )

    def __init__(
        self, pairs: Pairs, wanted: int, copies: int, ground: Ground, *, single: bool, whole: bool
    ) -> None:
        self.pairs = tuple(pairs)
        self.wanted = wanted
        self.copies = copies
        self.ground = ground
        self.single = single
        self.whole = whole
        self.inside: Piece | None = None
        """The same to the other parts of its request, if its nodes are theirs, too, and nobody else's."""
        self.is_row = len(ground.rows) == 1 and not whole and not (single and wanted > 1)
        """Whether there is but one node to look at, so that all pieces add up to one need."""
        self.need = tuple((kind, least * wanted) for kind, least in pairs) if self.is_row else self.pairs
        """What a node must have free to be of any use."""
        where = ground.rows[0] if self.is_row else -1
        self.places: Sequence[Places] = ({where: wanted},)
        self.holds: Holds = ((where, self.need),)
        """Where it goes and what it holds there, if there is but one node."""


class Choice:
    """One alternative: pieces that are placed together."""

    __slots__ = ("has_ground", "nodes", "number", "pieces", "simple")

    def __init__(self, number: int, pieces: Sequence[Piece], *, plain: bool) -> None:
        self.number = number
        self.pieces = tuple(pieces)
        self.simple = self.pieces[0] if plain and len(self.pieces) == 1 else None
        """Its only piece, where nothing else decides about the nodes."""
        self.nodes = sum(piece.wanted for piece in self.pieces if piece.single)
        self.has_ground = all(piece.ground.rows for piece in self.pieces)
        """Whether there are nodes for each piece."""


class Gang:
    """All alternatives of a request. Requests that ask for the same on the same nodes, and count against the
    same limits, share one; it remembers why none of them could start."""

    __slots__ = (
        "__weakref__",
        "bounds",
        "choices",
        "cold",
        "could_ever",
        "failed",
        "far",
        "far_seen",
        "hot",
        "is_bound",
        "kind",
        "lack",
        "least",
        "only",
        "pieces",
        "placed",
        "seen",
        "sole",
        "warm",
        "wishes",
    )

    def __init__(self, choices: Sequence[Choice], wishes: Wishes, bounds: tuple[Bound, ...] = ()) -> None:
        self.choices = tuple(choices)
        self.wishes = wishes
        self.bounds = bounds
        self.pieces = tuple(piece for choice in self.choices for piece in choice.pieces)
        simple = self.choices[0].simple if len(self.choices) == 1 else None
        is_sole = simple is not None and simple.is_row and not simple.ground.borrowed and not bounds
        self.sole = simple if is_sole else None
        """Its one piece, where there is but one node to look at and no limit."""
        has_one = simple is not None and simple.wanted == 1 and not bounds and not is_sole
        self.only = simple if has_one else None
        """Its one piece, where one node of several is enough."""
        self.kind, self.least = self.sole.need[0] if self.sole is not None else (0, 0)
        """What it needs first of all, there."""
        self.placed: Placed | None = None
        """Where it goes, if it can go nowhere else."""
        self.could_ever: bool | None = None
        """Whether it would find room if all nodes were empty; None where nobody has asked yet."""
        self.far, self.far_seen = inf, -1
        """The limit with which its start was too far away to be promised, and what had been freed then."""
        self.revive()

    def revive(self) -> None:
        """Forget that it could not start."""
        self.relent()
        self.cold = inf
        self.hot: set[int] | None = None
        """Rows freed since it could not start with a limit of `cold` or more; None for all there are."""
        self.warm = 0
        """What had been freed when these rows were last counted."""

    def relent(self) -> None:
        """Let it try again."""
        self.failed = inf
        """The shortest limit with which it could not start, when it was last tried."""
        self.seen = -1
        """What had been freed until then; less than nothing if it was not tried yet."""
        self.lack = 1
        """How many rows, or pieces that may share one, were missing then at least."""
        self.is_bound = False
        """Whether a limit was in the way."""

    def fail(self, limit: float, freed: int, lack: int) -> None:
        """Remember that it could not start, and what had been freed until then."""
        if self.only is not None and (self.hot is None or limit < self.cold):
            self.hot, self.cold, self.warm = set(), limit, freed
        if limit < self.failed or (self.sole is not None and self.seen != freed):
            self.failed = limit
        self.seen = freed
        self.lack = lack


class Spot:
    """Where a gang goes, and when: the alternative, the places of its pieces, and what it holds by row."""

    __slots__ = ("choice", "holds", "places", "start")

    def __init__(self, start: float, choice: int, places: Sequence[Places], holds: Holds) -> None:
        self.start = start
        self.choice = choice
        self.places = places
        self.holds = holds

    @property
    def rows(self) -> list[int]:
        return [number for number, _ in self.holds]
