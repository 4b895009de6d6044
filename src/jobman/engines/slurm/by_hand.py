"""Slurm's words in the script that submits a job by hand."""

from __future__ import annotations

from jobman.engines.scripts.by_hand import ByHand, named_id
from jobman.engines.scripts.graph import Piece
from jobman.engines.slurm.compile import dependency


class _Ids(dict[str, str]):
    """Ids that are known only when the script runs."""

    def __missing__(self, name: str) -> str:
        return named_id(name)


def _after(piece: Piece) -> list[str]:
    return [f'"{word}"' if "$" in word else word for word in dependency(piece, _Ids())]


BY_HAND = ByHand(
    submit='sbatch --parsable "$@" "$script"',
    hold="--hold",
    after=_after,
    release='scontrol release "$(IFS=,; echo "${free[*]}")"',
    cancel='scancel "${IDS[@]}"',
)
