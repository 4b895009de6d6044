"""Steps bring what is missing, write what is asked, and leave alone what is there."""

import os
import stat
import threading
from pathlib import Path

import pytest

from jobman.engines.local.orders import CannotRun, Stage, Write
from jobman.engines.local.steps import carry_out, digest


def take(folder: Path, *steps) -> None:
    carry_out(steps, str(folder))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "deep" / "empty").mkdir(parents=True)
    (source / "one").write_text("1")
    (source / "deep" / "two").write_text("2")
    (source / "deep" / "run").write_text("#!/bin/sh\n")
    (source / "deep" / "run").chmod(0o755)
    (source / "link").symlink_to("deep/two")
    return source


class TestStage:
    def test_a_file_arrives_with_its_mode(self, tmp_path):
        (tmp_path / "a").write_bytes(b"\0\xff" * 1_000_000)
        (tmp_path / "a").chmod(0o750)
        take(tmp_path, Stage("a", "new/folder/b"))
        assert (tmp_path / "new/folder/b").read_bytes() == b"\0\xff" * 1_000_000
        assert mode(tmp_path / "new/folder/b") == 0o750

    def test_a_folder_arrives_with_all_that_is_in_it(self, tmp_path, tree):
        take(tmp_path, Stage("source", "target"))
        target = tmp_path / "target"
        assert digest(target) == digest(tree)
        assert (target / "link").readlink() == Path("deep/two")
        assert mode(target / "deep" / "run") == 0o755
        assert (target / "deep" / "empty").is_dir()

    def test_what_is_there_already_is_not_copied_again(self, tmp_path, tree):
        take(tmp_path, Stage("source", "target"))
        before = {path: path.lstat().st_ino for path in (tmp_path / "target").rglob("*")}
        take(tmp_path, Stage("source", "target"))
        assert {path: path.lstat().st_ino for path in (tmp_path / "target").rglob("*")} == before

    def test_what_changed_is_copied_again_and_only_that(self, tmp_path, tree):
        take(tmp_path, Stage("source", "target"))
        before = (tmp_path / "target" / "one").stat().st_ino
        (tree / "deep" / "two").write_text("3")  # as long as before
        take(tmp_path, Stage("source", "target"))
        assert (tmp_path / "target" / "deep" / "two").read_text() == "3"
        assert (tmp_path / "target" / "one").stat().st_ino == before

    def test_a_mode_that_changed_is_brought(self, tmp_path, tree):
        take(tmp_path, Stage("source/one", "copy"))
        (tree / "one").chmod(0o600)
        take(tmp_path, Stage("source/one", "copy"))
        assert mode(tmp_path / "copy") == 0o600

    def test_without_a_target_it_must_be_there(self, tmp_path, tree):
        take(tmp_path, Stage("source"))
        with pytest.raises(CannotRun, match="could not stage nowhere"):
            take(tmp_path, Stage("nowhere"))

    def test_a_missing_source_is_a_failure_of_staging(self, tmp_path):
        with pytest.raises(CannotRun) as caught:
            take(tmp_path, Stage("nowhere", "there"))
        assert caught.value.reason == "stage-failed"
        assert caught.value.message == f"could not stage nowhere to there: {tmp_path}/nowhere does not exist"

    def test_content_that_was_not_meant_is_refused(self, tmp_path, tree):
        meant = digest(tree)
        take(tmp_path, Stage("source", "target", meant))
        (tree / "one").write_text("other")
        with pytest.raises(CannotRun, match="has changed since the job was submitted"):
            take(tmp_path, Stage("source", "target", meant))

    def test_a_place_that_cannot_be_written_is_named(self, tmp_path, tree):
        (tmp_path / "file").touch()
        with pytest.raises(CannotRun, match="file"):
            take(tmp_path, Stage("source/one", "file/below"))

    def test_a_pipe_cannot_be_staged(self, tmp_path, tree):
        os.mkfifo(tree / "pipe")
        with pytest.raises(CannotRun, match="neither a file nor a folder"):
            take(tmp_path, Stage("source", "target"))

    def test_a_folder_may_go_into_itself(self, tmp_path, tree):
        take(tmp_path, Stage("source", "source/copy"))
        assert (tree / "copy" / "one").read_text() == "1"
        assert not (tree / "copy" / "copy").exists()

    def test_many_may_stage_the_same_at_once(self, tmp_path):
        (tmp_path / "a").write_bytes(os.urandom(3_000_000))
        threads = [threading.Thread(target=take, args=(tmp_path, Stage("a", f"b{n % 2}"))) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {(tmp_path / f"b{n}").read_bytes() for n in range(2)} == {(tmp_path / "a").read_bytes()}
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b0", "b1"]


class TestWrite:
    @pytest.mark.parametrize("content", ["", "two\nlines\n", "häß ✓", "$HOME `id` \\"])
    def test_content_is_written_as_it_is(self, tmp_path, content):
        take(tmp_path, Write("new/file", content))
        assert (tmp_path / "new/file").read_bytes() == content.encode()

    @pytest.mark.parametrize(("given", "expected"), [("0644", 0o644), ("0755", 0o755), ("600", 0o600)])
    def test_the_mode_is_that_of_the_step_whatever_the_mask(self, tmp_path, given, expected):
        before = os.umask(0o077)
        try:
            take(tmp_path, Write("file", "x", given))
        finally:
            os.umask(before)
        assert mode(tmp_path / "file") == expected

    def test_a_file_that_is_there_is_replaced(self, tmp_path):
        take(tmp_path, Write("file", "old"), Write("file", "new", "0755"))
        assert (tmp_path / "file").read_text() == "new"
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    def test_a_file_that_is_right_is_left_alone(self, tmp_path):
        take(tmp_path, Write("file", "same"))
        before = (tmp_path / "file").stat().st_ino
        take(tmp_path, Write("file", "same"))
        assert (tmp_path / "file").stat().st_ino == before

    def test_a_place_that_cannot_be_written_is_named(self, tmp_path):
        with pytest.raises(CannotRun, match="could not write /proc/nowhere/x") as caught:
            take(tmp_path, Write("/proc/nowhere/x", "content"))
        assert caught.value.reason == "stage-failed"


class TestInACopy:
    def test_steps_come_before_the_hook_and_the_command(self, workshop):
        order = workshop.order(
            "./run.sh",
            steps=(Write("run.sh", "#!/bin/sh\ncat data\n", "0755"), Stage("run.sh", "data")),
            before=("/usr/bin/test", "-x", "run.sh"),
        )
        assert workshop.run(order).reason == "success"
        assert workshop.out(order) == "#!/bin/sh\ncat data\n"

    def test_steps_may_be_all_there_is_to_do(self, workshop):
        assert workshop.run(workshop.order(steps=(Write("file", "x"),))).reason == "success"
        assert workshop.file("file") == "x"

    def test_a_step_that_fails_keeps_the_command_from_running(self, workshop):
        order = workshop.shell("echo command", steps=(Stage("nowhere", "here"),))
        end = workshop.run(order)
        assert end.reason == "stage-failed"
        assert end.message == f"could not stage nowhere to here: {workshop.folder}/nowhere does not exist"
        assert workshop.out(order) == ""
