"""Flux's words in the script that submits a job by hand."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jobman.engines.flux.compile import AFTER, is_alone
from jobman.engines.scripts.by_hand import ByHand, named_id
from jobman.engines.scripts.graph import After, Piece
from jobman.engines.scripts.quoting import quoted


def _after(piece: Piece) -> list[str]:
    """How a piece is submitted, and then what it waits for: `afterok:ID ID`, of which each is an option."""
    unit = piece.unit
    replicas = 1 if unit is None else unit.replicas
    at_once = 0 if unit is None else unit.policies.parallelism or 0
    found = ["submit" if is_alone(piece) else "batch", str(replicas), str(at_once)]
    return [*found, *(f'"{_word(when)}:$(plain_ids {named_id(quoted(name))})"' for when, name in piece.after)]


def _word(when: After) -> str:
    """Of several jobs any may have failed: there the script looks by itself."""
    return AFTER["any" if when == "not-ok" else when]


@cache
def _functions() -> str:
    return files("jobman.engines.flux").joinpath("by_hand.sh").read_text()


BY_HAND = ByHand(
    functions=_functions(),
    submit='submit_to_flux "$@"',
    hold="--urgency=0",
    after=_after,
    release="release_all ${free[*]//,/ }",
    cancel='flux cancel $(plain_ids "${IDS[@]}")',
)
