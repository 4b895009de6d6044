"""States that administrators give to queues and nodes."""

from typing import Any

import pytest

from jobman.control.refusals import Refusal
from jobman.control.store.records import Changes
from jobman.control.store.store import Store
from jobman.control.switches import Switches, standing
from jobman.sched.queues import Queue, QueueState

BATCH = Queue(name="batch")
NIGHT = Queue(name="night", state=QueueState.CLOSED, nodes=("n1",), depth=4)
QUEUES = (BATCH, NIGHT)


def switched(name: str, state: str, reason: str = "") -> Switches:
    switches = Switches()
    switches.keep_queue(switches.switch_queue(name, state, reason, "root", 5.0, QUEUES))
    return switches


def test_a_queue_is_in_the_state_of_the_settings_until_somebody_switches_it() -> None:
    assert [queue.state for queue in Switches().queues(QUEUES)] == ["open", "closed"]
    assert [queue.state for queue in switched("night", "open").queues(QUEUES)] == ["open", "open"]
    assert switched("batch", "draining").state_of_queue(BATCH) is QueueState.DRAINING


@pytest.mark.parametrize("state", ["draining", "closed"])
def test_a_queue_that_is_not_open_takes_no_jobs_in_and_says_why(state: str) -> None:
    switches = switched("batch", state, "new disks")
    with pytest.raises(Refusal) as raised:
        switches.refuse_closed(BATCH)
    assert (raised.value.code, raised.value.message) == (
        "wrong-state",
        f"The queue batch is {state}: new disks.",
    )
    switched("batch", "open").refuse_closed(BATCH)


def test_a_queue_that_the_settings_close_needs_nobody_to_say_so() -> None:
    with pytest.raises(Refusal, match=r"The queue night is closed\."):
        Switches().refuse_closed(NIGHT)


def test_queues_are_shown_with_who_switched_them() -> None:
    batch, night = switched("batch", "draining", "new disks").infos(QUEUES)
    assert (batch.state, batch.reason, batch.by, batch.at) == ("draining", "new disks", "root", 5.0)
    assert (night.state, night.nodes, night.depth, night.at) == ("closed", ["n1"], 4, None)


def test_an_unknown_queue_gets_a_guess() -> None:
    with pytest.raises(Refusal) as raised:
        Switches().switch_queue("bach", "open", "", "root", 5.0, QUEUES)
    assert (raised.value.code, raised.value.advice) == ("no-such-queue", "Did you mean batch?")
    with pytest.raises(Refusal) as raised:
        Switches().switch_queue("x", "open", "", "root", 5.0, QUEUES)
    assert raised.value.advice == "There are batch and night."


def test_a_node_that_is_drained_says_by_whom_and_why() -> None:
    switches = Switches()
    record = switches.switch_node("n1", "draining", "fan", "ada", 7.0, ["n1", "n2"])
    switches.keep_node(record)
    assert switches.draining() == {"n1": "node n1 is drained by ada: fan"}
    assert standing(record).by == "ada"
    assert switches.node("n2") is None


def test_a_node_that_is_used_again_is_not_drained() -> None:
    switches = Switches()
    for state in ("draining", "up"):
        switches.keep_node(switches.switch_node("n1", state, "", "ada", 7.0, ["n1"]))
    assert switches.draining() == {}


def test_an_unknown_node_is_refused() -> None:
    with pytest.raises(Refusal, match="There is no node n9"):
        Switches().switch_node("n9", "draining", "", "ada", 7.0, ["n1"])


def test_states_are_there_after_a_restart(tmp_path: Any) -> None:
    store = Store.open(tmp_path / "jobman.db")
    store.claim("a test")
    queue = Switches().switch_queue("batch", "closed", "why", "root", 5.0, QUEUES)
    node = Switches().switch_node("n1", "draining", "fan", "ada", 7.0, ["n1"])
    store.write(Changes(queue_states={"batch": queue}, node_states={"n1": node}))
    again = Switches(store.queue_states(), store.node_states())
    assert again.state_of_queue(BATCH) is QueueState.CLOSED
    assert list(again.draining()) == ["n1"]
    store.close()
