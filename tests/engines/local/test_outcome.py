from typing import Any

import pytest

from jobman.engines.local.containers import Container
from jobman.engines.local.orders import Order
from jobman.engines.local.outcome import Verdict, judge, seen_through, signal_number
from jobman.engines.local.prepared import Copy
from jobman.engines.local.records import Exit
from jobman.engines.local.runtimes import Runtime


def end(copy: int = 0, reason: str = "success", at: float = 1.0, **given: Any) -> Exit:
    if reason == "success":
        given.setdefault("exit_code", 0)
    return Exit(id=str(copy), copy=copy, reason=reason, ended_at=at, **given)  # type: ignore[arg-type]


def copies(count: int) -> list[Copy]:
    return [Copy(order=Order(id=str(n), folder="/", copy=n), node=f"node-{n}") for n in range(count)]


def test_all_is_well_where_all_copies_succeeded():
    assert judge([end(0), end(1)], copies(2)) == Verdict("", 0, None, "")


def test_one_copy_speaks_for_itself():
    assert judge([end(reason="exit", exit_code=3)], copies(1)) == Verdict("exit", 3, None, "")
    assert judge([end(reason="signal", signal="KILL")], copies(1)) == Verdict("signal", 137, 9, "")


def test_of_several_the_first_that_failed_by_itself_is_named():
    ends = [
        end(0, "signal", 1.0, signal="TERM", stopped=True),
        end(1, "exit", 3.0, exit_code=8),
        end(2, "signal", 2.0, signal="SEGV"),
    ]
    assert judge(ends, copies(3)) == Verdict("signal", 139, 11, "copy 2 on node-2: was ended by SIGSEGV")


def test_where_all_were_stopped_the_first_of_them_is():
    ends = [
        end(0, "signal", 2.0, signal="TERM", stopped=True),
        end(1, "exit", 1.0, exit_code=1, stopped=True),
    ]
    assert judge(ends, copies(2)).exit_code == 1


def test_a_copy_that_was_lost_lost_its_node():
    assert judge([end(reason="lost", message="restarted")], copies(1)) == Verdict(
        "node-lost", None, None, "restarted"
    )


@pytest.mark.parametrize(("name", "number"), [(None, None), ("TERM", 15), ("RTMIN+2", 36)])
def test_signals_have_numbers(name, number):
    assert signal_number(name) == number


def contained(memory: int | None = None) -> Copy:
    container = Container(name="n", image="img", argv=("x",), memory=memory)
    (copy,) = copies(1)
    return Copy(order=copy.order, node="n", container=container, runtime=Runtime("podman", "podman"))


def test_a_client_that_found_no_image_could_not_launch():
    seen = seen_through(end(reason="exit", exit_code=125), contained(), "Error: img: image not known")
    assert (seen.reason, seen.message) == ("launch-failed", "podman: img: image not known")


def test_the_exit_code_of_a_command_is_its_own():
    seen = end(reason="exit", exit_code=125)
    assert seen_through(seen, contained(), "anything") == seen


def test_a_container_that_was_stopped_ended_by_a_signal():
    seen = seen_through(end(reason="exit", exit_code=143, stopped=True), contained(), "")
    assert (seen.reason, seen.signal, seen.exit_code) == ("signal", "TERM", None)


def test_a_container_that_was_killed_for_its_memory_says_so():
    seen = seen_through(end(reason="exit", exit_code=137), contained(memory=1 << 20), "")
    assert (seen.reason, seen.message) == ("out-of-memory", "used more than the 1 MiB of memory it was given")
    assert seen_through(end(reason="exit", exit_code=137), contained(), "").reason == "exit"
