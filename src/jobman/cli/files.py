"""Files that a command writes into a folder of their own."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import typer

from jobman.cli.state import ExitCode, emit, say


def write_files(
    texts: Mapping[str, str], folder: Path, form: str, advice: str, *, programs: Collection[str] = ()
) -> None:
    """Write files and tell their paths; `advice` is for whoever names a folder that holds others."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if others := sorted(_others(folder, texts)):
            say(f"{folder} holds other files, such as {others[0]}", advice)
            raise typer.Exit(ExitCode.FAILED)
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
            if name in programs:
                (folder / name).chmod(0o755)
    except OSError as error:
        say(f"cannot write {error.filename or folder}: {error.strerror}")
        raise typer.Exit(ExitCode.FAILED) from error
    paths = [str(folder / name) for name in texts]
    if form == "table":
        sys.stdout.write("".join(f"{path}\n" for path in paths))
    else:
        emit(paths, form)


def _others(folder: Path, texts: Collection[str]) -> Iterator[str]:
    """What is in a folder beside these files and the folders they are in."""
    known = {place for name in texts for place in (Path(name), *Path(name).parents)}
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    return (str(path) for path in found if path not in known)
