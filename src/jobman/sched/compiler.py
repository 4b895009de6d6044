"""From requests to gangs: which nodes suit each piece, in whole units of numbered kinds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from weakref import WeakValueDictionary

import msgspec

from jobman.plan.nodes import ClusterNode
from jobman.plan.satisfy import FORGIVEN, mismatch, piece_of
from jobman.sched.bounds import NODE, Bound
from jobman.sched.capacity import sum_units, to_units
from jobman.sched.gangs import Choice, Gang, Ground, Piece, Spot
from jobman.sched.minimum import least_amounts
from jobman.sched.profile import Pairs
from jobman.sched.queues import Queue
from jobman.sched.reach import own_nodes, share_of
from jobman.sched.requests import Placed, Request
from jobman.sched.timeline import PLACE, Rates, Timeline
from jobman.spec.shapes import Amount, Part

BoundsOf = Callable[[Request], Iterable[tuple[Hashable, dict[str, float]]]]
Takes = Sequence[tuple[Bound, Pairs]]
"""What is taken of which limits."""
_MOST_KNOWN = 4096


class Compiler:
    """Makes gangs for the rows of a timeline, each only once."""

    def __init__(self, timeline: Timeline, queues: Sequence[Queue], bounds_of: BoundsOf | None) -> None:
        self.timeline = timeline
        self.queues = {queue.name: queue for queue in queues}
        self.bounds: dict[Hashable, Bound] = {}
        self._bounds_of = bounds_of
        self._known: WeakValueDictionary[tuple[Hashable, ...], Gang] = WeakValueDictionary()
        self._same: dict[tuple[Hashable, ...], tuple[Gang, Request]] = {}
        self.renew()

    def renew(self) -> None:
        """Look at the nodes again: there are others than before."""
        self._known.clear()
        self._empty: Timeline | None = None
        self._same.clear()
        self._takes: dict[tuple[int, int], tuple[Gang, Takes]] = {}
        self.resized()
        self._grounds: dict[tuple[Hashable, ...], Ground] = {}
        self._alike: dict[bytes, list[int]] = {}
        for number, row in enumerate(self.timeline.rows):
            self._alike.setdefault(_likeness(row.node), []).append(number)
        self._own: dict[str, frozenset[int]] = {}
        nodes = [row.node for row in self.timeline.rows]
        queues = list(self.queues.values())
        for queue in queues:
            own = own_nodes(queue, queues, nodes)
            self._own[queue.name] = frozenset(self.timeline.numbers[node.name] for node in own)
            if queue.share is not None:
                self._bound(("share", queue.name), share_of(queue, own))

    def resized(self) -> None:
        """Nodes have another size than before."""
        self._differing: dict[tuple[int, int], tuple[Gang, Sequence[Rates]]] = {}
        self._least: dict[tuple[int, int], tuple[Gang, Mapping[str, Amount]]] = {}

    # -- gangs ---------------------------------------------------------------------------------------

    def gang(self, request: Request, queue: str) -> Gang:
        """Equal requests share a gang; the very same shape is recognised without looking into it."""
        bounds = self._bounds_for(request, queue) if self._bounds_of is not None or self.bounds else ()
        overhead = tuple(sorted(request.overhead.items())) if request.overhead else ()
        same = (id(request.alternatives), id(request.wishes), overhead, queue, bounds)
        known = self._same.get(same)
        if known is not None:
            return known[0]
        gang = self._gang(request, queue, bounds, None)
        if len(self._same) > _MOST_KNOWN:
            self._same.clear()
        self._same[same] = (gang, request)
        return gang

    def gang_within(self, request: Request, queue: str, name: Hashable, rows: frozenset[int]) -> Gang:
        """The gang of a request that goes to certain rows, whatever its queue has."""
        return self._gang(request, queue, self._bounds_for(request, queue), (name, rows))

    def _gang(
        self,
        request: Request,
        queue: str,
        bounds: tuple[Bound, ...],
        within: tuple[Hashable, frozenset[int]] | None,
    ) -> Gang:
        shape = msgspec.msgpack.encode((request.alternatives, request.wishes, request.overhead))
        deep = (shape, queue, bounds, within)
        gang = self._known.get(deep)
        if gang is None:
            gang = self._known[deep] = self._compile(request, queue, bounds, within)
        return gang

    def gangs(self) -> list[Gang]:
        return list(self._known.values())

    def _compile(
        self,
        request: Request,
        queue: str,
        bounds: tuple[Bound, ...],
        within: tuple[Hashable, frozenset[int]] | None,
    ) -> Gang:
        if within is None:
            own = self._own[queue]
            lent = [self._own.get(name, frozenset()) for name in self.queues[queue].borrow]
            borrowed = frozenset().union(*lent) - own
            area: Hashable = queue
        else:
            area, own = within
            borrowed = frozenset()
        wishes = request.wishes
        plain = wishes.near is None and wishes.apart is None and wishes.spread is None
        choices = []
        for number, parts in enumerate(request.alternatives):
            pieces = [self._piece(part, request, area, own, borrowed) for part in parts]
            choices.append(Choice(number, pieces, plain=plain))
        gang = Gang(choices, wishes, bounds)
        if gang.sole is not None:
            name = self.timeline.rows[gang.sole.ground.rows[0]].name
            gang.placed = Placed(0, ({name: gang.sole.wanted},))
        return gang

    def _piece(
        self, part: Part, request: Request, area: Hashable, own: frozenset[int], borrowed: frozenset[int]
    ) -> Piece:
        timeline = self.timeline
        found = piece_of(part)
        units = sum_units(part.each, found.copies, part.beside)
        for kind, more in request.overhead.items():
            units[kind] = units.get(kind, 0) + more
        whole = part.is_whole or request.wishes.exclusive
        known = {kind: count for kind, count in units.items() if count and kind in timeline.kinds}
        is_known = all(kind in known or kind == FORGIVEN or not count for kind, count in units.items())
        if whole or not known:
            place = timeline.know(PLACE)
        pairs = tuple((timeline.kinds[kind], count) for kind, count in known.items()) or ((place, 1),)
        like = self._like(part, request, pairs) if is_known else ()
        ground = self._ground(area, own, borrowed, like)
        single = part.nodes is not None
        piece = Piece(pairs, found.wanted, found.copies, ground, single=single, whole=whole)
        if whole and not part.is_whole:
            piece.inside = Piece(pairs, found.wanted, found.copies, ground, single=single, whole=False)
        return piece

    def _like(self, part: Part, request: Request, pairs: Pairs) -> tuple[bytes, ...]:
        """The sorts of nodes that suit a part."""
        rows = self.timeline.rows

        def suits(number: int) -> bool:
            row = rows[number]
            if mismatch(row.node, part.requires, request.wishes.labels) is not None:
                return False
            return all(row.capacity[kind] + row.foreign[kind] >= least for kind, least in pairs)

        return tuple(likeness for likeness, numbers in self._alike.items() if suits(numbers[0]))

    def _ground(
        self, area: Hashable, own: frozenset[int], borrowed: frozenset[int], like: tuple[bytes, ...]
    ) -> Ground:
        ground = self._grounds.get((area, own, like))
        if ground is None:
            numbers = [number for likeness in like for number in self._alike[likeness]]
            ground = self._grounds[area, own, like] = Ground(
                sorted(own.intersection(numbers)), sorted(borrowed.intersection(numbers))
            )
        return ground

    def could_ever(self, gang: Gang) -> bool:
        """Whether a gang would find room if all nodes were empty."""
        if gang.could_ever is None:
            if self._empty is None or len(self._empty.kinds) != len(self.timeline.kinds):
                self._empty = Timeline([row.node for row in self.timeline.rows])
                for kind in self.timeline.kinds:
                    self._empty.know(kind)
            gang.could_ever = self._empty.exactly(gang, 1.0, 0.0) is not None
        return gang.could_ever

    # -- limits --------------------------------------------------------------------------------------

    def _bounds_for(self, request: Request, queue: str) -> tuple[Bound, ...]:
        found = list(self._bounds_of(request)) if self._bounds_of is not None else []
        bounds = tuple(self._bound(name, most) for name, most in found)
        share = self.bounds.get(("share", queue))
        return bounds if share is None else (*bounds, share)

    def _bound(self, name: Hashable, most: dict[str, float]) -> Bound:
        bound = self.bounds.get(name)
        if bound is None or bound.most.keys() != most.keys():
            bound = self.bounds[name] = Bound(name, most)
        elif bound.most != most:
            bound.set_most(most)
        return bound

    def takes(self, gang: Gang, spot: Spot) -> Takes:
        """What a gang takes of its limits at a spot."""
        if not gang.bounds:
            return ()
        key = (id(gang), spot.choice)
        known = self._takes.get(key)
        if known is not None:
            return known[1]
        choice = gang.choices[spot.choice]
        names = list(self.timeline.kinds)
        amounts = {NODE: choice.nodes}
        for _, pairs in spot.holds:
            for kind, units in pairs:
                amounts[names[kind]] = amounts.get(names[kind], 0) + units
        takes = tuple((bound, bound.pairs(amounts)) for bound in gang.bounds)
        if not any(piece.whole for piece in choice.pieces):
            if len(self._takes) > _MOST_KNOWN:
                self._takes.clear()
            self._takes[key] = (gang, takes)
        return takes

    def differing(self, gang: Gang, choice: Choice) -> Sequence[Rates]:
        """What to save where nodes are taken as a whole and have more or less of something that is limited:
        each kind by itself, then all of them; nothing where all nodes cost the same."""
        key = (id(gang), choice.number)
        known = self._differing.get(key)
        if known is None:
            known = self._differing[key] = (gang, self._rates(gang, choice))
        return known[1]

    def _rates(self, gang: Gang, choice: Choice) -> Sequence[Rates]:
        rows = self.timeline.rows
        wholes = {
            rows[number].whole for piece in choice.pieces if piece.whole for number in piece.ground.everywhere
        }
        if len(wholes) < 2:
            return ()
        rates: dict[int, float] = {}
        for bound in gang.bounds:
            for kind, most in bound.most.items():
                number = self.timeline.kinds.get(kind)
                if number is not None and len({dict(whole).get(number, 0) for whole in wholes}) > 1:
                    rates[number] = max(rates.get(number, 0.0), 1 / max(to_units(kind, most), 1))
        alone = [{number: rate} for number, rate in rates.items()]
        return [*alone, rates] if len(alone) > 1 else alone

    def is_too_large(self, gang: Gang, choice: Choice, request: Request) -> bool:
        """Whether a limit never admits an alternative, whatever nodes it gets."""
        key = (id(gang), choice.number)
        known = self._least.get(key)
        if known is None:
            known = self._least[key] = (gang, self._least_amounts(choice, request))
        least = known[1]
        return any(least.get(kind, 0) > most for bound in gang.bounds for kind, most in bound.most.items())

    def _least_amounts(self, choice: Choice, request: Request) -> Mapping[str, Amount]:
        rows = self.timeline.rows
        numbers = sorted({number for piece in choice.pieces for number in piece.ground.everywhere})
        if any(any(rows[number].foreign) for number in numbers):
            return {}  # of what others use nothing is held
        parts = request.alternatives[choice.number]
        nodes = [rows[number].node for number in numbers]
        return least_amounts(parts, nodes, request.wishes, request.overhead) or {}

    # -- placements ----------------------------------------------------------------------------------

    def placed(self, gang: Gang, spot: Spot) -> Placed:
        """A spot in the words of the request."""
        if gang.placed is not None:
            return gang.placed
        rows = self.timeline.rows
        return Placed(
            spot.choice,
            tuple([{rows[number].name: count for number, count in places.items()} for places in spot.places]),
        )

    def spot_of(self, gang: Gang, placed: Placed, start: float) -> Spot | None:
        """A placement in the terms of rows, without nodes that are gone; None if it is of another shape."""
        if placed.alternative >= len(gang.choices):
            return None
        choice = gang.choices[placed.alternative]
        if len(choice.pieces) != len(placed.places):
            return None
        numbers = self.timeline.numbers
        places = [
            {numbers[name]: count for name, count in each.items() if name in numbers}
            for each in placed.places
        ]
        return self.timeline.spot(start, choice, places, gang.wishes)


def _likeness(node: ClusterNode) -> bytes:
    return msgspec.json.encode((node.amounts, node.facts, node.labels), order="deterministic")
