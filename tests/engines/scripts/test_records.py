"""What scripts leave word of is read as it was meant, whatever is in it."""

from __future__ import annotations

import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.engines.scripts.records import by_key, read_log, read_logs

BASE = files("jobman.engines.scripts").joinpath("runtime", "base.sh").read_text()
LINE = "1.5\tfailed\tt.0\t2\t3\texit\tn1\tit broke\n"


@settings(max_examples=30)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_a_message_is_one_line_whatever_it_says(text: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "log"
        script = f'{BASE}\nLOG=$1\ntell failed t.0 2 3 exit n1 "$2"\ntell succeeded t.0'
        subprocess.run(["bash", "-c", script, "-", str(log), f"it said {text}"], check=True, timeout=30)
        first, second = read_logs(Path(place))
    assert (first.kind, first.key, first.attempt, first.exit_code, first.nodes) == (
        "failed",
        "t.0",
        2,
        3,
        "n1",
    )
    assert first.message == f"it said {text}".replace("\t", " ").replace("\n", " ")
    assert (second.kind, second.attempt, second.exit_code) == ("succeeded", 0, None)


def test_a_line_that_is_not_whole_yet_is_left_for_later() -> None:
    assert len(list(read_log(LINE + LINE[:-4]))) == 1
    assert list(read_log(LINE[:-1])) == []


def test_lines_that_make_no_sense_are_passed_over() -> None:
    wrong = ["", "x", "no\ttime\tt.0\t1\t0\t\t\t", "1.0\tfailed\tt.0\tmany\t0\t\t\t", "\0\0\0"]
    assert [line.at for line in read_log("\n".join([*wrong, LINE]))] == [1.5]


def test_a_signal_stands_before_the_message() -> None:
    (line,) = read_log(LINE.replace("it broke", "@9 killed"))
    assert (line.signal, line.message) == (9, "killed")
    (line,) = read_log(LINE.replace("it broke", "@x odd"))
    assert (line.signal, line.message) == (None, "odd")


def test_logs_of_all_replicas_are_told_in_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "b.0").write_text(LINE.replace("1.5", "2.5").replace("t.0", "b.0"))
    (tmp_path / "t.0").write_text(LINE)
    (tmp_path / "broken").write_bytes(b"\xff\xfe\n")
    found = read_logs(tmp_path)
    assert [line.key for line in found] == ["t.0", "b.0"]
    assert set(by_key(found)) == {"t.0", "b.0"}


def test_a_job_that_left_no_word_has_no_lines(tmp_path: Path) -> None:
    assert read_logs(tmp_path / "nowhere") == []
