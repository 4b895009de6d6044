"""The page on Python: every piece runs as it stands there, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import jobman
from tests.docs.pages import Fence, code_in, fences, rows

PIECES = fences("python.md", "python")
FILES = [fence for fence in fences("python.md") if fence.file is not None]
_PRINTS = re.compile(r"# → (.*)$", re.M)


def members_of(thing: type) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES, ids=str)
def test_a_piece_runs_and_prints_what_it_says(piece: Fence, laptop, tmp_path):
    for file in FILES:
        (tmp_path / str(file.file)).write_text(file.text)
    done = subprocess.run(
        [sys.executable, "-c", piece.text],
        cwd=tmp_path,
        env=laptop.variables(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == _PRINTS.findall(piece.text)


def test_there_are_pieces_and_a_file():
    assert len(PIECES) > 5
    assert [file.file for file in FILES] == ["sweep.yaml"]


def test_every_exported_name_is_on_the_page():
    named = {name for row in rows("python.md", "# Python") for name in code_in(row[0])}
    assert named == set(jobman.__all__) - {"__version__"}


@pytest.mark.parametrize(
    ("title", "thing", "fields"),
    [("| of a `Job` |", jobman.Job, {"id", "name", "promised"}), ("| of a `Play` |", jobman.Play, set())],
)
def test_every_member_is_in_its_table(title: str, thing: type, fields: set[str]):
    cells = [row[0] for row in rows("python.md", title)]
    named = {code.partition("(")[0] for cell in cells for code in code_in(cell)}
    assert named == members_of(thing) | fields
