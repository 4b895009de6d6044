"""`jobman check --fix`: files are repaired as a whole or not at all, and the difference is shown."""

# ruff: noqa: E501 - a document stands in one line

import os
import stat
from pathlib import Path

import pytest

BROKEN = "# mine\ntasks:\n- command: [echo]   # hi\n  resources: {type: nodes, count: 1}\n"
FIXED = "# mine\nversion: 1\ntasks:\n- command: [echo]   # hi\n  resources: {type: node, count: 1}\n"
PARTLY = BROKEN.replace("count: 1", "count: 0")
DIFFERENCE = """\
--- {name}
+++ {name} (fixed)
@@ -1,4 +1,5 @@
 # mine
+version: 1
 tasks:
 - command: [echo]   # hi
-  resources: {{type: nodes, count: 1}}
+  resources: {{type: node, count: 1}}
"""


def text_of(name):
    return Path(name).read_bytes().decode()


def test_the_difference_is_shown_and_the_file_is_good(jobman, write):
    answer = jobman("check", "--fix", write(BROKEN))
    assert answer == (0, DIFFERENCE.format(name="job.yaml") + "job.yaml: ok (1 task)\n", "")
    assert text_of("job.yaml") == FIXED
    assert jobman("check", "--strict", "job.yaml").code == 0


def test_what_is_left_after_the_repair_is_reported(jobman, write):
    answer = jobman("check", "--fix", write(PARTLY))
    assert answer.code == 3
    assert "job.yaml:5:34: error JS406" in answer.out
    assert text_of("job.yaml") == FIXED.replace("count: 1", "count: 0")


def test_nothing_to_fix_leaves_the_file_alone(jobman, write):
    name = write(FIXED)
    os.utime(name, ns=(10**18, 10**18))
    before = Path(name).stat()
    assert jobman("check", "--fix", name) == (0, "job.yaml: ok (1 task)\n", "")
    after = Path(name).stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert text_of(name) == FIXED


def test_fixing_twice_changes_nothing_more(jobman, write):
    jobman("check", "--fix", write(PARTLY))
    before = text_of("job.yaml")
    assert "+++" not in jobman("check", "--fix", "job.yaml").out
    assert text_of("job.yaml") == before


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o640])
def test_the_mode_of_the_file_stays(jobman, write, mode):
    name = write(BROKEN)
    Path(name).chmod(mode)
    jobman("check", "--fix", name)
    assert stat.S_IMODE(Path(name).stat().st_mode) == mode


def test_nothing_but_the_file_is_left_in_the_folder(jobman, write):
    jobman("check", "--fix", write(BROKEN))
    assert [path.name for path in Path().iterdir()] == ["job.yaml"]


def test_behind_a_link_the_file_is_fixed_and_the_link_stays(jobman, write):
    write(BROKEN)
    Path("link.yaml").symlink_to("job.yaml")
    assert jobman("check", "--fix", "link.yaml").code == 0
    assert Path("link.yaml").is_symlink()
    assert text_of("job.yaml") == FIXED


def test_a_byte_order_mark_stays(jobman, write):
    jobman("check", "--fix", write(b"\xef\xbb\xbf" + BROKEN.encode()))
    assert Path("job.yaml").read_bytes() == b"\xef\xbb\xbf" + FIXED.encode()


def test_carriage_returns_stay(jobman, write):
    jobman("check", "--fix", write(BROKEN.replace("\n", "\r\n")))
    assert text_of("job.yaml") == FIXED.replace("\n", "\r\n")


# -- what cannot be written ---------------------------------------------------------------------------------


def test_a_read_only_file_is_not_replaced(jobman, write, monkeypatch):
    name = write(BROKEN)
    Path(name).chmod(0o444)
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # as for everybody but root
    answer = jobman("check", "--fix", name)
    assert answer.code == 1
    assert "jobman: cannot write job.yaml: Permission denied" in answer.err
    assert text_of(name) == BROKEN


def test_a_folder_that_cannot_be_written_gives_a_clear_error(jobman, write, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    name = write(BROKEN)
    monkeypatch.setattr("tempfile.mkstemp", refuse)
    answer = jobman("check", "--fix", name)
    assert answer.code == 1
    assert answer.err == "jobman: cannot write job.yaml: Permission denied\n"
    assert text_of(name) == BROKEN


def test_a_full_disk_leaves_the_file_as_it_was_and_nothing_beside_it(jobman, write, monkeypatch):
    def refuse(_handle):
        raise OSError(28, "No space left on device")

    name = write(BROKEN)
    monkeypatch.setattr("os.fsync", refuse)
    answer = jobman("check", "--fix", name)
    assert answer.code == 1
    assert answer.err == "jobman: cannot write job.yaml: No space left on device\n"
    assert text_of(name) == BROKEN
    assert [path.name for path in Path().iterdir()] == ["job.yaml"]


def test_no_difference_is_shown_that_was_not_written(jobman, write, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert jobman("check", "--fix", write(BROKEN)).out == ""


def test_a_missing_file_is_told_once(jobman):
    answer = jobman("check", "--fix", "job.yaml")
    assert answer.code == 3
    assert answer.out.count("JS001") == 1


# -- standard input and data --------------------------------------------------------------------------------


def test_standard_input_comes_out_fixed_and_the_rest_goes_to_stderr(jobman):
    answer = jobman("check", "--fix", "-", stdin=BROKEN)
    assert (answer.code, answer.out) == (0, FIXED)
    assert answer.err == DIFFERENCE.format(name="<stdin>") + "-: ok (1 task)\n"


def test_standard_input_that_is_good_comes_out_as_it_is(jobman):
    assert jobman("check", "--fix", "-", stdin=FIXED) == (0, FIXED, "-: ok (1 task)\n")


def test_what_is_left_of_standard_input_is_reported_on_stderr(jobman):
    answer = jobman("check", "--fix", "-", stdin=PARTLY)
    assert (answer.code, answer.out) == (3, FIXED.replace("count: 1", "count: 0"))
    assert "<stdin>:5:34: error JS406" in answer.err


def test_a_pipe_keeps_carriage_returns(real_jobman):
    answer = real_jobman("check", "--fix", "-", stdin=BROKEN.replace("\n", "\r\n"))
    assert answer.out == FIXED.replace("\n", "\r\n")


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_as_data_the_difference_goes_to_stderr(jobman, write, form):
    answer = jobman("check", "--fix", write(BROKEN), "-o", form)
    assert answer.code == 0
    assert answer.err == DIFFERENCE.format(name="job.yaml")
    assert "+++" not in answer.out
    if form == "json":
        assert answer.data[0]["ok"]


def test_the_fixed_text_and_the_data_do_not_mix_on_stdout(jobman):
    answer = jobman("check", "--fix", "-", "-o", "json", stdin=BROKEN)
    assert answer.code in (0, 2)
    assert answer.out == "" or answer.data[0]["ok"]


def test_several_files_are_each_fixed(jobman, write):
    write(BROKEN, "a.yaml")
    write(FIXED, "b.yaml")
    write(BROKEN, "c.yaml")
    answer = jobman("check", "--fix", "a.yaml", "b.yaml", "c.yaml")
    assert answer.code == 0
    assert {text_of(name) for name in ("a.yaml", "b.yaml", "c.yaml")} == {FIXED}
    assert "+++ a.yaml (fixed)" in answer.out
    assert "+++ b.yaml (fixed)" not in answer.out


def test_each_document_of_a_file_is_fixed(jobman, write):
    answer = jobman("check", "--fix", write(f"{BROKEN}---\n{BROKEN}"))
    assert text_of("job.yaml") == f"{FIXED}---\n{FIXED}"
    assert answer.out.endswith("job.yaml: ok (2 jobs, 2 tasks)\n")
    assert answer.code == 0


def test_fix_uses_the_given_parameters(jobman, write):
    name = write(
        "version: 1\nparameters: {n: 1}\ntasks:\n- command: [echo]\n  resources:\n    type: node\n    count: {{n}}\n"
    )
    assert jobman("check", "--fix", name, "--set", "n=3").code == 0
    assert jobman("check", "--fix", name, "--set", "n=three").code == 3
