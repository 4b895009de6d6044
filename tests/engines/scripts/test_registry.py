"""The registry knows the jobs that have folders, whatever becomes of its own file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobman.engines.scripts.folder import About, Folder
from jobman.engines.scripts.registry import Entry, Registry

MANY = 30
WRITER = """
import sys
from pathlib import Path
from jobman.engines.scripts.registry import Entry, Registry
place, mark = Path(sys.argv[1]), sys.argv[2]
registry = Registry(place / "db" / "batch.sqlite", "slurm", place / "jobs")
for number in range(int(sys.argv[3])):
    id_ = f"{mark}{number}"
    registry.add(Entry(id=id_, engine="slurm", name="job", folder="", submitted_at=float(number)))
    registry.close([(id_, "{}")])
"""


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "db" / "batch.sqlite", "slurm", tmp_path / "jobs")


def entry(id_: str, name: str = "job", at: float = 1.0) -> Entry:
    return Entry(id=id_, engine="slurm", name=name, folder="", submitted_at=at)


def submitted_by_hand(place: Path, id_: str, engine: str = "slurm", at: float = 1.0) -> None:
    about = About(id=id_, name="hand", owner="ada", engine=engine, submitted_at=at, plan="{}")
    Folder(place / "jobs" / id_).make(about, {})


def ids(found: list[Entry]) -> list[str]:
    return [each.id for each in found]


def test_jobs_are_listed_the_newest_first(registry: Registry) -> None:
    registry.add(entry("aa", at=1.0))
    registry.add(entry("bb", at=2.0))
    assert ids(registry.all()) == ["bb", "aa"]


def test_a_job_is_found_by_id_by_the_start_of_it_and_by_name(registry: Registry) -> None:
    registry.add(entry("abc1", name="old", at=1.0))
    registry.add(entry("abd2", name="same", at=2.0))
    registry.add(entry("xyz3", name="same", at=3.0))
    assert ids(registry.find("abc1")) == ["abc1"]
    assert ids(registry.find("abc")) == ["abc1"]
    assert ids(registry.find("ab")) == ["abd2", "abc1"]
    assert ids(registry.find("same")) == ["xyz3"]
    assert registry.find("nothing") == []


@pytest.mark.parametrize("ref", ["%", "_bc1", "ab%", "' or 1=1 --", ""])
def test_a_reference_is_no_pattern(registry: Registry, ref: str) -> None:
    registry.add(entry("abc1"))
    assert registry.find(ref) == []


def test_the_last_word_on_a_job_is_kept(registry: Registry) -> None:
    registry.add(entry("aa"))
    registry.close([("aa", "it succeeded")])
    assert registry.all()[0].glance == "it succeeded"


def test_jobs_of_another_engine_are_not_listed(registry: Registry, tmp_path: Path) -> None:
    other = Registry(tmp_path / "db" / "batch.sqlite", "flux", tmp_path / "elsewhere")
    registry.add(entry("aa"))
    assert other.all() == []
    submitted_by_hand(tmp_path, "bb", engine="flux")
    assert ids(registry.all()) == ["aa"]


def test_what_is_removed_is_not_known_any_more(registry: Registry) -> None:
    registry.add(entry("aa"))
    registry.remove(["aa"])
    assert registry.all() == []


def test_a_job_that_was_submitted_by_hand_is_listed(registry: Registry, tmp_path: Path) -> None:
    registry.add(entry("aa", at=1.0))
    submitted_by_hand(tmp_path, "bb", at=2.0)
    assert ids(registry.all()) == ["bb", "aa"]
    assert registry.all()[0].folder == str(tmp_path / "jobs" / "bb")


def test_a_lost_file_is_made_again_from_the_folders(registry: Registry, tmp_path: Path) -> None:
    submitted_by_hand(tmp_path, "aa")
    assert ids(registry.find("aa")) == ["aa"]
    (tmp_path / "db" / "batch.sqlite").unlink()
    assert ids(registry.find("aa")) == ["aa"]


def test_a_broken_file_is_put_aside_and_made_again(registry: Registry, tmp_path: Path) -> None:
    submitted_by_hand(tmp_path, "aa")
    place = tmp_path / "db" / "batch.sqlite"
    place.parent.mkdir()
    place.write_bytes(b"this is no database" * 100)
    assert ids(registry.all()) == ["aa"]
    assert place.with_suffix(".broken").read_bytes().startswith(b"this is no database")


def test_folders_that_are_no_jobs_are_passed_over(registry: Registry, tmp_path: Path) -> None:
    for name, text in (("empty", None), ("broken", "{"), ("other", '{"id": "zz"}')):
        (tmp_path / "jobs" / name).mkdir(parents=True)
        if text is not None:
            (tmp_path / "jobs" / name / "about.json").write_text(text)
    (tmp_path / "jobs" / "a-file").write_text("")
    submitted_by_hand(tmp_path, "aa")
    (tmp_path / "jobs" / "aa").rename(tmp_path / "jobs" / "copied")
    assert registry.all() == []
    assert registry.rebuild() == 0


def test_several_processes_may_write_at_once(registry: Registry, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, mark, str(MANY)]) for mark in "ab"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    found = registry.all()
    assert len(found) == 2 * MANY
    assert all(each.glance == "{}" for each in found)
