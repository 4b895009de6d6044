"""The column of each box in its scope, by longest path: what waits stands behind what it waits for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain

from jobman.plan.drawing.tree import Node, Passage
from jobman.plan.model import Unit


def assign_layers(children: Sequence[Node], passages: Iterable[Passage], waiting: set[str]) -> None:
    """Give each child its column.

    `waiting` are the units with edges of their own. Inner edges may point both ways between two groups;
    what is left in such a knot is taken as written.
    """
    layers = _longest_paths(_followers(children, passages, waiting))
    # A knot may leave a column empty.
    used = {layer: column for column, layer in enumerate(sorted({layers[child.rank] for child in children}))}
    for child in children:
        child.layer = used[layers[child.rank]]


def _longest_paths(followers: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
    missing = [0] * len(followers)
    for node, _ in chain.from_iterable(followers):
        missing[node] += 1
    layers = [0] * len(followers)
    done = [False] * len(followers)
    ready = deque(node for node, count in enumerate(missing) if not count)
    for fallback in range(len(followers)):
        if not done[fallback]:
            ready.append(fallback)
        while ready:
            node = ready.popleft()
            if done[node]:
                continue
            done[node] = True
            for follower, step in followers[node]:
                if not done[follower]:
                    layers[follower] = max(layers[follower], layers[node] + step)
                    missing[follower] -= 1
                    if not missing[follower]:
                        ready.append(follower)
    return layers


def _followers(
    children: Sequence[Node], passages: Iterable[Passage], waiting: set[str]
) -> list[list[tuple[int, int]]]:
    """Who stands behind whom, by how many columns; behind the children stand marks of all before each."""
    followers: list[list[tuple[int, int]]] = [[] for _ in range(2 * len(children))]
    for _, start, end in passages:
        if start is not None and end is not None:
            followers[start.rank].append((end.rank, 1))
    blocker = settled = -1
    for child in children:
        unit = child.unit
        if blocker >= 0:
            followers[blocker].append((child.rank, 1))
        if unit is not None and unit.when != "success":
            if unit.id not in waiting and settled >= 0:
                followers[settled].append((child.rank, 1))
        else:
            mark = len(children) + child.rank
            followers[child.rank].append((mark, 0))
            if settled >= 0:
                followers[settled].append((mark, 0))
            settled = mark
        if unit is not None and _blocks(unit):
            blocker = child.rank
    return followers


def _blocks(unit: Unit) -> bool:
    return unit.kind == "task" and not unit.service and (unit.local or unit.watch)
