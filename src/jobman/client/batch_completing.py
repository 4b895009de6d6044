"""Bringing the pieces of a job to its manager: each once, whoever dies meanwhile, all before any starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from jobman.engines.failpoints import failpoint
from jobman.engines.scripts.commands import Failed, NotThere
from jobman.engines.scripts.delegate import Delegate
from jobman.engines.scripts.folder import Folder
from jobman.engines.scripts.graph import Piece

_FEW = 16
"""So many are submitted one after the other, and the manager has them in the order written."""
_AT_ONCE = 8
"""Of more, as many as this at the same time; managers gain nothing from more."""
_TRIES = 5


def complete(manager: Delegate, folder: Folder, pieces: Sequence[Piece], *, wait: bool = False) -> None:
    """Submit the pieces that are not submitted yet. A graph is held until all of it is there."""
    with folder.alone():
        if folder.has("submitted"):
            return
        ids = _arrived(manager, folder)
        is_graph = len(pieces) > 1 or wait
        folder.mark("submitting")
        folder.mark("together", there=is_graph)
        _submit_all(manager, folder, pieces, ids, hold=is_graph)
        if not wait:
            release_free(manager, folder, pieces)


def _arrived(manager: Delegate, folder: Folder) -> dict[str, str]:
    """Whoever was interrupted here may not have heard what arrived: comments and claims tell.

    What was written down and is not known any more is forgotten: one that dies may lose what it did last.
    """
    if not folder.has("submitting"):
        return {}
    told = folder.ids()
    found = {**manager.known(folder.path.name), **folder.claims()}
    for name, native in found.items():
        if told.get(name) != native:
            folder.add_id(name, native)
    return found


def _submit_all(
    manager: Delegate, folder: Folder, pieces: Sequence[Piece], ids: dict[str, str], *, hold: bool
) -> None:
    """A manager that dies may forget one, and refuse those that wait for it: it is brought again."""
    for _ in range(_TRIES):
        refused = None
        try:
            for some in _turns(pieces, ids):
                _submit(manager, folder, some, ids, hold=hold)
        except Failed as error:
            refused = error
        if not hold and refused is None:
            # It may be over by now; and nobody waits for it.
            return
        known = _arrived(manager, folder)
        if known.keys() >= ids.keys():
            if refused is not None:
                raise refused
            return
        ids.clear()
        ids.update(known)
    raise NotThere(f"{manager.title} forgets what it was given", "try again in a while")


def _turns(pieces: Sequence[Piece], ids: Mapping[str, str]) -> Iterator[list[Piece]]:
    """Those that are missing, each after those that it waits for."""
    missing = [piece for piece in pieces if piece.name not in ids]
    there = {piece.name for piece in pieces} - {piece.name for piece in missing}
    while missing:
        turn = [piece for piece in missing if there.issuperset(name for _, name in piece.after)]
        if len(missing) <= _FEW:
            # They are in an order in which they can be submitted.
            turn = missing[:1]
        yield turn
        there.update(piece.name for piece in turn)
        missing = [piece for piece in missing if piece.name not in there]


def _submit(
    manager: Delegate, folder: Folder, pieces: Sequence[Piece], ids: dict[str, str], *, hold: bool
) -> None:
    def one(piece: Piece) -> None:
        failpoint("batch.before-submit")
        native = manager.submit(piece, folder, ids, held=hold or is_held(piece, folder))
        failpoint("batch.after-submit")
        folder.add_id(piece.name, native)
        ids[piece.name] = native

    if len(pieces) == 1:
        one(pieces[0])
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(one, pieces):
            pass


def release_free(manager: Delegate, folder: Folder, pieces: Sequence[Piece]) -> None:
    """All of it is there: let those pieces go that nothing but their dependencies holds back."""
    folder.keep_ids()
    if folder.has("ambiguous"):
        _drop_strays(manager, folder)
    ids = folder.ids()
    failpoint("batch.before-release")
    if len(pieces) > 1 or folder.has("together"):
        manager.release(ids[piece.name] for piece in pieces if not is_held(piece, folder))
    failpoint("batch.after-release")
    folder.mark("submitted")


def _drop_strays(manager: Delegate, folder: Folder) -> None:
    """What arrived twice, as no answer came in time, waits in vain; which of both runs, the scripts know."""
    ids = folder.ids()
    strays = [
        native.id
        for native in manager.queue()
        if native.job == folder.path.name and ids.get(native.piece, native.id) != native.id
    ]
    manager.cancel(strays)


def is_held(piece: Piece, folder: Folder) -> bool:
    """Whether a piece may not start, whatever the manager thinks of it."""
    opened, ready = folder.names("gates"), folder.names("ready")
    if folder.has("held") or (piece.hold and not folder.has("released")):
        return True
    if any(gate not in opened for gate in piece.gates):
        return True
    return any(name not in ready for name in piece.needs_ready)
