"""Submitting by hand: a script that does with a manager's commands what jobman does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from jobman.engines.scripts.folder import FOLDERS
from jobman.engines.scripts.graph import Piece
from jobman.engines.scripts.quoting import quoted
from jobman.engines.scripts.site import Job
from jobman.engines.scripts.units import describe


class ByHand(msgspec.Struct, frozen=True, kw_only=True):
    """The words of one manager, in which `IDS` are the ids of what is submitted by now."""

    submit: str
    """Submits `$script` with the options "$@", and prints its id."""
    hold: str
    after: Callable[[Piece], list[str]]
    """The options by which a piece waits for others."""
    release: str
    """Lets those go whose ids are in `free`."""
    cancel: str
    """Takes back all of them."""
    functions: str = ""
    """What the words above may call."""


def submit_script(job: Job, pieces: Sequence[Piece], words: ByHand) -> str:
    """The script that submits all pieces, or none."""
    lines = [*_head(job), "", *_folder(job, words), "", *_submitting(words), "", *_pieces(job, pieces, words)]
    return "\n".join(lines) + "\n"


def is_held(piece: Piece) -> bool:
    """Whether a piece may not start when all is submitted, whatever it waits for."""
    return piece.hold or bool(piece.gates) or bool(piece.needs_ready)


def named_id(name: str) -> str:
    """The id of a piece that was submitted before."""
    return f"${{IDS[{name}]}}"


def _head(job: Job) -> Iterator[str]:
    yield "#!/bin/bash"
    yield f"# jobman: submits the job {job.name} once, as `jobman submit` does with {job.file}."
    yield "# Beside it are the scripts of its tasks, and what jobman must know of it; no jobman is needed."
    yield "set -euo pipefail"
    yield 'cd "$(dirname "${BASH_SOURCE[0]}")"'


def _folder(job: Job, words: ByHand) -> Iterator[str]:
    yield "# The folder in which the job leaves word; where it is there, the job was submitted before."
    yield f"J={quoted(job.folder)}"
    yield 'mkdir -p -m 700 "$(dirname "$J")"'
    yield 'if ! mkdir -m 700 "$J"; then'
    yield '    echo "it was submitted before; to submit it once more, remove that folder" >&2'
    yield "    exit 1"
    yield "fi"
    yield "declare -A IDS=()"
    yield "take_back() {"
    yield f"    ((${{#IDS[@]}} == 0)) || {words.cancel}"
    yield '    rm -rf "$J"'
    yield '    echo "nothing is submitted" >&2'
    yield "}"
    yield "trap take_back EXIT"
    yield ""
    yield f'(cd "$J" && mkdir {" ".join(FOLDERS)} && touch ids submitting)'
    yield 'cp scripts/*.sh "$J/scripts/"'
    yield 'chmod 700 "$J"/scripts/*'
    yield "# What jobman knows the job by."
    yield "if [[ -e about.json ]]; then"
    yield """    sed 's/"submitted_at":0.0/"submitted_at":'"$(date +%s.%N)/" about.json >"$J/about.json\""""
    yield "fi"


def _submitting(words: ByHand) -> Iterator[str]:
    yield from words.functions.splitlines()
    yield "submit() { # NAME OPTION..."
    yield "    local name=$1 script=$J/scripts/$1.sh id"
    yield "    shift"
    yield f"    id=$({words.submit})"
    yield "    IDS[$name]=${id%%;*}"
    yield '    echo "$name ${IDS[$name]}" | tee -a "$J/ids"'
    yield "}"


def _pieces(job: Job, pieces: Sequence[Piece], words: ByHand) -> Iterator[str]:
    """One that is alone may go at once; of several all are held until the last of them is there."""
    together = len(pieces) > 1
    if together:
        yield "# Each waits for others by their ids, and all are held until the last of them is there."
        yield ': >"$J/together"'
    for piece in pieces:
        yield f"# {describe(piece.unit, job.file) if piece.unit is not None else 'ends the services'}"
        options = [*words.after(piece), *([words.hold] if together or is_held(piece) else [])]
        yield " ".join(("submit", quoted(piece.name), *options))
    free = [f'"{named_id(piece.name)}"' for piece in pieces if not is_held(piece)]
    if together and free:
        yield f"free=({' '.join(free)})"
        yield words.release
    held = [quoted(piece.name) for piece in pieces if is_held(piece)]
    if held:
        yield f"# Until somebody or something lets them go: {', '.join(held)}"
    yield ': >"$J/submitted"'
    yield "trap - EXIT"
