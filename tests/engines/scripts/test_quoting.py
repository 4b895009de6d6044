"""Any text reaches a program exactly as it was written, through a real shell."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobman.engines.scripts.quoting import AXIS, array, number, quoted, spans, table
from tests.engines.scripts.running import ONE, plan_of, run_script, scripts_of, written

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
WORDS = st.lists(TEXTS, max_size=6)
VARIABLES = st.from_regex(r"X_[A-Za-z0-9_]{0,8}", fullmatch=True)
NASTY = [
    "",
    " ",
    "'",
    '"',
    "$HOME",
    "$(date)",
    "`date`",
    "\\",
    "a\nb\n",
    "\t",
    "ü→𝄞",
    "*",
    "~",
    "!x",
    "#",
    "-n",
]


def bash(text: str) -> list[str]:
    """What a shell prints, split at zeros."""
    done = subprocess.run(["bash"], input=text.encode(), capture_output=True, timeout=30, check=True)
    assert done.stderr == b""
    return done.stdout.decode().split("\0")[:-1]


@given(WORDS)
@example(NASTY)
def test_an_array_has_the_words_that_were_given(words: list[str]) -> None:
    assert bash(f"{array('a', words)}\n[[ ${{a+set}} ]] && printf '%s\\0' \"${{a[@]}}\"; :") == words


@given(TEXTS, TEXTS, TEXTS)
@example("$x'", '"; echo', "{{")
def test_an_axis_is_filled_in_and_the_rest_stays(before: str, value: str, behind: str) -> None:
    before, behind = before.replace("{", ""), behind.replace("{", "")
    word = quoted(f"{before}{{{{lr}}}}{behind}{{{{ lr }}}}", ["lr"])
    assert bash(f"{AXIS}lr={quoted(value)}\nprintf '%s\\0' {word}") == [f"{before}{value}{behind}{value}"]


@given(TEXTS)
def test_braces_that_are_no_axis_stay(text: str) -> None:
    word = f"{{{{{text.replace('{', '').replace('}', '')}x}}}}"
    assert bash(f"printf '%s\\0' {quoted(word, ['lr'])}") == [word]


@given(st.dictionaries(st.integers(1, 99), TEXTS.filter(bool), max_size=5))
def test_a_table_has_its_entries_and_nothing_else(entries: dict[int, str]) -> None:
    shown = "".join(f"printf '%s\\0' \"${{T[{key}]}}\"\n" for key in entries)
    lines = f"{table('T', dict(entries))}\nprintf '%s\\0' \"${{#T[@]}}\"\n{shown}"
    assert bash(lines) == [str(len(entries)), *entries.values()]


def test_a_table_without_entries_is_left_out() -> None:
    assert table("T", {1: "", 2: None}) == ""


@given(st.floats(0, 10**6).map(lambda value: round(value, 3)))
def test_a_number_of_seconds_keeps_its_thousandths(value: float) -> None:
    assert float(number(value)) == value


def test_spans_are_written_as_scripts_read_them() -> None:
    assert spans([(1, 3), (7, 7)]) == "1-3,7-7"


@settings(max_examples=25)
@given(
    WORDS, st.dictionaries(VARIABLES, TEXTS, max_size=4), st.lists(TEXTS, min_size=1, max_size=3, unique=True)
)
@example(NASTY, {"X_ALL": "".join(NASTY)}, ["a", "it's $x\n"])
def test_a_whole_script_hands_over_words_variables_and_axes(
    words: list[str], environment: dict[str, str], values: list[str]
) -> None:
    words = [word.replace("{{", "") for word in words]
    environment = {name: value.replace("{{", "") for name, value in environment.items()}
    names = [f"${name}" for name in environment]
    show = f"printf '%s\\0' \"$@\" {' '.join(f'{chr(34)}{name}{chr(34)}' for name in names)}"
    plan = plan_of(
        f"- {{name: t, command: [x], matrix: {{lr: [a]}}, {ONE}}}",
        command=("bash", "-c", show, "-", *words, "{{lr}}"),
        environment=environment,
        matrix={"lr": tuple(values)},
        replicas=len(values),
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (script,) = scripts_of(plan, folder)
        for index, value in enumerate(values):
            done = run_script(script, folder, SLURM_ARRAY_TASK_ID=str(index))
            assert (done.returncode, done.stderr) == (0, b"")
            found = written(folder, f"t.{index}").decode().split("\0")[:-1]
            assert found == [*words, value, *environment.values()]
