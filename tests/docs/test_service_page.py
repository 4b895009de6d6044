"""The pages on the service and the conductor agree with the code, and with a state folder as it comes out."""

from pathlib import Path

import pytest

from jobman.control.background import IDLE_SECONDS
from jobman.control.states import LEGAL
from jobman.control.store.schema import metadata
from jobman.control.working import MOST_AT_ONCE
from tests.docs.pages import ROOT, code_in, rows, text_of
from tests.examples.test_examples import EXAMPLES


def test_the_tables_are_those_of_the_schema():
    shown = [code_in(row[0])[0] for row in rows("service.md", "<!-- tables of the store -->")]
    assert sorted(shown) == sorted(metadata.tables)


def test_the_parts_are_where_the_page_says():
    for row in rows("service.md", "| part |"):
        for name in code_in(row[1]):
            home = ROOT / "src" / "jobman"
            assert (home / "control" / name).exists() or (home / name).exists(), name


def test_numbers_on_the_page_are_those_of_the_code():
    page = text_of("service.md")
    assert f"up to {MOST_AT_ONCE} of them" in page
    assert f"after {IDLE_SECONDS / 60:.0f} minutes" in page


@pytest.mark.slow
def test_every_file_of_a_state_folder_is_on_the_page(laptop, tmp_path):
    laptop.jobman("run", str(EXAMPLES / "volumes.yaml"), "--set", f"place={tmp_path}", cwd=tmp_path)
    laptop.jobman("run", str(EXAMPLES / "hello.yaml"), cwd=tmp_path)
    listed = {
        name.rstrip("/") for row in rows("service.md", "<!-- files of the state") for name in code_in(row[0])
    }
    assert {path.name for path in laptop.places.state.iterdir()} <= listed


def test_the_table_of_states_is_the_one_the_conductor_keeps():
    shown = {
        code_in(row[0])[0]: set(code_in(row[2])) for row in rows("conductor.md", "## States of a replica")
    }
    assert shown == {str(state): {str(each) for each in followers} for state, followers in LEGAL.items()}


def test_every_room_is_on_the_page_of_the_house():
    rooms = {path.parent.name for path in (ROOT / "src" / "jobman").glob("*/__init__.py")}
    shown = {
        name.rstrip("/")
        for row in rows("architecture.md", "## Rooms")
        for name in code_in(row[0])
        if row[1] != "to come"
    }
    assert shown == rooms


def test_files_that_pages_name_are_there():
    for page in ("service.md", "conductor.md", "architecture.md", "local.md"):
        for name in code_in(text_of(page)):
            if name.startswith(("control/", "engines/", "tests/")) and "*" not in name:
                base = ROOT if name.startswith("tests/") else ROOT / "src" / "jobman"
                assert Path(base / name).exists(), f"{page}: {name}"
